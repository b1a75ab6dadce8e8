"""A command's windows: how it is repeated, and what goes before them."""

import os
import sys
import time
from pathlib import Path

import pytest

from carbonlens.domain.bench import Variant
from carbonlens.domain.sources import Sources
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench_command import CommandArm, _left_behind
from carbonlens.instrument.child import LeftBehind, subreaper
from carbonlens.instrument.window import Label, Place
from carbonlens.ledger.store import Ledger
from carbonlens.metering.records import new_run
from tests.instrument.synthetic import bench_of

WRITES = "import sys; open(sys.argv[1], 'a').write('x'); 'x' * 1000"


@pytest.fixture
def arm(tmp_path):
    """A short command that leaves a mark of every execution, checked."""
    command = (sys.executable, "-S", "-c", WRITES, str(tmp_path / "marks"))
    variant = Variant(name="a", kind="command", command=command, units=1)
    label = Label(step="a", study="s", role="variant", unit="call")
    place = Place(ledger=str(tmp_path / "ledger"), sources=Sources())
    made = CommandArm(variant, bench_of(("a", "b"), window_s=0.3), place, label, tmp_path)
    made.check(record=False)
    return made


def marks(tmp_path):
    return len((tmp_path / "marks").read_text())


def test_a_short_command_is_going_already_when_its_window_begins(arm, tmp_path):
    assert arm._shortest_s < 0.3
    before = marks(tmp_path)
    arm._settle(0.2, new_run("test"))
    assert marks(tmp_path) > before
    assert Ledger(tmp_path / "ledger").view().runs == ()


def test_a_long_command_is_not_run_twice_but_lets_the_others_power_fade(arm, tmp_path):
    arm._shortest_s = 0.3
    before, begin = marks(tmp_path), time.monotonic()
    arm._settle(0.2, new_run("test"))
    assert marks(tmp_path) == before
    assert time.monotonic() - begin >= 0.2


def test_a_window_holds_as_many_executions_as_fill_it(arm, tmp_path):
    before = marks(tmp_path)
    run = arm.measure(3)
    assert marks(tmp_path) - before >= run.units  # those before the window are not counted
    assert (run.repeat, run.role) == (3, "variant")
    assert run.units >= 1
    assert run.duration_s >= 0.3


SLOW_AT_FIRST = """
import os, sys, time
if not os.path.exists(sys.argv[1]):
    open(sys.argv[1], "w").close()
    time.sleep(0.8)
"""


@pytest.mark.parametrize("warm_up", [0, 1, 3])
def test_a_slow_first_execution_makes_no_window_short(tmp_path, warm_up):
    command = (sys.executable, "-S", "-c", SLOW_AT_FIRST, str(tmp_path / "warm"))
    variant = Variant(name="a", kind="command", command=command, units=1)
    place = Place(ledger=str(tmp_path / "ledger"), sources=Sources())
    label = Label(step="a", study="s", role="variant", unit="call")
    bench = bench_of(("a", "b"), window_s=0.3, warm_up=warm_up)
    arm = CommandArm(variant, bench, place, label, tmp_path)
    arm.check(record=True)
    for number in (1, 2):
        run = arm.measure(number)
        assert run.duration_s >= 0.3
        assert run.units > 1


def test_a_daemon_that_leaves_twice_is_found(tmp_path):
    """What a child leaves in the moment in which it is looked for itself."""
    left = tmp_path / "left"
    for number in range(10):
        inner = f"sleep 63 & echo $! >>{left}; exit 0"
        command = ("sh", "-c", f'setsid sh -c "{inner}" >/dev/null 2>&1 & exit 0')
        variant = Variant(name="a", kind="command", command=command, units=1)
        label = Label(step="a", study="s", role="variant", unit="call")
        place = Place(ledger=str(tmp_path / "ledger"), sources=Sources())
        with subreaper():
            arm = CommandArm(variant, bench_of(("a", "b"), window_s=0.01), place, label, tmp_path)
            run = arm.measure(number)
        assert [f.code for f in run.findings if f.code == "CL163"] == ["CL163"]
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x0063\0" in seen(p)]


def test_what_could_not_be_ended_is_not_said_to_be():
    said = _left_behind(LeftBehind(ended=("sleep",), running=("sudo",))).message
    assert "sudo running, which could not be ended" in said
    assert _left_behind(LeftBehind(running=("sudo",))).message.count("was ended") == 0


@pytest.mark.parametrize("leaves", ["sleep 61", "setsid sleep 61", "setsid sh -c 'trap  TERM; sleep 61; :'"])
def test_what_an_execution_leaves_is_ended_and_named(tmp_path, leaves):
    command = ("sh", "-c", f"{leaves} >/dev/null 2>&1 & echo $! >>{tmp_path / 'left'}; sleep 0.1")
    variant = Variant(name="a", kind="command", command=command, units=1)
    label = Label(step="a", study="s", role="variant", unit="call")
    place = Place(ledger=str(tmp_path / "ledger"), sources=Sources())
    with subreaper():
        arm = CommandArm(variant, bench_of(("a", "b"), window_s=0.1), place, label, tmp_path)
        run = arm.measure(1)
    (finding,) = [f for f in run.findings if f.code == "CL163"]
    assert "sleep" in finding.message
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x0061\0" in seen(p)]


def seen(path):
    try:
        return path.read_bytes() if path.stat().st_uid == os.getuid() else b""
    except OSError:
        return b""


@pytest.mark.parametrize(("end", "kept"), [("exit 9", "exit code 9"), ("kill -TERM $$", "signal 15")])
def test_the_record_says_how_a_command_failed_and_nothing_of_its_own(tmp_path, end, kept):
    variant = Variant(name="a", kind="command", command=("sh", "-c", f"echo private; {end}"), units=1)
    place = Place(ledger=str(tmp_path / "ledger"), sources=Sources())
    label = Label(step="a", study="s", role="variant", unit="call")
    arm = CommandArm(variant, bench_of(("a", "b"), window_s=0.1), place, label, tmp_path)
    with pytest.raises(MeasurementError, match="private"):
        arm.measure(1)
    (run,) = Ledger(tmp_path / "ledger").view().runs
    assert (run.status, run.error) == ("failed", f"MeasurementError: {kept}")
