"""Sustainability marks: the charts of a quarter's report, out of figures that its tables print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from carbonlens.reporting.block_charts import Bars, Kind, Mark, Panel, Trend, is_drawn
from carbonlens.reporting.content import Phrase
from carbonlens.reporting.figures import Entry
from carbonlens.reporting.names import clip
from carbonlens.reporting.sustainability_units import axis_of

_SAID = 12
"""Marks that the words of a chart name; the table beside it has all."""


def marks_of(entries: Iterable[tuple[str, Kind, Entry]]) -> tuple[tuple[Mark, ...], str]:
    """Return marks of one axis, and the unit of that axis; what is unknown is not drawn.

    Args:
        entries: Name, kind and entry of each.
    """
    held = [(n, k, e) for n, k, e in entries if is_drawn(e.printed.figure.estimate.value)]
    scale, factor = axis_of(e.printed.figure.estimate for _, _, e in held)
    unit = f"{scale.unit} {scale.suffix}".strip()
    return tuple(_mark(n, k, e, factor) for n, k, e in held), unit


def _mark(name: str, kind: Kind, entry: Entry, factor: float) -> Mark:
    estimate = entry.printed.figure.estimate
    low, high = (None if end is None else end * factor for end in (estimate.low, estimate.high))
    return Mark(
        name=clip(name, 34),
        kind=kind,
        value=(estimate.value or 0.0) * factor,
        figure_id=entry.figure_id,
        text=entry.printed.text,
        interval=entry.printed.interval,
        factor=factor,
        low=low if is_drawn(low) else None,
        high=high if is_drawn(high) else None,
    )


def bars(
    name: str, title: Phrase, entries: Sequence[tuple[str, Kind, Entry]], *, finding: str = ""
) -> Bars | None:
    """Return bars from zero; ``None`` where nothing can be drawn.

    Args:
        name: Of the chart, unique in the report.
        title: What it shows.
        entries: Name, kind and entry of each bar.
        finding: What it says, in words; told by its bars when empty.
    """
    marks, unit = marks_of(entries)
    if not marks:
        return None
    return Bars(name=name, title=title, alt=finding or said(marks), marks=marks, axis=unit)


def panel(name: str, entries: Sequence[tuple[str, Kind, Entry]]) -> Panel | None:
    """Return a small chart over periods; ``None`` where fewer than two can be drawn."""
    marks, unit = marks_of(entries)
    is_said = not unit or name.endswith(f", {unit}")
    return Panel(name=name if is_said else f"{name}, {unit}", marks=marks) if len(marks) > 1 else None


def trend(name: str, title: Phrase, panels: Iterable[Panel | None]) -> Trend | None:
    """Return panels side by side; ``None`` without any."""
    held = tuple(p for p in panels if p is not None)
    if not held:
        return None
    alt = "; ".join(f"{p.name}: {said(p.marks)}" for p in held)
    return Trend(name=name, title=title, alt=alt, panels=held)


def said(marks: Sequence[Mark]) -> str:
    """Return what marks show, in words with their figures."""
    told = "; ".join(f"{m.name} {m.text}" for m in marks[:_SAID])
    return told + (" and others, as the table beside it lists" if len(marks) > _SAID else "")
