"""Trade-offs: the spread of latencies is that of the calls, and a chart without data is not drawn."""

from __future__ import annotations

import msgspec
import pytest

from carbonlens.reporting.power_traces import NONE_KEPT
from carbonlens.reporting.view import build_view
from tests.compare.study_runs import demo_comparison
from tests.reporting.comparisons import DEMO, calls, comparison

replace = msgspec.structs.replace


def without_sketches(made):
    """The same comparison from runs that keep no single calls."""
    steps = tuple(replace(s, metrics=s.metrics and replace(s.metrics, latency=None)) for s in made.steps)
    return replace(made, steps=steps, baseline_metrics=replace(made.baseline_metrics, latency=None))


@pytest.mark.parametrize("made", [comparison(), demo_comparison()], ids=["by hand", "from runs"])
def test_all_calls_of_an_arm_are_in_its_bins(made):
    chart = build_view(made).engineering.latencies
    assert len(chart.spreads) == 5
    for spread in chart.spreads:
        assert sum(share for _, _, share in spread.bins) == pytest.approx(1.0)
        p50, p95, p99 = (spot.value for _, spot in spread.marks)
        below = sum(share for _, high, share in spread.bins if high <= p95)
        assert p50 < p95 < p99
        # A bin is as wide as a bar: half of one may lie on either side.
        widest = max(share for _, _, share in spread.bins)
        assert below == pytest.approx(0.95, abs=widest)


def test_the_bins_lie_where_the_calls_do():
    spread = build_view(comparison()).engineering.latencies.spreads[0]
    timed = calls(13.76)
    assert spread.bins[0][0] <= min(timed) * 1.02
    assert spread.bins[-1][1] >= max(timed) * 0.98
    for low, high, share in spread.bins:
        # Bucket and bin edges differ by up to the sketch's error.
        wide = sum(low * 0.98 <= t <= high * 1.02 for t in timed) / len(timed)
        assert share <= wide


def test_without_single_calls_or_a_front_the_charts_are_left_out_and_that_is_said():
    page = build_view(replace(without_sketches(comparison()), pareto=())).engineering
    assert page.latencies is None
    assert page.pareto == ()
    said = [p[0].text for p in page.left_out]
    assert said == [
        "No Pareto chart: that takes two steps with energy and latency or quality for each.",
        "No latency distribution: the runs keep no latencies of single calls.",
        NONE_KEPT,
    ]


def test_a_front_of_one_other_measure_is_one_chart():
    made = comparison(DEMO)
    points = tuple(
        replace(p, values={k: v for k, v in p.values.items() if k != "accuracy"}) for p in made.pareto
    )
    assert [p.name for p in build_view(replace(made, pareto=points)).engineering.pareto] == ["pareto_latency"]
