"""Who used a GPU: processes of one, instances of a divided one."""

import os
import shutil
import subprocess
import sys

import pytest

from carbonlens.metering.devices.nvidia import VisibleGpus
from carbonlens.metering.devices.processes import INITIAL_NAMESPACE, OwnProcesses
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.nvml_library import Nvml
from carbonlens.metering.sensors.nvml_use import NvmlUseSensor
from tests.metering.fake_nvml import NO_PERMISSION, FakeGpu, FakeMig, FakeNvml

A = "GPU-aaaaaaaa-1111"
OTHER = 999_999_999
HOST, CONTAINER = INITIAL_NAMESPACE, "pid:[4026532000]"


def use_of(api, root, *, own=None, **environ):
    sensor = NvmlUseSensor(
        VisibleGpus(Nvml(api), environ, root), own or OwnProcesses(namespace=HOST), api.clock
    )
    assert isinstance(sensor, Sensor)
    return sensor, sensor.probe()


def gained(sensor, api, seconds, step=1.0):
    first = sensor.read(edge=True)
    for _ in range(round(seconds / step)):
        api.clock.pass_(step)
        sensor.read(edge=False)
    last = sensor.read(edge=True)
    return [None if b is None else b - a for a, b in zip(first, last, strict=True)]


def test_own_and_everybodys_activity_add_up(tmp_path):
    gpu = FakeGpu(A)
    gpu.processes = {os.getpid(): 60, OTHER: 20}
    api = FakeNvml(gpu)
    sensor, probe = use_of(api, tmp_path)
    assert probe.usable
    assert sensor.info.kind == "use"
    assert sensor.rest_s >= 1.0
    assert [(c.device, c.who) for c in sensor.info.channels] == [(A, "own"), (A, "all")]
    assert gained(sensor, api, 10) == pytest.approx([6.0, 8.0])


