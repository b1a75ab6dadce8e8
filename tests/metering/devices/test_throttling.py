"""Throttling: what the drivers' counters gained between the edges of a window, and no more."""

import pytest

from carbonlens.metering.devices.throttling import Slowed, Throttling
from carbonlens.metering.sensors import Channel, Sensor, SensorInfo
from carbonlens.metering.sensors.nvml_library import Nvml
from carbonlens.metering.sensors.nvml_throttle import NvmlThrottleSensor
from tests.metering.fake_nvml import GPU_IS_LOST, NOT_SUPPORTED, FakeGpu, FakeNvml, hanging
from tests.metering.trees_sysfs import put

A, B = "GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222"
STATUS = "nvmlDeviceGetViolationStatus"


@pytest.fixture
def cpus(tmp_path):
    """Two packages of two processors each, whose numbers interleave."""
    folder = tmp_path / "cpu"
    put(folder / "online", "0-3\n")
    for cpu, mates in enumerate(("0,2", "1,3", "0,2", "1,3")):
        put(folder / f"cpu{cpu}" / "topology" / "package_cpus_list", mates + "\n")
        put(folder / f"cpu{cpu}" / "thermal_throttle" / "package_throttle_count", "7\n")
        put(folder / f"cpu{cpu}" / "thermal_throttle" / "package_throttle_total_time_ms", "1500\n")
    return folder


def count(cpus, cpu, name, value):
    put(cpus / f"cpu{cpu}" / "thermal_throttle" / f"package_throttle_{name}", f"{value}\n")


def window(throttling, meanwhile=lambda: None):
    throttling.begin()
    meanwhile()
    throttling.ask()
    return throttling.end()


def gpus(api, *uuids):
    return NvmlThrottleSensor(uuids or [g.uuid for g in api.gpus], Nvml(api), api.clock)


def test_a_processor_that_stayed_cool_was_slowed_for_no_time(cpus):
    assert window(Throttling((), cpus=cpus)) == Slowed(0.0)


def test_the_package_that_was_slowed_longest_counts(cpus):
    def hot():
        count(cpus, 0, "total_time_ms", 1700)
        count(cpus, 1, "total_time_ms", 3900)
        count(cpus, 3, "total_time_ms", 99_000)  # the same package as processor 1: not read twice

    assert window(Throttling((), cpus=cpus), hot).seconds == pytest.approx(2.4)


def test_without_counters_nothing_is_known(tmp_path):
    assert window(Throttling((), cpus=tmp_path)) == Slowed(None)


def test_a_kernel_that_counts_no_time_gives_no_number_and_says_how_often(cpus):
    for cpu in range(4):
        (cpus / f"cpu{cpu}" / "thermal_throttle" / "package_throttle_total_time_ms").unlink()
    assert window(Throttling((), cpus=cpus)) == Slowed(0.0)
    slowed = window(Throttling((), cpus=cpus), lambda: count(cpus, 1, "count", 12))
    assert slowed.seconds is None
    assert [(f.code, "5 times" in f.message) for f in slowed.findings] == [("CL160", True)]


@pytest.mark.parametrize("value", ["N/A", "", "12 ms"])
def test_a_file_that_holds_no_number_is_unknown_and_not_zero(cpus, value):
    for cpu in range(4):
        count(cpus, cpu, "total_time_ms", value)
        count(cpus, cpu, "count", value)
    assert window(Throttling((), cpus=cpus)) == Slowed(None)


def test_a_counter_that_was_set_back_says_nothing(cpus):
    for cpu in range(4):
        count(cpus, cpu, "total_time_ms", 1000)
    assert window(
        Throttling((), cpus=cpus), lambda: [count(cpus, c, "total_time_ms", 0) for c in (0, 1)]
    ) == (Slowed(None))


def test_the_throttle_reader_is_a_sensor_and_says_what_it_found():
    api = FakeNvml(FakeGpu(A), FakeGpu(B, lacks={STATUS}))
    sensor = gpus(api)
    assert isinstance(sensor, Sensor)
    probe = sensor.probe()
    assert probe.usable
    assert probe.found.endswith("1 GPU")
    assert [c.device for c in sensor.info.channels] == [A, B]
    nothing = gpus(api, B).probe()
    assert not nothing.usable
    assert "does not offer" in nothing.reason


