"""Mends of kernel files: one command, right for this machine, said where it can be done."""

import os
from pathlib import Path

import pytest

from carbonlens.metering.sensors.hwmon import HwmonSensor
from carbonlens.metering.sensors.rapl import RaplSensor
from carbonlens.metering.sensors.sysfs import in_container, readable_mend
from tests.metering.powercap import Powercap


def acpi_meter(root: Path) -> None:
    (root / "sys" / "bus" / "acpi" / "devices" / "ACPI000D:00").mkdir(parents=True)


def test_the_command_says_how_long_it_lasts_and_where():
    assert readable_mend(Path("/nowhere"), "/sys/a", Path("/sys/b")) == (
        "ask an administrator for: chmod a+r /sys/a /sys/b (until the next boot)"
    )


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".dockerenv", ""),
        ("run/.containerenv", ""),
        ("proc/1/cgroup", "11:memory:/kubepods/burstable/pod1/abc\n"),
        ("proc/1/cgroup", "0::/system.slice/docker-0a.scope\n"),
    ],
)
def test_in_a_container_the_host_is_named(tmp_path, file, text):
    assert not in_container(tmp_path)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert in_container(tmp_path)
    assert "on the host: a container cannot" in readable_mend(tmp_path, "/sys/a")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_one_pattern_opens_every_counter_of_rapl(tmp_path):
    (tmp_path / "sys" / "class").mkdir(parents=True)
    tree = Powercap(tmp_path / "sys" / "class" / "powercap")
    counters = [
        tree.zone("intel-rapl:0", "package-0"),
        tree.zone("intel-rapl:1", "package-1"),
        tree.zone("intel-rapl:0:0", "dram"),
    ]
    for counter in counters:
        counter.chmod(0)
    mend = RaplSensor(tree.root).probe().mend
    pattern = mend.partition("chmod a+r ")[2].partition(" (")[0]
    assert sorted(tmp_path.glob(str(Path(pattern).relative_to(tmp_path)))) == sorted(counters)


def test_no_driver_is_named_that_the_board_has_no_meter_for(tmp_path):
    assert HwmonSensor(tmp_path, "machine").probe().mend is None
    (tmp_path / "sys" / "module" / "acpi_power_meter").mkdir(parents=True)
    assert HwmonSensor(tmp_path, "machine").probe().mend is None


def test_the_driver_of_a_meter_that_the_firmware_tells_of(tmp_path):
    acpi_meter(tmp_path)
    probe = HwmonSensor(tmp_path, "machine").probe()
    assert probe.mend == "ask an administrator for: modprobe acpi_power_meter"
    (tmp_path / ".dockerenv").touch()
    assert "on the host: modprobe" in HwmonSensor(tmp_path, "machine").probe().mend


def test_a_driver_that_is_there_needs_its_parameter_on_grace_only(tmp_path):
    acpi_meter(tmp_path)
    (tmp_path / "sys" / "module" / "acpi_power_meter").mkdir(parents=True)
    assert HwmonSensor(tmp_path, "machine").probe().mend is None
    board = tmp_path / "sys" / "class" / "dmi" / "id" / "product_name"
    board.parent.mkdir(parents=True)
    board.write_text("NVIDIA GH200 480GB\n")
    assert "force_cap_on=y" in HwmonSensor(tmp_path, "machine").probe().mend
