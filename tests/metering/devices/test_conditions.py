"""Conditions: what was seen of clocks, heat, caps and memory, and nothing that was not told."""

import time

import pytest

from carbonlens.metering.devices.conditions import MOST_CLOCKS, REST_NS, SYS, DeviceLooks
from carbonlens.metering.sensors import Channel, Sensor, SensorInfo
from carbonlens.metering.sensors.gpu_state import AmdStateSensor, NvmlStateSensor
from carbonlens.metering.sensors.nvml_library import Nvml
from tests.metering import fake_amdsmi
from tests.metering.fake_nvml import GPU_IS_LOST, NOT_SUPPORTED, FakeGpu, FakeNvml, hanging
from tests.metering.test_session import session
from tests.metering.trees_sysfs import put

A, B = "GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222"
TEMPERATURE = "nvmlDeviceGetTemperature"


def clock(tree, cpu, khz):
    put(tree / "devices/system/cpu/cpufreq" / f"policy{cpu}" / "scaling_cur_freq", f"{khz}\n")


def cap(tree, package, microwatts):
    put(tree / "class/powercap" / f"intel-rapl:{package}" / "constraint_0_power_limit_uw", f"{microwatts}\n")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Two Intel packages of two processors each, all of which the work may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    for cpu in range(4):
        put(tmp_path / f"devices/system/cpu/cpu{cpu}/topology/physical_package_id", f"{cpu // 2}\n")
        clock(tmp_path, cpu, 1_000_000 * (cpu + 1))
    for package in range(2):
        zone = tmp_path / "class/powercap" / f"intel-rapl:{package}"
        put(zone / "name", f"package-{package}\n")
        put(zone / "constraint_0_name", "long_term\n")
        cap(tmp_path, package, 205_000_000)
        chip = tmp_path / "class/hwmon" / f"hwmon{package + 2}"
        put(chip / "name", "coretemp\n")
        put(chip / "temp1_label", f"Package id {package}\n")
        put(chip / "temp1_input", f"{51_000 + package * 1000}\n")
        put(chip / "temp2_label", "Core 0\n")
        put(chip / "temp2_input", "99000\n")
    return tmp_path


def gpus(api, *uuids):
    return [NvmlStateSensor(uuids or [g.uuid for g in api.gpus], Nvml(api), api.clock)]


def window(looks, meanwhile=lambda: None):
    looks.begin()
    for line in looks._asked:
        assert line._sensor._asked_ahead.done.wait(60)
    meanwhile()
    looks.ask()
    return {seen.device: seen for seen in looks.end()}


def test_packages_tell_their_own_clock_heat_and_cap(tree):
    found = window(DeviceLooks((), sys=tree))
    assert [found[p].clock_mhz for p in ("package-0", "package-1")] == [1500.0, 3500.0]
    one = found["package-1"]
    assert (one.temperature_c, one.power_cap_w, one.memory_bytes) == (52.0, 205.0, None)


def test_clocks_of_processors_that_are_not_the_works_do_not_count(tree, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {1, 2, 3})
    assert window(DeviceLooks((), sys=tree))["package-0"].clock_mhz == 2000.0


def test_the_record_of_a_run_holds_them(tree):
    one = session(tree)
    assert one._surroundings._looks._sys == SYS
    one._surroundings._looks = DeviceLooks((), sys=tree)
    one.start()
    (first, _) = one.finish().run.conditions.devices
    assert (first.device, first.power_cap_w) == ("package-0", 205.0)


def test_a_look_each_second_between_the_edges_and_none_sooner(tree):
    looks = DeviceLooks((), sys=tree)
    looks.begin()
    now = time.monotonic_ns()
    looks.between(now)
    for cpu in range(4):
        clock(tree, cpu, 500_000)
    looks.between(now + REST_NS - 1)
    assert looks._seen["package-0"]._lowest_mhz >= 1000
    looks.between(now + REST_NS)
    assert looks._seen["package-0"]._lowest_mhz == 500
    found = looks.end()[0]
    assert found.lowest_clock_mhz == 500 < found.clock_mhz


