"""Intervals of proportions and of the loss between two arms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.compare.quality import (
    BARE,
    _pooled,
    independent_difference,
    loss,
    paired_difference,
    wilson,
    wilson_of,
)
from carbonlens.domain.run import Quality

outcomes = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)


def test_paired_difference_by_hand():
    """10 of 100 only in the first, 4 only in the second: 11/102 and 5/102 in the adjusted counts."""
    first = [1] * 10 + [0] * 4 + [1] * 86
    second = [0] * 10 + [1] * 4 + [1] * 86
    value, low, high = paired_difference(first, second)
    p, q = 11 / 102, 5 / 102
    half = 1.959963984540054 * math.sqrt((p + q - (p - q) ** 2) / 102)
    assert value == pytest.approx(0.06)
    assert (low, high) == pytest.approx((p - q - half, p - q + half))


@given(pairs=outcomes)
def test_swapping_the_arms_flips_the_interval(pairs):
    a, b = zip(*pairs, strict=True)
    value, low, high = paired_difference(a, b)
    assert paired_difference(b, a) == pytest.approx((-value, -high, -low))
    assert -1 <= low <= high <= 1


def test_equal_outcomes_still_have_a_width():
    value, low, high = paired_difference([1] * 899, [1] * 899)
    assert value == 0
    assert 0 < high < 0.01
    assert low == pytest.approx(-high)


def test_paired_outcomes_need_the_same_examples():
    with pytest.raises(ValueError, match="same examples"):
        paired_difference([1, 0], [1])


def test_wilson_agrees_with_scipy():
    from scipy.stats import binomtest

    for k, n in ((0, 10), (3, 10), (98, 100), (10, 10)):
        oracle = binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert wilson(k / n, n) == pytest.approx((oracle.low, oracle.high), abs=1e-12)


def test_newcombe_by_his_own_example():
    """Newcombe 1998, table II, example a: 56/70 and 48/80 give 0.0524 to 0.3339 by method 10."""
    low, high = independent_difference(56 / 70, wilson(56 / 70, 70), 48 / 80, wilson(48 / 80, 80))
    assert (low, high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def quality(value, n=None, sha=None, **more):
    return Quality(name="accuracy", value=value, n=n, outcomes_sha256=sha, **more)


def test_outcomes_are_narrower_than_counts_and_counts_than_nothing():
    right = {"a": [1] * 490 + [0] * 10, "b": [1] * 488 + [0] * 12}
    paired, why = loss(quality(0.98, 500, "a"), quality(0.976, 500, "b"), right)
    counted, _ = loss(quality(0.98, 500), quality(0.976, 500), right)
    bare, reason = loss(quality(0.98), quality(0.976), right)
    assert why is None
    assert (paired.value, counted.value) == pytest.approx((0.004, 0.004))
    assert paired.high - paired.low < counted.high - counted.low
    assert (bare.low, bare.high) == (None, None)
    assert "bare value" in reason


def test_a_loss_of_a_figure_that_should_fall_is_its_rise():
    estimate, _ = loss(
        quality(0.10, 500, higher_is_better=False), quality(0.14, 500, higher_is_better=False), {}
    )
    assert estimate.value == pytest.approx(0.04)
    assert estimate.low < 0.04 < estimate.high


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_figure_is_unknown_and_never_zero(missing):
    """cases.json C49: evaluated on no samples."""
    estimate, reason = loss(quality(0.91, 100), quality(missing, 0), {})
    assert (estimate.value, estimate.state) == (None, "unknown")
    assert reason


def test_outcomes_of_another_scale_are_not_used():
    estimate, reason = loss(quality(98.0, 500, "a"), quality(97.6, 500, "a"), {"a": [1] * 490 + [0] * 10})
    assert estimate.value == pytest.approx(0.4)
    assert estimate.low is None
    assert reason


@pytest.mark.slow
@pytest.mark.parametrize(("only_first", "only_second"), [(0.004, 0.004), (0.02, 0.01), (0.05, 0.01)])
def test_the_paired_interval_covers(only_first, only_second):
    rng = np.random.default_rng(7)
    n, truth = 899, only_first - only_second
    counts = rng.multinomial(n, [only_first, only_second, 1 - only_first - only_second], size=1500)
    hits = 0
    for a, b, rest in counts:
        first = [1] * a + [0] * b + [1] * rest
        second = [0] * a + [1] * b + [1] * rest
        _, low, high = paired_difference(first, second)
        hits += low <= truth <= high
    assert hits / len(counts) >= 0.935


@pytest.mark.slow
def test_the_unpaired_interval_covers():
    rng = np.random.default_rng(8)
    n, p, q = 300, 0.97, 0.95
    hits = 0
    for a, b in zip(rng.binomial(n, p, 3000) / n, rng.binomial(n, q, 3000) / n, strict=True):
        low, high = independent_difference(a, wilson(a, n), b, wilson(b, n))
        hits += low <= p - q <= high
    assert hits / 3000 >= 0.935


@pytest.mark.parametrize(("share", "n"), [(1.7, 100), (-0.1, 100), (0.5, 0), (float("nan"), 10)])
def test_what_is_no_proportion_has_no_interval(share, n):
    with pytest.raises(ValueError, match="a proportion lies between"):
        wilson(share, n)


@pytest.mark.parametrize("n", [0, -1, -3])
def test_an_impossible_count_from_elsewhere_is_as_a_bare_figure(n):
    figure = Quality(name="acc", value=0.9, n=n, higher_is_better=True)
    sound = Quality(name="acc", value=0.8, n=10, higher_is_better=True)
    assert wilson_of(figure) is None
    found, why = loss(sound, figure, {})
    assert (found.bounds, why) == ((None, None), BARE)
    assert _pooled(sound, [figure, sound]).n is None
