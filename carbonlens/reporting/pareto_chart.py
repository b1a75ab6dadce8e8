"""Pareto chart: arms by energy and by another measure, those that none beats filled, the others hollow."""

from __future__ import annotations

import math
from typing import Final

from carbonlens.reporting.charts import BLUE, GREY, HALF, INK, NARROW, PAPER, Spec, theme, tipped
from carbonlens.reporting.content import Pareto, ParetoMark, Spot
from carbonlens.reporting.label_places import LETTER, place_labels
from carbonlens.reporting.names import clip

_HEIGHT: Final = 190
_AXIS_ROOM: Final = 60
_LONGEST: Final = 0.6
"""Part of the plot's width that a label may take."""
_ROOM: Final = 0.08
"""Part of the range left free beyond the outermost points."""


def pareto_spec(chart: Pareto, *, wide: bool = True) -> Spec:
    """Return the scatter of arms.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    width = (HALF if wide else NARROW) - _AXIS_ROOM
    x_domain = _domain([m.x for m in chart.marks])
    y_domain = _domain([m.y for m in chart.marks])
    x: Spec = {
        "field": "x", "type": "quantitative", "scale": {"domain": x_domain, "zero": False, "nice": False},
        "axis": {"title": chart.x_axis, "grid": True, "tickCount": 5},
    }  # fmt: skip
    y: Spec = {
        "field": "y", "type": "quantitative", "scale": {"domain": y_domain, "zero": False, "nice": False},
        "axis": {"title": chart.y_axis, "grid": True, "tickCount": 4},
    }  # fmt: skip
    values = [_row(mark) for mark in chart.marks]
    layers: list[Spec] = [
        *_whiskers(values, x, y),
        _points([v for v in values if v["front"]], x, y, front=True),
        _points([v for v in values if not v["front"]], x, y, front=False),
        *_labels(chart, values, (x_domain, y_domain), width),
    ]
    return theme({"height": _HEIGHT, "layer": layers}, width)


def _domain(spots: list[Spot]) -> list[float]:
    ends = [e for s in spots for e in (s.value, s.low, s.high) if e is not None]
    low, high = min(ends), max(ends)
    room = _ROOM * ((high - low) or abs(high) or 1.0)
    # A quantity that cannot be negative needs no room below nil.
    return [max(0.0, low - room) if low >= 0 else low - room, high + room]


def _row(mark: ParetoMark) -> Spec:
    return {
        "x": mark.x.value, "y": mark.y.value, "x_low": mark.x.low, "x_high": mark.x.high,
        "y_low": mark.y.low, "y_high": mark.y.high, "front": mark.on_front, "tip": mark.tip,
        "figures": [mark.x.figure_id, mark.y.figure_id],
    }  # fmt: skip


def _points(values: list[Spec], x: Spec, y: Spec, *, front: bool) -> Spec:
    mark: Spec = {"type": "point", "filled": True, "opacity": 1, "size": 70, "shape": "circle", "color": BLUE}
    if not front:
        mark |= {"shape": "diamond", "fill": PAPER, "stroke": GREY, "strokeWidth": 1.6, "size": 80}
    return {"data": {"values": values}, **tipped(mark, {"x": x, "y": y})}


def _whiskers(values: list[Spec], x: Spec, y: Spec) -> list[Spec]:
    rule: Spec = {"type": "rule", "color": INK, "strokeWidth": 1}
    return [
        {
            "data": {"values": [v for v in values if v[f"{at}_low"] is not None]},
            "mark": rule,
            "encoding": {"x": x, "y": y}
            | {at: {**own, "field": f"{at}_low"}, f"{at}2": {"field": f"{at}_high"}},
        }
        for at, own in (("x", x), ("y", y))
    ]


def _labels(
    chart: Pareto, values: list[Spec], domains: tuple[list[float], list[float]], width: int
) -> list[Spec]:
    """Return the names in pixels, and thin lines to those that had to move away from their points."""
    across, along = domains
    points = [
        (
            width * (v["x"] - across[0]) / (across[1] - across[0]),
            _HEIGHT * (1 - (v["y"] - along[0]) / (along[1] - along[0])),
        )
        for v in values
    ]
    most = int(width / LETTER * _LONGEST)
    texts = [clip(m.name, most - len(m.suffix)) + m.suffix if m.is_named else "" for m in chart.marks]
    scale = width / (across[1] - across[0])
    whiskers = [
        ((v["x_low"] - across[0]) * scale, (v["x_high"] - across[0]) * scale, y - 2, y + 2)
        for v, (_, y) in zip(values, points, strict=True)
        if v["x_low"] is not None
    ]
    placed = place_labels(points, texts, width=width, height=_HEIGHT, kept_free=whiskers)
    rows = [
        {"px": p.x, "py": p.y, "label": text, "align": p.align, "at_x": at[0], "at_y": at[1]}
        for p, text, at in zip(placed, texts, points, strict=True)
        if text
    ]
    pixel = {"type": "quantitative", "scale": None, "axis": None}
    place = {"x": {"field": "px", **pixel}, "y": {"field": "py", **pixel}}
    moved = [r for r in rows if not math.isclose(r["py"], r["at_y"], abs_tol=1.0)]
    ends = {"x2": {"field": "at_x"}, "y2": {"field": "at_y"}}
    text: Spec = {"type": "text", "baseline": "middle"}
    return [
        {
            "data": {"values": moved},
            "mark": {"type": "rule", "color": GREY, "strokeWidth": 0.7},
            "encoding": place | ends,
        },
        *(
            {
                "data": {"values": [r for r in rows if r["align"] == align]},
                "mark": {**text, **look, "align": align},
                "encoding": {**place, "text": {"field": "label"}},
            }
            # Whiskers and grid pass behind the names: a halo keeps them readable.
            for look in ({"stroke": PAPER, "strokeWidth": 3}, {})
            for align in ("left", "center", "right")
        ),
    ]
