"""Charts: specifications in one theme, drawn from the view's figures."""

from __future__ import annotations

import json

import pytest

from carbonlens.reporting import charts
from carbonlens.reporting.charts import drift_spec, forest_spec, waterfall_spec
from carbonlens.reporting.view import build_view
from tests.reporting.comparisons import comparison

VIEW = build_view(comparison())
PAIRS = [
    (waterfall_spec, VIEW.business_case.waterfall),
    (forest_spec, VIEW.engineering.forest),
    (drift_spec, VIEW.engineering.drift),
]


def luminance(colour):
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [charts.BLUE, charts.GREEN, charts.VERMILION, charts.GREY, charts.INK])
def test_marks_stand_out_from_white(colour):
    assert 1.05 / (luminance(colour) + 0.05) >= 3


def values(spec):
    """All data rows of a specification."""
    if isinstance(spec, dict):
        yield from spec.get("data", {}).get("values", [])
        for part in spec.values():
            yield from values(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from values(part)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(("make", "chart"), PAIRS)
def test_a_specification_is_plain_data_without_links(make, chart, wide):
    spec = make(chart, wide=wide)
    assert json.loads(json.dumps(spec)) == spec
    assert spec["config"]["font"] == charts.FONT
    assert "url" not in json.dumps(spec["config"])
    assert make(chart, wide=wide) == spec


@pytest.mark.slow
def test_altair_accepts_the_specifications():
    altair = pytest.importorskip("altair", reason="altair is of an extra that is not installed")
    for make, chart in PAIRS:
        altair.Chart.from_dict(make(chart))


def test_bars_start_at_zero_and_labels_are_figures():
    spec = waterfall_spec(VIEW.business_case.waterfall)
    rows = [v for v in values(spec) if "figure" in v and "start" in v]
    assert {r["start"] for r in rows if r["kind"] in ("baseline", "final")} == {0.0}
    for row in rows:
        figure = VIEW.figures[row["figure"]]
        assert row["label"].startswith(figure.text)
        assert row["end"] - row["start"] == pytest.approx(100 * figure.figure.estimate.value)


def test_a_rejected_step_is_told_apart_without_colour():
    spec = waterfall_spec(VIEW.business_case.waterfall)
    outlined = [
        layer
        for layer in spec["layer"]
        if isinstance(layer.get("mark"), dict)
        and layer["mark"].get("strokeDash")
        and layer["mark"]["fillOpacity"] == 0
    ]
    rows = outlined[0]["data"]["values"]
    assert [r["kind"] for r in rows] == ["rejected"]
    assert rows[0]["label"].endswith("% rejected")
    assert rows[0]["label"].startswith("+")


def test_the_margin_is_a_band_around_no_change():
    spec = forest_spec(VIEW.engineering.forest)
    assert {"low": -1.0, "high": 1.0} in list(values(spec))
    assert spec["layer"][0]["mark"]["type"] == "rect"


def test_one_panel_per_arm_on_one_scale():
    spec = drift_spec(VIEW.engineering.drift)
    domains = {
        tuple(layer["encoding"]["y"]["scale"]["domain"])
        for panel in spec["concat"]
        for layer in panel["layer"]
    }
    assert len(spec["concat"]) == 5
    assert len(domains) == 1
