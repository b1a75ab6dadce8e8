"""Sharing of one amount: conservation, order, idle, and errors through the shares."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.sharing import Claim, by_activity, divide, reserved
from carbonlens.domain.estimate import Estimate
from carbonlens.errors import UsageError

amounts = st.decimals(min_value=0, max_value=10**17, places=6)
weights = st.decimals(min_value=0, max_value=10**9, places=3)
uses = st.lists(weights, max_size=6)
rules = st.sampled_from(["own line", "shared"])


def energy(exact, **errors):
    return Estimate(value=float(exact), unit="J", u_by_source=errors)


def claims(values):
    return [Claim(name=f"c{n}", weight=w) for n, w in enumerate(values)]


def shared(exact, values, **options):
    return divide(Decimal(exact), energy(exact), claims([Decimal(v) for v in values]), **options)


@given(amounts, uses, st.none() | weights, rules)
def test_lines_sum_to_the_amount_and_none_is_negative(exact, values, whole, idle):
    division = divide(exact, energy(exact), claims(values), whole=whole, idle=idle)
    assert sum(line.exact for line in division.lines) == exact
    assert all(line.exact >= 0 and line.of_idle >= 0 for line in division.lines)
    least = max(Decimal("1e-12"), exact * Decimal("1e-26"))
    assert division.part("rounding") <= least * (2 * len(values) + 1)
    assert math.isclose(sum(line.share for line in division.lines if line.share is not None), 1.0)


@given(amounts, uses, st.none() | weights, rules, st.randoms())
def test_the_order_of_consumers_changes_nothing(exact, values, whole, idle, chance):
    given_claims = claims(values)
    mixed = list(given_claims)
    chance.shuffle(mixed)
    one = divide(exact, energy(exact), given_claims, whole=whole, idle=idle)
    two = divide(exact, energy(exact), mixed, whole=whole, idle=idle)
    assert {(x.name, x.kind, x.exact, x.of_idle) for x in one.lines} == {
        (x.name, x.kind, x.exact, x.of_idle) for x in two.lines
    }


@given(amounts, st.lists(weights | st.none(), min_size=1, max_size=5), st.none() | weights)
def test_an_unknown_use_is_never_taken_for_none(exact, values, whole):
    division = divide(exact, energy(exact), claims(values), whole=whole)
    silent = [line for line, v in zip(division.lines, values, strict=False) if v is None]
    assert all(line.exact is None and line.estimate.state == "unknown" for line in silent)
    assert sum(line.exact for line in division.lines if line.exact is not None) == exact
    if silent:
        assert "CL472" in {f.code for f in division.findings}
        assert division.part("idle") == 0


@given(amounts, uses, st.none() | weights, rules)
def test_errors_of_the_amount_are_conserved(exact, values, whole, idle):
    amount = energy(exact, sensor=float(exact) * 0.05)
    division = divide(exact, amount, claims(values), whole=whole, idle=idle)
    passed = math.fsum(line.estimate.u_by_source.get("sensor", 0.0) for line in division.lines)
    assert math.isclose(passed, amount.u_by_source["sensor"], rel_tol=1e-9, abs_tol=1e-9)


@given(st.lists(st.decimals(min_value=1, max_value=1000, places=2), min_size=2, max_size=5))
def test_errors_of_the_shares_cancel_in_the_sum(values):
    amount = energy(1000)
    division = divide(Decimal(1000), amount, [by_activity(f"m{n}", v) for n, v in enumerate(values)])
    for name in (f"activity:m{n}" for n in range(len(values))):
        moved = [line.estimate.u_by_source.get(name, 0.0) for line in division.lines]
        assert abs(math.fsum(moved)) < 1e-6
        assert max(moved) > 0
    assert {line.estimate.grade for line in division.lines if line.kind == "consumer"} == {"D"}


def test_by_hand():
    own = shared(100, [30, 10], whole=Decimal(80))
    assert [(x.name, x.exact) for x in own.lines] == [
        ("c0", Decimal("37.5")),
        ("c1", Decimal("12.5")),
        ("idle", Decimal(50)),
    ]
    spread = shared(100, [30, 10], whole=Decimal(80), idle="shared")
    assert [(x.exact, x.of_idle) for x in spread.lines] == [(75, Decimal("37.5")), (25, Decimal("12.5"))]


def test_what_rounding_leaves_has_its_own_line():
    thirds = shared(1, [1, 1, 1])
    assert [x.kind for x in thirds.lines] == ["consumer"] * 3 + ["rounding"]
    assert thirds.part("rounding") == Decimal("1e-12")


@pytest.mark.parametrize("values", [[], [0, 0]])
@pytest.mark.parametrize("idle", ["own line", "shared"])
def test_where_nobody_used_it_all_is_idle(values, idle):
    division = shared(100, values, whole=Decimal(10), idle=idle)
    assert (division.part("idle"), division.part("consumer")) == (100, 0)
    assert [f.code for f in division.findings] == ["CL471"]


def test_one_consumer_has_it_all_with_its_own_width():
    division = divide(Decimal(100), energy(100, sensor=5.0), [by_activity("only", Decimal("0.4"))])
    (line,) = division.lines
    assert line.exact == 100
    assert line.estimate.u_total == pytest.approx(5.0)


def test_uses_above_the_whole_share_it():
    division = shared(100, [90, 30], whole=Decimal(100))
    assert [x.exact for x in division.lines] == [75, 25]
    assert [f.code for f in division.findings] == ["CL470"]


def test_an_unknown_amount_stays_unknown():
    division = divide(None, Estimate(value=None, unit="J", state="unknown"), claims([Decimal(1), Decimal(3)]))
    assert [x.exact for x in division.lines] == [None, None]
    assert {x.estimate.state for x in division.lines} == {"unknown"}
    assert [x.share for x in division.lines] == [0.25, 0.75]


def test_a_lower_bound_gives_lower_bounds():
    amount = Estimate(value=100.0, unit="J", state="unbounded")
    division = divide(Decimal(100), amount, claims([Decimal(1), Decimal(1)]))
    assert {x.estimate.state for x in division.lines} == {"unbounded"}


@pytest.mark.parametrize("weight", ["-1", "NaN", "Infinity"])
def test_no_share_can_be_negative_or_no_number(weight):
    with pytest.raises(UsageError):
        shared(100, [weight, 1])


@pytest.mark.parametrize(
    ("request_", "used", "charged"),
    [(4, 1, 4), (1, 4, 4), (None, 3, 3), (4, None, None), (None, None, None)],
)
def test_the_larger_of_request_and_use_is_charged(request_, used, charged):
    exact = [None if x is None else Decimal(x) for x in (request_, used)]
    assert reserved(*exact) == charged


def test_a_share_has_the_relative_error_of_its_weight_and_of_the_others():
    # w = 30 +- 3 among 70 exact: d(w / (w + 70)) / dw = 70 / 100^2, so 3 * 0.007 * 1000 J = 21 J.
    sure = Claim(name="b", weight=Decimal(70))
    weight = Estimate(value=30.0, unit="requests", u_by_source={"log": 3.0})
    division = divide(
        Decimal(1000), energy(1000), [Claim(name="a", weight=Decimal(30), estimate=weight), sure]
    )
    assert division.of("a").estimate.u_by_source["log"] == pytest.approx(21.0)
    assert division.of("b").estimate.u_by_source["log"] == pytest.approx(-21.0)