def test_the_hottest_look_counts_and_a_cap_that_was_lowered_is_told(tree):
    def lowered():
        cap(tree, 0, 150_000_000)
        put(tree / "class/hwmon/hwmon2/temp1_input", "77000\n")

    found = window(DeviceLooks((), sys=tree), lowered)["package-0"]
    assert (found.power_cap_w, found.earlier_power_cap_w, found.temperature_c) == (150.0, 205.0, 77.0)
    assert window(DeviceLooks((), sys=tree))["package-1"].earlier_power_cap_w is None


def test_one_chip_of_amd_is_the_one_package(tmp_path):
    put(tmp_path / "devices/system/cpu/cpu0/topology/physical_package_id", "0\n")
    clock(tmp_path, 0, 3_400_000)
    put(tmp_path / "class/hwmon/hwmon1/name", "k10temp\n")
    put(tmp_path / "class/hwmon/hwmon1/temp1_label", "Tctl\n")
    put(tmp_path / "class/hwmon/hwmon1/temp1_input", "62125\n")
    (found,) = window(DeviceLooks((), sys=tmp_path)).values()
    assert (found.clock_mhz, found.temperature_c, found.power_cap_w) == (3400.0, 62.125, None)


def test_two_chips_of_amd_beside_one_package_are_not_guessed_at(tmp_path):
    put(tmp_path / "devices/system/cpu/cpu0/topology/physical_package_id", "0\n")
    clock(tmp_path, 0, 3_400_000)
    for chip in (1, 2):
        put(tmp_path / f"class/hwmon/hwmon{chip}/name", "k10temp\n")
        put(tmp_path / f"class/hwmon/hwmon{chip}/temp1_input", "62125\n")
    (found,) = window(DeviceLooks((), sys=tmp_path)).values()
    assert found.temperature_c is None


def test_a_machine_that_tells_nothing_has_no_devices(tmp_path):
    assert window(DeviceLooks((), sys=tmp_path)) == {}


@pytest.mark.parametrize("value", ["N/A", "", "0", "-1", "9000000000"])
def test_a_cap_that_is_none_is_unknown(tree, value):
    cap(tree, 0, value)
    assert window(DeviceLooks((), sys=tree))["package-0"].power_cap_w is None


def test_of_many_clocks_some_are_read(tmp_path, monkeypatch):
    for cpu in range(100):
        put(tmp_path / f"devices/system/cpu/cpu{cpu}/topology/physical_package_id", "0\n")
        clock(tmp_path, cpu, 1_000_000)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(100)))
    looks = DeviceLooks((), sys=tmp_path)
    looks.begin()
    chosen = [cpu for cpu, _ in looks._packages[0].clocks]
    assert MOST_CLOCKS / 2 < len(chosen) <= MOST_CLOCKS
    assert chosen[-1] > 50


def test_gpus_tell_all_four(tmp_path):
    api = FakeNvml(FakeGpu(A), FakeGpu(B))
    api.gpus[1].temperature_c, api.gpus[1].limit_w = 55, 350.0

    def later():
        api.gpus[0].clock_mhz, api.gpus[0].memory_bytes = 1200, 7 << 30

    found = window(DeviceLooks((), sys=tmp_path, gpus=gpus(api)), later)
    assert (found[A].clock_mhz, found[A].lowest_clock_mhz) == (1590.0, 1200.0)
    assert (found[A].memory_bytes, found[A].power_cap_w, found[A].earlier_power_cap_w) == (
        7 << 30,
        700.0,
        None,
    )
    assert (found[B].temperature_c, found[B].power_cap_w) == (55.0, 350.0)


def test_what_a_gpu_does_not_offer_is_unknown_beside_what_it_does(tmp_path):
    api = FakeNvml(FakeGpu(A, lacks={TEMPERATURE}))
    found = window(DeviceLooks((), sys=tmp_path, gpus=gpus(api)))[A]
    assert (found.temperature_c, found.clock_mhz) == (None, 1980.0)


