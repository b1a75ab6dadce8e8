"""The GPUs of the work as the sensors read them: hidden, kept away, divided."""

import os

import pytest

from carbonlens.metering import accelerators
from carbonlens.metering.devices.nvidia import VisibleGpus, process_gpus
from carbonlens.metering.sensors.nvml import NvmlEnergySensor, NvmlPowerSensor
from carbonlens.metering.sensors.nvml_library import Nvml
from carbonlens.metering.sensors.nvml_sensors import nvidia_sensors
from tests.metering.fake_nvml import (
    GPU_IS_LOST,
    FakeGpu,
    FakeMig,
    FakeNvml,
)

A, B = "GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222"
COUNTER = "nvmlDeviceGetTotalEnergyConsumption"


def eight():
    return FakeNvml(*(FakeGpu(f"GPU-{k}{k}{k}{k}", 100.0 * (k + 1)) for k in range(8)))


def look(api, root, **environ):
    return VisibleGpus(Nvml(api), environ, root).look()


def divided(*migs, uuid=A, power=350.0):
    gpu = FakeGpu(uuid, power)
    gpu.migs = list(migs)
    return gpu


def test_codecarbon_689_a_job_reads_its_own_gpu_only(tmp_path):
    gpus = VisibleGpus(Nvml(eight()), {"CUDA_VISIBLE_DEVICES": "2"}, tmp_path)
    sensor = NvmlPowerSensor(gpus)
    assert sensor.probe().usable
    assert sensor.read(edge=True) == (300.0,)
    assert gpus.look().present == 8


def test_codecarbon_an_empty_list_reads_nothing_and_not_everything(tmp_path):
    for text in ("", "-1"):
        gpus = VisibleGpus(Nvml(eight()), {"CUDA_VISIBLE_DEVICES": text}, tmp_path)
        for _ in range(2):
            probe = NvmlPowerSensor(gpus).probe()
            assert not probe.usable
            assert "CUDA_VISIBLE_DEVICES" in probe.reason
            assert "8 NVIDIA GPUs" in probe.found


@pytest.mark.skipif(os.getuid() == 0, reason="root opens everything")
def test_a_device_whose_file_cannot_be_opened_is_not_the_works(tmp_path):
    files(tmp_path, 2)[0].chmod(0)
    assert [g.uuid for g in look(FakeNvml(FakeGpu(A), FakeGpu(B)), tmp_path).gpus] == [B]


def files(root, count):
    (root / "dev").mkdir()
    made = [root / "dev" / f"nvidia{k}" for k in range(count)]
    for file in made:
        file.touch()
    return made


def test_a_device_without_its_file_is_kept_away_by_the_container(tmp_path):
    files(tmp_path, 1)
    found = look(FakeNvml(FakeGpu(A, minor=3), FakeGpu(B, minor=0)), tmp_path)
    assert [g.uuid for g in found.gpus] == [B]
    assert found.present == 2


def test_indices_count_among_the_devices_that_can_be_opened(tmp_path):
    files(tmp_path, 1)
    found = look(FakeNvml(FakeGpu(A, minor=3), FakeGpu(B, minor=0)), tmp_path, CUDA_VISIBLE_DEVICES="0")
    assert [g.uuid for g in found.gpus] == [B]


def test_a_lost_gpu_does_not_hide_the_others_and_is_said_and_found_when_it_is_back(tmp_path):
    lost = FakeGpu(A)
    lost.fault = GPU_IS_LOST
    gpus = VisibleGpus(Nvml(FakeNvml(lost, FakeGpu(B))), {}, tmp_path)
    assert [g.uuid for g in gpus.look().gpus] == [B]
    assert [f.code for f in gpus.look().findings] == ["CL139"]
    lost.fault = None
    assert [g.uuid for g in gpus.look().gpus] == [A, B]
    lost.fault = GPU_IS_LOST
    with pytest.raises(OSError, match="fell off the bus"):
        look(FakeNvml(lost), tmp_path)


def test_mig_the_works_instance_is_billed_by_its_size_of_the_parent(tmp_path):
    gpu = divided(FakeMig("MIG-1111", 1, slices=1), FakeMig("MIG-2222", 2, slices=3))
    gpus = VisibleGpus(Nvml(FakeNvml(gpu)), {"CUDA_VISIBLE_DEVICES": "MIG-2222"}, tmp_path)
    found = gpus.look()
    assert [f.code for f in found.findings] == ["CL136"]
    sensor = NvmlEnergySensor(gpus)
    assert sensor.probe().usable
    (channel,) = sensor.info.channels
    assert channel.device == A
    assert channel.part == pytest.approx(3 / 7)


