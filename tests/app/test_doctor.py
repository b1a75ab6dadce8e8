"""Doctor on machines made of files and of a simulated driver: each source, its width, and why not better."""

import math
import os
import time
from functools import partial

import pytest

from carbonlens.app.doctor import examine, missing_packages
from carbonlens.app.doctor_parts import _better_curve, factor_95
from carbonlens.app.doctor_probes import _standing_still
from carbonlens.domain.estimate import Estimate
from carbonlens.metering import cpu_device, cpu_families
from carbonlens.metering.calibration_files import MachineCurve, Stored, store
from carbonlens.metering.cpu_families import this_processor
from carbonlens.metering.devices.nvidia import VisibleGpus
from carbonlens.metering.host import this_host
from carbonlens.metering.sensors import Channel, SensorInfo, cpu_model
from carbonlens.metering.sensors.discovery import Place
from carbonlens.metering.sensors.nvml_library import Nvml
from carbonlens.reporting.doctor_json import doctor_json
from carbonlens.signals.cpu_model import CpuCurve
from tests.metering.fake_nvml import FakeGpu, FakeNvml, hanging
from tests.metering.powercap import Powercap, turning
from tests.metering.trees_hwmon import acpi
from tests.metering.trees_jetson import orin_nx
from tests.metering.trees_npu import npu
from tests.metering.trees_sysfs import put

A, B = "GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222"
EPYC = "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nmodel name : AMD EPYC\nsiblings : 2\n"
UNKNOWN = "vendor_id : Nobody\ncpu family : 1\nmodel : 1\nmodel name : Some CPU\nsiblings : 2\n"


