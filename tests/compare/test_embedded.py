"""Devices at customers: energy a day, duty cycle, battery life, a fleet over its life."""

import pytest
from msgspec.structs import replace

from carbonlens.compare.business import business_case
from carbonlens.compare.embedded import battery_days, duty_cycle, energy_per_day, over_life
from carbonlens.domain.business import Embedded, Powered, Scenario, Trajectory
from tests.compare.business_cases import golden, stated
from tests.compare.study_runs import demo_comparison, vector

DEMO = demo_comparison()
CPU = Powered(name="CPU", power_w=0.8, seconds_per_unit=0.04, u_relative=0.05)
NPU = Powered(name="NPU", power_w=0.15, seconds_per_unit=0.02, u_relative=0.05)
KIT = Embedded(
    units_per_day=100_000,
    life_years=4,
    battery_wh=10,
    rest_power_w=0.01,
    charging_efficiency=0.8,
    before=CPU,
    after=NPU,
)


def case(embedded=KIT, **changes):
    return business_case(DEMO, golden(embedded=embedded, **changes))


def codes(result):
    return {f.code for f in result.findings}


def test_energy_a_day_is_of_the_active_seconds_and_idle_for_the_rest():
    assert energy_per_day(0.8, 0.04, 100_000, 0.0) == pytest.approx(3_200)
    assert energy_per_day(0.8, 0.04, 100_000, 0.002) == pytest.approx(3_200 + 0.002 * (86_400 - 4_000))
    assert duty_cycle(CPU, 100_000) == pytest.approx(4_000 / 86_400)
    assert battery_days(10, 0.5, 1_800) == pytest.approx(10)
    assert over_life(1_000, 2, 0.5) == pytest.approx(1_000 * 365.2425 * 2 / 0.5)


def test_a_device_and_its_battery_before_and_after():
    found = case().embedded
    assert found.before.energy_per_day_j.value == pytest.approx(3_200)
    assert found.after.energy_per_day_j.value == pytest.approx(300)
    assert (found.before.duty_cycle, found.after.duty_cycle) == pytest.approx(
        (0.0462963, 0.0231481), rel=1e-5
    )
    fed = [j + 0.01 * 86_400 for j in (3_200, 300)]
    assert found.before.battery_days.value == pytest.approx(36_000 / fed[0])
    assert found.after.battery_days.value == pytest.approx(36_000 / fed[1])
    assert found.battery_gain.value == pytest.approx(fed[0] / fed[1] - 1)
    assert found.battery_gain.low < found.battery_gain.value < found.battery_gain.high
    assert found.saved_per_device_j.value == pytest.approx(2_900 * 365.2425 * 4 / 0.8)
    assert not found.is_of_part


def test_a_fleet_is_category_11_over_the_life_of_what_is_sold():
    volume = {"expected": Scenario(units_per_month=1_000.0)}
    one = case(volume=volume).expected
    kwh = 2_900 * 365.2425 * 4 / 0.8 / 3.6e6 * 36_000
    assert one.energy_j.value == pytest.approx(kwh * 3.6e6)
    assert one.emissions_location_kg.value == pytest.approx(kwh * 0.35)
    assert one.emissions_market_kg.value == pytest.approx(kwh * 0.50)
    assert one.embodied_kg.value is None
    cleaner = case(volume=volume, grid=Trajectory(change_per_year=-0.1)).expected
    # What is sold later meets a cleaner grid for all of its life: 36 months of sale, 48 of use each.
    levels = [0.9 ** ((sold + m) / 12) for sold in range(36) for m in range(48)]
    assert cleaner.emissions_location_kg.value == pytest.approx(kwh * 0.35 * sum(levels) / len(levels))


def test_an_index_of_the_grid_goes_on_over_the_life_of_what_is_sold_last():
    volume = {"expected": Scenario(units_per_month=1_000.0)}
    index = Trajectory(index={"2027": 1.0, "2029": 0.5, "2032": 0.25})
    one = case(volume=volume, market=index).expected
    kwh = 2_900 * 365.2425 * 4 / 0.8 / 3.6e6 * 1_000
    level = [1.0] * 24 + [0.5] * 36 + [0.25] * 24
    means = [sum(level[sold : sold + 48]) / 48 for sold in range(36)]
    assert one.emissions_market_kg.value == pytest.approx(kwh * 0.50 * sum(means))


def test_customers_pay_the_electricity_so_that_none_of_it_is_cash():
    result = case(discount_rate=0.0)
    one = result.expected
    assert one.cash.value == pytest.approx(42_000)
    kwh = 2_900 * 365.2425 * 4 / 0.8 / 3.6e6 * 42_000
    assert one.non_cash_value.value == pytest.approx(kwh * 0.20)
    assert [(s.what, s.cash_from) for s in result.streams] == [("stated", 1), ("customers", None)]
    assert result.unit == "device"


def test_no_price_of_electricity_is_no_zero():
    bare = replace(DEMO, vector=vector(electricity=None, machine=None, location=None))
    result = business_case(bare, golden(embedded=KIT))
    assert [s.what for s in result.streams] == ["stated"]
    assert result.expected.emissions_location_kg.value is None
    assert result.expected.npv.value == pytest.approx(7_383.89, abs=0.005)


def test_without_powers_the_energy_is_what_was_measured():
    result = case(replace(KIT, before=None, after=None))
    found, volume = result.embedded, DEMO.study.volume_units
    base = DEMO.baseline_metrics.energy_per_unit_j.value
    saved = DEMO.total.energy_j.value / volume
    assert found.before.energy_per_day_j.value == pytest.approx(base * 100_000)
    assert found.after.energy_per_day_j.value == pytest.approx((base - saved) * 100_000)
    assert found.saved_per_day_j.value == pytest.approx(saved * 100_000)
    # As sure as the saving, in which what both arms share has cancelled.
    total = DEMO.total.energy_j
    width = (total.high - total.low) / volume * 100_000
    assert found.saved_per_day_j.high - found.saved_per_day_j.low == pytest.approx(width)
    assert found.before.duty_cycle is None


def test_what_is_not_stated_of_the_device_is_said():
    result = case(replace(KIT, rest_power_w=None, charging_efficiency=None))
    messages = [f.message for f in result.findings if f.code == "CL853"]
    assert len(messages) == 2
    assert result.embedded.is_of_part
    assert result.embedded.saved_per_device_j.value == pytest.approx(2_900 * 365.2425 * 4)
    assert "CL853" not in codes(case())


def test_a_device_without_battery_has_no_battery_days():
    found = case(replace(KIT, battery_wh=None)).embedded
    assert found.before.battery_days.state == "not_applicable"
    assert found.battery_gain.state == "not_applicable"


def test_a_step_that_is_not_adopted_saves_nothing_on_devices():
    result = business_case(replace(DEMO, total_decision="reject"), golden(embedded=KIT))
    assert result.expected.energy_j.value == 0
    assert result.expected.emissions_location_kg.value == 0
    assert result.expected.cash.value == 0
    assert "CL840" in codes(result)


def test_a_rising_power_saves_less_than_nothing():
    result = case(replace(KIT, before=NPU, after=CPU), savings=(stated(),))
    assert result.embedded.battery_gain.value < 0
    assert result.expected.emissions_location_kg.value < 0
    assert "CL855" in codes(case(replace(KIT, after=replace(NPU, power_w=80.0))))
    assert "CL855" not in codes(case())
