"""Charges joined to runs: the first way that matches, shared once, and summing exactly."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.charge_joining import COSTS, Consumer, join
from carbonlens.domain.charge import Charge
from carbonlens.domain.money import Money

HOUR = 3_600_000_000


def usd(amount):
    return Money(Decimal(str(amount)), "USD")


def charge(amount="24", **fields):
    given_fields = {"charge_id": "c", "start_us": 0, "end_us": 24 * HOUR, **fields}
    return Charge(billed=usd(amount), effective=usd(amount), **given_fields)


def run(name, first, last, **fields):
    return Consumer(run_id=name, start_us=first * HOUR, end_us=last * HOUR, **fields)


def told(joined, cost="effective"):
    return {p.run_id: (p.how, str(getattr(p, cost).amount.normalize())) for p in joined.parts}


RESOURCE = {"resource_id": "i-1", "tags": {"team": "t"}, "site": "paris"}


def test_a_resource_comes_before_tags_and_tags_before_time():
    by_resource = run("r", 0, 6, resources=("i-1",))
    by_tag = run("t", 0, 6, tags={"team": "t"})
    by_time = run("p", 0, 6, site="paris")
    every = [by_time, by_tag, by_resource]
    assert told(join([charge(**RESOURCE)], every)) == {"r": ("resource", "6"), None: ("resource", "18")}
    assert told(join([charge(**RESOURCE)], every[:2])) == {"t": ("tags", "6"), None: ("tags", "18")}
    assert told(join([charge(**RESOURCE)], every[:1])) == {"p": ("time", "6"), None: ("time", "18")}


def test_a_region_and_an_allocated_resource_match_too():
    pod = charge(tags={"AllocatedResourceId": "pod-1"})
    assert told(join([pod], [run("r", 0, 24, resources=("pod-1",))])) == {"r": ("resource", "24")}
    there = charge(region="eu-west-3")
    assert told(join([there], [run("r", 0, 24, region="eu-west-3")])) == {"r": ("time", "24")}


def test_tags_that_both_state_must_all_be_equal():
    bill = charge(tags={"team": "t", "study": "s"})
    near = run("near", 0, 24, tags={"team": "t", "study": "other"})
    right = run("right", 0, 24, tags={"team": "t", "study": "s"})
    assert told(join([bill], [near, right])) == {"right": ("tags", "24")}
    assert told(join([bill], [near])) == {None: ("none", "24")}
    # A run that names the team alone matches, whatever another one of the study says.
    other = run("other", 0, 24, tags={"study": "s", "team": "u"})
    alone = run("alone", 0, 24, tags={"team": "t"})
    assert told(join([bill], [other, alone])) == {"alone": ("tags", "24")}


def test_runs_that_weigh_nothing_leave_their_charge_unallocated():
    idle = run("a", 0, 24, resources=("i-1",), weight=Decimal(0))
    joined = join([charge(**RESOURCE)], [idle])
    assert told(joined) == {None: ("resource", "24")}
    assert joined.findings == ()


def test_no_match_is_unallocated_and_said():
    joined = join([charge()], [run("r", 0, 24, site="paris")])
    assert told(joined) == {None: ("none", "24")}
    assert [f.code for f in joined.findings] == ["CL317"]


@pytest.mark.parametrize(("first", "last"), [(24, 30), (-5, 0)])
def test_a_run_outside_the_charges_time_carries_nothing(first, last):
    joined = join([charge(**RESOURCE)], [run("r", first, last, resources=("i-1",))])
    assert told(joined) == {None: ("none", "24")}


def test_runs_side_by_side_share_no_more_than_the_charge():
    joined = join([charge(**RESOURCE)], [run(n, 0, 24, resources=("i-1",)) for n in "abc"])
    assert told(joined) == dict.fromkeys("abc", ("resource", "8"))


def test_measured_weights_share_the_whole_or_a_part_of_what_was_there():
    runs = [
        run("a", 0, 2, resources=("i-1",), weight=Decimal(3)),
        run("b", 2, 4, resources=("i-1",), weight=Decimal(1)),
    ]
    bill = [charge(**RESOURCE)]
    assert told(join(bill, runs)) == {"a": ("resource", "18"), "b": ("resource", "6")}
    joined = join(bill, runs, wholes={"c": Decimal(8)})
    assert told(joined) == {"a": ("resource", "9"), "b": ("resource", "3"), None: ("resource", "12")}


def test_a_runs_weight_is_spread_over_its_time():
    days = [
        charge(charge_id=str(d), start_us=d * 24 * HOUR, end_us=(d + 1) * 24 * HOUR, **RESOURCE)
        for d in (0, 1)
    ]
    long = run("long", 12, 36, resources=("i-1",), weight=Decimal(2))
    short = run("short", 0, 12, resources=("i-1",), weight=Decimal(1))
    sums = join(days, [long, short]).amounts("effective")["USD"]
    assert {name: m.amount for name, m in sums.items()} == {"long": 36, "short": 12}


def test_runs_without_a_weight_beside_others_share_by_time_and_that_is_said():
    runs = [run("a", 0, 6, resources=("i-1",), weight=Decimal(9)), run("b", 6, 12, resources=("i-1",))]
    joined = join([charge(**RESOURCE)], runs)
    assert told(joined) == {"a": ("resource", "6"), "b": ("resource", "6"), None: ("resource", "12")}
    assert [f.code for f in joined.findings] == ["CL318"]


def test_a_cost_that_a_charge_does_not_state_stays_unknown_for_its_runs():
    joined = join([charge(**RESOURCE)], [run("a", 0, 24, resources=("i-1",))])
    assert joined.parts[0].list_cost is None
    assert joined.amounts("list_cost") == {}


hours = st.integers(-10, 40)
weights = st.one_of(st.none(), st.decimals(0, 1000, places=3, allow_nan=False))
runs = st.lists(
    st.tuples(hours, st.integers(1, 30), st.sampled_from(["i-1", "i-2", ""]), weights), max_size=8
)
amounts = st.decimals(-(10**9), 10**9, places=12, allow_nan=False)
bills = st.lists(st.tuples(amounts, st.integers(0, 20), st.integers(0, 24)), min_size=1, max_size=5)


@given(bills, runs, st.one_of(st.none(), st.decimals(0, 5000, places=2, allow_nan=False)))
def test_parts_sum_to_each_charge_exactly_and_no_run_carries_more_than_it(rows, found, whole):
    charges = [
        charge(amount, charge_id=str(n), start_us=start * HOUR, end_us=(start + length) * HOUR, **RESOURCE)
        for n, (amount, start, length) in enumerate(rows)
    ]
    consumers = [
        run(str(n), first, first + length, resources=(name,) if name else (), site="paris", weight=weight)
        for n, (first, length, name, weight) in enumerate(found)
    ]
    wholes = None if whole is None else {c.charge_id: whole for c in charges}
    joined = join(charges, consumers, wholes=wholes)
    for one in charges:
        parts = [p for p in joined.parts if p.charge_id == one.charge_id]
        assert len({p.run_id for p in parts}) == len(parts)
        assert sum(p.effective.amount for p in parts) == one.effective.amount
        assert sum(p.share for p in parts) == pytest.approx(1)
        sign = 1 if one.effective.amount >= 0 else -1
        assert all(p.effective.amount * sign >= 0 for p in parts)
    backwards = join(charges, consumers[::-1], wholes=wholes)
    for cost in COSTS:
        assert joined.amounts(cost) == backwards.amounts(cost)


@pytest.mark.parametrize("place", [{"site": "paris"}, {"region": "eu"}])
def test_a_charge_of_another_resource_never_lands_on_a_run_by_their_place(place):
    other = run("r", 0, 6, resources=("i-1",), **place)
    unnamed = run("u", 0, 6, **place)
    line = charge(resource_id="i-2", **place)
    assert told(join([line], [other])) == {None: ("none", "24")}
    assert told(join([line], [other, unnamed])) == {"u": ("time", "6"), None: ("time", "18")}
    # A line that names no resource may be of any.
    assert told(join([charge(**place)], [other])) == {"r": ("time", "6"), None: ("time", "18")}


_SPANS = st.lists(st.tuples(st.integers(0, 23), st.integers(1, 6)), min_size=1, max_size=8)


@given(spans=_SPANS)
def test_time_that_no_run_covers_is_unallocated_however_many_run_at_once(spans):
    runs = [run(f"r{i}", first, first + hours, resources=("i-1",)) for i, (first, hours) in enumerate(spans)]
    joined = join([charge(**RESOURCE)], runs)
    active = [[r.run_id for r in runs if r.start_us <= h * HOUR < r.end_us] for h in range(24)]
    assert sum(p.share for p in joined.parts if p.run_id is None) == pytest.approx(active.count([]) / 24)
    for part in joined.parts:
        if part.run_id is not None:
            own = sum(1 / len(names) for names in active if part.run_id in names)
            assert part.share == pytest.approx(own / 24)
            assert float(part.effective.amount) == pytest.approx(own)


def test_many_runs_at_once_are_shared_quickly_and_exactly():
    runs = [run(f"r{i}", 0, 1 + i % 12, resources=("i-1",)) for i in range(3000)]
    joined = join([charge(**RESOURCE)], runs)
    assert sum(p.effective.amount for p in joined.parts) == 24
    (rest,) = (p for p in joined.parts if p.run_id is None)
    assert float(rest.effective.amount) == pytest.approx(12)
