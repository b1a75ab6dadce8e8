"""Boundary, PUE, factors and prices: what is unknown stays so and is said."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting import formulas
from carbonlens.accounting.amounts import NO_CURRENCY, account, facility_energy
from carbonlens.accounting.propagation import through
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.factor import Embodied, Factor, Price, Vector
from carbonlens.domain.units import J_PER_KWH
from carbonlens.errors import IncomparableError

GRID = Factor(
    factor_id="grid:x",
    zone="X",
    period="2024",
    method="location",
    value_kg_per_kwh=0.4,
    u_relative=0.1,
    source="t",
)
RESIDUAL = replace(GRID, factor_id="residual:x", method="market", value_kg_per_kwh=0.6, u_relative=0.0)
POWER = Price(
    price_id="power:x", amount=Decimal("0.25"), currency="EUR", per="kWh", period="2026", source="t"
)
MACHINE = replace(POWER, price_id="machine:x", amount=Decimal("0.05"), per="core_hour", u_relative=0.2)
HARDWARE = Embodied(factor_id="embodied:x", value_kg_per_core_hour=0.002, u_relative=0.5, source="t")
FULL = Vector(location=GRID, market=RESIDUAL, pue=1.2, electricity=POWER, machine=MACHINE, embodied=HARDWARE)
ENERGY = Estimate(value=100 * J_PER_KWH, unit="J", grade="C", u_random=2 * J_PER_KWH)
HOURS = Estimate(value=8.0, unit="core_hour", grade="B")


def codes(findings) -> set[str]:
    return {f.code for f in findings}


def test_all_parts_known():
    amounts, findings = account(ENERGY, "it", HOURS, FULL)
    assert findings == ()
    assert amounts.energy_j is ENERGY
    assert amounts.emissions_location_kg.value == pytest.approx(120 * 0.4)
    assert amounts.emissions_market_kg.value == pytest.approx(120 * 0.6)
    assert amounts.embodied_kg.value == pytest.approx(8 * 0.002)
    assert amounts.cost.value == pytest.approx(120 * 0.25 + 8 * 0.05)
    assert amounts.cost.unit == "EUR"
    assert {amounts.emissions_location_kg.unit, amounts.embodied_kg.unit} == {"kg"}


def test_factor_and_price_errors_are_named_sources():
    amounts, _ = account(ENERGY, "it", HOURS, replace(FULL, pue_u_relative=0.05))
    assert amounts.emissions_location_kg.u_by_source == pytest.approx({"pue": 48 * 0.05, "grid:x": 48 * 0.1})
    assert amounts.cost.u_by_source == pytest.approx({"pue": 30 * 0.05, "machine:x": 0.4 * 0.2})
    assert amounts.embodied_kg.u_by_source == pytest.approx({"embodied:x": 0.016 * 0.5})


def test_golden_gum_1_product():
    """golden.json gum/1-product: three factors in relative quadrature."""
    vector = Vector(pue=1.2, pue_u_relative=0.05 / 1.2, location=GRID)
    amounts, _ = account(ENERGY, "it", None, vector)
    assert amounts.emissions_location_kg.value == pytest.approx(48.0, rel=1e-12)
    assert amounts.emissions_location_kg.u_total == pytest.approx(5.287872918291437, rel=1e-9)


def test_golden_gum_2_difference_with_a_common_factor():
    """golden.json gum/2-difference-common-factor: the shared intensity cancels as far as it is common."""
    vector = Vector(pue=1.0, location=GRID)
    u = 1 * J_PER_KWH
    before, _ = account(Estimate(value=100 * J_PER_KWH, unit="J", u_random=u), "it", None, vector)
    after, _ = account(Estimate(value=60 * J_PER_KWH, unit="J", u_random=u), "it", None, vector)
    saved = before.emissions_location_kg.minus(after.emissions_location_kg)
    assert saved.value == pytest.approx(16.0)
    assert saved.u_total == pytest.approx(1.6970562748477143, rel=1e-9)


def test_facility_energy_takes_no_pue():
    kwh, findings = facility_energy(ENERGY, "facility", FULL)
    assert (kwh.value, kwh.state, findings) == (100.0, "known", ())


@pytest.mark.parametrize(("boundary", "kwh", "code"), [("device", 120.0, "CL303"), (None, 100.0, "CL302")])
def test_device_and_unstated_boundaries_give_lower_bounds(boundary, kwh, code):
    facility, findings = facility_energy(ENERGY, boundary, FULL)
    assert facility.value == pytest.approx(kwh)
    assert facility.state == "unbounded"
    assert facility.high is None
    assert codes(findings) == {code}
    amounts, _ = account(ENERGY, boundary, HOURS, FULL)
    assert amounts.emissions_location_kg.state == "unbounded"
    assert amounts.cost.state == "unbounded"
    assert amounts.energy_j.state == "known"


def test_an_unknown_pue_is_not_one():
    amounts, findings = account(ENERGY, "it", HOURS, replace(FULL, pue=None))
    assert codes(findings) == {"CL304"}
    assert amounts.emissions_location_kg.state == "unbounded"


def test_an_empty_vector_gives_no_figure_and_says_what_is_missing():
    amounts, findings = account(ENERGY, "it", HOURS, Vector())
    assert codes(findings) == {"CL304", "CL305", "CL306", "CL307", "CL309"}
    assert all(f.mend for f in findings)
    for estimate in (
        amounts.emissions_location_kg,
        amounts.emissions_market_kg,
        amounts.embodied_kg,
        amounts.cost,
    ):
        assert (estimate.value, estimate.state) == (None, "unknown")
    assert amounts.cost.unit == NO_CURRENCY


def test_unknown_energy_leaves_machine_hours_as_a_lower_bound():
    amounts, findings = account(unknown("J"), "it", HOURS, FULL)
    assert "CL301" in codes(findings)
    assert amounts.emissions_location_kg.state == "unknown"
    assert amounts.cost.state == "unbounded"
    assert amounts.cost.value == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("vector", "hours", "value", "code"),
    [
        (replace(FULL, electricity=None), HOURS, 0.4, "CL310"),
        (replace(FULL, machine=None), HOURS, 30.0, "CL311"),
        (FULL, None, 30.0, "CL312"),
    ],
)
def test_half_a_cost_is_a_lower_bound(vector, hours, value, code):
    amounts, findings = account(ENERGY, "it", hours, vector)
    assert amounts.cost.value == pytest.approx(value)
    assert amounts.cost.state == "unbounded"
    assert code in codes(findings)


def test_unknown_core_hours_leave_embodied_unknown():
    amounts, findings = account(ENERGY, "it", None, FULL)
    assert amounts.embodied_kg.state == "unknown"
    assert "CL308" in codes(findings)


def test_two_currencies_are_refused():
    with pytest.raises(IncomparableError, match="EUR and USD") as caught:
        account(ENERGY, "it", HOURS, replace(FULL, machine=replace(MACHINE, currency="USD")))
    assert caught.value.mend


@given(a=st.floats(1e-3, 1e6), b=st.floats(1e-3, 1e3), ua=st.floats(0, 0.5), ub=st.floats(0, 0.5))
def test_through_agrees_with_first_order_theory(a, b, ua, ub):
    one = Estimate(value=a, unit="kWh", u_random=a * ua)
    other = Estimate(value=b, unit="1", u_by_source={"f": b * ub})
    product = through(formulas.emissions_kg, one, other, unit="kg")
    assert product.value == pytest.approx(a * b)
    assert product.u_total == pytest.approx(a * b * (ua**2 + ub**2) ** 0.5, rel=1e-9, abs=1e-12)


def test_a_source_in_both_arguments_is_one_error():
    one = Estimate(value=10.0, unit="x", u_by_source={"s": 1.0})
    assert through(formulas.emissions_kg, one, one, unit="y").u_by_source == pytest.approx({"s": 20.0})


def test_an_energy_of_unknown_width_leaves_amounts_without_an_interval():
    energy = Estimate(value=1.0 * J_PER_KWH, unit="J", bounds=(None, None))
    amounts, _ = account(energy, "it", HOURS, FULL)
    for amount in (amounts.emissions_location_kg, amounts.emissions_market_kg, amounts.cost):
        assert amount.value > 0
        assert (amount.low, amount.high) == (None, None)
    assert amounts.embodied_kg.low < amounts.embodied_kg.high


def test_a_formula_with_a_constant_scales_its_errors():
    one, other = Estimate(value=2.0, unit="x", u_random=0.1), Estimate(value=3.0, unit="y", u_random=0.3)
    got = through(lambda a, b: 10 * a * b, one, other, unit="z")
    assert got.value == 60.0
    assert got.u_random == pytest.approx(10 * (0.3**2 + 0.6**2) ** 0.5)


@pytest.mark.parametrize("hours", [HOURS, None])
def test_machine_hours_that_cost_nothing_cost_nothing_however_many(hours):
    amounts, findings = account(
        ENERGY, "it", hours, replace(FULL, machine=replace(MACHINE, amount=Decimal(0)))
    )
    assert (amounts.cost.value, amounts.cost.state) == (pytest.approx(30.0), "known")
    assert "CL312" not in codes(findings)


def test_a_rate_of_zero_makes_nothing_of_an_unknown_or_partial_quantity():
    free = replace(
        FULL,
        electricity=replace(POWER, amount=Decimal(0)),
        machine=replace(MACHINE, amount=Decimal(0)),
        embodied=replace(HARDWARE, value_kg_per_core_hour=0.0),
        location=replace(GRID, value_kg_per_kwh=0.0),
    )
    for energy, boundary in ((unknown("J"), "it"), (ENERGY, "device")):
        amounts, _ = account(energy, boundary, None, free)
        for one in (amounts.cost, amounts.embodied_kg, amounts.emissions_location_kg):
            assert (one.value, one.low, one.high, one.state) == (0.0, 0.0, 0.0, "known")
