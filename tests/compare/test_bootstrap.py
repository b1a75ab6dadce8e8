"""The bootstrap: exact for golden cases, seeded from 20 rounds on."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from scipy import stats

from carbonlens.compare.bootstrap import EXACT_LIMIT, bca, exact, exact_count
from carbonlens.errors import UsageError

LONG = [float(v) for v in np.random.default_rng(3).exponential(1.0, 30)]


def test_golden_ab_2_exhaustive_bca():
    """golden.json ab/2-exhaustive-bca: all 5^5 resamples."""
    got = exact([2.1, 1.9, 2.1, 2.2, 2.1])
    assert got.resamples == 3125
    assert got.bias == pytest.approx(-0.057383131464912515, rel=1e-9)
    assert got.acceleration == pytest.approx(-0.06466169081658274, rel=1e-9)
    assert (got.alpha_low, got.alpha_high) == pytest.approx((0.008718535688696172, 0.9491612963413505))
    assert (got.low, got.high) == pytest.approx((1.98, 2.14))
    assert (got.percentile_low, got.percentile_high) == pytest.approx((1.98, 2.16))


def test_enumeration_is_that_of_every_ordered_draw():
    values = [1.0, 2.5, 2.6, 7.0]
    means = sorted(math.fsum(d) / 4 for d in itertools.product(values, repeat=4))
    got = exact(values, 0.90)
    assert got.resamples == len(means) == 256
    assert got.percentile_low == pytest.approx(means[math.ceil(0.05 * 256) - 1])
    assert got.percentile_high == pytest.approx(means[math.ceil(0.95 * 256) - 1])
    assert got.mean == statistics.fmean(values)


def test_the_limit_of_enumeration():
    assert exact_count(10) <= EXACT_LIMIT < exact_count(11)
    with pytest.raises(UsageError, match="11 values") as caught:
        exact([float(i) for i in range(11)])
    assert caught.value.mend


def test_bca_agrees_with_scipy_on_a_skewed_series():
    got = bca(LONG, resamples=49_999)
    oracle = stats.bootstrap((LONG,), np.mean, n_resamples=49_999, random_state=1).confidence_interval
    assert (got.low, got.high) == pytest.approx((oracle.low, oracle.high), abs=0.02)
    assert got.high - got.mean > got.mean - got.low  # skewed to the right


def test_bca_is_seeded_and_shifts_with_its_values():
    assert bca(LONG) == bca(LONG)
    assert bca(LONG, seed=1) != bca(LONG)
    moved = bca([v + 10 for v in LONG])
    assert moved.low == pytest.approx(bca(LONG).low + 10)


def test_too_few_values_are_refused():
    with pytest.raises(UsageError, match="at least 20"):
        bca(LONG[:19])
    with pytest.raises(UsageError, match="at least 2"):
        exact([1.0])


def test_equal_values_have_no_width():
    got = exact([3.0] * 5)
    assert (got.low, got.high, got.bias, got.acceleration) == (3.0, 3.0, 0.0, 0.0)
    assert bca([3.0] * 20).high == 3.0
