"""Charts: Vega-Lite specifications as plain data, in one theme.

Colours are of the Okabe-Ito palette with at least 3:1 contrast on white; sign,
outline and label carry the meaning without colour. Bars start at zero, values
stand beside the marks, and every printed label is the text of a figure.
"""

from __future__ import annotations

from typing import Any, Final

from carbonlens.reporting.chart_theme import LIGHT
from carbonlens.reporting.content import Bar, Drift, Forest, Trace, Waterfall
from carbonlens.reporting.format import fixed
from carbonlens.reporting.names import clip

Spec = dict[str, Any]

FONT: Final = "Carbonlens Inter"
BLUE: Final = LIGHT["blue"]
GREEN: Final = LIGHT["green"]
VERMILION: Final = LIGHT["vermilion"]
GREY: Final = LIGHT["grey"]
INK: Final = LIGHT["ink"]
RULE: Final = LIGHT["rule"]
BAND: Final = LIGHT["band"]
PAPER: Final = LIGHT["paper"]

WIDE: Final = 700
"""Width of a chart over the whole text, in pixels."""
HALF: Final = 490
"""Width of a chart that shares a row with another."""
NARROW: Final = 330
"""Width of a chart on a phone."""

_FILL: Final = {"baseline": GREY, "accepted": GREEN, "final": BLUE}
_OUTLINE: Final = {"rejected": VERMILION, "undetermined": GREY}
_VERDICT: Final = {"better": GREEN, "worse": VERMILION, "same": GREY, "inconclusive": GREY}
ROW_HEIGHT: Final = 26
_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"


def theme(spec: Spec, width: int) -> Spec:
    """Return the specification with size and theme."""
    return {
        "$schema": _SCHEMA,
        "width": width,
        "background": "transparent",
        "padding": 2,
        **spec,
        "config": {
            "aria": False,
            "font": FONT,
            "view": {"stroke": None},
            "text": {"font": FONT, "fontSize": 11, "color": INK},
            "axis": {
                "labelFont": FONT, "titleFont": FONT, "labelFontSize": 10, "titleFontSize": 10,
                "titleFontWeight": "normal", "labelColor": INK, "titleColor": INK, "domain": False,
                "ticks": False, "gridColor": RULE, "gridWidth": 0.5, "labelPadding": 6, "labelFlush": False,
            },
        },
    }  # fmt: skip


def tipped(mark: Spec, encoding: Spec, field: str = "tip") -> Spec:
    """Return mark and encoding that tell a pointer what it points at.

    The converter writes the words as a label of each mark, the renderer makes tool tips of them.

    Args:
        mark: Of Vega-Lite.
        encoding: Of Vega-Lite.
        field: Where the data rows hold the words.
    """
    return {"mark": {**mark, "aria": True}, "encoding": {**encoding, "description": {"field": field}}}


def row_axis(names: list[str]) -> tuple[list[str], Spec]:
    """Return the row keys and the axis; names may repeat, so that rows are told apart by number."""
    keys = [f"{number:02d}" for number in range(len(names))]
    return keys, {"field": "row", "type": "ordinal", "scale": {"domain": keys}, "axis": None}


def names_layer(names: list[str], keys: list[str], y: Spec, wide: bool) -> Spec:
    """Return the text marks that name the rows: left of the plot, or above each mark."""
    data = [
        {"row": key, "name": name if wide else clip(name, 34)} for key, name in zip(keys, names, strict=True)
    ]
    mark: Spec = {"type": "text", "baseline": "middle", "limit": 190 if wide else NARROW}
    mark |= {"align": "right", "dx": -8} if wide else {"align": "left", "dy": -15}
    # On a narrow chart lines pass behind the names: a halo keeps them readable.
    halo: list[Spec] = [] if wide else [{"mark": {**mark, "stroke": PAPER, "strokeWidth": 4}}]
    return {
        "data": {"values": data},
        "layer": [*halo, {"mark": mark}],
        "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "name"}},
    }


def _plot_width(wide: bool) -> int:
    # Room for names on the left and for values on the right of the bars.
    return WIDE - 320 if wide else NARROW - 90


