"""Figures: one id, one print; quotients in which common errors cancel."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.reporting import format as fmt
from carbonlens.reporting.figures import FigureBook, change, exact, quotient, recentred, reduction


def test_an_id_prints_one_number_only():
    book = FigureBook()
    first = book.enter("a.b", "words", exact(1.0), fmt.plain(exact(1.0)))
    again = book.enter("a.b", "words", exact(1.0), fmt.plain(exact(1.0)))
    assert first.printed is again.printed
    with pytest.raises(ValueError, match=r"figure a\.b is printed as '1' and as '2'"):
        book.enter("a.b", "words", exact(2.0), fmt.plain(exact(2.0)))


def test_a_ratio_turns_round_with_its_interval():
    ratio = Estimate(value=0.12, unit="1", bounds=(0.11, 0.14))
    saved, changed = reduction(ratio), change(ratio)
    assert (saved.value, saved.low, saved.high) == pytest.approx((0.88, 0.86, 0.89))
    assert (changed.value, changed.low, changed.high) == pytest.approx((-0.88, -0.89, -0.86))
    assert reduction(unknown("1")).value is None


def test_a_common_error_cancels_in_a_quotient():
    one = Estimate(value=2.0, unit="J", u_random=0.02, u_by_source={"model": 0.6})
    other = Estimate(value=8.0, unit="J", u_random=0.0, u_by_source={"model": 2.4})
    ratio = quotient(one, other)
    assert ratio.value == 0.25
    assert ratio.u_total == pytest.approx(0.02 / 8)
    own = quotient(one, Estimate(value=8.0, unit="J", u_by_source={"another": 2.4}))
    assert own.u_total == pytest.approx(0.25 * math.hypot(0.01, 0.3, 0.3), rel=1e-3)


@pytest.mark.parametrize("state", ["unknown", "unbounded"])
def test_no_share_of_what_is_not_known(state):
    part, whole = exact(1.0, "kg"), Estimate(value=2.0, unit="kg", state=state)
    assert quotient(part, whole).value is None
    assert quotient(whole, part).value is None
    assert quotient(part, exact(0.0, "kg")).value is None


def test_a_stated_interval_gives_no_false_precision():
    stated = Estimate(value=2.0, unit="J", bounds=(1.0, 4.0))
    assert (quotient(stated, exact(4.0, "J")).low, quotient(stated, exact(4.0, "J")).high) == (None, None)


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0, 0.3), st.floats(0, 0.3))
def test_scaling_both_sides_changes_no_quotient(a, b, u, common):
    one = Estimate(value=a, unit="J", u_random=u * a, u_by_source={"m": common * a})
    two = Estimate(value=b, unit="J", u_random=u * b, u_by_source={"m": common * b})
    plain, scaled = quotient(one, two), quotient(one.scale(1e9, "J"), two.scale(1e9, "J"))
    assert scaled.value == pytest.approx(plain.value)
    assert scaled.u_total == pytest.approx(plain.u_total, rel=1e-6, abs=1e-12)


def test_an_interval_keeps_its_shape_where_its_value_is_moved():
    """An undetermined step's bar must not leave out the 100 % that its interval holds."""
    moved = recentred(Estimate(value=0.667, unit="1", bounds=(0.44, 1.01)), -0.333)
    assert (moved.low, moved.high) == (pytest.approx(-0.56), pytest.approx(0.01))
    assert recentred(unknown("1"), -0.3).low is None
