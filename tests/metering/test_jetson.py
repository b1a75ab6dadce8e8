"""Jetson rails on trees like the kernels': the module's energy is counted once, and no fault is 0 W."""

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.metering.patience import PatientSensor
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.jetson import JetsonSensor
from tests.metering.trees_jetson import agx_orin, chip, nano_jetpack_4, orin_nx, rail, thor
from tests.metering.trees_sysfs import device_tree, put

FAULTS = ["", "N/A", "garbage", "12.5 W", "0x10", "nan"]


def told(sensor):
    return dict(zip([c.device for c in sensor.info.channels], sensor.read(edge=True), strict=True))


def energy_of(sensor, seconds=10):
    """Seal ten seconds of the same reading, ten a second."""
    values = sensor.read(edge=True)
    samples = [Sample(t_us=k * 100_000, values=(values,)) for k in range(seconds * 10 + 1)]
    return seal([sensor.info], samples, start_us=0, window_us=seconds * 1_000_000)


def joules(sealed):
    return float(sum(r.energy_j for r in sealed.readings))


def test_an_input_rail_is_the_module_and_its_parts_stand_beside(tmp_path):
    orin_nx(tmp_path)
    sensor = JetsonSensor(tmp_path)
    assert isinstance(sensor, Sensor)
    probe = sensor.probe()
    assert probe.usable
    assert "tested on recordings" in probe.found
    assert [(c.device, c.component) for c in sensor.info.channels] == [
        ("VDD_IN", "total"),
        ("VDD_CPU_GPU_CV", "cpu+gpu+npu"),
        ("VDD_SOC", "soc"),
    ]
    assert told(sensor) == pytest.approx({"VDD_IN": 5.3, "VDD_CPU_GPU_CV": 0.77, "VDD_SOC": 1.42})
    assert (sensor.info.kind, sensor.info.unit, sensor.info.grade) == ("instant", "W", "C")
    sealed = energy_of(sensor)
    assert joules(sealed) == pytest.approx(53.0, abs=0.01)
    assert {r.component for r in sealed.beside} == {"cpu+gpu+npu", "soc"}
    sensor.close()


def test_an_agx_orin_is_the_sum_of_its_rails(tmp_path):
    agx_orin(tmp_path)
    sensor = JetsonSensor(tmp_path)
    assert sensor.probe().usable
    assert told(sensor) == pytest.approx(
        {"VDD_GPU_SOC": 2.4, "VDD_CPU_CV": 0.8, "VIN_SYS_5V0": 3.52, "VDDQ_VDD2_1V8AO": 0.3}
    )
    assert "total" not in {c.component for c in sensor.info.channels}
    sealed = energy_of(sensor)
    assert joules(sealed) == pytest.approx(70.2, abs=0.01)
    assert sealed.beside == ()
    assert "5 V rail" in sensor.info.method


def test_a_nano_on_jetpack_4_tells_milliwatts(tmp_path):
    nano_jetpack_4(tmp_path)
    sensor = JetsonSensor(tmp_path)
    assert sensor.probe().usable
    assert told(sensor) == pytest.approx({"POM_5V_IN": 0.933, "POM_5V_GPU": 0.0, "POM_5V_CPU": 0.084})
    assert joules(energy_of(sensor)) == pytest.approx(9.33, abs=0.01)


def test_thor_tells_its_input_in_microwatts(tmp_path):
    thor(tmp_path)
    sensor = JetsonSensor(tmp_path)
    assert sensor.probe().usable
    assert told(sensor)["VIN"] == pytest.approx(19.78)
    assert sensor.info.channels[0].component == "total"
    assert "carrier" in sensor.info.method


def test_thor_without_an_input_monitor_is_summed(tmp_path):
    thor(tmp_path, vin=False)
    assert joules(energy_of(JetsonSensor(tmp_path))) == pytest.approx(134.75, abs=0.01)


def test_an_averaging_chip_says_over_how_long(tmp_path):
    folder = orin_nx(tmp_path)
    put(folder / "samples", 512)
    put(folder / "update_interval", 3380)
    info = JetsonSensor(tmp_path).info
    assert (info.kind, info.window_s, info.update_period_s) == ("average", 3.38, 3.38)


def test_single_conversions_are_instant(tmp_path):
    folder = orin_nx(tmp_path)
    put(folder / "samples", 1)
    put(folder / "update_interval", 7)
    info = JetsonSensor(tmp_path).info
    assert (info.kind, info.window_s, info.update_period_s) == ("instant", None, 0.007)


def test_a_slow_bus_is_read_less_often(tmp_path):
    orin_nx(tmp_path)
    ticks = iter([0.0, 0.004])
    sensor = JetsonSensor(tmp_path, clock=lambda: next(ticks))
    assert "4.0 ms" in sensor.probe().found
    assert sensor.rest_s == 0.8
    assert sensor.info.update_period_s == 0.8


@pytest.mark.parametrize("text", FAULTS)
def test_a_part_that_fails_is_none_and_not_zero(tmp_path, text):
    folder = orin_nx(tmp_path)
    put(folder / "curr3_input", text)
    values = JetsonSensor(tmp_path).read(edge=True)
    assert values[2] is None
    assert values[0] == pytest.approx(5.3)


