"""Power chart: power over time, one panel an arm, phases as bands with letters, gaps as gaps."""

from __future__ import annotations

from typing import Final

from carbonlens.reporting.charts import BAND, BLUE, FONT, GREY, INK, NARROW, WIDE, Spec, theme, tipped
from carbonlens.reporting.names import clip
from carbonlens.reporting.power_content import PowerArm, PowerTraces

_LINE: Final = 14
"""Height of a line of text, in pixels."""
_LEAST_HEIGHT: Final = 84
_LETTER: Final = 6.2
"""Mean width of a letter, in pixels."""
_LEAST_BAND: Final = 9.0
"""A band as wide has room for its letter."""
_BESIDE: Final = 165
"""Room for the lines beside a panel, in pixels."""
_PANEL: Final = 300
"""Width of a panel that shares a row with another: both fill a page on its side."""
_AXIS: Final = 40
_ALIKE: Final = 4.0
"""Runs whose lengths differ by no more than this factor share one scale of time."""
_HEADROOM: Final = 1.16
"""Over the highest power, so that the bands' letters stand free of it."""


def power_spec(chart: PowerTraces, *, wide: bool = True) -> Spec:
    """Return one panel an arm, all on one scale of power that begins at zero.

    Args:
        chart: What to draw.
        wide: For paper and screens; else for phones.
    """
    columns = 2 if wide and len(chart.arms) > 1 else 1
    width = (_PANEL if columns > 1 else WIDE - _BESIDE - _AXIS) if wide else NARROW - _AXIS
    lasted = [a.duration_s for a in chart.arms]
    longest = max(lasted) if max(lasted) <= _ALIKE * min(lasted) else None
    most = _HEADROOM * max(max(a.peak.value, _highest(a)) for a in chart.arms) or 1.0
    panels: list[Spec] = []
    for number, arm in enumerate(chart.arms):
        axis = chart.axis if number >= len(chart.arms) - columns else None
        panels.append(_panel(arm, width, longest or arm.duration_s, most, axis, wide=wide))
        if not wide:
            panels.append(_lines_below(arm, width))
    themed = theme({"concat": panels, "columns": columns, "spacing": 12 if wide else 6}, width)
    del themed["width"]
    return themed


def _highest(arm: PowerArm) -> float:
    return max((w for w in arm.trace.high_w if w is not None), default=0.0)


def _panel(
    arm: PowerArm, width: int, length_s: float, most_w: float, axis: str | None, *, wide: bool
) -> Spec:
    height = max(_LEAST_HEIGHT, _LINE * len(arm.lines) + 2) if wide else _LEAST_HEIGHT
    x: Spec = {
        "field": "time_s", "type": "quantitative",
        "scale": {"domain": [0, length_s], "nice": False},
        "axis": {"title": axis, "grid": False, "tickCount": 6, "labelOverlap": True},
    }  # fmt: skip
    y: Spec = {
        "field": "power_w", "type": "quantitative", "scale": {"domain": [0, most_w], "nice": False},
        "axis": {"title": "W", "grid": True, "tickCount": 3},
    }  # fmt: skip
    layers = [*_bands(arm, x, y, width / length_s, most_w), *_curve(arm, x, y)]
    if arm.idle is not None:
        layers.append(_idle(arm.idle.value, y))
    if wide:
        layers += [_line(text, k, width) for k, text in enumerate(arm.lines)]
    title: Spec = {
        "text": clip(arm.name, int(width / _LETTER)), "font": FONT, "fontSize": 11, "fontWeight": 600,
        "anchor": "start", "color": INK, "offset": 4,
    }  # fmt: skip
    return {"width": width, "height": height, "title": title, "layer": layers}


