"""Intel NPU: time in use is read; its energy is only known with a stated power."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.sources import DatasheetDevice
from carbonlens.metering.patience import PatientSensor
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.intel_npu import IntelNpuSensor
from tests.metering.trees_npu import npu
from tests.metering.trees_sysfs import put

DECLARED = DatasheetDevice(device="intel_npu", power_w=8.0, source="a datasheet, v1.0")


def sealed(sensor, busy_s=4.0, seconds=10):
    """Seal ten seconds in which the NPU was in use for some, a reading a second."""
    samples = [
        Sample(t_us=k * 1_000_000, values=((100.0 + busy_s * k / seconds,),)) for k in range(seconds + 1)
    ]
    return seal([sensor.info], samples, start_us=0, window_us=seconds * 1_000_000)


def test_time_in_use_is_read_at_most_once_a_second(tmp_path):
    file = npu(tmp_path, busy_us=1_500_000)
    sensor = IntelNpuSensor(tmp_path)
    assert isinstance(sensor, Sensor)
    assert sensor.read(edge=True) == (1.5,)
    put(file, 2_250_000)
    assert sensor.read(edge=True) == (2.25,)
    assert sensor.rest_s >= 1
    (channel,) = sensor.info.channels
    assert (channel.device, channel.component) == ("npu-0000:00:0b.0", "npu")
    assert (sensor.info.kind, sensor.info.unit, sensor.info.grade) == ("utilisation", "s", "D")
    sensor.close()


def test_without_a_stated_power_the_energy_is_unknown(tmp_path):
    npu(tmp_path)
    sensor = IntelNpuSensor(tmp_path)
    probe = sensor.probe()
    assert probe.usable
    assert "energy unknown" in probe.found
    assert "datasheet device named intel_npu" in probe.mend
    readings = [r for r in sealed(sensor).readings if r.component == "npu"]
    assert [(r.energy_j, r.state) for r in readings] == [(None, "unknown")]


def test_a_stated_power_makes_a_figure_twice_as_wide_as_its_half(tmp_path):
    npu(tmp_path)
    sensor = IntelNpuSensor(tmp_path, DECLARED)
    assert "tested on recordings" in sensor.probe().found
    reading = next(r for r in sealed(sensor).readings if r.component == "npu")
    assert float(reading.energy_j) == pytest.approx(32.0)
    assert (reading.grade, reading.boundary) == ("D", "device")
    assert reading.estimate.high == pytest.approx(64.0)
    assert reading.estimate.low == pytest.approx(16.0)
    assert DECLARED.source in reading.method


def test_another_accelerator_is_no_intel_npu(tmp_path):
    npu(tmp_path, driver="amdxdna")
    probe = IntelNpuSensor(tmp_path).probe()
    assert not probe.usable
    assert "intel_vpu" in probe.reason
    assert not IntelNpuSensor(tmp_path / "nothing").probe().usable


def test_an_older_driver_counts_nothing(tmp_path):
    npu(tmp_path, busy_us=None)
    sensor = IntelNpuSensor(tmp_path)
    probe = sensor.probe()
    assert not probe.usable
    assert "6.11" in probe.mend
    with pytest.raises(OSError, match="time in use"):
        sensor.read(edge=True)


@pytest.mark.parametrize("text", ["", "N/A", "garbage", "-5", "1.5", "nan"])
def test_a_fault_is_no_reading_and_not_zero(tmp_path, text):
    file = npu(tmp_path, 0, 1_000_000)
    npu(tmp_path, 1, 2_000_000, address="0000:00:0c.0")
    sensor = IntelNpuSensor(tmp_path)
    put(file, text)
    assert sensor.read(edge=True) == (None, 2.0)


def test_a_device_that_vanishes_is_a_fault(tmp_path):
    file = npu(tmp_path)
    sensor = IntelNpuSensor(tmp_path)
    sensor.read(edge=True)
    file.unlink()
    with pytest.raises(OSError, match="time in use"):
        sensor.read(edge=True)


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_forbidden_counter_names_one_safe_mend(tmp_path):
    npu(tmp_path).chmod(0)
    assert "chmod" in IntelNpuSensor(tmp_path).probe().mend


def test_a_lock_that_is_held_does_not_hold_the_reader(tmp_path):
    file = npu(tmp_path)
    sensor = IntelNpuSensor(tmp_path)
    assert sensor.may_block
    patient = PatientSensor(sensor)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(TimeoutError):
        patient.read(edge=True)
    os.close(os.open(file, os.O_WRONLY))
    patient.close()


@given(busy_us=st.integers(min_value=0, max_value=2**63 - 1))
def test_microseconds_are_seconds(tmp_path_factory, busy_us):
    root = tmp_path_factory.mktemp("npu")
    npu(root, busy_us=busy_us)
    assert IntelNpuSensor(root).read(edge=True)[0] == pytest.approx(busy_us / 1e6)
