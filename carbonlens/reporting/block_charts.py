"""Block charts: bars, bridges and trends of a document, as records and as Vega-Lite specifications.

A mark draws one figure: its value times the chart's factor. What is printed beside it is the
figure's own text, so that a chart says nothing that its page does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from carbonlens.reporting.charts import (
    BLUE,
    GREEN,
    GREY,
    INK,
    NARROW,
    PAPER,
    ROW_HEIGHT,
    VERMILION,
    WIDE,
    Spec,
    names_layer,
    row_axis,
    theme,
    tipped,
)
from carbonlens.reporting.content import Phrase
from carbonlens.reporting.names import clip

Kind = Literal["actual", "earlier", "stated", "rise", "fall", "end"]
"""``stated`` is what somebody claims or plans: outlined, and not filled."""

_COLOURS: Final = {
    "actual": BLUE,
    "earlier": GREY,
    "stated": GREY,
    "rise": VERMILION,
    "fall": GREEN,
    "end": BLUE,
}
_PANEL_HEIGHT: Final = 92


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One mark.

    Attributes:
        value: What it draws, in the axis's unit; ``start`` is where its bar begins.
        low, high: Interval of the bar's end; ``None`` without one.
        factor: From the figure's own unit to the axis's.
    """

    name: str
    kind: Kind
    value: float
    figure_id: str
    text: str
    interval: str = ""
    factor: float = 1.0
    start: float = 0.0
    low: float | None = None
    high: float | None = None

    @property
    def end(self) -> float:
        """Where its bar ends."""
        return self.start + self.value

    @property
    def label(self) -> str:
        """What is printed beside it; a sign of what colour tells."""
        return {"rise": f"▲ {self.text}", "fall": f"▼ {self.text}"}.get(self.kind, self.text)

    @property
    def tip(self) -> str:
        """What a pointer at it is told."""
        return f"{self.name}: {self.text} {self.interval}".rstrip()


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One small chart of a trend: marks in order of time."""

    name: str
    marks: tuple[Mark, ...]


class Bars(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of bars from zero, or of a bridge from one total to the next."""

    name: str
    title: Phrase
    alt: str
    marks: tuple[Mark, ...]
    axis: str


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """Small panels over the same periods, each with a scale of its own that begins at zero."""

    name: str
    title: Phrase
    alt: str
    panels: tuple[Panel, ...]

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Those of all panels."""
        return tuple(m for p in self.panels for m in p.marks)


Plot = Bars | Trend


def plot_spec(chart: Plot, *, wide: bool = True) -> Spec:
    """Return the specification of a chart.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    return bars_spec(chart, wide=wide) if isinstance(chart, Bars) else trend_spec(chart, wide=wide)