def waterfall_spec(chart: Waterfall, *, wide: bool = True) -> Spec:
    """Return the waterfall: one row a step, bars in percent of the baseline.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    names = [b.name for b in chart.bars]
    keys, y = row_axis(names)
    ends = [e for b in chart.bars for e in (b.start, b.end, b.low, b.high) if e is not None]
    x: Spec = {
        "field": "start", "type": "quantitative",
        "scale": {"domain": [min(0.0, *ends), max(100.0, *ends)], "nice": False},
        "axis": {"title": chart.axis, "grid": True, "tickCount": 5},
    }  # fmt: skip
    values = [_bar_row(key, bar) for key, bar in zip(keys, chart.bars, strict=True)]
    drawn = [v for v in values if v["start"] is not None]
    layers: list[Spec] = [
        _bars([v for v in drawn if v["kind"] in _FILL], x, y, filled=True),
        _bars([v for v in drawn if v["kind"] in _OUTLINE], x, y, filled=False),
        _connectors(drawn, x, y, keys),
        _whiskers(drawn, x, y),
        _values(values, x, y),
        names_layer(names, keys, y, wide),
    ]
    step = ROW_HEIGHT if wide else 42
    return theme({"height": step * len(keys), "layer": layers}, _plot_width(wide))


def _bar_row(key: str, bar: Bar) -> Spec:
    reach = [e for e in (bar.start, bar.end, bar.high) if e is not None]
    return {
        "row": key, "kind": bar.kind, "start": bar.start, "end": bar.end, "low": bar.low, "high": bar.high,
        "label": bar.text, "reach": max(reach, default=0.0), "figure": bar.figure_id, "tip": bar.tip,
    }  # fmt: skip


def _bars(values: list[Spec], x: Spec, y: Spec, *, filled: bool) -> Spec:
    colours = _FILL if filled else _OUTLINE
    colour: Spec = {
        "field": "kind", "type": "nominal", "legend": None,
        "scale": {"domain": list(colours), "range": list(colours.values())},
    }  # fmt: skip
    mark: Spec = {"type": "bar", "height": 14, "cornerRadius": 0}
    if not filled:
        mark |= {"fill": PAPER, "fillOpacity": 0, "strokeWidth": 1.6, "strokeDash": [4, 2]}
    encoding = {"x": x, "x2": {"field": "end"}, "y": y, ("color" if filled else "stroke"): colour}
    return {"data": {"values": values}, **tipped(mark, encoding)}


def _connectors(values: list[Spec], x: Spec, y: Spec, keys: list[str]) -> Spec:
    """Return the thin lines that lead each accepted level to the next row."""
    rows = [v for v in values if v["kind"] in ("baseline", "accepted")]
    following = [v["row"] for v in rows[1:]] + [keys[-1]]
    data = [{"row": v["row"], "to": to, "start": v["end"]} for v, to in zip(rows, following, strict=True)]
    return {
        "data": {"values": data},
        "mark": {"type": "rule", "color": GREY, "strokeWidth": 0.7},
        "encoding": {"x": x, "y": y, "y2": {"field": "to"}},
    }


def _whiskers(values: list[Spec], x: Spec, y: Spec) -> Spec:
    """Return the intervals at the bars' ends, with caps."""
    data = [v for v in values if v["low"] is not None and v["high"] is not None]
    ends: Spec = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    cap: Spec = {"type": "tick", "color": INK, "thickness": 1.2, "size": 8}
    return {
        "data": {"values": data},
        "layer": [
            {"mark": {"type": "rule", "color": INK, "strokeWidth": 1.2}, "encoding": ends},
            {"mark": cap, "encoding": {"y": y, "x": {**x, "field": "low"}}},
            {"mark": cap, "encoding": {"y": y, "x": {**x, "field": "high"}}},
        ],
    }


def _values(values: list[Spec], x: Spec, y: Spec) -> Spec:
    """Return the printed values, outside the bars on their right."""
    return {
        "data": {"values": values},
        "mark": {"type": "text", "align": "left", "dx": 8, "baseline": "middle", "fontWeight": 600},
        "encoding": {"x": {**x, "field": "reach"}, "y": y, "text": {"field": "label"}},
    }


