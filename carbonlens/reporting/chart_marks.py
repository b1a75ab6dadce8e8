"""Chart marks: every figure that the charts of a section draw, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from carbonlens.reporting.content import Spot


def spots(node: object) -> Iterator[Spot]:
    """Yield the drawn figures of a part of a report.

    Args:
        node: A section, a chart, a mark.
    """
    if isinstance(node, Spot):
        yield node
    elif isinstance(node, msgspec.Struct):
        for field in node.__struct_fields__:
            yield from spots(getattr(node, field))
    elif isinstance(node, tuple):
        for item in node:
            yield from spots(item)
