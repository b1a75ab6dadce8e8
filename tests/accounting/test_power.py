"""Power, rates and units; each formula for any kind of number."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from carbonlens.accounting import conversions, formulas, power
from carbonlens.accounting.boundaries import Overheads, energies
from carbonlens.accounting.propagation import exactly
from carbonlens.accounting.sci import g_per_units
from carbonlens.domain.units import J_PER_KWH


def test_c26_ten_watts_for_an_hour_are_a_gram():
    """cases.json C26: 10.15 W for an hour at 0.098 kg/kWh are 0.995 g, not 0.995 kg."""
    kg = formulas.emissions_kg(power.energy_of_power_kwh(10.153711771428572, 1), 0.098)
    assert kg == pytest.approx(0.000995064, rel=1e-6)
    assert conversions.kg_to_g(kg) == pytest.approx(0.995, abs=5e-4)


def test_c31_energy_with_a_pue_agrees_with_power_and_time():
    """cases.json C31: the source's energy holds the PUE, and both energies can be had."""
    stated_kwh = 0.00022917
    found = energies(exactly(stated_kwh * J_PER_KWH, "J"), "facility", Overheads(pue=exactly(1.5)))
    assert found.it_kwh.value == pytest.approx(0.000152778, rel=2e-5)
    assert found.facility_kwh.value == pytest.approx(0.000229167, rel=2e-5)
    from_power = formulas.energy_kwh(power.energy_of_power_j(45 + 10, 10))
    assert from_power == pytest.approx(0.000152778, rel=1e-5)
    assert formulas.facility_kwh(from_power, 1.5) == pytest.approx(stated_kwh, rel=2e-5)


@pytest.mark.parametrize(("speed", "kwh", "usd"), [(230, 2.415, 0.362), (53, 10.482, 1.572)])
def test_c51_energy_and_cost_of_a_million_tokens(speed, kwh, usd):
    """cases.json C51: 2 kW at 230 and 53 tokens a second, 0.15 USD/kWh."""
    each = power.energy_per_piece_j(2000, speed)
    assert power.energy_of_pieces_kwh(each, 1_000_000) == pytest.approx(kwh, abs=5e-4)
    assert power.cost_of_pieces(each, 1_000_000, 0.15) == pytest.approx(usd, abs=5e-4)


def test_c52_energy_of_an_answer():
    """cases.json C52: 400 W at 1900 tokens a second, an answer of 512 tokens."""
    each = power.energy_per_piece_j(400, 1900)
    assert each == pytest.approx(0.2105, abs=5e-5)
    assert power.energy_of_pieces_kwh(each, 1) * 1e6 == pytest.approx(0.05848, abs=5e-6)
    assert power.energy_of_pieces_kwh(each, 512) * 1000 == pytest.approx(0.0299, abs=5e-5)


def test_c53_the_number_goes_with_its_denominator():
    """cases.json C53: 6500 kg a week over 50 billion tokens."""
    per = {n: g_per_units(6500, 50e9, n) for n in (1e3, 1e6, 1e9)}
    assert per == {1e3: pytest.approx(0.13), 1e6: pytest.approx(130), 1e9: pytest.approx(130_000)}


@pytest.mark.parametrize(
    ("formula", "given", "expected"),
    [
        (conversions.lb_to_kg, "1", "0.45359237"),
        (conversions.lb_per_mwh_to_kg_per_kwh, "770.884", "0.34966710055508"),
        (conversions.lb_per_kwh_to_kg_per_kwh, "0.954", "0.43272712098"),
        (conversions.g_per_kwh_to_kg_per_kwh, "57", "0.057"),
        (conversions.kg_per_kwh_to_g_per_kwh, "0.057", "57"),
        (conversions.t_per_mwh_to_kg_per_kwh, "0.5", "0.5"),
        (conversions.kg_to_g, "0.13", "130"),
        (conversions.kg_to_tonne, "130", "0.13"),
        (conversions.tonne_to_kg, "0.13", "130"),
        (conversions.mwh_to_kwh, "1.5", "1500"),
        (conversions.kwh_to_mwh, "1500", "1.5"),
        (conversions.wh_to_kwh, "240", "0.24"),
        (conversions.kwh_to_j, "2", "7200000"),
        (power.seconds_of_hours, "2", "7200"),
    ],
)
def test_conversions_are_exact_of_decimals_and_serve_arrays(formula, given, expected):
    assert formula(Decimal(given)) == Decimal(expected)
    assert formula(float(given)) == pytest.approx(float(expected))
    assert formula(np.array([float(given)])) == pytest.approx(np.array([float(expected)]))


@pytest.mark.parametrize(
    ("formula", "given", "expected"),
    [
        (power.energy_of_power_kwh, (400, 2), 0.8),
        (power.energy_of_power_j, (55, 10), 550),
        (power.average_power_w, (550, 10), 55),
        (power.power_at_utilisation_w, (46, 407, 0.5), 226.5),
        (power.power_at_utilisation_w, (46, 407, 0), 46),
        (power.energy_per_piece_j, (400, 1900), 400 / 1900),
        (power.pieces_per_j, (400, 1900), 4.75),
        (power.in_flight, (1000, 0.008), 8),
        (power.loss_share, (100, 98), 0.02),
        (formulas.it_kwh, (2, 1.2), 2.4),
        (formulas.device_of_it_kwh, (2.4, 1.2), 2),
        (formulas.it_of_facility_kwh, (3, 1.5), 2),
        (formulas.pue_of, (3, 2), 1.5),
    ],
)
def test_formulas_of_scalars_and_arrays(formula, given, expected):
    assert formula(*given) == pytest.approx(expected)
    assert formula(*(np.array([x, x]) for x in given)) == pytest.approx(np.array([expected] * 2))
