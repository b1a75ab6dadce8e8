"""Powermetrics on recordings: energy by component, absent is not zero, tasks are not added."""

import math
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.units import Z_95
from carbonlens.metering.sensors.powermetrics import (
    COMMAND,
    PowermetricsSensor,
    SampleSplitter,
    parse_plist,
    parse_text,
)
from carbonlens.metering.sensors.stream import ABOVE_J
from tests.metering.meters import plist, saying

TEXT = """
*** Sampled system activity (Tue Jul 14 10:00:00 2026 -0700) (2000.00ms elapsed) ***

**** Processor usage ****
CPU Power: 41 mW
GPU Power: 2 mW
ANE Power: 0 mW
Combined Power (CPU + GPU + ANE): 43 mW
"""


def test_energy_is_in_millijoules_and_0_is_a_figure():
    sample = parse_plist(plist(cpu_energy=1923, gpu_energy=5807, ane_energy=0).encode())
    assert sample.elapsed_s == 1.0
    assert sample.joules == pytest.approx({"cpu": 1.923, "gpu": 5.807, "npu": 0.0})


def test_an_absent_key_is_unknown_and_not_0():
    """A pattern that does not match gives 0.0 in tools that read the text by patterns."""
    assert parse_plist(plist(cpu_energy=1).encode()).joules.keys() == {"cpu"}
    assert parse_text(TEXT.replace("GPU Power: 2 mW\n", "")).joules.keys() == {"cpu", "npu"}


def test_neural_engine_energy_by_task_is_not_added():
    task = "<key>tasks</key><array><dict><key>ane_energy</key><integer>900</integer></dict></array>"
    assert parse_plist(plist(inside=task, ane_energy=100).encode()).joules == {"npu": 0.1}
    assert parse_plist(plist(inside=task, cpu_energy=1).encode()).joules == {"cpu": 0.001}


def test_power_stands_in_for_energy_over_the_time_that_passed():
    assert parse_plist(plist(2.0, cpu_power=500).encode()).joules == {"cpu": 1.0}


def test_the_gpus_own_section_serves_where_the_processors_has_none():
    gpu = "<key>gpu</key><dict><key>gpu_energy</key><integer>30</integer></dict>"
    assert parse_plist(plist(inside=gpu, cpu_energy=1).encode()).joules["gpu"] == 0.03


def test_macs_with_intel_cpus_tell_the_package():
    assert parse_plist(plist(package_watts=12).encode()).joules == {"total": 12.0}
    old = "*** Sampled system activity (x) (1000.0ms elapsed) ***\nPackage Power: 6666 mW\n"
    assert parse_text(old).joules == {"total": 6.666}
    intel = old.replace("Package Power: 6666 mW", "Intel energy model derived package power (CPUs): 3.5W")
    assert parse_text(intel).joules == {"total": 3.5}


def test_the_text_format_has_milliwatts_over_its_own_time():
    sample = parse_text(TEXT)
    assert sample.joules == pytest.approx({"cpu": 0.082, "gpu": 0.004, "npu": 0.0})


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\0\n",
        b"<plist>",
        b"<plist><dict><key>elapsed_ns</key></dict></plist>",
        b"<plist version='1.0'><array/></plist>",
        plist(0, cpu_energy=5).encode(),
        b"<plist version='1.0'><dict><key>elapsed_ns</key><integer>x</integer></dict></plist>",
    ],
)
def test_a_damaged_sample_is_none(document):
    assert parse_plist(document) is None


DAMAGES = (b"<dict>", b"</dict>", b"<array>", b"</array>", b"<key>", b"</key>", b"<date>x</date>", b"")


@given(st.integers(0, 2000), st.integers(0, 40), st.sampled_from(DAMAGES))
def test_a_document_that_is_damaged_anywhere_raises_nothing(place, length, put):
    """A part is cut out of a good document, and some other put there."""
    whole = plist(cpu_energy=1923, gpu_energy=5807).encode()
    place %= len(whole)
    sample = parse_plist(whole[:place] + put + whole[place + length :])
    assert sample is None or sample.elapsed_s > 0


@given(st.binary(max_size=200))
def test_no_bytes_raise(data):
    splitter = SampleSplitter()
    for sample in splitter.feed(data + b"</plist>"):
        assert sample is None or math.isfinite(sample.elapsed_s)


@given(st.lists(st.integers(1, 400), max_size=12))
def test_samples_come_whole_however_the_stream_is_cut(cuts):
    stream = "".join(plist(cpu_energy=k) for k in range(1, 5)).encode()
    splitter, found, at = SampleSplitter(), [], 0
    for cut in [*cuts, len(stream)]:
        found += splitter.feed(stream[at : at + cut])
        at += cut
    found += splitter.feed(stream[at:]) if at < len(stream) else []
    assert [s.joules["cpu"] for s in found] == pytest.approx([0.001, 0.002, 0.003, 0.004])


