"""RAPL on trees like the kernel's: packages and memory once each, and nothing else."""

import os

import pytest

from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.rapl import RaplSensor
from tests.metering.powercap import RANGE_UJ, Powercap, turn, turning


@pytest.fixture
def tree(tmp_path):
    return Powercap(tmp_path / "powercap")


def devices(tree):
    return [(c.device, c.component) for c in RaplSensor(tree.root).info.channels]


def test_packages_and_memory_are_read_in_joules(tree):
    tree.zone("intel-rapl:0", "package-0", 5_000_000)
    tree.zone("intel-rapl:0:0", "core", 1)
    tree.zone("intel-rapl:0:1", "dram", 2_000_000)
    tree.zone("intel-rapl:1", "package-1", 7_000_000)
    tree.zone("intel-rapl:1:0", "dram", 3_000_000)
    sensor = RaplSensor(tree.root)
    assert isinstance(sensor, Sensor)
    assert sensor.probe().usable
    assert devices(tree) == [
        ("package-0", "cpu"),
        ("dram of package-0", "ram"),
        ("package-1", "cpu"),
        ("dram of package-1", "ram"),
    ]
    assert sensor.read(edge=True) == (5.0, 2.0, 7.0, 3.0)
    assert {c.max_range for c in sensor.info.channels} == {RANGE_UJ / 1e6}
    sensor.close()


def test_the_platform_zone_is_not_added_to_its_packages(tree):
    tree.zone("intel-rapl:0", "package-0")
    tree.zone("intel-rapl:1", "psys")
    assert devices(tree) == [("package-0", "cpu")]


@pytest.mark.parametrize("second", ["package-0-die-1", "package-0-die-0", "package-0"])
@pytest.mark.parametrize("dies", [2, 4])
def test_a_mirrored_die_counts_once_whatever_it_is_called(tree, second, dies):
    """68 W shown twice are 68 W (codecarbon #1274)."""
    names = ["package-0-die-0", *[second] * (dies - 1)]
    counters = [tree.zone(f"intel-rapl:{k}", name, 5_000_000) for k, name in enumerate(names)]
    sensor = RaplSensor(tree.root)
    assert [c.device for c in sensor.info.channels] == ["package-0-die-0"]
    for counter in counters:
        turn(counter, 685_000_000)
    assert sensor.read(edge=True) == (685.0,)
    sensor.close()


@pytest.mark.parametrize("second", ["package-0", "package-0-die-1"])
def test_counters_of_their_own_count_each_whatever_they_are_called(tree, second):
    one = tree.zone("intel-rapl:0", "package-0", 5_000_000)
    other = tree.zone("intel-rapl:1", second, 77_000_000)
    sensor = RaplSensor(tree.root)
    assert len({c.device for c in sensor.info.channels}) == 2
    turn(one, 505_000_000)
    turn(other, 377_000_000)
    assert sum(sensor.read(edge=True)) - 82 == pytest.approx(800)
    sensor.close()


def test_memory_of_packages_of_one_name_counts_each_and_mirrored_memory_once(tree):
    for socket, uj in enumerate((2_000_000, 9_000_000)):
        tree.zone(f"intel-rapl:{socket}", "package-0", 10 * uj)
        tree.zone(f"intel-rapl:{socket}:0", "dram", uj)
    assert [c for _, c in devices(tree)] == ["cpu", "ram", "cpu", "ram"]
    tree.zone("intel-rapl:2", "package-0-die-1", 20_000_000)
    tree.zone("intel-rapl:2:0", "dram", 2_000_000)
    assert [c for _, c in devices(tree)] == ["cpu", "ram", "cpu", "ram"]


def test_two_packages_that_read_alike_are_two(tree):
    tree.zone("intel-rapl:0", "package-0", 5_000_000)
    tree.zone("intel-rapl:1", "package-1", 5_000_000)
    assert len(devices(tree)) == 2


def test_a_counter_that_moves_between_the_looks_is_still_the_mirror_of_another(tree):
    one = tree.zone("intel-rapl:0", "package-0-die-0", 10**9)
    other = tree.zone("intel-rapl:1", "package-0-die-1")
    other.unlink()
    other.symlink_to(one)
    with turning(one):
        assert [devices(tree) for _ in range(50)] == [[("package-0-die-0", "cpu")]] * 50


@pytest.mark.parametrize("text", ["N/A", "", "-5", "1.5", "0x10"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_counter_that_tells_no_number_is_not_used(tree, text, place):
    counters = [tree.zone("intel-rapl:0", "package-0", 1), tree.zone("intel-rapl:1", "package-1", 1)]
    assert RaplSensor(tree.root).probe().usable
    counters[place].write_text(text + "\n")
    probe = RaplSensor(tree.root).probe()
    assert not probe.usable
    assert f"intel-rapl:{place}/energy_uj tells no number" in probe.reason


def test_the_same_zones_by_mmio_count_once(tree):
    tree.zone("intel-rapl:0", "package-0")
    tree.zone("intel-rapl-mmio:0", "package-0")
    assert devices(tree) == [("package-0", "cpu")]


def test_a_counter_is_followed_and_a_failed_zone_is_none(tree):
    one = tree.zone("intel-rapl:0", "package-0", 1_000_000)
    two = tree.zone("intel-rapl:1", "package-1", 1_000_000)
    sensor = RaplSensor(tree.root)
    assert sensor.read(edge=True) == (1.0, 1.0)
    turn(one, 4_000_000)
    two.write_text("not a number\n")
    assert sensor.read(edge=False) == (4.0, None)
    one.write_text("")
    with pytest.raises(OSError, match="no RAPL"):
        sensor.read(edge=True)
    sensor.close()
    sensor.close()


def test_a_range_that_is_missing_or_nonsense_is_unknown(tree):
    tree.zone("intel-rapl:0", "package-0", max_range_uj=None)
    tree.zone("intel-rapl:1", "package-1", max_range_uj=0)
    assert [c.max_range for c in RaplSensor(tree.root).info.channels] == [None, None]


def test_a_missing_tree_says_why(tmp_path):
    probe = RaplSensor(tmp_path / "nothing").probe()
    assert not probe.usable
    assert "virtual" in probe.reason


def test_an_unreadable_counter_says_why(tree):
    tree.zone("intel-rapl:0", "package-0").unlink()
    (tree.root / "intel-rapl:0" / "energy_uj").mkdir()
    probe = RaplSensor(tree.root).probe()
    assert not probe.usable
    assert "cannot be read" in probe.reason


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_forbidden_counter_names_one_safe_mend(tree):
    tree.zone("intel-rapl:0", "package-0").chmod(0)
    probe = RaplSensor(tree.root).probe()
    assert not probe.usable
    assert "chmod" in probe.mend