def test_children_count_as_own_also_after_they_ended(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        gpu = FakeGpu(A)
        gpu.processes = {child.pid: 50}
        api = FakeNvml(gpu)
        sensor, _ = use_of(api, tmp_path)
        assert gained(sensor, api, 4) == pytest.approx([2.0, 2.0])
    finally:
        child.communicate(b"\n")
    assert gained(sensor, api, 4) == pytest.approx([2.0, 2.0])


def test_others_alone_leave_own_at_nothing(tmp_path):
    gpu = FakeGpu(A)
    gpu.processes = {OTHER: 100}
    api = FakeNvml(gpu)
    sensor, _ = use_of(api, tmp_path)
    assert gained(sensor, api, 5) == pytest.approx([0.0, 5.0])


def test_idle_time_is_nobodys_and_does_not_count_for_the_next(tmp_path):
    gpu = FakeGpu(A)
    gpu.processes = {os.getpid(): 100}
    api = FakeNvml(gpu)
    sensor, _ = use_of(api, tmp_path)
    sensor.read(edge=True)
    gpu.processes = {os.getpid(): 0}
    assert gained(sensor, api, 60) == pytest.approx([0.0, 0.0])
    before = sensor.read(edge=True)
    gpu.processes = {os.getpid(): 100}
    api.clock.pass_(1)
    assert [b - a for a, b in zip(before, sensor.read(edge=True), strict=True)] == pytest.approx([1.0, 1.0])


def test_in_a_container_host_numbers_are_unknown_and_not_nobodys(tmp_path):
    gpu = FakeGpu(A)
    gpu.processes = {OTHER: 80}
    api = FakeNvml(gpu)
    sensor, probe = use_of(api, tmp_path, own=OwnProcesses(namespace=CONTAINER))
    assert probe.usable
    assert "container" in probe.reason
    own, everybody = gained(sensor, api, 10)
    assert own is None
    assert everybody == pytest.approx(8.0)


def test_in_a_container_numbers_are_trusted_once_an_own_process_is_on_the_gpu(tmp_path):
    gpu = FakeGpu(A)
    gpu.processes = {OTHER: 40}
    api = FakeNvml(gpu)
    sensor, _ = use_of(api, tmp_path, own=OwnProcesses(namespace=CONTAINER))
    first = sensor.read(edge=True)
    api.clock.pass_(5)
    assert sensor.read(edge=False)[0] is None
    gpu.contexts = [os.getpid()]
    gpu.processes = {OTHER: 40, os.getpid(): 60}
    api.clock.pass_(5)
    last = sensor.read(edge=True)
    assert [b - a for a, b in zip(first, last, strict=True)] == pytest.approx([3.0, 7.0])


def test_a_gpu_that_does_not_tell_has_no_channels_and_a_reason(tmp_path):
    gpu = FakeGpu(A, lacks={"nvmlDeviceGetProcessUtilization"})
    sensor, probe = use_of(FakeNvml(gpu), tmp_path)
    assert not probe.usable
    assert "does not offer" in probe.reason
    assert sensor.info.channels == ()


def halves(*, mine=50.0, others=25.0):
    gpu = FakeGpu(A)
    gpu.migs = [FakeMig("MIG-1111", 1, slices=3, busy=mine), FakeMig("MIG-2222", 2, slices=4, busy=others)]
    return gpu


def test_mig_activity_is_weighted_by_size(tmp_path):
    api = FakeNvml(halves())
    sensor, probe = use_of(api, tmp_path, CUDA_VISIBLE_DEVICES="MIG-1111")
    assert probe.usable
    assert [c.part for c in sensor.info.channels] == [pytest.approx(3 / 7)] * 2
    own, everybody = gained(sensor, api, 10)
    assert own == pytest.approx(10 * 0.5 * 3 / 7)
    assert everybody == pytest.approx(10 * (0.5 * 3 / 7 + 0.25 * 4 / 7))
    sensor.close()
    sensor.close()
    assert api.samples == set()


def test_mig_before_hopper_tells_no_activity(tmp_path):
    gpu = halves()
    gpu.lacks = {"nvmlGpmMigSampleGet"}
    api = FakeNvml(gpu)
    sensor, probe = use_of(api, tmp_path, CUDA_VISIBLE_DEVICES="MIG-1111")
    assert not probe.usable
    assert sensor.info.channels == ()
    assert api.samples == set()


def test_mig_an_instance_that_forbids_it_leaves_a_gap_and_no_sample_behind(tmp_path):
    gpu = halves()
    api = FakeNvml(gpu)
    sensor, _ = use_of(api, tmp_path, CUDA_VISIBLE_DEVICES="MIG-1111")
    gpu.faults = {("nvmlGpmMigSampleGet", 2): NO_PERMISSION}
    api.clock.pass_(1)
    with pytest.raises(OSError, match="no permission"):
        sensor.read(edge=True)
    gpu.faults = {}
    api.clock.pass_(1)
    assert sensor.read(edge=True)[0] == pytest.approx(2 * 0.5 * 3 / 7)
    sensor.close()
    assert api.samples == set()


class Tree:
    """A process file system in which a test starts and ends children of process 1."""

    def __init__(self, root):
        self.root = root
        self.now = 0.0
        self.start(1, parent=0)
        self.own = OwnProcesses(1, root, HOST, lambda: self.now)

    def start(self, pid, *, parent=1, began=100):
        folder = self.root / str(pid)
        folder.mkdir()
        rest = ["0"] * 17 + [str(began)] + ["0"] * 10
        (folder / "stat").write_text(f"{pid} (work) S {parent} {' '.join(rest)}")

    def end(self, pid):
        shutil.rmtree(self.root / str(pid))

    def look(self, after_s=0.1):
        self.now += after_s
        self.own.look()
        return self.own.seen - {1}


def test_a_process_that_ended_is_told_of_for_a_moment_and_then_forgotten(tmp_path):
    tree = Tree(tmp_path)
    tree.start(7)
    assert tree.look() == {7}
    tree.end(7)
    assert tree.look() == {7}
    assert tree.look(2.0) == {7}
    assert tree.look(6.0) == set()


def test_a_number_that_was_given_to_a_stranger_is_no_longer_the_works(tmp_path):
    """Else the stranger's kernels would be the work's."""
    tree = Tree(tmp_path)
    tree.start(7)
    tree.look()
    tree.end(7)
    tree.start(7, parent=0, began=900)
    assert tree.look() == set()
    tree.end(7)
    tree.start(7, parent=1, began=1200)
    assert tree.look() == {7}  # and a new child of that number is


def test_a_child_of_one_that_ended_stays_the_works(tmp_path):
    tree = Tree(tmp_path)
    tree.start(7)
    tree.start(8, parent=7)
    assert tree.look() == {7, 8}
    tree.end(7)
    tree.start(9, parent=8)
    assert tree.look(6.0) == {7, 8, 9}
    assert tree.look(6.0) == {8, 9}


def test_the_dead_of_long_ago_cost_nothing(tmp_path):
    tree = Tree(tmp_path)
    for pid in range(100, 400):
        tree.start(pid)
    tree.look()
    for pid in range(100, 400):
        tree.end(pid)
    tree.look()
    tree.look(6.0)
    assert tree.own._living.keys() == {1}
    assert not tree.own._ended
