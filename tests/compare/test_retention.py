"""Ratios of qualities and tests of paired outcomes."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from carbonlens.compare.gates import Measured, check_gates
from carbonlens.compare.quality import wilson
from carbonlens.compare.retention import (
    independent_ratio,
    mcnemar,
    paired_bootstrap,
    paired_ratio,
    retention,
)
from carbonlens.domain.run import Quality
from carbonlens.domain.study import Gate
from tests.compare.study_runs import DEMO, accuracy, demo_comparison, demo_outcomes

# MobileNetV2 int8 against fp32, 937 images, measured: 83.67 -> 82.39 %, 26 and 14 pairs differ.
FIRST = [1] * 758 + [1] * 26 + [0] * 14 + [0] * 139
SECOND = [1] * 758 + [0] * 26 + [1] * 14 + [0] * 139


def pair(p, lost, gained, n, draw):
    first = [int(draw.random() < p) for _ in range(n)]
    return first, [int(draw.random() >= lost) if x else int(draw.random() < gained) for x in first]


def test_mcnemar_is_the_exact_binomial_test():
    assert mcnemar(FIRST, SECOND) == pytest.approx(stats.binomtest(14, 40, 0.5).pvalue)
    assert mcnemar(SECOND, FIRST) == mcnemar(FIRST, SECOND)
    assert mcnemar([1, 0], [1, 0]) == 1.0


def test_the_paired_bootstrap_is_that_of_the_measured_case():
    low, high = paired_bootstrap(FIRST, SECOND)
    # Drawn: loss 1.28 points, [0.00, 2.67].
    assert (low, high) == pytest.approx((0.0, 0.0267), abs=0.0011)


def test_the_summed_bootstrap_is_that_of_drawing():
    first, second = pair(0.9, 0.05, 0.2, 300, random.Random(4))
    draw = random.Random(5)
    differences = [a - b for a, b in zip(first, second, strict=True)]
    means = sorted(math.fsum(draw.choices(differences, k=300)) / 300 for _ in range(4000))
    low, high = paired_bootstrap(first, second)
    assert (low, high) == pytest.approx((means[100], means[3899]), abs=0.006)


def test_ratio_intervals_cover():
    draw = random.Random(2)
    p, lost, gained, n, times = 0.9, 0.06, 0.3, 150, 600
    truth = (p * (1 - lost) + (1 - p) * gained) / p
    paired_hits = alone_hits = 0
    for _ in range(times):
        first, second = pair(p, lost, gained, n, draw)
        _, low, high = paired_ratio(second, first)
        paired_hits += low <= truth <= high
        a, b = sum(second) / n, sum(first) / n
        low, high = independent_ratio(a, wilson(a, n), b, wilson(b, n))
        alone_hits += low <= truth <= high
    assert 0.93 < paired_hits / times < 0.98
    # Pairs taken as independent are only wider.
    assert alone_hits / times > 0.95


def test_retention_turns_figures_over_of_which_less_is_better():
    up, down = (Quality(name="q", value=v, n=100) for v in (0.8, 0.6))
    kept, reason = retention(up, down, {})
    assert (kept.value, reason) == (pytest.approx(0.75), None)
    error = [Quality(name="q", value=v, higher_is_better=False) for v in (2.0, 2.5)]
    kept, reason = retention(*error, {})
    assert kept.value == pytest.approx(0.8)
    assert kept.low is None
    assert "bare value" in reason


@pytest.mark.parametrize("value", [None, math.nan, 0.0])
def test_a_figure_that_is_none_keeps_nothing_known(value):
    kept, reason = retention(Quality(name="q", value=0.9, n=9), Quality(name="q", value=value, n=9), {})
    assert (kept.value, kept.state) == (None, "unknown")
    assert reason


def test_a_retention_gate_by_paired_outcomes_with_its_test():
    gates = (Gate(name="kept", metric="accuracy", kind="min_retention", limit=0.98),)
    step = next(s for s in demo_comparison(gates=gates).steps if s.step == "pruned")
    (gate,) = step.gates
    mine, other = (demo_outcomes()[accuracy(n).outcomes_sha256] for n in ("pruned", "torch"))
    assert gate.observed.value == pytest.approx(sum(mine) / sum(other))
    assert gate.outcome == "pass"
    assert gate.p_value == mcnemar(other, mine)


@pytest.mark.parametrize(
    ("metric", "kind", "limit", "outcome"),
    [
        ("model_bytes", "max_ratio", 0.5, "pass"),
        ("model_bytes", "max_ratio", 0.1, "fail"),
        ("latency_p95_ms", "max_ratio", 0.5, "pass"),
        ("latency_p95_ms", "max_ratio", 0.1, "fail"),
        ("throughput_per_s", "min_retention", 2.0, "pass"),
        ("throughput_per_s", "min_value", 1e9, "fail"),
        ("power_w", "max_ratio", 1.05, "pass"),
        ("power_w", "max_value", 1.0, "fail"),
        ("peak_memory_bytes", "max_ratio", 1.0, "undetermined"),
        ("nothing", "min_retention", 0.9, "undetermined"),
    ],
)
def test_gates_of_size_latency_throughput_power_and_memory(metric, kind, limit, outcome):
    gates = (Gate(name="g", metric=metric, kind=kind, limit=limit),)
    step = next(s for s in demo_comparison(gates=gates).steps if s.step == "pruned")
    (gate,) = step.gates
    assert gate.outcome == outcome
    assert (gate.reason is None) == (outcome != "undetermined")
    assert "pruned" in DEMO


def test_a_step_that_was_not_measured_passes_no_gate():
    (gate,) = check_gates(
        (Gate(name="g", metric="accuracy", kind="min_retention", limit=0.9),),
        Measured(arm=None),  # type: ignore[arg-type]  # fields are checked by the record itself
        None,
        {},
    )
    assert gate.outcome == "undetermined"
