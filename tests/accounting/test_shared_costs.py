"""Shared costs of clusters: cases of other tools, and the laws behind them."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.shared_costs import (
    Hosted,
    Owner,
    ResourceCost,
    hosts_once,
    idle_of,
    share_out,
    without_phantoms,
)
from carbonlens.domain.estimate import Estimate

money = st.decimals(min_value=0, max_value=10**9, places=3)


def test_idle_and_shared_costs_together_count_once():
    # opencost #1124: three namespaces, idle of two nodes already divided, ns1 shared onto the others.
    owners = [
        Owner(name="ns1", own=Decimal(28), idle=Decimal("14.688")),
        Owner(name="ns2", own=Decimal(36), idle=Decimal("10.312")),
        Owner(name="ns3", own=Decimal(18), idle=Decimal("5.000")),
    ]
    result = share_out(owners, {"ns1"})
    totals = {o.name: o.total.quantize(Decimal("0.001")) for o in result.owners}
    assert totals == {"ns2": Decimal("74.771"), "ns3": Decimal("37.229")}
    assert result.total == Decimal("112.000")
    ns2 = result.owners[0]
    assert (round(ns2.shared, 3), round(ns2.shared_idle, 3)) == (Decimal("18.667"), Decimal("9.792"))


@given(st.lists(st.tuples(money, money), min_size=1, max_size=5), st.integers(0, 31))
def test_sharing_conserves_whoever_is_shared(costs, chosen):
    owners = [Owner(name=f"n{i}", own=own, idle=idle) for i, (own, idle) in enumerate(costs)]
    shared = {o.name for i, o in enumerate(owners) if chosen >> i & 1}
    result = share_out(owners, shared)
    assert result.total == sum(o.own + o.idle for o in owners)
    assert all(o.shared >= 0 and o.shared_idle >= 0 for o in result.owners)


def test_costs_that_nobody_can_carry_are_said():
    result = share_out([Owner(name="a", own=Decimal(5)), Owner(name="b", own=Decimal(0))], {"a"})
    assert (result.owners[0].total, result.remainder) == (0, 5)
    assert [f.code for f in result.findings] == ["CL471"]


def test_idle_is_never_negative_where_the_price_is_missing():
    # opencost #3387: a node of price 0 whose workloads are charged 5.00.
    for whole in (Decimal(0), None):
        result = idle_of(whole, Decimal("5.00"))
        assert (result.idle, result.total) == (0, Decimal("5.00"))
        assert "node price missing" in result.findings[0].message


@given(st.none() | money, money)
def test_idle_and_charges_make_the_total(whole, charged):
    result = idle_of(whole, charged)
    assert result.idle >= 0
    assert result.total == result.idle + charged
    assert bool(result.findings) == (whole is None or whole < charged)


def test_cost_of_a_resource_nobody_had_is_kept_apart():
    # kubecost #1389: 27.0 of GPU cost in a cluster without GPU hours.
    costs = [
        ResourceCost(name="__idle__", resource="gpu", cost=Decimal("27.0"), hours=Decimal(0)),
        ResourceCost(name="app", resource="gpu", cost=Decimal(0), hours=Decimal(0)),
        ResourceCost(name="app", resource="cpu", cost=Decimal("3.0")),
    ]
    result = without_phantoms(costs)
    assert result.total == Decimal("3.0")
    assert [c.cost for c in result.apart] == [Decimal("27.0")]
    assert result.findings[0].message.startswith("27.0 GPU cost with 0 GPU hours")


def kwh(amount):
    return Estimate(value=float(amount), unit="kWh")


def test_a_dedicated_host_and_its_instances_are_counted_once():
    # cloud-carbon-footprint #635: a host for 24 h and three of its instances for 24 h each.
    rows = [Hosted(row_id="host", amount=kwh(9), exact=Decimal(9), weight=Decimal(24))]
    rows += [
        Hosted(row_id=f"i{n}", host="host", amount=kwh(2), exact=Decimal(2), weight=Decimal(24))
        for n in range(3)
    ]
    rows.append(Hosted(row_id="alone", host="elsewhere", amount=kwh(1), exact=Decimal(1)))
    result = hosts_once(rows)
    assert result.total == 10
    lines = result.hosts["host"].lines
    assert [x.exact for x in lines] == [3, 3, 3]
    assert sum(x.exact for x in lines) == 9
    assert [f.code for f in result.findings] == ["CL475"]


def test_what_instances_leave_of_a_host_is_its_idle():
    rows = [
        Hosted(row_id="host", amount=kwh(48), exact=Decimal(48)),
        Hosted(row_id="i", host="host", amount=kwh(0), exact=Decimal(0), weight=Decimal(6)),
    ]
    division = hosts_once(rows, {"host": Decimal(48)}).hosts["host"]
    assert (division.of("i").exact, division.part("idle")) == (6, 42)