def test_mig_of_two_instances_the_first_is_the_process_s(tmp_path):
    gpu = divided(FakeMig("MIG-1111", 1, slices=1), FakeMig("MIG-2222", 2, slices=3))
    for text, part in (("MIG-1111,MIG-2222", 1 / 7), ("MIG-2222,MIG-1111", 3 / 7)):
        found = look(FakeNvml(gpu), tmp_path, CUDA_VISIBLE_DEVICES=text)
        assert [g.part for g in found.gpus] == [pytest.approx(part)]
        assert "CL137" in [f.code for f in found.findings]


def test_mig_the_only_instance_shown_is_the_works(tmp_path):
    for environ in ({}, {"CUDA_VISIBLE_DEVICES": "0"}):
        found = look(FakeNvml(divided(FakeMig("MIG-1111", 1, slices=2))), tmp_path, **environ)
        assert [g.part for g in found.gpus] == [pytest.approx(2 / 7)]


def test_mig_that_cannot_be_told_is_the_whole_gpu_and_said(tmp_path):
    gpu = divided(FakeMig("MIG-1111", 1), FakeMig("MIG-2222", 2))
    found = look(FakeNvml(gpu), tmp_path)
    assert [g.part for g in found.gpus] == [None]
    assert [f.code for f in found.findings] == ["CL135"]
    hidden = look(FakeNvml(divided()), tmp_path, CUDA_VISIBLE_DEVICES="MIG-GPU-aaaaaaaa-1111/1/0")
    assert [(g.uuid, g.part) for g in hidden.gpus] == [(A, None)]


@pytest.mark.parametrize(
    ("name", "part"), [("NVIDIA H100 MIG 3g.40gb", 3 / 7), ("H100 MIG 1c.3g.40gb", 1 / 7), ("H100", None)]
)
def test_mig_size_by_the_profiles_name_where_the_driver_does_not_count(tmp_path, name, part):
    gpu = divided(FakeMig("MIG-1111", 1, name=name, tells_size=False))
    assert [g.part for g in look(FakeNvml(gpu), tmp_path).gpus] == [part and pytest.approx(part)]


def test_mig_a_card_of_four_slices(tmp_path):
    gpu = divided(FakeMig("MIG-1111", 1, slices=2))
    gpu.max_migs = 4
    assert look(FakeNvml(gpu), tmp_path).gpus[0].part == 0.5


def test_the_driver_is_asked_once_for_all_sensors(tmp_path):
    api = eight()
    gpus = VisibleGpus(Nvml(api), {}, tmp_path)
    for sensor in nvidia_sensors(gpus):
        sensor.probe()
    assert api.function("nvmlDeviceGetCount") == 1


def test_the_environment_of_each_session_counts(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    first = process_gpus()
    assert process_gpus() is first
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert process_gpus() is not first


def test_gpus_that_no_sensor_reads_are_named(tmp_path):
    files(tmp_path, 2)
    mute = FakeGpu(B, lacks={COUNTER})
    gpus = VisibleGpus(Nvml(FakeNvml(FakeGpu(A), mute)), {}, tmp_path)
    energy = NvmlEnergySensor(gpus)
    energy.probe()
    visible = [(g.uuid, g.label) for g in gpus.look().gpus]
    found = accelerators.unread([energy.info], visible=visible, root=tmp_path, environ={})
    assert found == ("NVIDIA H100 80GB HBM3 (GPU-bbbbbbbb)",)
    assert accelerators.unread([], root=tmp_path, environ={}) == ("NVIDIA GPU",)
    assert accelerators.unread([], root=tmp_path, environ={"CUDA_VISIBLE_DEVICES": "none"}) == ()


@pytest.mark.parametrize("text", ["", " ", "-1", "NoDevFiles", "0,0"])
def test_a_list_that_hides_all_leaves_no_gpu_present(tmp_path, text):
    files(tmp_path, 1)
    assert accelerators.present(tmp_path, {"CUDA_VISIBLE_DEVICES": text}) == ()
    assert accelerators.present(tmp_path, {"CUDA_VISIBLE_DEVICES": "0"}) == ("NVIDIA GPU",)
    assert accelerators.present(tmp_path, {"CUDA_VISIBLE_DEVICES": "GPU-a"}) == ("NVIDIA GPU",)
