"""Small-sample statistics against scipy.stats as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from carbonlens.compare.statistics import (
    Sample,
    holm,
    minimum_detectable_log,
    normal_quantile,
    paired,
    sample,
    t_quantile,
    welch,
)

BASELINE = (10.2, 10.4, 10.1, 10.6, 10.3)
OPTIMIZED = (8.1, 8.5, 8.0, 8.4, 8.2)

values = st.lists(st.floats(0.1, 100.0), min_size=3, max_size=12)


def test_golden_ab_1_paired_t():
    """golden.json ab/1-paired-t."""
    over = paired([(1.0, BASELINE), (-1.0, OPTIMIZED)])
    half = over.half_width(0.95)
    assert over.mean == pytest.approx(2.08, rel=1e-9)
    assert over.se * 5**0.5 == pytest.approx(0.10954451150103292, rel=1e-9)
    assert (over.mean - half, over.mean + half) == pytest.approx(
        (1.9439825238683492, 2.216017476131651), rel=1e-9
    )
    assert t_quantile(0.975, 4) == pytest.approx(2.7764451051977934, rel=1e-12)


def test_the_normal_interval_of_u_95_is_the_t_interval():
    over = paired([(1.0, BASELINE), (-1.0, OPTIMIZED)])
    assert over.u_95 * normal_quantile(0.975) == pytest.approx(over.half_width(0.95))


@given(a=values, b=values)
def test_welch_agrees_with_scipy(a, b):
    if np.std(a) < 1e-3 or np.std(b) < 1e-3:
        return
    over = welch([(1.0, a), (-1.0, b)])
    oracle = stats.ttest_ind(a, b, equal_var=False)
    assert over.p_value() == pytest.approx(oracle.pvalue, rel=1e-6, abs=1e-12)
    low, high = oracle.confidence_interval(0.95)
    assert over.mean - over.half_width(0.95) == pytest.approx(low, rel=1e-6, abs=1e-9)
    assert over.mean + over.half_width(0.95) == pytest.approx(high, rel=1e-6, abs=1e-9)


@given(a=values)
def test_paired_p_agrees_with_scipy(a):
    b = [v * (1 + 0.01 * i) + 1 for i, v in enumerate(a)]
    over = paired([(1.0, a), (-1.0, b)])
    assert over.p_value() == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-6, abs=1e-12)


@given(a=values)
def test_order_of_the_rounds_does_not_matter(a):
    assert sample(a) == sample(a[::-1])


def test_one_value_has_no_scatter():
    over = sample([3.0])
    assert (over.mean, over.half_width(0.95), over.p_value(), over.u_95) == (3.0, None, None, None)
    assert minimum_detectable_log(over, 0.95) is None
    assert welch([(1.0, [3.0]), (-1.0, [2.0, 2.1])]).se is None


def test_no_values_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        sample([])


@pytest.mark.parametrize(("mean", "p"), [(0.0, 1.0), (0.1, 0.0)])
def test_rounds_without_any_scatter(mean, p):
    assert sample([mean] * 5).p_value() == p
    assert sample([mean] * 5).half_width(0.95) == 0.0
    assert welch([(1.0, [2.0] * 3), (-1.0, [2.0] * 3)]).half_width(0.95) == 0.0


def test_a_common_error_widens_in_quadrature():
    over = Sample(mean=0.0, se=0.01, df=1e9, n=10)
    assert over.half_width(0.95, 0.0) == pytest.approx(0.0196, rel=1e-3)
    assert over.half_width(0.95, 0.01) == pytest.approx(0.0196 * 2**0.5, rel=1e-3)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, None]) == [
        pytest.approx(0.03),
        pytest.approx(0.06),
        pytest.approx(0.06),
        None,
    ]
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.slow
def test_the_minimum_detectable_effect_is_found_in_80_percent_of_studies():
    rng = np.random.default_rng(1)
    n, sd = 10, 0.02
    design = Sample(mean=0.0, se=sd / n**0.5, df=n - 1, n=n)
    effect = minimum_detectable_log(design, 0.95)
    draws = rng.normal(effect, sd, (4000, n))
    t = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / n**0.5)
    assert np.mean(t > t_quantile(0.975, n - 1)) == pytest.approx(0.80, abs=0.03)


@given(
    mean=st.floats(-0.5, 0.5),
    se=st.floats(0, 0.1),
    n=st.integers(2, 12),
    u=st.floats(0, 0.2),
    confidence=st.sampled_from([0.90, 0.95, 0.99]),
)
def test_the_p_value_and_the_interval_agree(mean, se, n, u, confidence):
    over = Sample(mean=mean, se=se, df=n - 1, n=n)
    p, half = over.p_value(u), over.half_width(confidence, u)
    # Rounding decides where the end of the interval is the null itself.
    if abs(abs(mean) - half) > 1e-9:
        assert (p < 1 - confidence) == (abs(mean) > half)


def test_a_shared_error_has_the_effective_degrees_of_freedom_of_the_gum():
    """JCGM 100:2008, G.4.1: (0.01^2 + 0.02^2)^2 / (0.01^4 / 4), the shared error with infinitely many."""
    one = Sample(mean=0.0, se=0.01, df=4, n=5).with_common(0.02)
    assert one.se == pytest.approx(0.05**0.5 / 10)
    assert one.df == pytest.approx(100.0)
    half = stats.t.ppf(0.975, 100.0) * 0.05**0.5 / 10
    assert Sample(mean=0.0, se=0.01, df=4, n=5).half_width(0.95, 0.02) == pytest.approx(half)


def test_a_shared_error_without_scatter_is_normal():
    over = Sample(mean=0.1, se=0.0, df=4, n=5)
    assert over.half_width(0.95, 0.05) == pytest.approx(normal_quantile(0.975) * 0.05)
    assert over.p_value(0.05) == pytest.approx(2 * stats.norm.sf(2.0))


def test_a_shared_error_raises_the_detectable_effect():
    over = Sample(mean=0.0, se=0.01, df=4, n=5)
    assert minimum_detectable_log(over, 0.95, 0.05) > 2.8 * 0.05 > minimum_detectable_log(over, 0.95)
