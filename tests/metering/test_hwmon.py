"""Power meters of hwmon: those whose place is known are read, each joule once; the others are named."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.metering.patience import PatientSensor
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.hwmon import HwmonSensor, hwmon_sensors
from tests.metering.trees_hwmon import acpi, grace, grace_hopper, hwmon, intel_gpu
from tests.metering.trees_sysfs import device_tree, put

FAULTS = ["", "N/A", "garbage", "-1", "1.5e9", "nan"]


def channels(sensor):
    return [(c.device, c.component) for c in sensor.info.channels]


def test_a_grace_hopper_module_is_the_total_and_holds_its_socket(tmp_path):
    grace_hopper(tmp_path)
    sensor = HwmonSensor(tmp_path, "grace")
    assert isinstance(sensor, Sensor)
    assert sensor.probe().usable
    assert channels(sensor) == [("module-0", "total"), ("grace-0", "cpu")]
    assert sensor.read(edge=True) == pytest.approx((400.0, 100.0))
    assert (sensor.info.kind, sensor.info.window_s, sensor.info.grade) == ("average", 0.05, "C")
    assert sensor.info.name == "hwmon:grace"
    sensor.close()


def test_rails_of_a_socket_are_read_only_where_the_socket_is_not(tmp_path):
    grace(tmp_path, 1, "CPU Power Socket 0", 70_000_000)
    grace(tmp_path, 2, "SysIO Power Socket 0", 20_000_000)
    grace(tmp_path, 3, "Grace Power Socket 1", 100_000_000)
    grace(tmp_path, 4, "CPU Power Socket 1", 70_000_000)
    assert channels(HwmonSensor(tmp_path, "grace")) == [
        ("cpu-0", "cpu"),
        ("grace-1", "cpu"),
        ("sysio-0", "cpu"),
    ]


def test_two_modules_are_one_total_and_nothing_when_one_fails(tmp_path):
    grace(tmp_path, 1, "Module Power Socket 0", 400_000_000)
    other = grace(tmp_path, 2, "Module Power Socket 1", 300_000_000)
    sensor = HwmonSensor(tmp_path, "grace")
    assert channels(sensor) == [("module-0+module-1", "total")]
    assert sensor.read(edge=True) == pytest.approx((700.0,))
    put(other, "N/A")
    with pytest.raises(OSError, match="no power meter"):
        sensor.read(edge=False)


def test_a_server_meter_of_the_whole_system_is_the_machine(tmp_path):
    acpi(tmp_path, 2, 324_000_000)
    sensor = HwmonSensor(tmp_path, "machine")
    assert sensor.probe().usable
    assert channels(sensor) == [("acpi-hwmon2", "wall")]
    assert (sensor.info.scope, sensor.info.boundary) == ("machine", "it")
    assert sensor.read(edge=True) == pytest.approx((324.0,))


def test_a_meter_that_does_not_say_what_it_measures_is_named_and_not_used(tmp_path):
    acpi(tmp_path, 0, 90_000_000, measures=("device:1c",))
    probe = HwmonSensor(tmp_path, "machine").probe()
    assert not probe.usable
    assert "does not say what it measures" in probe.found


def test_a_battery_is_no_meter_of_the_machine(tmp_path):
    put(acpi(tmp_path, 0, 9_000_000) / "power1_is_battery", 1)
    assert not HwmonSensor(tmp_path, "machine").probe().usable


def test_of_several_meters_of_the_whole_machine_none_is_picked(tmp_path):
    acpi(tmp_path, 0, 324_000_000)
    acpi(tmp_path, 1, 330_000_000)
    probe = HwmonSensor(tmp_path, "machine").probe()
    assert not probe.usable
    assert "which one is not known" in probe.found


def test_an_intel_card_counts_energy(tmp_path):
    folder = intel_gpu(tmp_path, 3, "i915", [5_000_000])
    put(folder / "power1_rated_max", 190_000_000)
    hwmon(tmp_path, 4, "i915_gt0").joinpath("energy1_input").write_text("4000000\n")
    sensor = HwmonSensor(tmp_path, "intel_gpu")
    assert sensor.probe().usable
    assert "not used" not in sensor.probe().found
    (channel,) = sensor.info.channels
    assert (channel.device, channel.component, channel.rated_w) == ("i915-0000:03:00.0", "gpu", 190.0)
    assert (sensor.info.kind, sensor.info.unit, sensor.info.grade) == ("cumulative", "J", "B")
    assert sensor.read(edge=True) == (5.0,)
    put(folder / "energy1_input", 7_500_000)
    assert sensor.read(edge=True) == (7.5,)


@pytest.mark.parametrize(("counters", "joules"), [((9_000_000, 6_000_000), 9.0), ((0, 6_000_000), 6.0)])
def test_a_card_holds_its_package(tmp_path, counters, joules):
    intel_gpu(tmp_path, 0, "xe", counters, label=("card", "pkg"))
    assert HwmonSensor(tmp_path, "intel_gpu").read(edge=True) == (joules,)


def test_a_card_that_counts_its_package_only(tmp_path):
    folder = intel_gpu(tmp_path, 0, "xe", (), label=None)
    put(folder / "energy2_input", 6_000_000)
    put(folder / "energy2_label", "pkg")
    assert HwmonSensor(tmp_path, "intel_gpu").read(edge=True) == (6.0,)


def test_a_card_without_a_counter_has_no_meter(tmp_path):
    intel_gpu(tmp_path, 0, "xe", ())
    assert not HwmonSensor(tmp_path, "intel_gpu").probe().usable


def test_an_ina_is_used_only_where_its_label_is_the_input(tmp_path):
    put(hwmon(tmp_path, 0, "ina226") / "power1_input", 3_000_000)
    put(hwmon(tmp_path, 1, "ina238") / "power1_input", 19_780_000)
    sensor = HwmonSensor(tmp_path, "input")
    assert not sensor.probe().usable
    assert "ina226 without a label" in sensor.probe().found
    put(tmp_path / "sys/class/hwmon/hwmon1/power1_label", "VIN")
    sensor = HwmonSensor(tmp_path, "input")
    assert channels(sensor) == [("VIN", "total")]
    assert sensor.read(edge=True) == pytest.approx((19.78,))


def test_monitors_of_a_jetson_are_left_to_its_own_sensor(tmp_path):
    device_tree(tmp_path, "NVIDIA Jetson AGX Thor Developer Kit", "nvidia,tegra264")
    folder = hwmon(tmp_path, 1, "ina238")
    put(folder / "power1_input", 19_780_000)
    put(folder / "power1_label", "VIN")
    assert channels(HwmonSensor(tmp_path, "input")) == []


def test_unknown_meters_are_named_and_silent_chips_are_not(tmp_path):
    put(hwmon(tmp_path, 0, "amdgpu") / "power1_average", 30_000_000)
    put(hwmon(tmp_path, 1, "corsairpsu") / "power1_input", 30_000_000)
    put(hwmon(tmp_path, 2, "coretemp") / "temp1_input", 30_000)
    (sensor,) = hwmon_sensors(tmp_path)
    probe = sensor.probe()
    assert not probe.usable
    assert "amdgpu (read by amdsmi)" in probe.found
    assert "corsairpsu" in probe.found
    assert "coretemp" not in probe.found


def test_one_sensor_a_group_that_is_there(tmp_path):
    assert [s.info.name for s in hwmon_sensors(tmp_path)] == ["hwmon:machine"]
    grace_hopper(tmp_path)
    intel_gpu(tmp_path, 9, "xe", (1, 2), label=("card", "pkg"))
    assert [s.info.name for s in hwmon_sensors(tmp_path)] == ["hwmon:grace", "hwmon:intel_gpu"]


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_is_none_and_not_zero(tmp_path, text):
    files = grace_hopper(tmp_path)
    sensor = HwmonSensor(tmp_path, "grace")
    put(files["grace"], text)
    assert sensor.read(edge=True) == (pytest.approx(400.0), None)
    put(files["module"], text)
    with pytest.raises(OSError, match="no power meter"):
        sensor.read(edge=True)


def test_a_meter_that_vanishes_is_a_fault_and_a_folder_is_no_number(tmp_path):
    files = grace_hopper(tmp_path)
    sensor = HwmonSensor(tmp_path, "grace")
    files["module"].unlink()
    assert sensor.read(edge=True)[0] is None
    assert "No such file" in sensor.probe().reason
    files["module"].mkdir()
    assert "directory" in sensor.probe().reason


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_forbidden_meter_names_one_safe_mend(tmp_path):
    grace_hopper(tmp_path)["module"].chmod(0)
    assert "chmod" in HwmonSensor(tmp_path, "grace").probe().mend


def test_firmware_that_hangs_does_not_hold_the_reader(tmp_path):
    file = acpi(tmp_path, 0, 324_000_000) / "power1_average"
    sensor = HwmonSensor(tmp_path, "machine")
    assert sensor.may_block
    patient = PatientSensor(sensor)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(TimeoutError):
        patient.read(edge=True)
    os.close(os.open(file, os.O_WRONLY))
    patient.close()


@pytest.mark.parametrize("how", ["machine", "module", "socket", "input"])
def test_0_w_of_what_runs_this_program_is_no_reading(tmp_path, how):
    """Firmware that has not filled its meter in would make the run 0 J, known."""
    if how == "machine":
        power = acpi(tmp_path, 0, 0) / "power1_average"
    elif how == "input":
        folder = hwmon(tmp_path, 1, "ina238")
        put(folder / "power1_label", "VIN")
        power = folder / "power1_input"
        put(power, 0)
    else:
        power = grace(tmp_path, 1, f"{'Module' if how == 'module' else 'Grace'} Power Socket 0", 0)
    sensor = HwmonSensor(tmp_path, how if how in {"machine", "input"} else "grace")
    with pytest.raises(OSError, match="no power meter"):
        sensor.read(edge=True)
    probe = sensor.probe()
    assert not probe.usable
    assert "0 W" in probe.reason
    put(power, 90_000_000)
    assert sensor.read(edge=True) == pytest.approx((90.0,))
    assert sensor.probe().usable


def test_one_of_two_modules_at_0_w_is_not_the_other_alone(tmp_path):
    grace(tmp_path, 1, "Module Power Socket 0", 400_000_000)
    grace(tmp_path, 2, "Module Power Socket 1", 0)
    with pytest.raises(OSError, match="no power meter"):
        HwmonSensor(tmp_path, "grace").read(edge=True)


def test_a_counter_that_begins_at_0_is_one(tmp_path):
    intel_gpu(tmp_path, 3, "i915", [0])
    assert HwmonSensor(tmp_path, "intel_gpu").read(edge=True) == (0.0,)


@given(microwatts=st.integers(min_value=1, max_value=10**10))
def test_microwatts_are_watts(tmp_path_factory, microwatts):
    root = tmp_path_factory.mktemp("hwmon")
    acpi(root, 0, microwatts)
    assert HwmonSensor(root, "machine").read(edge=True)[0] == pytest.approx(microwatts / 1e6)
