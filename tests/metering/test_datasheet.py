"""A datasheet's constant: rated watts, grade E, wide, and its source in print."""

import math

import pytest

from carbonlens.domain.sources import DatasheetDevice
from carbonlens.domain.units import Z_95
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors.datasheet import DatasheetSensor

CORAL = DatasheetDevice(device="edge-tpu", power_w=2.0, source="Coral USB Accelerator datasheet v1.4")


def test_it_tells_the_watts_and_where_they_stand():
    sensor = DatasheetSensor(CORAL)
    assert sensor.probe().usable
    assert sensor.read(edge=True) == (2.0,)
    info = sensor.info
    assert (info.name, info.kind, info.unit, info.grade) == ("datasheet:edge-tpu", "instant", "W", "E")
    assert "Coral USB Accelerator datasheet v1.4" in info.method
    assert math.exp(Z_95 * info.gain_sigma) == pytest.approx(2.0)


@pytest.mark.parametrize("watts", [0.0, -2.0, math.nan, math.inf])
def test_a_figure_that_is_no_power_is_never_read(watts):
    sensor = DatasheetSensor(DatasheetDevice(device="x", power_w=watts, source="s"))
    assert not sensor.probe().usable
    with pytest.raises(OSError, match="not a power"):
        sensor.read(edge=True)


def test_its_energy_is_watts_times_time_by_a_factor_of_two():
    samples = [Sample(t * 100_000, ((2.0,),)) for t in range(101)]
    sealed = seal([DatasheetSensor(CORAL).info], samples, start_us=0, window_us=10_000_000)
    (npu,) = [r for r in sealed.readings if r.component == "npu"]
    assert float(npu.energy_j) == pytest.approx(20.0)
    assert npu.grade == "E"
    assert npu.estimate.low == pytest.approx(10.0, rel=0.05)
    assert npu.estimate.high == pytest.approx(40.0, rel=0.05)
