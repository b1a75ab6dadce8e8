"""Label places: names beside the points of a scatter chart, none over another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

LETTER: Final = 6.1
"""Mean width of a letter of the labels, in pixels."""
LINE: Final = 14.0
"""Height of a line, in pixels."""
_AWAY: Final = 9.0
_SHIFTS: Final = (-LINE, LINE, -2 * LINE, 2 * LINE, -3 * LINE, 3 * LINE)

Align = Literal["left", "center", "right"]
_BEFORE: Final = {"left": 0.0, "center": 0.5, "right": 1.0}
"""Part of a label that lies left of its place."""

Box = tuple[float, float, float, float]
"""Left, right, top and bottom in pixels."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a label stands, in pixels from the plot's top left corner, and which part of it stands there."""

    x: float
    y: float
    align: Align

    def box(self, text: str) -> Box:
        """Return the room that the label takes."""
        wide = LETTER * len(text)
        start = self.x - _BEFORE[self.align] * wide
        return start, start + wide, self.y - LINE / 2, self.y + LINE / 2


def place_labels(
    points: Sequence[tuple[float, float]],
    texts: Sequence[str],
    *,
    width: float,
    height: float,
    kept_free: Sequence[Box] = (),
) -> list[Place]:
    """Return a place for each label: by its point, as near as no other label or point is in the way.

    A label may leave the plot, or lie over another, only where no tried place avoids it.

    Args:
        points: In pixels.
        texts: The labels.
        width: Of the plot, in pixels.
        height: Of the plot.
        kept_free: Where no label should stand.
    """
    taken: list[Box] = [*kept_free, *((x - 5, x + 5, y - 5, y + 5) for x, y in points)]
    placed: list[Place] = []
    for (x, y), text in zip(points, texts, strict=True):
        tried = list(_tried(x, y, LETTER * len(text), width))
        inside = [p for p in tried if _is_inside(p.box(text), width, height)] or tried
        free = (p for p in inside if not any(_overlap(p.box(text), box) for box in taken))
        chosen = next(free, inside[0])
        placed.append(chosen)
        taken.append(chosen.box(text))
    return placed


def _tried(x: float, y: float, wide: float, width: float) -> Iterator[Place]:
    """Yield places from the best on: beside the point, then further and further above and below it."""
    middle = min(max(x, wide / 2), max(width - wide / 2, wide / 2))
    yield Place(x=x + _AWAY, y=y, align="left")
    yield Place(x=x - _AWAY, y=y, align="right")
    for shift in _SHIFTS:
        yield Place(x=x + _AWAY, y=y + shift, align="left")
        yield Place(x=x - _AWAY, y=y + shift, align="right")
        yield Place(x=middle, y=y + shift, align="center")


def _is_inside(box: Box, width: float, height: float) -> bool:
    return box[0] >= 0 and box[1] <= width and box[2] >= -LINE and box[3] <= height + LINE / 2


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
