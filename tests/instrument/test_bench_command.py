"""A command's windows: how it is repeated, and what goes before them."""

import os
import sys
import time
from pathlib import Path

import pytest

from carbonlens.domain.bench import Variant
from carbonlens.domain.sources import ExternalMeter, Sources
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
    arm._shortest_s = 0.1  # whatever a busy machine made of it
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
    assert (tmp_path / "warm").exists()  # the slow one is over, whatever the windows take
    for number in (1, 2):
        run = arm.measure(number)
        assert run.duration_s >= 0.3
        # One alone fills a window only where a busy machine makes a start as slow as that.
        assert run.units > 1 or run.latency.mean_ms >= 300


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


def command_arm(tmp_path, command="pass", *, window_s=0.05, evaluate=None, sources=None):
    """An arm of a line of Python, whose evaluation is one too."""

    def python(line):
        return (sys.executable, "-c", line)

    variant = Variant(
        name="a",
        kind="command",
        command=python(command),
        units=1,
        evaluate=None if evaluate is None else python(evaluate),
    )
    place = Place(ledger=str(tmp_path / "ledger"), sources=sources or Sources())
    label = Label(step="a", study="s", role="variant", unit="call")
    return CommandArm(variant, bench_of(("a", "b"), window_s=window_s), place, label, tmp_path)


SAYS = 'import json, sys; print("first"); print(json.dumps({"accuracy": {"outcomes": [1, 0] * %d}}))'


@pytest.mark.parametrize("half", [1, 700, 200_000])
def test_a_line_of_quality_may_be_as_long_as_its_examples_are_many(tmp_path, half):
    (quality,) = command_arm(tmp_path, evaluate=SAYS % half).evaluate().quality
    assert (quality.name, quality.value, quality.n) == ("accuracy", 0.5, 2 * half)


@pytest.mark.parametrize(
    "after",
    [
        'sys.stderr.write("UserWarning: leaked semaphores")',
        'sys.stdout.flush(); sys.stderr.write("100%|####| 5/5" + chr(13))',
        'import atexit; atexit.register(lambda: sys.stderr.write("bye"))',
    ],
)
def test_what_libraries_say_on_stderr_is_no_quality(tmp_path, after):
    (quality,) = command_arm(tmp_path, evaluate=f"{SAYS % 5}; {after}").evaluate().quality
    assert quality.n == 10


def test_a_quality_on_stderr_alone_and_a_second_evaluation_are_understood(tmp_path):
    line = 'import sys; sys.stderr.write("{}")'
    (quality,) = command_arm(tmp_path, evaluate=line.format('{\\"accuracy\\": 0.5}')).evaluate().quality
    assert quality.value == 0.5
    with pytest.raises(MeasurementError, match="told no quality"):
        command_arm(tmp_path, evaluate="pass").evaluate()


def test_an_evaluation_that_fails_says_what_it_printed_wherever_that_was(tmp_path):
    for stream in ("stdout", "stderr"):
        line = f'import sys; sys.{stream}.write("no such model"); sys.exit(3)'
        with pytest.raises(MeasurementError, match="exit code 3: no such model"):
            command_arm(tmp_path, evaluate=line).evaluate()


def test_what_a_loud_command_prints_is_not_kept(tmp_path):
    size = 100_000
    arm = command_arm(tmp_path, f'print("x" * {size})', window_s=0.3)
    run = arm.measure(1)
    assert run.units > 1
    assert sum(file.stat().st_size for file in tmp_path.iterdir() if file.is_file()) < 2 * size


TRACKS = "import carbonlens; carbonlens.track('inner')(int)()"


def test_what_is_not_recorded_is_not_recorded_by_what_the_command_tracks_either(tmp_path, monkeypatch):
    """A warm-up that a second sitting repeats: its blocks would be in totals beside the first ones."""
    monkeypatch.setenv("CARBONLENS_LEDGER", str(tmp_path / "ledger"))
    arm = command_arm(tmp_path, TRACKS)
    arm.check(record=False)
    assert Ledger(tmp_path / "ledger").view().runs == ()
    arm.check(record=True)
    runs = Ledger(tmp_path / "ledger").view().runs
    (outer,) = [r for r in runs if r.step == "a"]
    assert {r.parent_run_id for r in runs if r is not outer} == {outer.run_id}


SLOW_METER = "while :; do echo $(date +%s%6N),80; sleep 0.4; done"
SLOW = Sources(external=(ExternalMeter(name="plug", command=("sh", "-c", SLOW_METER), period_s=0.4),))


def test_a_window_is_longer_than_the_update_period_of_its_meters(tmp_path):
    run = command_arm(tmp_path, window_s=0.05, sources=SLOW).measure(1)
    assert run.duration_s >= 0.8
    assert run.units > 1
    assert "CL127" not in {f.code for f in run.findings}