@pytest.mark.parametrize("text", FAULTS)
def test_without_the_input_the_parts_do_not_pass_for_the_module(tmp_path, text):
    folder = orin_nx(tmp_path)
    sensor = JetsonSensor(tmp_path)
    assert sensor.probe().usable
    put(folder / "in1_input", text)
    with pytest.raises(OSError, match="VDD_IN"):
        sensor.read(edge=False)
    assert not sensor.probe().usable


def test_a_rail_of_a_sum_that_fails_is_none(tmp_path):
    folder = agx_orin(tmp_path)
    sensor = JetsonSensor(tmp_path)
    sensor.read(edge=True)
    (folder / "curr2_input").unlink()
    assert told(sensor)["VDD_CPU_CV"] is None
    assert not sensor.probe().usable


def test_a_device_that_vanishes_is_a_fault(tmp_path):
    folder = orin_nx(tmp_path)
    sensor = JetsonSensor(tmp_path)
    sensor.read(edge=True)
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(OSError, match="no rail"):
        sensor.read(edge=False)


def test_noise_below_nothing_is_nothing_and_more_is_a_fault(tmp_path):
    folder = orin_nx(tmp_path)
    put(folder / "curr2_input", -8)
    put(folder / "curr3_input", -900)
    assert JetsonSensor(tmp_path).read(edge=True)[1:] == (0.0, None)


def test_a_module_that_reads_0_w_reads_nothing_and_a_part_may_sleep(tmp_path):
    folder = orin_nx(tmp_path / "input")
    put(folder / "curr2_input", 0)
    assert JetsonSensor(tmp_path / "input").read(edge=True)[1] == 0.0
    put(folder / "curr1_input", 0)
    with pytest.raises(OSError, match="0 W"):
        JetsonSensor(tmp_path / "input").read(edge=True)
    assert not JetsonSensor(tmp_path / "input").probe().usable
    summed = agx_orin(tmp_path / "summed")
    put(summed / "curr1_input", 0)
    assert JetsonSensor(tmp_path / "summed").read(edge=True)[0] == 0.0
    for chip_folder in summed.parent.parent.parent.glob("*/hwmon/hwmon*"):
        for current in chip_folder.glob("curr*_input"):
            put(current, 0)
    with pytest.raises(OSError, match="0 W"):
        JetsonSensor(tmp_path / "summed").read(edge=True)


def test_a_module_without_its_input_rail_is_not_used(tmp_path):
    folder = orin_nx(tmp_path)
    (folder / "in1_label").unlink()
    probe = JetsonSensor(tmp_path).probe()
    assert not probe.usable
    assert "VDD_IN" in probe.reason


def test_carrier_rails_are_named_and_left_out(tmp_path):
    agx_orin(tmp_path)
    rail(chip(tmp_path, "2-0041", "hwmon9"), 1, "CVB_ATX_12V", 12000, 2000)
    sensor = JetsonSensor(tmp_path)
    assert "CVB_ATX_12V" in sensor.probe().found
    assert joules(energy_of(sensor)) == pytest.approx(70.2, abs=0.01)


def test_only_unknown_rails_are_not_used(tmp_path):
    rail(chip(tmp_path), 1, "SOLAR", 12000, 2000)
    sensor = JetsonSensor(tmp_path)
    probe = sensor.probe()
    assert not probe.usable
    assert "SOLAR" in probe.found
    with pytest.raises(OSError, match="no rail"):
        sensor.read(edge=True)


def test_another_machine_is_no_jetson(tmp_path):
    probe = JetsonSensor(tmp_path).probe()
    assert (probe.usable, probe.found) == (False, "no Jetson")


def test_a_jetson_in_a_container_says_what_to_share(tmp_path):
    device_tree(tmp_path, "NVIDIA Jetson AGX Orin Developer Kit", "nvidia,p3701-0000")
    probe = JetsonSensor(tmp_path).probe()
    assert (probe.usable, probe.found) == (False, "Jetson AGX Orin")
    assert "/sys/bus/i2c" in probe.mend


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_forbidden_rail_names_one_safe_mend(tmp_path):
    (orin_nx(tmp_path) / "in1_input").chmod(0)
    probe = JetsonSensor(tmp_path).probe()
    assert not probe.usable
    assert "chmod" in probe.mend


def test_a_stuck_bus_does_not_hold_the_reader(tmp_path):
    folder = orin_nx(tmp_path)
    sensor = JetsonSensor(tmp_path)
    assert sensor.may_block
    patient = PatientSensor(sensor)
    patient.read(edge=True)
    (folder / "in1_input").unlink()
    os.mkfifo(folder / "in1_input")  # opening it waits for a writer that never comes
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        patient.read(edge=False)
    assert time.monotonic() - begin < 1
    os.close(os.open(folder / "in1_input", os.O_WRONLY))  # lets the thread go
    patient.close()


@given(text=st.text(max_size=20))
def test_no_text_becomes_power_unless_it_is_a_number(tmp_path_factory, text):
    folder = orin_nx(tmp_path_factory.mktemp("jetson"))
    (folder / "curr3_input").write_bytes(text.encode("utf-8", "surrogatepass"))
    value = JetsonSensor(folder.parents[7]).read(edge=True)[2]
    if value is not None:
        assert value == pytest.approx(max(5.0 * int(text.strip().strip("\0")) / 1000, 0.0))
