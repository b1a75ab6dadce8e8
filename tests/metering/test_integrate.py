"""The integration is offered where measuring is, and is the same."""

import pytest

from carbonlens.metering.integrate import counter_energy, power_energy


def test_a_counter_and_its_power_give_the_same_joules():
    times = [k * 100_000 for k in range(51)]
    counted = counter_energy([(t, 300.0 * t / 1e6) for t in times], 0, 5_000_000)
    power = power_energy(times, [300.0] * 51, 0, 5_000_000, kind="instant")
    assert counted.value == pytest.approx(1500)
    assert power.value == pytest.approx(1500)
