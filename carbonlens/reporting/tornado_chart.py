"""Tornado: one bar an input, from the NPV at its one end to that at its other."""

from __future__ import annotations

from carbonlens.reporting.charts import (
    BLUE,
    GREY,
    INK,
    NARROW,
    ROW_HEIGHT,
    WIDE,
    Spec,
    names_layer,
    row_axis,
    theme,
    tipped,
)
from carbonlens.reporting.content import Tornado

_TALL = 46
_LABELS = 330
"""Room for names on the left and values on the right."""


def tornado_spec(chart: Tornado, *, wide: bool = True) -> Spec:
    """Return the tornado: bars around the expected value, a rule at it.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    names = [row.name for row in chart.rows]
    keys, y = row_axis(names)
    ends = [end for row in chart.rows for end in (row.low.value, row.high.value)]
    x: Spec = {
        "field": "low", "type": "quantitative",
        "scale": {"domain": [min(0.0, *ends), max(0.0, *ends)], "nice": True, "zero": True},
        "axis": {"title": chart.axis, "grid": True, "tickCount": 5},
    }  # fmt: skip
    values = [
        {
            "row": key, "low": row.low.value, "high": row.high.value, "label": row.text,
            "reach": max(0.0, row.low.value, row.high.value),
            "tip": f"{row.name}: {row.text}", "figures": [row.low.figure_id, row.high.figure_id],
        }
        for key, row in zip(keys, chart.rows, strict=True)
    ]  # fmt: skip
    data: Spec = {"values": values}
    layers: list[Spec] = [
        {
            "data": data,
            **tipped({"type": "bar", "height": 14, "color": BLUE}, {"x": x, "x2": {"field": "high"}, "y": y}),
        },
        {
            "data": {"values": [{"low": 0.0}]},
            "mark": {"type": "rule", "color": GREY, "strokeWidth": 1},
            "encoding": {"x": x},
        },
        {
            "data": {"values": [{"low": chart.middle}]},
            "mark": {"type": "rule", "color": INK, "strokeWidth": 1.4, "strokeDash": [4, 2]},
            "encoding": {"x": x},
        },
        {
            "data": data,
            "mark": {"type": "text", "align": "left", "dx": 8, "baseline": "middle", "fontWeight": 600},
            "encoding": {"x": {**x, "field": "reach"}, "y": y, "text": {"field": "label"}},
        },
        names_layer(names, keys, y, wide),
    ]
    height = (ROW_HEIGHT if wide else _TALL) * len(keys)
    width = WIDE - _LABELS - 60 if wide else NARROW - 170
    return theme({"height": height, "layer": layers}, width)
