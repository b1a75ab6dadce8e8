"""Student's t in plain Python, with scipy.special as the oracle."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from carbonlens.compare.student import quantile, two_sided_p

dfs = st.one_of(st.floats(0.5, 60), st.floats(60, 1e6))


@given(t=st.floats(1e-3, 60), df=dfs)
def test_tails_agree_with_scipy(t, df):
    oracle = 2 * special.stdtr(df, -t)
    if oracle > 1e-280:
        assert two_sided_p(t, df) == pytest.approx(oracle, rel=1e-9)
        assert two_sided_p(-t, df) == two_sided_p(t, df)


@given(p=st.floats(0.001, 0.9999).filter(lambda p: abs(p - 0.5) > 1e-3), df=dfs)
def test_quantiles_agree_with_scipy(p, df):
    assert quantile(p, df) == pytest.approx(special.stdtrit(df, p), rel=1e-8)


@given(p=st.floats(1e-9, 1 - 1e-9).filter(lambda p: abs(p - 0.5) > 1e-3))
def test_infinite_degrees_of_freedom_are_normal(p):
    assert quantile(p, math.inf) == pytest.approx(special.ndtri(p), rel=1e-9)


@pytest.mark.parametrize("df", [1.0, 4.0, 9.0, 1e8, math.inf])
def test_a_quantile_has_its_tail(df):
    for tail in (0.2, 0.05, 1e-4, 1e-10):
        assert two_sided_p(quantile(1 - tail / 2, df), df) == pytest.approx(tail, rel=1e-6)


def test_the_ends():
    assert quantile(0.5, 3) == 0.0
    assert two_sided_p(0.0, 3) == 1.0
    assert two_sided_p(math.inf, 3) == 0.0
    assert two_sided_p(1e200, 2.0) == pytest.approx(0.0, abs=1e-300)
    assert two_sided_p(1e200, 0.5) == pytest.approx(2 * special.stdtr(0.5, -1e200), rel=1e-6)


@pytest.mark.parametrize(("p", "df"), [(0.0, 3), (1.0, 3), (0.9, 0.0), (math.nan, 3)])
def test_what_has_no_quantile_is_refused(p, df):
    with pytest.raises(ValueError, match="no quantile"):
        quantile(p, df)
