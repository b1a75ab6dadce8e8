"""What is looked at on a machine: by file trees, a simulated driver, and what was declared."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbonlens.domain.sources import DatasheetDevice, ExternalMeter, ManagementController, Sources
from carbonlens.inventory.sources_check import SENSORS
from carbonlens.metering.calibration_files import Stored, store
from carbonlens.metering.devices.nvidia import VisibleGpus
from carbonlens.metering.host import this_host
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.sensors import Channel, Sensor, SensorInfo
from carbonlens.metering.sensors.discovery import (
    Place,
    calibrated,
    candidates,
    usable_sensors,
    watch,
)
from carbonlens.metering.sensors.nvml_library import Nvml
from carbonlens.metering.sensors.probing import DriverProbes
from carbonlens.metering.sensors.replay import TraceWriter
from tests.metering.fake_nvml import FakeGpu, FakeNvml, hanging
from tests.metering.powercap import Powercap
from tests.metering.trees_hwmon import acpi, hwmon, intel_gpu
from tests.metering.trees_jetson import orin_nx
from tests.metering.trees_npu import npu
from tests.metering.trees_sysfs import put
from tests.stalls import unless_stalled

A, B = "GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222"
COUNTER = "nvmlDeviceGetTotalEnergyConsumption"
NVML = ["nvml_energy", "nvml_power", "nvml_use"]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "sys" / "class").mkdir(parents=True)
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "statm").write_text("1000 500 100 1 0 300 0\n")
    return Place(root=tmp_path, environ={}, calibrations=tmp_path / "calibrations")


@pytest.fixture
def drivers():
    """Waited for as long as a busy machine may take to start a thread."""
    return DriverProbes(20.0)


@pytest.fixture
def hasty_drivers():
    return DriverProbes(0.5)


@pytest.fixture
def powercap(place):
    tree = Powercap(place.root / "sys" / "class" / "powercap")
    tree.zone("intel-rapl:0", "package-0")
    return tree


def with_gpus(place, *gpus, **environ):
    put(place.root / "dev" / "nvidiactl", "")
    put(place.root / "proc" / "driver" / "nvidia" / "gpus" / "0000:01:00.0", "")
    found = VisibleGpus(Nvml(FakeNvml(*gpus)), environ, place.root)
    return place._replace(gpus=found, environ=environ)


def names(sensors):
    return [s.info.name for s in sensors]


def usable(place, drivers, sources=None):
    return names(usable_sensors(TreeClock(), sources, place=place, drivers=drivers))


def test_a_machine_without_any_sensor_has_its_cpu_time(place, drivers):
    assert names(candidates(Sources(), TreeClock(), place)) == ["cpu_model"]
    seen = watch(place=place, drivers=drivers)
    assert names(seen.sensors) == ["cpu_model"]
    assert (seen.unmeasured, seen.findings) == ((), ())


def test_memory_is_modelled_beside_a_counter_of_packages_and_not_beside_one_of_memory(
    place, drivers, powercap
):
    assert usable(place, drivers) == ["rapl", "cpu_model", "ram_model"]
    powercap.zone("intel-rapl:0:0", "dram")
    assert usable(place, drivers) == ["rapl", "cpu_model"]


def test_memory_is_not_modelled_beside_a_figure_of_the_whole_server(place, drivers):
    acpi(place.root, 1, 90_000_000)
    assert usable(place, drivers) == ["hwmon:machine", "cpu_model"]


def test_all_that_reads_a_gpu_is_read_beside_each_other(place, drivers):
    seen = watch(place=with_gpus(place, FakeGpu(A), FakeGpu(B)), drivers=drivers)
    assert names(seen.sensors) == [*NVML, "cpu_model", "ram_model"]
    assert seen.unmeasured == ()


def test_power_that_a_counter_stands_beside_is_told_to_need_no_haste(place, drivers):
    def slow(*gpus):
        seen = watch(place=with_gpus(place, *gpus), drivers=drivers)
        return {s.info.name: s.info.slow for s in seen.sensors if s.info.unit == "W"}

    assert slow(FakeGpu(A), FakeGpu(B))["nvml_power"]
    # Of one that has no counter the energy would be lost between two looks.
    assert not slow(FakeGpu(A), FakeGpu(B, lacks={COUNTER}))["nvml_power"]


def test_a_gpu_that_nothing_reads_is_named_and_the_hidden_one_is_not(place, drivers):
    lacks = {COUNTER, "nvmlDeviceGetPowerUsage", "nvmlDeviceGetFieldValues"}
    gpus = FakeGpu(A), FakeGpu(B, lacks=lacks), FakeGpu("GPU-cccccccc-3333")
    seen = watch(place=with_gpus(place, *gpus, CUDA_VISIBLE_DEVICES="0,1"), drivers=drivers)
    assert [w for w in seen.unmeasured if B[:12] in w] == list(seen.unmeasured)
    assert len(seen.unmeasured) == 1


def test_a_gpu_without_a_driver_that_answers_is_unmeasured(place, drivers):
    put(place.root / "dev" / "nvidia0", "")
    api = FakeNvml(FakeGpu(A))
    api.init_fault = 9
    found = VisibleGpus(Nvml(api), {}, place.root)
    assert watch(place=place._replace(gpus=found), drivers=drivers).unmeasured == ("NVIDIA GPU",)


def test_a_driver_that_hangs_is_not_waited_for_beyond_its_limit_and_is_told(place, hasty_drivers):
    gpu = FakeGpu(A)
    gpu.hang = hanging()
    there = with_gpus(place, gpu)
    begin = time.perf_counter()
    first = watch(place=there, drivers=hasty_drivers)
    assert time.perf_counter() - begin < 1.0
    assert names(first.sensors) == ["cpu_model"]
    assert first.unmeasured == ("NVIDIA GPU",)
    assert [f.code for f in first.findings] == ["CL155"]
    assert "NVIDIA driver did not answer" in first.findings[0].message

    def again(left):
        begin = time.perf_counter()
        assert watch(place=there, drivers=hasty_drivers).unmeasured == ("NVIDIA GPU",)
        assert time.perf_counter() - begin < 0.25

    unless_stalled(again)
    gpu.hang.set()


def test_later_sessions_ask_a_driver_no_more_than_they_must(place, drivers):
    put(place.root / "dev" / "nvidiactl", "")
    api = FakeNvml(FakeGpu(A))
    there = place._replace(gpus=VisibleGpus(Nvml(api), {}, place.root))
    watch(place=there, drivers=drivers)
    first = api.function("nvmlDeviceGetName")
    watch(place=there, drivers=drivers)
    assert api.function("nvmlDeviceGetName") == first
    assert api.inits == 1


def test_what_is_left_out_is_not_read_and_stays_unmeasured(place, drivers, powercap):
    there = with_gpus(place, FakeGpu(A))
    sources = Sources(leave_out=(*NVML, "nvml_average", "rapl", "ram_model"))
    seen = watch(place=there, drivers=drivers, sources=sources)
    assert names(seen.sensors) == ["cpu_model"]
    assert seen.unmeasured == ("NVIDIA GPU",)


def test_a_group_of_meters_is_left_out_alone_or_with_all_of_them(place, drivers):
    acpi(place.root, 1, 90_000_000)
    intel_gpu(place.root, 2, "xe", [5_000_000], label=["card"])
    assert usable(place, drivers)[:2] == ["hwmon:machine", "hwmon:intel_gpu"]
    assert "hwmon:intel_gpu" in usable(place, drivers, Sources(leave_out=("hwmon:machine",)))
    assert usable(place, drivers, Sources(leave_out=("hwmon",))) == ["cpu_model"]


def test_chips_that_measure_no_power_are_not_looked_into(place):
    put(hwmon(place.root, 1) / "name", "coretemp")
    assert names(candidates(Sources(), TreeClock(), place)) == ["cpu_model"]


def test_a_jetsons_rails_hold_its_gpu(place, drivers):
    orin_nx(place.root)
    put(place.root / "dev" / "nvidia0", "")
    api = FakeNvml()
    api.init_fault = 9
    there = place._replace(gpus=VisibleGpus(Nvml(api), {}, place.root))
    seen = watch(place=there, drivers=drivers)
    assert names(seen.sensors)[0] == "jetson"
    assert seen.unmeasured == ()


def test_an_npu_is_in_its_package(place, drivers, powercap):
    npu(place.root, busy_us=5)
    declared = DatasheetDevice(device="intel_npu", power_w=5.0, source="maker's sheet")
    assert "intel_npu" not in usable(place, drivers)
    alone = Sources(leave_out=("rapl",), datasheet=(declared,))
    sensors = usable_sensors(TreeClock(), alone, place=place, drivers=drivers)
    assert [n for n in names(sensors) if "npu" in n] == ["intel_npu"]
    assert next(s for s in sensors if s.info.name == "intel_npu").info.curve.full_w_per_thread == 5.0


def test_a_declared_tdp_reaches_the_cpu_model(place):
    sensor = next(iter(candidates(Sources(cpu_tdp_w=128.0, cpu_threads=64), TreeClock(), place)))
    assert "128 W over 64 threads" in sensor.info.device_curve.family


def test_declared_meters_come_first_and_one_that_fails_is_told(place, drivers):
    line = "while true; do echo 0,40; sleep 0.1; done"
    sources = Sources(
        external=(
            ExternalMeter(name="plug", command=("sh", "-c", line), gain_95=0.01),
            ExternalMeter(name="gone", command=("/no/such/program",)),
        ),
        datasheet=(DatasheetDevice(device="coral", power_w=2.0, source="sheet"),),
    )
    seen = watch(place=place, drivers=drivers, sources=sources)
    for sensor in seen.sensors:
        sensor.close()
    assert names(seen.sensors) == ["external:plug", "cpu_model", "datasheet:coral", "ram_model"]
    told = [f for f in seen.findings if f.code == "CL155"]
    assert len(told) == 1
    assert "external:gone" in told[0].message
    assert told[0].mend


def test_a_declared_controller_is_asked_and_no_other_program_is(place):
    for kind in ("ipmi", "redfish"):
        declared = Sources(controller=ManagementController(kind=kind, url="https://bmc/x"))
        assert kind in names(candidates(declared, TreeClock(), place))
    assert "powermetrics" in names(candidates(Sources(powermetrics=True), TreeClock(), place))


def trace(tmp_path):
    path = tmp_path / "gpu.trace"
    info = SensorInfo(
        name="nvml_power",
        kind="instant",
        unit="W",
        scope="board",
        boundary="device",
        grade="C",
        update_period_s=0.1,
        channels=(Channel(device=A, component="gpu"),),
        method="NVML power now",
    )
    writer = TraceWriter(path, info)
    for k in range(20):
        writer.append(k * 100_000, (100.0,))
    writer.close()
    return path


def test_a_recording_is_played_instead_of_hardware_and_says_so(place, drivers, powercap, tmp_path):
    there = with_gpus(place, FakeGpu(A), CARBONLENS_REPLAY=str(trace(tmp_path)))
    seen = watch(place=there, drivers=drivers)
    assert names(seen.sensors) == ["replay:nvml_power"]
    assert seen.sensors[0].info.method.startswith("replayed")
    assert [f.code for f in seen.findings] == ["CL157"]
    assert seen.unmeasured == ()


def test_a_recording_that_is_not_there_is_told_and_nothing_is_made_up(place, drivers, tmp_path):
    there = place._replace(environ={"CARBONLENS_REPLAY": str(tmp_path / "none.trace")})
    seen = watch(place=there, drivers=drivers)
    assert seen.sensors == ()
    assert [f.code for f in seen.findings] == ["CL155"]


def test_every_sensor_there_is_can_be_left_out_by_name(place):
    sources = Sources(powermetrics=True, controller=ManagementController(kind="ipmi"))
    for sensor in candidates(sources, TreeClock(), place, everywhere=True):
        assert isinstance(sensor, Sensor)
        assert sensor.info.name in SENSORS


def test_a_stored_calibration_is_put_on_the_sensor(place, drivers, tmp_path):
    from carbonlens.domain.estimate import Estimate
    from carbonlens.metering.calibration_files import MachineCurve

    curve = MachineCurve(
        boundary="it",
        idle_w=Estimate(value=50.0, unit="W"),
        full_w=Estimate(value=150.0, unit="W"),
        threads=10,
        meter="external plug",
        taken_us=time.time_ns() // 1000,
    )
    kept = Stored(
        device="cpu",
        machine=this_host().machine,
        meter="external plug",
        taken_us=curve.taken_us,
        curves=(curve,),
    )
    store(kept, folder=place.calibrations)
    sensor = watch(place=place, drivers=drivers).sensors[0]
    assert isinstance(sensor, Sensor)
    assert sensor.info.curve.full_w_per_thread == 15.0
    assert "calibrated" in sensor.info.method
    assert sensor.read(edge=True)[0] >= 0
    plain = usable_sensors(TreeClock(), place=place, drivers=drivers)[0]
    assert calibrated(plain, None) == (plain, ())


def test_nothing_is_imported_for_hardware_that_is_not_there(tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from carbonlens.metering.sensors.discovery import Place, watch\n"
        f"watch(place=Place(root=Path({str(tmp_path)!r}), environ={{}}))\n"
        "print(*(m for m in sys.modules if m.startswith('carbonlens.metering.sensors.')))\n"
        "print('pynvml' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {name.rpartition(".")[2] for name in out.split()}
    assert loaded == {"candidates", "cpu_model", "discovery", "probing", "False"}


def test_looking_costs_little_on_a_machine_without_sensors(place, drivers):
    watch(place=place, drivers=drivers)
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        watch(place=place, drivers=drivers)
        times.append(time.perf_counter() - begin)
    # 5 ms are allowed for start and stop together; 0.2 to 0.5 ms are usual.
    assert sorted(times)[len(times) // 4] < 0.003


def test_a_tree_that_cannot_be_looked_into_costs_its_sensors_and_not_the_run(place, drivers):
    seen = watch(place=place._replace(root=Path("no\0path")), drivers=drivers)
    assert names(seen.sensors) == ["cpu_model"]
    assert [f.code for f in seen.findings] == ["CL155"]