UNKNOWN_CURVE = CpuCurve(
    family="all", idle_w_per_thread=1.0, full_w_per_thread=3.0, spread=0.4, n=99, source="here", known=False
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    root = tmp_path / "root"
    (root / "sys" / "class").mkdir(parents=True)
    put(root / "proc" / "self" / "statm", "1000 500 100 1 0 300 0")
    put(root / "proc" / "cpuinfo", EPYC)
    monkeypatch.chdir(tmp_path)
    # The processor is that of the made-up machine, whatever these tests run on.
    made_up = partial(cpu_families.this_processor, root / "proc" / "cpuinfo")
    monkeypatch.setattr(cpu_model, "this_curve", lambda: cpu_families.curve_for(made_up()))
    monkeypatch.setattr(cpu_model, "this_device_curve", lambda: cpu_device.family_curve(made_up()))
    api = FakeNvml()
    api.init_fault = 12  # no library
    return Place(
        root=root,
        environ={"HOME": str(tmp_path)},
        gpus=VisibleGpus(Nvml(api), {}, root),
        calibrations=tmp_path / "calibrations",
    )


def parts(place):
    return {p.name: p for p in examine(ledger="ledger", place=place).parts}


def with_gpus(place, *gpus, **environ):
    put(place.root / "dev" / "nvidiactl", "")
    put(place.root / "proc" / "driver" / "nvidia" / "gpus" / "0000:01:00.0", "")
    found = VisibleGpus(Nvml(FakeNvml(*gpus)), environ, place.root)
    return place._replace(gpus=found, environ={**place.environ, **environ})


def test_a_plain_machine_has_its_cpu_and_says_why_no_better(place):
    found = examine(ledger="ledger", place=place)
    assert [p.name for p in found.parts] == ["CPU", "RAM", "GPU", "NPU", "wall"]
    cpu, ram, gpu, npu_part, wall = found.parts
    assert (cpu.source.sensor, cpu.source.grade, cpu.source.boundary) == ("cpu_model", "D", "it")
    assert cpu.source.factor_95 == pytest.approx(1.8)
    assert [m.sensor for m in cpu.missing] == ["rapl"]
    assert 0 < cpu.source.read_cost_s < 0.1
    assert ram.source is None
    assert "in the CPU figure" in ram.note
    assert (gpu.note, npu_part.note) == ("none found", "none found")
    assert "docs/measuring.md" in wall.mend
    assert found.can_measure


@pytest.mark.parametrize("path", ["/job", "/"])
def test_a_control_group_that_is_not_the_root_is_named_beside_the_cpu(place, path):
    put(place.root / "proc" / "self" / "cgroup", f"0::{path}\n")
    put(place.root / "proc" / "self" / "mountinfo", "35 24 0:31 / /cg rw - cgroup2 cgroup2 rw\n")
    put(place.root / "cg" / "cpu.stat", "usage_usec 7\n")
    put(place.root / "cg" / "job" / "cpu.stat", "usage_usec 5\n")
    put(place.root / "cg" / "job" / "cgroup.events", "populated 1\n")
    assert ("control group" in (parts(place)["CPU"].note or "")) is (path == "/job")


@pytest.mark.parametrize("quota", ["150000", "max"])
def test_a_part_of_the_machine_is_said_of_cpu_and_memory(place, quota):
    put(place.root / "sys" / "devices" / "system" / "cpu" / "online", "0-7\n")
    put(place.root / "proc" / "meminfo", "MemTotal: 16000000 kB\n")
    put(place.root / "proc" / "self" / "cgroup", "0::/job\n")
    put(place.root / "proc" / "self" / "mountinfo", "35 24 0:31 / /cg rw - cgroup2 cgroup2 rw\n")
    put(place.root / "cg" / "job" / "cpu.max", f"{quota} 100000\n")
    put(place.root / "cg" / "job" / "memory.max", "max" if quota == "max" else "4096000000\n")
    found = examine(ledger="ledger", place=place)
    told = doctor_json(found)["machine"]["allowance"]
    cpu, ram = found.parts[:2]
    limited = quota != "max"
    assert ("the work may use 1.5 of 8 CPUs" in (cpu.note or "")) is limited
    assert ("the work may hold 4.1 GB of 16.4 GB of memory" in (ram.note or "")) is limited
    assert (told["cpu_limit"], told["memory_limit_bytes"]) == ((1.5, 4096000000) if limited else (None, None))
    assert told["machine_cpus"] == 8


def test_counters_are_used_and_memory_has_its_own(place):
    tree = Powercap(place.root / "sys" / "class" / "powercap")
    with turning(tree.zone("intel-rapl:0", "package-0")):
        found = parts(place)
    assert (found["CPU"].source.sensor, found["CPU"].source.grade) == ("rapl", "B")
    assert found["CPU"].source.update_period_s == 0.001
    assert [s.sensor for s in found["CPU"].others] == ["cpu_model"]
    assert found["CPU"].others[0].boundary == "device"
    assert found["RAM"].source.sensor == "ram_model"
    assert "dram" in found["RAM"].missing[0].reason
    tree.zone("intel-rapl:0:0", "dram")
    with turning(tree.root / "intel-rapl:0" / "energy_uj"):
        assert parts(place)["RAM"].source.sensor == "rapl"


@pytest.mark.parametrize("text", ["N/A", "", "nan"])
def test_a_counter_that_tells_no_number_is_not_named_as_the_source(place, text):
    tree = Powercap(place.root / "sys" / "class" / "powercap")
    tree.zone("intel-rapl:0", "package-0").write_text(text + "\n")
    cpu = parts(place)["CPU"]
    assert cpu.source.sensor == "cpu_model"
    assert "tells no number" in cpu.missing[0].reason


@pytest.mark.parametrize("uj", [0, 5_000_000])
def test_a_counter_that_stands_still_under_load_is_said_and_not_the_source(place, uj):
    tree = Powercap(place.root / "sys" / "class" / "powercap")
    tree.zone("intel-rapl:0", "package-0", uj)
    cpu = parts(place)["CPU"]
    assert cpu.source.sensor == "cpu_model"
    assert "stands still" in cpu.missing[0].reason
    with turning(tree.root / "intel-rapl:0" / "energy_uj"):
        assert parts(place)["CPU"].source.sensor == "rapl"


class StepCounter:
    """Moves once a period after it was read first."""

    may_block = False
    rest_s = 0.0

    def __init__(self, period_s, name="hwmon:cpu"):
        self.info = SensorInfo(
            name=name,
            kind="cumulative",
            unit="J",
            scope="package",
            boundary="device",
            grade="B",
            update_period_s=period_s,
            channels=(Channel(device="socket", component="cpu"),),
            method="counter",
        )
        self._since_s = None

    def read(self, *, edge):
        now_s = time.perf_counter()
        self._since_s = self._since_s or now_s
        return (float((now_s - self._since_s) // self.info.update_period_s),)


@pytest.mark.parametrize("period_s", [0.2, 60.0])
def test_a_slow_counter_is_given_its_period_or_is_not_judged(period_s):
    counter = StepCounter(period_s)
    assert _standing_still(counter, counter.info) == {}
    stuck = StepCounter(0.2)
    stuck.read = lambda *, edge: (5.0,)
    assert "stands still at 5 J" in _standing_still(stuck, stuck.info)["socket"]


def test_a_recording_that_has_ended_is_not_taken_for_a_counter_at_fault():
    recording = StepCounter(0.001, "replay:rapl")
    recording.read = lambda *, edge: (5.0,)
    assert _standing_still(recording, recording.info) == {}


def test_one_of_two_counters_that_stands_still_is_named(place):
    tree = Powercap(place.root / "sys" / "class" / "powercap")
    tree.zone("intel-rapl:1", "package-1", 5_000_000)
    with turning(tree.zone("intel-rapl:0", "package-0")):
        cpu = parts(place)["CPU"]
    assert cpu.source.sensor == "rapl"
    assert "package-1 stands still at 5 J" in cpu.note


VIRTUAL = UNKNOWN + "flags\t: fpu hypervisor\n"


@pytest.mark.parametrize(("cpuinfo", "asks_threads"), [(UNKNOWN, False), (VIRTUAL, True)])
def test_the_mend_of_an_unknown_family_is_enough_for_it(place, cpuinfo, asks_threads):
    put(place.root / "proc" / "cpuinfo", cpuinfo)
    mend = _better_curve(
        UNKNOWN_CURVE, examine(ledger="ledger", place=place).machine, place.root, has_meter=False
    )
    assert "cpu_tdp_w" in mend
    assert ("cpu_threads" in mend) is asks_threads


@pytest.mark.skipif(not this_processor().virtual, reason="needs a virtual machine")
def test_a_declared_tdp_that_is_no_use_is_said_with_its_mend(place, tmp_path):
    (tmp_path / "s.toml").write_text("cpu_tdp_w = 350.0\n")
    there = place._replace(environ={**place.environ, "CARBONLENS_SOURCES": str(tmp_path / "s.toml")})
    cpu = parts(there)["CPU"]
    assert "TDP of 350 W" in cpu.note
    assert "cpu_threads" in cpu.mend


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_forbidden_counter_has_one_safe_mend(place):
    tree = Powercap(place.root / "sys" / "class" / "powercap")
    tree.zone("intel-rapl:0", "package-0").chmod(0)
    assert "chmod a+r" in parts(place)["CPU"].mend


def test_an_unknown_cpu_is_told_to_state_its_tdp(place):
    put(place.root / "proc" / "cpuinfo", UNKNOWN)
    found = examine(ledger="ledger", place=place)
    assert found.machine.cpu_family is None
    assert found.machine.cpu == "Some CPU"


def test_each_gpu_of_the_work_has_its_line(place):
    weak = FakeGpu(B, lacks={"nvmlDeviceGetTotalEnergyConsumption"})
    there = with_gpus(place, FakeGpu(A), weak, FakeGpu("GPU-cccccccc-3333"), CUDA_VISIBLE_DEVICES="0,1")
    found = examine(ledger="ledger", place=there)
    one, two = (p for p in found.parts if p.part == "gpu")
    assert (one.name, one.device, one.source.sensor, one.source.grade) == ("GPU 0", A, "nvml_energy", "B")
    assert [s.sensor for s in one.others] == ["nvml_power"]
    assert (two.name, two.source.sensor, two.source.grade) == ("GPU 1", "nvml_power", "C")
    assert [m.sensor for m in two.missing] == ["nvml_energy"]
    assert (found.machine.gpus_present, found.machine.gpus_used) == (3, 2)
    assert found.machine.visibility == {"CUDA_VISIBLE_DEVICES": "0,1"}


def test_hidden_gpus_are_said_to_be_hidden(place):
    there = with_gpus(place, FakeGpu(A), CUDA_VISIBLE_DEVICES="")
    assert "all hidden" in parts(there)["GPU"].note


def test_a_gpu_on_the_bus_without_a_driver_is_seen(place):
    device = place.root / "sys" / "bus" / "pci" / "devices" / "0000:01:00.0"
    put(device / "class", "0x030200")
    put(device / "vendor", "0x10de")
    gpu = parts(place)["GPU"]
    assert gpu.source is None
    assert "NVIDIA GPU at 0000:01:00.0" in gpu.note
    assert "--gpus all" in gpu.mend


def test_a_driver_that_hangs_is_left_behind_and_named(place):
    gpu = FakeGpu(A)
    gpu.hang = hanging()
    begin = time.perf_counter()
    found = parts(with_gpus(place, gpu))["GPU"]
    assert time.perf_counter() - begin < 8
    assert found.source is None
    assert "present, not measured" in found.note
    assert any("did not answer" in m.reason for m in found.missing)
    gpu.hang.set()


def test_what_was_tried_on_recordings_only_says_so(place):
    orin_nx(place.root)
    npu(place.root, busy_us=5)
    found = parts(place)
    assert found["module"].source.on_recordings
    assert found["NPU"].source.on_recordings
    assert found["NPU"].source.factor_95 is None
    assert "datasheet" in found["NPU"].mend
    assert not found["CPU"].source.on_recordings


def test_a_server_with_a_controller_is_told_to_declare_it(place):
    put(place.root / "dev" / "ipmi0", "")
    assert 'kind = "ipmi"' in parts(place)["wall"].mend


def test_a_meter_of_the_whole_machine_stands_at_the_wall(place):
    acpi(place.root, 1, 90_000_000)
    wall = parts(place)["wall"]
    assert (wall.source.sensor, wall.source.grade, wall.source.boundary) == ("hwmon:machine", "C", "it")
    assert "calibrate cpu" in parts(place)["CPU"].mend


def test_a_machines_own_curve_is_named_in_place_of_its_familys(place):
    assert "published servers" in parts(place)["CPU"].source.found
    watts = (
        Estimate(value=w, unit="W", grade="A", u_by_source={"meter:plug": w / 50}) for w in (50.0, 150.0)
    )
    taken_us = time.time_ns() // 1000
    fields = {"boundary": "it", "threads": 2, "meter": "plug", "taken_us": taken_us}
    curve = MachineCurve(idle_w=next(watts), full_w=next(watts), **fields)
    kept = Stored(device="cpu", machine=this_host().machine, meter="plug", taken_us=taken_us, curves=(curve,))
    store(kept, folder=place.calibrations)
    found = parts(place)["CPU"].source.found
    assert found.startswith("its own curve, calibrated 20")
    assert found.endswith("against plug")


def test_declared_sources_are_asked(place, tmp_path):
    file = tmp_path / "sources.toml"
    file.write_text(
        "leave_out = ['ram_model']\n"
        "[[external]]\nname = 'plug'\ngain_95 = 0.01\n"
        "command = ['sh', '-c', 'while true; do echo $(date +%s%N | cut -c1-16),40; sleep 0.1; done']\n"
        "[[external]]\nname = 'gone'\ncommand = ['/no/such/program']\n"
    )
    there = place._replace(environ={**place.environ, "CARBONLENS_SOURCES": str(file)})
    found = examine(ledger="ledger", place=there)
    wall = next(p for p in found.parts if p.part == "wall")
    assert (wall.source.sensor, wall.source.grade) == ("external:plug", "A")
    assert wall.source.factor_95 == pytest.approx(1.01, rel=1e-3)
    assert [m.sensor for m in wall.missing] == []
    assert found.sources_file == str(file)
    assert {d.name: d.answers for d in found.declared} == {
        "external:plug": True,
        "external:gone": False,
        "ram_model": False,
    }


def test_a_meter_of_unstated_accuracy_has_no_width():
    info = SensorInfo(
        name="external:x",
        kind="cumulative",
        unit="J",
        scope="wall",
        boundary="it",
        grade="A",
        update_period_s=1.0,
        channels=(Channel(device="x", component="wall"),),
        method="meter",
        width_known=False,
    )
    assert factor_95(info, info.channels[0]) is None


def test_widths_are_factors_of_95_percent():
    info = SensorInfo(
        name="x",
        kind="cumulative",
        unit="J",
        scope="board",
        boundary="device",
        grade="B",
        update_period_s=0.1,
        channels=(Channel(device="x", component="gpu"),),
        method="counter",
        gain_sigma=0.05 / 1.959963984540054,
    )
    assert factor_95(info, info.channels[0]) == pytest.approx(math.exp(0.05))


def test_nothing_to_read_is_not_a_measurement(place, tmp_path):
    (tmp_path / "s.toml").write_text("leave_out = ['cpu_model']\n")
    there = place._replace(environ={**place.environ, "CARBONLENS_SOURCES": str(tmp_path / "s.toml")})
    assert not examine(ledger="ledger", place=there).can_measure


def test_a_folder_that_cannot_be_written_is_said(place, tmp_path):
    (tmp_path / "file").write_text("")
    storage = examine(ledger=tmp_path / "file" / "ledger", place=place).storage
    assert "is no folder" in storage.ledger_fault
    assert not storage.ledger_exists
    assert not (tmp_path / "ledger").exists()


def test_extras_are_those_of_the_package():
    extras = missing_packages()
    assert {"analysis", "report", "codecarbon", "torch", "onnx"} <= set(extras)
    assert "all" not in extras


def test_json_has_units_in_its_names_and_null_for_what_is_unknown(place):
    told = doctor_json(examine(ledger="ledger", place=place))
    assert told["schema"] == "carbonlens/doctor/1"
    cpu = told["parts"][0]
    assert set(cpu["source"]) == {
        "sensor",
        "found",
        "method",
        "grade",
        "factor_95",
        "boundary",
        "scope",
        "update_period_s",
        "read_cost_s",
        "tested_on_recordings",
    }
    assert told["parts"][2]["source"] is None
    assert told["machine"]["gpus_present"] is None
