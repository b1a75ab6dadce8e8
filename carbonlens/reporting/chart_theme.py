"""Chart theme: the colours of all charts, on paper and in the dark, as plain data.

Charts are drawn once, with the colours of paper. On a screen a style sheet gives each of these
colours its own custom property, so that a dark page, or a user's own theme, recolours what is
drawn without drawing it again. Nothing is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LIGHT: Final[Mapping[str, str]] = {
    "blue": "#0072B2",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "grey": "#767676",
    "ink": "#1A1A1A",
    "rule": "#D0D0D0",
    "band": "#E4E4E4",
    "paper": "#FFFFFF",
}
"""Colours of the Okabe-Ito palette, those with at least 3:1 on white, and greys."""

DARK: Final[Mapping[str, str]] = {
    "blue": "#5FB4E5",
    "green": "#3CC79C",
    "vermilion": "#FF9A57",
    "grey": "#A6A6A6",
    "ink": "#ECECEC",
    "rule": "#44484C",
    "band": "#34383C",
    "paper": "#1C1E20",
}
"""The same on a dark page."""

DECOR: Final = ("rule", "band", "paper")
"""Colours that tell nothing by themselves: grid, the band of no change, the ground."""


def chart_css(light: Mapping[str, str] = LIGHT, dark: Mapping[str, str] = DARK) -> str:
    """Return the style sheet that recolours drawn charts on a screen.

    Args:
        light: Colours that charts were drawn with, by name.
        dark: Their counterparts on a dark page.
    """
    names = list(light)
    painted = [
        f'.chart svg [{what}="{light[name]}"] {{ {what}: var(--chart-{name}); }}'
        for name in names
        for what in ("fill", "stroke")
    ]
    return "\n".join(
        [
            f":root {{ {_properties(light)} }}",
            f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_properties(dark)} }} }}",
            "@media screen {",
            *painted,
            "}",
        ]
    )


def _properties(colours: Mapping[str, str]) -> str:
    return " ".join(f"--chart-{name}: {colour};" for name, colour in colours.items())
