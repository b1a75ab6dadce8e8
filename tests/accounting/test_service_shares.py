"""Services: months together, headroom with its service, and what is not stated."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.metered import Metered
from carbonlens.accounting.service_shares import NO_ENERGY, Load, Portion, shares_of, with_meter
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.service import Service, Use

counts = st.decimals(min_value=0, max_value=10**9, places=2)
joules = st.decimals(min_value=0, max_value=10**12, places=6)
MONTHS = ("2026-03", "2026-04")


def portion(exact, **errors):
    if exact is None:
        return Portion(exact=None, estimate=unknown("J"))
    value = float(exact)
    return Portion(exact=Decimal(exact), estimate=Estimate(value=value, unit="J", u_by_source=errors))


def service(uses, **more):
    made = tuple(Use(month=m, consumer=c, count=None if n is None else Decimal(n)) for m, c, n in uses)
    return Service(service_id="chat", basis=more.pop("basis", "tokens"), tags={"s": "c"}, uses=made, **more)


def load(month, used, headroom=0):
    rest = portion(headroom) if headroom else NO_ENERGY
    return Load(month=month, boundary="it", used=portion(used), headroom=rest)


@given(
    st.lists(st.tuples(st.sampled_from(MONTHS), st.sampled_from("abc"), counts | st.none()), max_size=5,
             unique_by=lambda u: u[:2]),
    st.lists(st.tuples(joules, joules), min_size=2, max_size=2),
    st.sampled_from(["own line", "shared"]),
    st.none() | st.decimals(min_value=1, max_value=10**9, places=2),
)  # fmt: skip
def test_the_lines_of_a_service_sum_to_its_energy(uses, energies, idle, capacity):
    loads = [load(m, *e) for m, e in zip(MONTHS, energies, strict=True)]
    found = shares_of(service(uses, idle=idle, capacity=capacity), loads)
    assert found.total.exact == sum(sum(e) for e in energies)
    assert sum(line.exact for line in found.lines if line.exact is not None) == found.total.exact
    assert all(line.exact >= 0 for line in found.lines if line.exact is not None)
    assert len({(line.kind, line.name) for line in found.lines}) == len(found.lines)


def test_each_month_is_divided_by_its_own_uses():
    uses = [("2026-03", "a", 1), ("2026-03", "b", 3), ("2026-04", "b", 5)]
    found = shares_of(service(uses), [load("2026-03", 100), load("2026-04", 60)])
    # By hand: a 25; b 75 + 60. Both months' counts together would give a 160 / 9.
    assert [(x.name, x.exact) for x in found.lines] == [("a", 25), ("b", 135)]


@pytest.mark.parametrize(
    ("idle", "expected"),
    [
        ("own line", [("a", 25, 0), ("b", 75, 0), ("idle", 40, 0)]),
        ("shared", [("a", 35, 10), ("b", 105, 30)]),
    ],
)
def test_idle_of_headroom_belongs_to_the_service(idle, expected):
    uses = [("2026-03", "a", 1), ("2026-03", "b", 3)]
    found = shares_of(service(uses, idle=idle), [load("2026-03", 100, 40)])
    assert [(x.name, x.exact, x.of_idle) for x in found.lines] == expected
    assert sum(x.share for x in found.lines) == pytest.approx(1)


def test_what_a_meter_counted_beside_the_runs_is_headroom():
    meter = Metered(
        site_id="s", meter_ids=("m",), covers="ai", boundary="it", exact_j=Decimal(150),
        energy=Estimate(value=150.0, unit="J", grade="A", u_by_source={"meter:m": 1.0}),
        by_month={}, covered=1.0, estimated=False, reading_ids=(),
    )  # fmt: skip
    with_rest, findings = with_meter(load("2026-03", 100, 20), meter)
    assert (with_rest.used.exact, with_rest.headroom.exact, findings) == (100, 50, ())
    assert with_rest.total.estimate.u_by_source["meter:m"] == pytest.approx(1.0)
    over, findings = with_meter(load("2026-03", 160), meter)
    assert (over.used.exact, over.headroom.exact) == (150, 0)
    assert [f.code for f in findings] == ["CL473"]


def test_a_month_without_uses_is_not_divided():
    found = shares_of(service([("2026-03", "a", 1)]), [load("2026-03", 10), load("2026-04", 20)])
    assert [(x.kind, x.exact) for x in found.lines] == [("consumer", 10), ("undivided", 20)]
    assert [f.code for f in found.findings] == ["CL479"]


def test_energy_that_is_unknown_gives_no_zero():
    found = shares_of(service([("2026-03", "a", 1)]), [load("2026-03", None)])
    assert [(x.exact, x.estimate.state) for x in found.lines] == [(None, "unknown")]
    assert found.total.estimate.state == "unknown"


def test_activity_shares_are_labelled_and_graded():
    uses = [("2026-03", "mig0", Decimal("0.6")), ("2026-03", "mig1", Decimal("0.2"))]
    made = service(uses, basis="activity", capacity=Decimal(1))
    found = shares_of(made, [load("2026-03", 100)])
    assert [(x.name, x.exact) for x in found.lines] == [("mig0", 60), ("mig1", 20), ("idle", 20)]
    assert {x.estimate.grade for x in found.lines} == {"D"}
    assert [f.code for f in found.findings] == ["CL478"]
    high = found.lines[0].estimate.high
    assert high == pytest.approx(60 * 1.8)


def test_the_larger_of_request_and_use_divides():
    uses = (
        Use(month="2026-03", consumer="a", request=Decimal(30), count=Decimal(10)),
        Use(month="2026-03", consumer="b", request=Decimal(5), count=Decimal(10), u_relative=0.1),
    )
    made = Service(service_id="k", basis="request_or_usage", tags={"n": "k"}, uses=uses)
    found = shares_of(made, [load("2026-03", 80)])
    assert [x.exact for x in found.lines] == [60, 20]
    # b's use is 10 +- 1: d(10 / 40) = 30 / 40^2 of 80 J.
    assert math.isclose(found.lines[1].estimate.u_total, 80 * 30 / 1600)