def test_text_samples_are_whole_when_the_next_begins():
    splitter = SampleSplitter()
    assert splitter.feed(TEXT.encode()) == []
    (sample,) = splitter.feed(TEXT.encode())
    assert sample.joules["cpu"] == pytest.approx(0.082)


class Fed:
    """A sensor whose program prints what the test feeds, on the test's clock."""

    def __init__(self, **more):
        self.now = 0.0
        self.sensor = PowermetricsSensor(saying(""), clock=lambda: self.now, **more)
        self.sensor.probe()

    def feed(self, text, now):
        self.now = now
        self.sensor._feed(text.encode())

    def read(self):
        return tuple(None if v is None else v - ABOVE_J for v in self.sensor.read(edge=False))


@pytest.fixture
def fed():
    made = Fed(package_only=False)
    yield made
    made.sensor.close()


def test_samples_are_summed_and_an_absent_one_breaks_its_own_counter(fed):
    fed.feed(plist(cpu_energy=1000, gpu_energy=50, ane_energy=0), 1.0)
    assert fed.read() == (0.0, 0.0, 0.0)
    fed.feed(plist(cpu_energy=1500, gpu_energy=50, ane_energy=0), 2.0)
    assert fed.read() == pytest.approx((1.5, 0.05, 0.0))
    fed.feed(plist(cpu_energy=1500, ane_energy=0), 3.0)
    assert fed.read() == pytest.approx((3.0, None, 0.0))
    fed.feed(plist(cpu_energy=1500, gpu_energy=9000, ane_energy=0), 4.0)
    cpu, gpu, _ = fed.read()
    assert cpu == pytest.approx(4.5)
    assert gpu == 0.0  # lower than before: what it drew meanwhile is not bridged


def test_a_damaged_sample_breaks_every_counter_and_is_said(fed):
    fed.feed(plist(cpu_energy=1000), 1.0)
    fed.read()
    fed.feed(plist(cpu_energy=1000), 2.0)
    assert fed.read()[0] == pytest.approx(1.0)
    fed.feed("<plist>torn</plist>", 3.0)
    with pytest.raises(OSError, match="lately"):
        fed.read()
    fed.feed(plist(cpu_energy=1000), 4.0)
    assert fed.read()[0] == 0.0
    assert [f.code for f in fed.sensor.notes()] == ["CL147"]


def test_silence_is_no_reading_and_a_late_sample_counts_if_it_reaches_back(fed):
    fed.feed(plist(cpu_energy=1000), 1.0)
    fed.read()
    fed.now = 3.9
    assert fed.read()[0] == pytest.approx(2.9)  # the last mean power stands in for a while
    fed.now = 4.1
    with pytest.raises(OSError, match="lately"):
        fed.read()
    fed.feed(plist(9.0, cpu_energy=9000), 10.0)
    assert fed.read()[0] == pytest.approx(9.0)
    fed.feed(plist(1.0, cpu_energy=1000), 20.0)  # nine seconds of it are missing
    assert fed.read()[0] == 0.0


def test_a_real_stream_is_read_end_to_end():
    code = (
        "import sys, time\nwhile True: sys.stdout.write(sys.argv[1]); sys.stdout.flush(); time.sleep(0.05)\n"
    )
    sample = plist(0.05, cpu_energy=50, gpu_energy=5, ane_energy=0).replace("\0", "")
    sensor = PowermetricsSensor((sys.executable, "-c", code, sample), package_only=False, wait_s=60)
    try:
        assert sensor.probe().found == "powermetrics: cpu, gpu, npu"
        before = sensor.read(edge=True)
        time.sleep(0.4)
        after = sensor.read(edge=True)
        assert 0.1 < after[0] - before[0] < 2.0
        assert after[2] == before[2]
    finally:
        sensor.close()


def test_its_width_is_a_models_as_apple_calls_the_figures_estimates():
    sensor = PowermetricsSensor(package_only=False)
    info = sensor.info
    # Grade and width belong together (DESIGN law 2).
    assert (info.grade, math.exp(Z_95 * info.gain_sigma)) == ("D", pytest.approx(1.8))
    assert "estimates" in info.method
    assert [c.component for c in info.channels] == ["cpu", "gpu", "npu"]
    assert (info.boundary, info.whole_machine) == ("device", True)
    package = PowermetricsSensor(package_only=True).info.channels
    assert [c.component for c in package] == ["total"]


def test_sudo_is_never_let_ask():
    """Libraries that prompt for a password: codecarbon issues 731 and 736."""
    assert COMMAND[:2] == ("sudo", "-n")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("/no/such/powermetrics",), "cannot be started"),
        (("sh", "-c", "exit 1"), "exit code 1"),
        (saying(""), "told nothing in 0.3 s"),
        (saying(plist(tasks=3)), "no energy"),
    ],
)
def test_the_doctor_says_why(command, reason):
    sensor = PowermetricsSensor(command, package_only=False, wait_s=0.3 if "told nothing" in reason else 60.0)
    probe = sensor.probe()
    sensor.close()
    assert not probe.usable
    assert reason in probe.reason
