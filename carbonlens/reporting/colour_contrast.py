"""Colour contrast as WCAG 2.2 defines it (success criteria 1.4.3 and 1.4.11)."""

from __future__ import annotations

from typing import Final

TEXT: Final = 4.5
"""Least contrast of text of any size."""

GRAPHICS: Final = 3.0
"""Least contrast of what must be told apart but is not text."""


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21.

    Args:
        one: ``#rrggbb``.
        other: ``#rrggbb``.
    """
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