@pytest.mark.parametrize("fault", [NOT_SUPPORTED, GPU_IS_LOST])
def test_a_gpu_that_tells_nothing_is_left_out(tmp_path, fault):
    api = FakeNvml(FakeGpu(A), FakeGpu(B))
    api.gpus[0].fault = fault
    assert window(DeviceLooks((), sys=tmp_path, gpus=gpus(api))).keys() == {B}


def test_handles_that_others_made_void_are_looked_up_again(tmp_path):
    api = FakeNvml(FakeGpu(A))
    found = window(DeviceLooks((), sys=tmp_path, gpus=gpus(api)), api.shut_down_by_others)
    assert A in found


def test_a_driver_that_hangs_costs_no_second_wait_and_leaves_the_processor_told(tree):
    api = FakeNvml(FakeGpu(A))
    api.gpus[0].hang = hanging()
    looks = DeviceLooks((), sys=tree, gpus=gpus(api))
    looks.begin()
    now = time.monotonic_ns()
    looks.between(now)
    looks.between(now + REST_NS)
    looks.ask()
    assert {seen.device for seen in looks.end()} == {"package-0", "package-1"}
    api.gpus[0].hang.set()


def test_a_driver_that_works_long_for_an_answer_is_asked_seldom(tmp_path):
    api = FakeNvml(FakeGpu(A))
    plain = api.nvmlDeviceGetTemperature

    def slow(*which):
        begin = time.thread_time()
        while time.thread_time() - begin < 0.004:
            pass
        return plain(*which)

    def asked():
        """Count the looks in a minute of one each second."""
        (sensor,) = gpus(api)
        looks = DeviceLooks((), sys=tmp_path, gpus=[sensor])
        looks.begin()
        now = time.monotonic_ns()
        before = api.function(TEMPERATURE)
        for second in range(60):
            looks.between(now + second * REST_NS)
        looks.end()
        return api.function(TEMPERATURE) - before

    assert asked() > 50
    api.nvmlDeviceGetTemperature = slow
    # A look of 4 ms each 10 s is 0.04 % of a core.
    assert 2 <= asked() <= 8


def test_only_gpus_that_the_window_reads_are_looked_at(tmp_path):
    def info(name, component):
        return SensorInfo(
            name=name, kind="cumulative", unit="J", scope="board", boundary="device", grade="B",
            update_period_s=0.1, channels=(Channel(device=A, component=component),), method="test",
        )  # fmt: skip

    looks = DeviceLooks((info("replay:nvml_energy", "gpu"), info("rapl", "cpu")), sys=tmp_path)
    looks.begin()
    assert looks._asked == []


@pytest.mark.parametrize("old", [False, True])
def test_amd_gpus_tell_by_the_names_of_their_library(old):
    api = fake_amdsmi.FakeAmdsmi([fake_amdsmi.FakeGpu("AMD Instinct MI300X", 140)], old=old)
    sensor = AmdStateSensor(["GPU-0000000000000000"], api)
    assert isinstance(sensor, Sensor)
    assert sensor.probe().usable
    assert sensor.read(edge=True) == (2100.0, 38.0 if old else 47.0, 300.0, 283 << 20)


def test_an_amd_library_that_lacks_or_fails_a_function_tells_the_rest():
    lacks = ("amdsmi_get_clock_info",)
    fails = ("amdsmi_get_temp_metric",)
    api = fake_amdsmi.FakeAmdsmi([fake_amdsmi.FakeGpu("MI210", 140)], lacks=lacks, fails=fails)
    assert AmdStateSensor(["GPU-0000000000000000"], api).read(edge=True) == (None, None, 300.0, 283 << 20)
    assert not AmdStateSensor(["GPU-elsewhere"], api).probe().usable


def test_the_nvml_look_is_a_sensor_and_says_what_it_found():
    api = FakeNvml(FakeGpu(A))
    (sensor,) = gpus(api)
    assert isinstance(sensor, Sensor)
    assert sensor.probe().found == "state of 1 GPU"
    api.gpus[0].fault = NOT_SUPPORTED
    assert not sensor.probe().usable
