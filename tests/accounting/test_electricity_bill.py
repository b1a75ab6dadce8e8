"""Parts of electricity bills, metered cost and cloud hours: nothing is lost, and nothing counts twice."""

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.cloud_hours import InstanceUse, cloud_hours
from carbonlens.accounting.electricity_bill import part_of, sorted_out, states_energy, within
from carbonlens.accounting.metered import Metered
from carbonlens.accounting.metered_cost import hour_shares, metered_cost
from carbonlens.accounting.tariff import HourPrice
from carbonlens.domain.charge import Charge
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.money import Money
from carbonlens.domain.site import Site
from carbonlens.domain.units import US_PER_HOUR
from tests.accounting.test_cost import price

OWN = Site(site_id="lab", kind="own")
CLOUD = Site(site_id="aws", kind="cloud")


def charge(name="c", amount="10", *, start_us=0, end_us=100, **fields):
    money = Money(Decimal(amount), "EUR")
    given_fields = {"category": "usage", "billed": money, "effective": money, **fields}
    return Charge(charge_id=name, start_us=start_us, end_us=end_us, **given_fields)


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"energy_j": Decimal(1)}, "energy"),
        ({"energy_j": Decimal(1), "sku": "Network fee"}, "network"),
        ({"energy_j": Decimal(1), "service": "Private power"}, "energy"),
        ({"service": "grid usage charge"}, "network"),
        ({"sku": "renewables-levy"}, "levy"),
        ({"sku": "electricity_tax"}, "tax"),
        ({"category": "tax"}, "tax"),
        ({"category": "credit", "energy_j": Decimal(1)}, "credit"),
        ({"service": "Standing charge"}, "fixed"),
        ({"sku": "network fee", "tags": {"x_BillPart": "Energy"}}, "energy"),
        ({}, "other"),
    ],
)
def test_the_part_of_a_line_is_told_by_tag_category_or_whole_words(fields, part):
    assert part_of(charge(**fields)) == part


def test_only_lines_of_energy_state_energy_that_was_used():
    assert states_energy(charge(energy_j=Decimal(1)))
    assert not states_energy(charge(energy_j=Decimal(1), sku="network fee"))
    assert not states_energy(charge())


def test_lines_of_a_site_are_electricity_by_meter_kwh_or_invoice_and_a_clouds_never_are():
    lines = [
        charge("kwh", site="lab", energy_j=Decimal(1), invoice_id="i"),
        charge("tax", site="lab", invoice_id="i", category="tax"),
        charge("meter", meter_id="m"),
        charge("rent", site="lab", invoice_id="j"),
        charge("cloud", site="aws", energy_j=Decimal(1)),
        charge("nowhere", invoice_id="i"),
    ]
    found = sorted_out(lines, {"lab": OWN, "aws": CLOUD}, {"m": "lab"})
    assert {s: [c.charge_id for c in held] for s, held in found.electricity.items()} == {
        "lab": ["kwh", "tax", "meter"]
    }
    assert [c.charge_id for c in found.others] == ["rent", "cloud", "nowhere"]


@given(
    st.decimals(-(10**9), 10**9, places=6, allow_nan=False),
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.lists(st.integers(0, 2 * 10**6), max_size=5),
)
def test_parts_of_a_line_in_periods_sum_to_it_exactly(amount, start, length, cuts):
    line = charge(amount=str(amount), start_us=start, end_us=start + length, energy_j=Decimal(7))
    edges = [-1, *sorted(set(cuts)), 3 * 10**6]
    parts = [within(line, a, b) for a, b in pairwise(edges)]
    held = [p for p in parts if p is not None]
    assert sum(p.billed.amount for p in held) == amount
    assert sum(p.energy_j for p in held) == 7


READINGS = st.lists(
    st.tuples(st.integers(0, 10), st.floats(0, 5), st.floats(0.1, 5), st.integers(0, 10**9)),
    min_size=1,
    max_size=6,
)


@given(READINGS)
def test_shares_of_hours_sum_to_one(rows):
    readings = [
        MeterReading(
            reading_id=str(n),
            meter_id="m",
            start_us=int((day * 24 + at) * US_PER_HOUR),
            end_us=int((day * 24 + at + length) * US_PER_HOUR) + 1,
            energy_j=Decimal(joules),
        )
        for n, (day, at, length, joules) in enumerate(rows)
    ]
    shares = hour_shares(readings, (0, 11 * 24 * US_PER_HOUR))
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) >= 0


def metered(*readings):
    energy = Estimate(value=1.0, unit="J")
    return Metered(
        site_id="lab",
        meter_ids=("m",),
        covers="site",
        boundary="facility",
        energy=energy,
        exact_j=Decimal(1),
        by_month={},
        covered=1.0,
        estimated=False,
        reading_ids=tuple(r.reading_id for r in readings),
    )


def reading(name, start, end, joules, meter="m"):
    span = {"start_us": start * US_PER_HOUR, "end_us": end * US_PER_HOUR}
    return MeterReading(reading_id=name, meter_id=meter, energy_j=Decimal(joules), **span)


PRICES = [HourPrice(h, Decimal("0.1") * (h + 1), "EUR", "t", str(h), 0.05) for h in range(2)]


def test_metered_energy_takes_the_price_of_its_hour_and_the_tariffs_error():
    held = [reading("a", 0, 1, 100), reading("b", 1, 2, 300)]
    kwh = Estimate(value=400.0, unit="kWh", u_by_source={"meter:m": 4.0})
    # A reading that is no part of what was counted changes nothing.
    found = metered_cost(metered(*held), kwh, [*held, reading("x", 0, 1, 9)], PRICES, (0, 2 * US_PER_HOUR))
    assert found.costs["EUR"].value == pytest.approx(100 * 0.1 + 300 * 0.2)
    assert found.costs["EUR"].u_by_source == {"meter:m": pytest.approx(0.7), "t": pytest.approx(3.5)}
    assert found.findings == ()


def test_a_reading_over_several_prices_is_spread_and_said_and_an_unpriced_hour_is_a_lower_bound():
    long = reading("a", 0, 2, 100)
    kwh = Estimate(value=100.0, unit="kWh")
    found = metered_cost(metered(long), kwh, [long], PRICES, (0, 2 * US_PER_HOUR))
    assert found.costs["EUR"].value == pytest.approx(15)
    assert [f.code for f in found.findings] == ["CL496"]
    part = metered_cost(metered(long), kwh, [long], PRICES[:1], (0, 2 * US_PER_HOUR))
    assert (part.costs["EUR"].value, part.costs["EUR"].state) == (pytest.approx(5), "unbounded")
    assert metered_cost(metered(long), kwh, [long], [], (0, 2 * US_PER_HOUR)).costs == {}


SPANS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 200), st.integers(1, 100)), min_size=1, max_size=8
)


@given(SPANS)
def test_an_hour_of_an_instance_counts_once_whatever_runs_share_it(spans):
    uses = [
        InstanceUse(
            site_id="aws",
            subject="aws:p5.48xlarge",
            region=None,
            instance=name,
            start_us=start * US_PER_HOUR,
            end_us=(start + hours) * US_PER_HOUR,
        )
        for name, start, hours in spans
    ]
    own = [price(valid_from="1970-01-01", amount="1")]
    (line,) = cloud_hours(uses, own, [])
    held = {(name, h) for name, start, hours in spans for h in range(start, start + hours)}
    assert line.amount.value == pytest.approx(len(held))