def bars_spec(chart: Bars, *, wide: bool = True) -> Spec:
    """Return rows of bars, names on their left and values on their right.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    names = [m.name for m in chart.marks]
    keys, y = row_axis(names)
    low, high = _domain(chart.marks)
    x: Spec = {
        "field": "start", "type": "quantitative", "scale": {"domain": [low, high], "nice": False},
        "axis": {"title": chart.axis, "grid": True, "tickCount": 5},
    }  # fmt: skip
    rows = [_row(key, m, low) for key, m in zip(keys, chart.marks, strict=True)]
    layers = [
        _bars([r for r in rows if r["kind"] != "stated"], x, y, filled=True),
        _bars([r for r in rows if r["kind"] == "stated"], x, y, filled=False),
        whiskers(rows, x, y),
        {
            "data": {"values": rows},
            "mark": {"type": "text", "align": "left", "dx": 8, "baseline": "middle", "fontWeight": 600},
            "encoding": {"x": {**x, "field": "reach"}, "y": y, "text": {"field": "label"}},
        },
        names_layer(names, keys, y, wide),
    ]
    step = ROW_HEIGHT - 8 if wide else 42
    return theme({"height": step * len(keys), "layer": layers}, WIDE - 330 if wide else NARROW - 110)


def _domain(marks: Sequence[Mark]) -> tuple[float, float]:
    """Return the ends of the axis: zero is in it, but for a bridge whose steps are small beside its ends."""
    ends = [e for m in marks for e in (m.start, m.end, m.low, m.high) if e is not None]
    low, high = min(0.0, *ends), max(0.0, *ends)
    steps = [e for m in marks if m.kind in ("rise", "fall") for e in (m.start, m.end)]
    if steps and low == 0 and min(steps) > 0:
        # Totals are cut off, which their axis says; nobody could see the steps otherwise.
        low = max(0.0, min(steps) - (max(steps) - min(steps)))
    return low, high if high > low else low + 1.0


def _row(key: str, mark: Mark, base: float) -> Spec:
    reach = [e for e in (mark.start, mark.end, mark.high) if e is not None]
    start = base if mark.kind == "end" else mark.start
    return {
        "row": key, "kind": mark.kind, "start": start, "end": mark.end, "low": mark.low, "high": mark.high,
        "label": mark.label, "reach": max(reach), "tip": mark.tip, "figure": mark.figure_id,
    }  # fmt: skip


def _bars(rows: list[Spec], x: Spec, y: Spec, *, filled: bool) -> Spec:
    colour: Spec = {
        "field": "kind", "type": "nominal", "legend": None,
        "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
    }  # fmt: skip
    mark: Spec = {"type": "bar", "height": 11}
    if not filled:
        mark |= {"fill": PAPER, "fillOpacity": 0, "strokeWidth": 1.6, "strokeDash": [4, 2]}
    encoding = {"x": x, "x2": {"field": "end"}, "y": y, ("color" if filled else "stroke"): colour}
    return {"data": {"values": rows}, **tipped(mark, encoding)}


def whiskers(rows: list[Spec], x: Spec, y: Spec) -> Spec:
    """Return the intervals at the bars' ends, with caps.

    Args:
        rows: With ``low`` and ``high``.
        x: Encoding of the axis of values.
        y: Encoding of the rows.
    """
    data = [r for r in rows if r["low"] is not None and r["high"] is not None]
    cap: Spec = {"type": "tick", "color": INK, "thickness": 1.2, "size": 8}
    ends = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    return {
        "data": {"values": data},
        "layer": [
            {"mark": {"type": "rule", "color": INK, "strokeWidth": 1.2}, "encoding": ends},
            {"mark": cap, "encoding": {"y": y, "x": {**x, "field": "low"}}},
            {"mark": cap, "encoding": {"y": y, "x": {**x, "field": "high"}}},
        ],
    }


def trend_spec(chart: Trend, *, wide: bool = True) -> Spec:
    """Return small panels of columns over time.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    columns = min(len(chart.panels), 2 if wide else 1)
    width = (WIDE if wide else NARROW) // max(columns, 1) - (26 if wide else 12)
    panels = [_panel(panel, width) for panel in chart.panels]
    themed: dict[str, Any] = theme({"concat": panels, "columns": columns, "spacing": 18}, width)
    del themed["width"]
    return themed


def _panel(panel: Panel, width: int) -> Spec:
    keys = [f"{n:02d}" for n, _ in enumerate(panel.marks)]
    highest = max((max(m.value, m.high or 0.0) for m in panel.marks), default=1.0) or 1.0
    rows = [
        {
            "column": key, "name": m.name, "kind": m.kind, "value": m.value, "low": m.low, "high": m.high,
            "label": m.text, "tip": m.tip, "reach": max(m.value, m.high or 0.0), "zero": 0,
        }
        for key, m in zip(keys, panel.marks, strict=True)
    ]  # fmt: skip
    x: Spec = {"field": "column", "type": "ordinal", "axis": None, "scale": {"domain": keys, "padding": 0.45}}
    y: Spec = {
        "field": "value", "type": "quantitative", "axis": None,
        "scale": {"domain": [0, 1.22 * highest], "nice": False},
    }  # fmt: skip
    colour: Spec = {
        "field": "kind", "type": "nominal", "legend": None,
        "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
    }  # fmt: skip
    bounded = [r for r in rows if r["low"] is not None and r["high"] is not None]
    text: Spec = {"type": "text"}
    longest = max((len(m.text) for m in panel.marks), default=1)
    # Bold letters are two thirds as wide as high, and neighbours must not touch.
    size = min(10.0, max(6.5, width / max(len(keys), 1) / (0.68 * longest)))
    layers: list[Spec] = [
        {"data": {"values": rows}, **tipped({"type": "bar"}, {"x": x, "y": y, "color": colour})},
        {
            "data": {"values": bounded},
            "mark": {"type": "rule", "color": INK, "strokeWidth": 1.1},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": rows},
            "mark": {**text, "dy": -7, "fontWeight": 600, "fontSize": size},
            "encoding": {"x": x, "y": {**y, "field": "reach"}, "text": {"field": "label"}},
        },
        {
            "data": {"values": rows},
            "mark": {**text, "dy": 9, "fontSize": 9},
            "encoding": {"x": x, "y": {**y, "field": "zero"}, "text": {"field": "name"}},
        },
    ]
    title: Spec = {
        "text": clip(panel.name, max(width // 7, 8)),
        "fontSize": 11,
        "anchor": "start",
        "color": INK,
        "fontWeight": 600,
    }
    return {"width": width, "height": _PANEL_HEIGHT, "title": title, "layer": layers}


def is_drawn(value: float | None) -> bool:
    """Tell whether a chart can draw a number."""
    return value is not None and math.isfinite(value)
