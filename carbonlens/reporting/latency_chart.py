"""Latency chart: how the latencies of all calls are spread, one row an arm, with P50, P95 and P99."""

from __future__ import annotations

import math
from typing import Final

from carbonlens.reporting.charts import (
    BLUE,
    GREY,
    INK,
    NARROW,
    WIDE,
    Spec,
    names_layer,
    row_axis,
    theme,
    tipped,
)
from carbonlens.reporting.content import Latencies, Spread

_MOST_DECADES: Final = 4
"""Beyond these only powers of ten are marked."""
_ROW: Final = 40
_ROW_NARROW: Final = 68
_SHAPE: Final = 0.62
"""Part of a row that its highest bin fills."""
_HEIGHTS: Final = {"P50": 0.75, "P95": 0.5, "P99": 0.3}
"""How high the mark of a percentile stands, as a part of the row: told apart without colour."""


def latency_spec(chart: Latencies, *, wide: bool = True) -> Spec:
    """Return one small histogram an arm on one logarithmic scale.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    count = len(chart.spreads)
    width = WIDE - 420 if wide else NARROW - 20
    row = _ROW if wide else _ROW_NARROW
    edges = [e for s in chart.spreads for low, high, _ in s.bins for e in (low, high)]
    ends = [*edges, *(spot.value for s in chart.spreads for _, spot in s.marks)]
    span = [min(ends), max(ends)]
    x: Spec = {
        "field": "low", "type": "quantitative",
        "scale": {"type": "log", "domain": span, "nice": False},
        "axis": {
            "title": chart.axis, "grid": True, "values": ticks(*span) or span, "format": ".3~r",
            "labelOverlap": True,
        },
    }  # fmt: skip
    # Rows count downwards; a bin rises from the lower edge of its row.
    y: Spec = {"type": "quantitative", "scale": {"domain": [count, 0], "nice": False}, "axis": None}
    keys, names_at = row_axis([s.name for s in chart.spreads])
    bins = [b for i, s in enumerate(chart.spreads) for b in _bins(s, i, wide=wide)]
    marks = [m for i, s in enumerate(chart.spreads) for m in _marks(s, i, wide=wide)]
    over = {"x": x, "x2": {"field": "high"}, "y": {"field": "top", **y}, "y2": {"field": "foot"}}
    stem = {"x": x, "y": {"field": "top", **y}, "y2": {"field": "foot"}}
    plot: Spec = {
        "layer": [
            {"data": {"values": bins}, "mark": {"type": "rect", "color": BLUE}, "encoding": over},
            {"data": {"values": marks}, **tipped({"type": "rule", "color": INK, "strokeWidth": 1.6}, stem)},
            {
                "data": {"values": [{"foot": i + 1} for i in range(count)]},
                "mark": {"type": "rule", "color": GREY, "strokeWidth": 0.6},
                "encoding": {"y": {"field": "foot", **y}},
            },
        ]
    }
    words: Spec = {
        "layer": [
            _labels(chart, keys, names_at, width, wide=wide),
            names_layer([s.name for s in chart.spreads], keys, names_at, wide),
        ]
    }
    return theme(
        {"height": row * count, "layer": [plot, words], "resolve": {"scale": {"y": "independent"}}}, width
    )


def ticks(low: float, high: float) -> list[float]:
    """Return the round numbers (1, 2, 5 times a power of ten) from ``low`` to ``high``; few over decades.

    Args:
        low: More than nil.
        high: At least ``low``.
    """
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    digits = (1, 2, 5) if len(decades) <= _MOST_DECADES else (1,)
    found = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
    return [t for t in found if low <= t <= high]


def _bins(spread: Spread, row: int, *, wide: bool) -> list[Spec]:
    most = max((share for _, _, share in spread.bins), default=1.0) or 1.0
    part = _SHAPE if wide else _SHAPE / 2
    foot = row + 1
    return [
        {"low": low, "high": high, "top": foot - part * share / most, "foot": foot}
        for low, high, share in spread.bins
    ]


def _marks(spread: Spread, row: int, *, wide: bool) -> list[Spec]:
    part = 1.0 if wide else 0.5
    return [
        {
            "low": spot.value, "top": row + 1 - part * _HEIGHTS.get(name, 0.5), "foot": row + 1,
            "figure": spot.figure_id, "tip": f"{spread.name}: {name} {spot.text}",
        }
        for name, spot in spread.marks
    ]  # fmt: skip


def _labels(chart: Latencies, keys: list[str], y: Spec, width: int, *, wide: bool) -> Spec:
    mark: Spec = {"type": "text", "align": "left", "baseline": "middle", "fontWeight": 600}
    mark |= {"dx": 10} if wide else {"dy": -1}
    data = [{"row": key, "label": s.label} for key, s in zip(keys, chart.spreads, strict=True)]
    return {
        "data": {"values": data},
        "mark": mark,
        "encoding": {"x": {"value": width if wide else 0}, "y": y, "text": {"field": "label"}},
    }
