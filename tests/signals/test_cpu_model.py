"""Energy of CPU time: linear, split exactly, never surer than grade D allows."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.estimate import normal_interval
from carbonlens.signals.cpu_model import MIN_FACTOR_95, CpuCurve, cpu_energy

MILAN = CpuCurve(
    family="test", idle_w_per_thread=0.444, full_w_per_thread=1.946, spread=0.115, n=28, source="here"
)
WIDE = CpuCurve(
    family="wide",
    idle_w_per_thread=1.0,
    full_w_per_thread=4.0,
    spread=0.687,
    n=983,
    source="here",
    known=False,
)
seconds = st.floats(min_value=0, max_value=1e7, allow_nan=False)


def test_energy_is_cpu_time_times_full_watts_with_its_split():
    energy = cpu_energy(100.0, MILAN)
    assert energy.energy_j == Decimal("194.6")
    assert energy.idle_share_j == Decimal("44.4")
    assert energy.dynamic_j == Decimal("150.2")


@given(seconds)
def test_the_split_sums_exactly_to_a_microjoule(cpu_s):
    energy = cpu_energy(cpu_s, MILAN)
    assert energy.dynamic_j + energy.idle_share_j == energy.energy_j
    assert energy.energy_j == energy.energy_j.quantize(Decimal("0.000001"))
    assert energy.dynamic_j >= 0
    assert energy.idle_share_j >= 0


@given(seconds, seconds)
def test_energy_adds_up_over_parts_of_the_work(one, two):
    parts = cpu_energy(one, MILAN).energy_j + cpu_energy(two, MILAN).energy_j
    assert abs(parts - cpu_energy(one + two, MILAN).energy_j) <= Decimal("0.00001")


@pytest.mark.parametrize(("curve", "factor"), [(MILAN, MIN_FACTOR_95), (WIDE, math.exp(1.959964 * 0.687))])
def test_the_interval_is_the_spread_and_at_least_the_grades(curve, factor):
    energy = cpu_energy(50.0, curve)
    low, high = normal_interval(float(energy.energy_j), energy.u_j, signed=False)
    assert high / float(energy.energy_j) == pytest.approx(factor, rel=1e-5)
    assert float(energy.energy_j) / low == pytest.approx(factor, rel=1e-5)


@pytest.mark.parametrize("cpu_s", [-1e-9, math.nan, math.inf])
def test_a_time_that_is_none_is_refused(cpu_s):
    with pytest.raises(ValueError, match="CPU time"):
        cpu_energy(cpu_s, MILAN)


def test_a_measured_curve_has_its_own_width_and_no_floor():
    measured = CpuCurve(
        family="machine", idle_w_per_thread=1, full_w_per_thread=4, spread=0.1, n=2, source="x", measured=True
    )
    assert measured.relative_sigma == 0.1
    assert MILAN.relative_sigma > MILAN.spread
