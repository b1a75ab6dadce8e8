"""Drift, outliers and the first round are told; nothing is removed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from carbonlens.compare.regularity import drift_of, first_round, outliers_of
from carbonlens.compare.statistics import grubbs, trend
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import rounds

STUDY = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
NOISE = (0.001, -0.002, 0.0015, -0.001, 0.002, -0.0005, 0.0005, -0.0015)
FLAT = [10.0] * 8


def compared(values, base=FLAT, study=STUDY):
    return compare_study(study, [*rounds("a", base), *rounds("b", values)], Vector(), {})


def told(result, code):
    return [f for f in result.findings if f.code == code]


def test_the_slope_is_that_of_least_squares():
    values = [0.1, 0.3, 0.2, 0.5, 0.45, 0.7]
    places = [1, 2, 4, 5, 6, 9]
    over, oracle = trend(values, places), stats.linregress(places, values)
    assert (over.mean, over.se, over.p_value()) == pytest.approx((oracle.slope, oracle.stderr, oracle.pvalue))
    assert trend([1.0, 2.0], [1, 2]) is None
    assert trend([1.0, 2.0, 3.0], [1, 1, 1]) is None


def test_a_ratio_that_drifts_is_said_with_its_p_and_kept():
    result = compared([5.0 * math.exp(0.01 * i + e) for i, e in enumerate(NOISE)])
    (finding,) = told(result, "CL431")
    effect = result.steps[0].vs_previous
    assert effect.drift_per_round == pytest.approx(0.01, rel=0.05)
    assert effect.drift_p < 1e-4
    assert "+1 % a round" in finding.message or "+0.9" in finding.message
    assert effect.n_rounds == 8


def test_drift_that_all_arms_share_is_none():
    level = [1 + 0.05 * i for i in range(8)]
    result = compared(
        [5.0 * f * math.exp(e) for f, e in zip(level, NOISE, strict=True)], [10.0 * f for f in level]
    )
    assert result.steps[0].vs_previous.drift_p > 0.05
    assert not told(result, "CL431")


def test_grubbs_has_its_level_and_its_known_critical_value():
    """Grubbs' two-sided critical value for 8 values at 1 % is 2.274."""
    rng = np.random.default_rng(7)
    found = [grubbs(row.tolist(), 0.01) is not None for row in rng.normal(0, 1, (3000, 8))]
    assert np.mean(found) == pytest.approx(0.01, abs=0.006)
    below, above = _with_distance(2.26), _with_distance(2.29)
    assert grubbs(below, 0.01) is None
    assert grubbs(above, 0.01) == 7
    assert grubbs([1.0, 1.0], 0.01) is None
    assert grubbs([1.0] * 6, 0.01) is None


def _with_distance(wanted):
    """Return seven values and an eighth at so many standard deviations from the mean of all."""
    rest = [1.0, -1.0, 0.5, -0.5, 0.8, -0.8, 0.0]
    low, high = 0.0, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        values = np.array([*rest, middle])
        far = (middle - values.mean()) / values.std(ddof=1)
        low, high = (middle, high) if far < wanted else (low, middle)
    return [*rest, low]


def test_a_round_that_stands_out_is_named_and_counted():
    values = [5.0 * math.exp(e) for e in NOISE]
    values[4] = 6.0
    result = compared(values)
    effect = result.steps[0].vs_previous
    assert effect.outlier_rounds == (5,)
    assert effect.n_rounds == 8
    assert "round 5 of b against a" in told(result, "CL432")[0].message
    assert result.steps[0].metrics.energy_by_round_j[4] == 6.0


def test_below_five_rounds_nothing_is_told():
    few = [(1, 0.1), (2, 0.2), (3, 0.3), (4, 9.0)]
    assert drift_of(few) is None
    assert outliers_of(few) == ()
    assert first_round([1.0, 2.0, 3.0, 4.0]) is None


def test_the_first_round_is_set_apart_from_the_steady_state():
    result = compared([5.0 * math.exp(e) for e in NOISE], [9.5, *(10.0 * math.exp(e) for e in NOISE[1:])])
    first = result.baseline_metrics.first_round
    assert first.value == pytest.approx(0.95, abs=0.002)
    assert first.high < 1
    assert result.steps[0].metrics.first_round.low < 1 < result.steps[0].metrics.first_round.high
    (finding,) = told(result, "CL433")
    assert "the baseline -5" in finding.message
    assert "it is counted" in finding.message


def test_the_prediction_interval_of_the_first_round_holds_95_percent():
    rng = np.random.default_rng(9)
    held = [
        e.low < 1 < e.high
        for row in rng.normal(0, 0.02, (2000, 8))
        if (e := first_round(np.exp(row).tolist()))
    ]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_zero_energy_has_no_first_round():
    assert first_round([0.0] * 6) is None


def test_an_interval_that_cannot_be_made_as_wanted_is_said():
    wanted = Study(name="t", baseline="a", steps=STUDY.steps, unit="image", interval="bca")
    result = compared([5.0 * math.exp(e) for e in NOISE], study=wanted)
    assert result.steps[0].vs_previous.method == "t"
    assert "at least 20" in told(result, "CL437")[0].message