def forest_spec(chart: Forest, *, wide: bool = True) -> Spec:
    """Return the interval plot of changes, with the margin as a band around no change.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    names = [m.name for m in chart.means]
    keys, y = row_axis(names)
    # The values stand in a column of their own, to the right of all intervals.
    width = HALF - 350 if wide else NARROW - 160
    ends = [e for m in chart.means for e in (m.low, m.high)]
    span = [min(0.0, -chart.margin, *ends), max(0.0, chart.margin, *ends)]
    x: Spec = {
        "field": "change", "type": "quantitative", "scale": {"domain": span, "nice": True},
        "axis": {"title": chart.axis, "grid": True, "tickCount": 4},
    }  # fmt: skip
    values = [
        {
            "row": key, "change": m.change, "low": m.low, "high": m.high, "verdict": m.verdict,
            "label": m.label, "figure": m.figure_id, "tip": f"{m.name}: {m.text}, {m.verdict}",
        }
        for key, m in zip(keys, chart.means, strict=True)
    ]  # fmt: skip
    layers = [
        *_no_change(chart.margin, x),
        _whiskers(values, x, y),
        *_changes(values, x, y, width),
        names_layer(names, keys, y, wide),
    ]
    step = ROW_HEIGHT if wide else 42
    return theme({"height": step * len(keys), "layer": layers}, width)


def _no_change(margin: float, x: Spec) -> list[Spec]:
    """Return the band of changes regarded as none, and the line in its middle."""
    return [
        {
            "data": {"values": [{"low": -margin, "high": margin}]},
            "mark": {"type": "rect", "color": BAND},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
        },
        {
            "data": {"values": [{"change": 0}]},
            "mark": {"type": "rule", "color": INK, "strokeWidth": 0.8},
            "encoding": {"x": x},
        },
    ]


def _changes(values: list[Spec], x: Spec, y: Spec, width: int) -> list[Spec]:
    """Return the points of the changes and the column of their values."""
    colour: Spec = {
        "field": "verdict", "type": "nominal", "legend": None,
        "scale": {"domain": list(_VERDICT), "range": list(_VERDICT.values())},
    }  # fmt: skip
    return [
        {
            "data": {"values": values},
            **tipped(
                {"type": "point", "filled": True, "size": 45, "opacity": 1}, {"x": x, "y": y, "color": colour}
            ),
        },
        {
            "data": {"values": values},
            "mark": {"type": "text", "align": "left", "dx": 10, "baseline": "middle", "fontWeight": 600},
            "encoding": {"x": {"value": width}, "y": y, "text": {"field": "label"}},
        },
    ]


def drift_spec(chart: Drift, *, wide: bool = True) -> Spec:
    """Return small panels of rounds in run order, one per arm, on one scale.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    columns = _panel_columns(len(chart.traces), wide=wide)
    width = ((HALF if wide else NARROW) - 36) // columns - 20
    reach = max((abs(v) for t in chart.traces for v in t.values), default=1.0) or 1.0
    panels = [
        _panel(trace, width=width, reach=reach, first=number % columns == 0)
        for number, trace in enumerate(chart.traces)
    ]
    themed = theme({"concat": panels, "columns": columns, "spacing": 14}, width)
    del themed["width"]
    return themed


def _percent_off(value: float) -> str:
    """Return a deviation as a tool tip says it."""
    return f"{'+' if value > 0 else ''}{fixed(value, 1)} % off the median"


def _panel_columns(panels: int, *, wide: bool) -> int:
    if not wide:
        return min(panels, 2)
    return min(panels, 3)


def _panel(trace: Trace, *, width: int, reach: float, first: bool) -> Spec:
    values = [
        {"round": i, "off": v, "tip": f"{trace.name}, round {i}: {_percent_off(v)}"}
        for i, v in enumerate(trace.values, start=1)
    ]
    encoding: Spec = {
        "x": {
            "field": "round", "type": "quantitative", "scale": {"nice": False, "zero": False},
            "axis": {"title": "round", "grid": False, "tickMinStep": 1, "tickCount": 5, "format": "d"},
        },
        "y": {
            "field": "off", "type": "quantitative", "scale": {"domain": [-reach, reach]},
            "axis": {
                "title": None, "grid": True, "tickCount": 3, "labels": first,
                "labelExpr": "datum.value ? format(datum.value, '+.2~r') : '0'",
            },
        },
    }  # fmt: skip
    return {
        "data": {"values": values},
        "width": width,
        "height": 70,
        "title": {
            "text": clip(trace.name, max(width // 6, 8)), "font": FONT, "fontSize": 10, "anchor": "start",
            "color": INK,
        },
        "layer": [
            {"mark": {"type": "line", "color": BLUE, "strokeWidth": 1.2}, "encoding": encoding},
            tipped({"type": "point", "filled": True, "size": 18, "color": BLUE}, encoding),
        ],
    }  # fmt: skip