def test_a_gpu_tells_how_long_heat_slowed_it_in_the_window(tmp_path):
    api = FakeNvml(FakeGpu(A), FakeGpu(B))
    api.gpus[0].heat_s = 40.0  # before the window
    sensor = gpus(api)
    sensor.read(edge=True)

    throttling = Throttling((), cpus=tmp_path, gpus=sensor)
    throttling.begin()
    first_came(throttling)
    api.gpus[0].heat_s += 0.5
    api.gpus[1].heat_s += 1.25
    throttling.ask()
    assert throttling.end().seconds == pytest.approx(1.25)


def test_the_longest_of_gpu_and_processor_counts(cpus):
    api = FakeNvml(FakeGpu(A))
    throttling = Throttling((), cpus=cpus, gpus=gpus(api))
    throttling.begin()
    first_came(throttling)
    api.gpus[0].heat_s += 0.5
    count(cpus, 0, "total_time_ms", 1800)
    throttling.ask()
    assert throttling.end().seconds == pytest.approx(0.5)


def lost(gpu):
    gpu.faults[STATUS] = GPU_IS_LOST


def set_back(gpu):
    gpu.heat_s = 0.0


@pytest.mark.parametrize("fails", [lost, set_back])
@pytest.mark.parametrize("slowed_s", [0.0, 0.5])
def test_beside_a_device_that_does_not_tell_there_is_a_lower_bound_or_nothing(cpus, fails, slowed_s):
    api = FakeNvml(FakeGpu(A), FakeGpu(B))
    api.gpus[0].heat_s = api.gpus[1].heat_s = 40.0
    throttling = Throttling((), cpus=cpus, gpus=gpus(api))
    throttling.begin()
    first_came(throttling)
    api.gpus[0].heat_s += slowed_s
    fails(api.gpus[1])
    throttling.ask()
    slowed = throttling.end()
    assert slowed.seconds == (pytest.approx(slowed_s) if slowed_s else None)
    assert [f.code for f in slowed.findings] == (["CL162"] if slowed_s else [])


def test_gpus_that_fail_as_a_whole_leave_a_cool_processor_unknown(cpus):
    class Deaf(NvmlThrottleSensor):
        def read(self, *, edge):
            raise OSError("GPU is lost")

    assert window(Throttling((), cpus=cpus, gpus=Deaf([A], Nvml(FakeNvml(FakeGpu(A)))))) == Slowed(None)


def test_a_package_whose_counter_is_gone_at_the_end_is_not_taken_for_cool(cpus):
    def gone():
        for name in ("count", "total_time_ms"):
            (cpus / "cpu1" / "thermal_throttle" / f"package_throttle_{name}").unlink()

    assert window(Throttling((), cpus=cpus), gone) == Slowed(None)


@pytest.mark.parametrize("fault", [NOT_SUPPORTED, GPU_IS_LOST])
def test_a_gpu_that_does_not_tell_is_unknown(tmp_path, fault):
    api = FakeNvml(FakeGpu(A))
    api.gpus[0].faults[STATUS] = fault
    assert window(Throttling((), cpus=tmp_path, gpus=gpus(api))) == Slowed(None)


def test_a_driver_that_hangs_costs_no_second_wait_and_no_figure(tmp_path):
    api = FakeNvml(FakeGpu(A))
    api.gpus[0].hang = hanging()
    throttling = Throttling((), cpus=tmp_path, gpus=gpus(api))
    assert window(throttling) == Slowed(None)
    api.gpus[0].hang.set()


def test_only_gpus_that_the_window_reads_are_asked(tmp_path):
    """A recording is played on a machine whose own GPUs are none of its business."""

    def info(name, component):
        return SensorInfo(
            name=name, kind="cumulative", unit="J", scope="board", boundary="device", grade="B",
            update_period_s=0.1, channels=(Channel(device=A, component=component),), method="test",
        )  # fmt: skip

    throttling = Throttling((info("replay:nvml_energy", "gpu"), info("rapl", "cpu")), cpus=tmp_path)
    assert window(throttling) == Slowed(None)
    throttling.close()


def first_came(throttling):
    """Wait until the GPUs' first reading is there: it is not waited for by the work."""
    assert throttling._asked._sensor._asked_ahead.done.wait(60)