def _bands(arm: PowerArm, x: Spec, y: Spec, px_per_s: float, most_w: float) -> list[Spec]:
    """Return the phases: bands by turns filled, with edges, each with its letter or its name."""
    known = {p.phase: p for p in arm.phases}
    rows = [(known[s.name], s) for s in arm.trace.spans if s.name in known]
    data = [
        {
            "time_s": s.start_s, "end_s": s.end_s, "power_w": 0, "top_w": most_w,
            "tip": f"{arm.name}, {p.name}: {p.power}" if p.mean else "",
            "filled": "ace".find(p.letter) >= 0,
        }
        for p, s in rows
    ]  # fmt: skip
    edges = sorted({t for _, s in rows for t in (s.start_s, s.end_s)})
    named = [
        {"time_s": (s.start_s + s.end_s) / 2, "power_w": most_w, "text": text}
        for p, s in rows
        if (text := _band_text(p.letter, p.name, (s.end_s - s.start_s) * px_per_s))
    ]
    over = {"x": x, "x2": {"field": "end_s"}, "y": y, "y2": {"field": "top_w"}}
    filled: Spec = {"type": "rect", "color": BAND}
    told = [row for row in data if row["tip"]]
    return [
        {"data": {"values": [r for r in told if r["filled"]]}, **tipped(filled, over)},
        {
            "data": {"values": [r for r in told if not r["filled"]]},
            **tipped({**filled, "fillOpacity": 0}, over),
        },
        {
            # Of one whose power is not known there is nothing to tell.
            "data": {"values": [r for r in data if r["filled"] and not r["tip"]]},
            "mark": filled,
            "encoding": over,
        },
        {
            "data": {"values": [{"time_s": t} for t in edges]},
            "mark": {"type": "rule", "color": GREY, "strokeWidth": 0.7},
            "encoding": {"x": x},
        },
        {
            "data": {"values": named},
            "mark": {"type": "text", "baseline": "top", "dy": 2, "fontSize": 10},
            "encoding": {"x": x, "y": y, "text": {"field": "text"}},
        },
    ]


def _band_text(letter: str, name: str, width_px: float) -> str:
    whole = f"{letter} {name}"
    if len(whole) * _LETTER + 4 <= width_px:
        return whole
    return letter if width_px >= _LEAST_BAND else ""


def _curve(arm: PowerArm, x: Spec, y: Spec) -> list[Spec]:
    """Return the ribbon of least and most, and the line of the means over it; a gap ends both."""
    trace = arm.trace
    tip = f"{arm.name}: mean {arm.mean.text}, peak {arm.peak.text}"
    rows: list[Spec] = []
    piece = 0
    last: Spec | None = None
    for start_s, mean, low, high in zip(trace.time_s, trace.power_w, trace.low_w, trace.high_w, strict=True):
        if mean is None:
            piece += last is not None
            last = None
            continue
        if last is not None:
            rows.pop()  # the end of the stretch before is the beginning of this one
        last = {"piece": piece, "time_s": start_s, "power_w": mean, "low_w": low, "high_w": high, "tip": tip}
        rows += [last, {**last, "time_s": min(start_s + trace.bin_s, arm.duration_s)}]
    detail = {"field": "piece", "type": "nominal"}
    step = {"interpolate": "step-after"}
    return [
        {
            "data": {"values": rows},
            **tipped(
                {"type": "area", "color": BLUE, **step},
                {"x": x, "y": {**y, "field": "low_w"}, "y2": {"field": "high_w"}, "detail": detail},
            ),
        },
        {
            "data": {"values": rows},
            **tipped(
                {"type": "line", "color": INK, "strokeWidth": 1.1, **step},
                {"x": x, "y": y, "detail": detail},
            ),
        },
    ]


def _idle(watts: float, y: Spec) -> Spec:
    return {
        "data": {"values": [{"power_w": watts}]},
        "mark": {"type": "rule", "color": GREY, "strokeWidth": 1.2, "strokeDash": [5, 3]},
        "encoding": {"y": y},
    }


def _line(text: str, number: int, width: int) -> Spec:
    """Return one line of text beside a panel, or below it."""
    return {
        "data": {"values": [{"text": text}]},
        "mark": {"type": "text", "align": "left", "baseline": "top", "dx": 12, "fontSize": 11},
        "encoding": {"x": {"value": width}, "y": {"value": _LINE * number}, "text": {"field": "text"}},
    }


def _lines_below(arm: PowerArm, width: int) -> Spec:
    layers = [_line(text, k, 0) for k, text in enumerate(arm.lines)]
    return {"width": width, "height": _LINE * len(layers), "view": {"stroke": None}, "layer": layers}
