"""``--live``: honest figures on the terminal's last line, and nothing anywhere else."""

import os
import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.units import US_PER_S
from carbonlens.instrument.live_figures import Watcher, clock
from carbonlens.instrument.live_units import NestedUnits
from carbonlens.ledger.store import Ledger
from carbonlens.metering.sealing import seal_tally
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.sensors.cpu_model import this_curve
from carbonlens.metering.tally import Tally
from tests.instrument.terminal import on_terminal
from tests.instrument.wrapper import only_run
from tests.metering.processes import clean_environment, python, start_python

COUNTER = SensorInfo(
    name="counter",
    kind="cumulative",
    unit="J",
    scope="package",
    boundary="it",
    grade="B",
    update_period_s=0.001,
    channels=(Channel(device="package-0", component="cpu"),),
    method="test counter",
)
POWER = SensorInfo(
    name="power",
    kind="instant",
    unit="W",
    scope="board",
    boundary="device",
    grade="C",
    update_period_s=0.1,
    channels=(Channel(device="gpu-0", component="gpu", rated_w=700.0),),
    method="test power",
)


def so_far(tally, window_us, **more):
    return seal_tally(tally, start_us=0, window_us=window_us, goes_on=True, **more)


def test_power_is_that_of_the_last_seconds_and_energy_of_all():
    tally, watcher = Tally([COUNTER]), Watcher()
    joules = 0.0
    for second in range(11):
        tally.add(0, second * US_PER_S, (joules,))
        joules += 10.0 if second < 5 else 100.0
        shown = watcher.figures(so_far(tally, second * US_PER_S) if second else None, float(second))
        if second == 0:
            assert shown.text() == "power unknown   energy unknown   0:00"
        elif second <= 5:
            assert shown.power_w == pytest.approx(10.0)
        elif second >= 7:
            assert shown.power_w == pytest.approx(100.0)
    assert shown.energy.value == pytest.approx(550.0)
    assert shown.text().startswith("100 W   550.0 J [")


def test_what_is_not_known_is_at_least_and_never_zero():
    tally, watcher = Tally([COUNTER]), Watcher()
    for second in range(4):
        tally.add(0, second * US_PER_S, (20.0 * second,))
    shown = watcher.figures(so_far(tally, 3 * US_PER_S, unmeasured=("NVIDIA GPU",)), 3.0)
    assert not shown.power_whole
    assert shown.text().startswith("at least 20.0 W   60 J counted [at least 60]")


def test_a_source_that_fails_is_unknown_and_never_zero():
    tally = Tally([COUNTER])
    for second in range(4):
        tally.add(0, second * US_PER_S, None)
    shown = Watcher().figures(so_far(tally, 3 * US_PER_S), 3.0)
    assert shown.text() == "power unknown   energy unknown   0:03"


CPU_CLOCK = SensorInfo(
    name="cpu_model",
    kind="utilisation",
    unit="s",
    scope="process",
    boundary="it",
    grade="D",
    update_period_s=0.0,
    channels=(Channel(device="cpu-time", component="cpu"),),
    method="test model",
    curve=this_curve(),
)


@given(st.integers(1, 20), st.integers(0, 20))
def test_a_command_that_sleeps_is_idle_and_its_energy_known_once_it_was_used(before, after):
    tally, watcher = Tally([CPU_CLOCK]), Watcher()
    for second in range(before + 1):
        tally.add(0, second * US_PER_S, (0.0,))
        shown = watcher.figures(so_far(tally, second * US_PER_S) if second else None, float(second))
    assert shown.text() == f"idle   no use seen yet   {clock(before)}"
    assert shown.energy.value is None
    for second in range(before + 1, before + after + 1):
        tally.add(0, second * US_PER_S, (0.5 * (second - before),))
        shown = watcher.figures(so_far(tally, second * US_PER_S), float(second))
        assert shown.power_whole
        assert shown.power_w > 0
        assert shown.energy.value > 0


def test_idle_is_not_said_of_a_machine_of_which_a_part_is_not_read():
    tally = Tally([CPU_CLOCK])
    for second in range(4):
        tally.add(0, second * US_PER_S, (0.0,))
    shown = Watcher().figures(so_far(tally, 3 * US_PER_S, unmeasured=("NVIDIA GPU",)), 3.0)
    assert shown.text() == "power unknown   energy unknown   0:03"


def test_a_counter_that_fell_silent_makes_the_energy_a_lower_bound():
    tally = Tally([COUNTER])
    for second in range(31):
        tally.add(0, second * US_PER_S, (10.0 * second,) if second < 21 else None)
    assert "counted" in Watcher().figures(so_far(tally, 30 * US_PER_S), 30.0).text()


def test_the_rate_is_that_of_the_last_seconds_and_absent_where_nobody_counts():
    watcher = Watcher()
    assert watcher.figures(None, 0.5).rate is None
    for second in range(10):
        shown = watcher.figures(None, float(second), Decimal(100 * second), "image")
    assert shown.rate == pytest.approx(100.0)
    assert "100 image/s" in shown.text()


def test_a_time_is_shown_as_a_clock_does():
    assert [clock(s) for s in (0.9, 61, 3599, 3723)] == ["0:00", "1:01", "59:59", "1:02:03"]


readings = st.lists(
    st.tuples(
        st.integers(1, 40 * US_PER_S),
        st.one_of(st.none(), st.floats(0, 600)),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


@given(readings, st.sampled_from([COUNTER, POWER]))
def test_asking_meanwhile_changes_nothing_and_tells_what_there_is(rows, sensor):
    asked, alone = Tally([sensor]), Tally([sensor])
    t_us, total = 0, 0.0
    for step_us, value, ask in rows:
        t_us += step_us
        total += value or 0.0
        told = None if value is None else (total if sensor is COUNTER else value,)
        for tally in (asked, alone):
            tally.add(0, t_us, told)
        if ask:
            before = asked.so_far(t_us)
    assert asked.finish(t_us) == alone.finish(t_us)
    if rows[-1][2]:
        (found,), (told_so_far,) = alone.finish(t_us)[0], before[0]
        assert told_so_far.amount == found.amount
        assert told_so_far.covered_s >= found.covered_s


def test_units_of_blocks_inside_are_counted_and_those_of_others_are_not(tmp_path):
    run_id = "01900000-0000-7000-8000-000000000000"
    code = (
        "import sys\nfrom carbonlens import track\n"
        "with track('s', unit='image', ledger=sys.argv[1]) as run:\n"
        "    run.add_units(7)\n    print('up', flush=True)\n    sys.stdin.read(1)\n"
    )
    inside = NestedUnits(run_id, tmp_path / "state" / "carbonlens" / "journal")
    other = NestedUnits(run_id.replace("0000", "1111"), tmp_path / "state" / "carbonlens" / "journal")
    process = start_python(
        code.replace("sys.stdin.read(1)", "import time; time.sleep(2)"),
        tmp_path,
        str(tmp_path / "ledger"),
        CARBONLENS_RUN_ID=run_id,
    )
    from tests.instrument.wrapper import wait_until

    def seen():
        inside._search_at = 0.0
        return inside.count().units is not None

    wait_until(seen, 20)
    assert inside.count() == (7, "image")
    assert other.count() == (None, None)
    process.wait(60)
    process.stdout.close()
    # Its journal is gone; what it counted was counted.
    assert inside.count() == (7, "image")


PRINTING = """
import sys, time
end = time.monotonic() + {seconds}
k = 0
while time.monotonic() < end:
    k += 1
    print("err", k, file=sys.stderr, flush=True)
    print("out", k, flush=True)
    while time.monotonic() < end and time.monotonic() % 0.1 > 0.02: sum(range(5000))
    time.sleep(0.02)
"""


def live(folder, *command, seconds=2.2, term="xterm-256color", screen=None, before=(), **env):
    line = [*before, sys.executable, "-m", "carbonlens.cli.main", "run", "--live", "--ledger", "ledger", "--"]
    command = command or (sys.executable, "-c", PRINTING.format(seconds=seconds))
    return on_terminal(
        [*line, *command], cwd=folder, env=clean_environment(folder, TERM=term, **env), **(screen or {})
    )


def test_the_line_stands_below_what_the_command_prints_and_is_taken_away(tmp_path):
    code, screen, raw = live(tmp_path)
    assert code == 0
    shown = [u for u in screen.updates if u]
    assert 2 <= len(shown) <= 5  # twice a second at most
    assert all(u.startswith("carbonlens ") for u in shown)
    assert any(" W   " in u or " mW   " in u for u in shown)
    # Each line of the command stands whole, and ours is gone at the end.
    told = [line for line in screen.text() if line]
    assert all(line.split()[0] in ("out", "err") and len(line.split()) == 2 for line in told[:-1])
    numbers = [int(line.split()[1]) for line in told[:-1] if line.startswith("err")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert "saved run" in told[-1]
    assert screen.bottom == screen.rows - 1
    assert "\x1b[1;32m" in raw


@pytest.mark.slow
def test_no_color_is_honoured(tmp_path):
    _, screen, raw = live(tmp_path, NO_COLOR="1")
    assert screen.updates
    assert "\x1b[32m" not in raw
    assert ";32m" not in raw


@pytest.mark.slow
def test_nothing_of_it_reaches_the_commands_stdout(tmp_path):
    with (tmp_path / "out.txt").open("wb") as out:
        code, screen, _ = live(tmp_path, screen={"stdout": out})
    assert code == 0
    assert screen.updates
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert lines == [f"out {k}" for k in range(1, len(lines) + 1)]


@pytest.mark.slow
def test_ctrl_c_ends_the_command_and_leaves_a_clean_terminal(tmp_path):
    sent = []

    def interrupt(ours, raw):
        if b"carbonlens " in raw and not sent:
            sent.append(True)
            os.write(ours, b"\x03")

    code, screen, _ = live(tmp_path, seconds=20, screen={"meanwhile": interrupt})
    assert sent
    assert code != 0
    assert screen.bottom == screen.rows - 1
    assert not any("carbonlens " in line and ": " not in line for line in screen.text())
    assert only_run(tmp_path).status == "failed"


def test_a_short_command_shows_nothing(tmp_path):
    code, screen, raw = live(tmp_path, "sh", "-c", "echo hello; exit 3")
    assert code == 3
    assert screen.updates == []
    assert "\x1b" not in raw


def test_a_terminal_that_cannot_move_its_cursor_is_told_once(tmp_path):
    code, screen, raw = live(tmp_path, "echo", "hello", term="dumb")
    assert code == 0
    assert raw.startswith("carbonlens: --live needs a terminal that can move its cursor, not TERM=dumb;")
    assert "hello" in screen.text()
    assert "\x1b" not in raw


def test_without_a_terminal_one_line_says_so_and_the_command_runs(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "carbonlens.cli.main",
            "run",
            "--live",
            "--ledger",
            "ledger",
            "--",
            "echo",
            "hi",
        ],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "hi\n")
    first, second = done.stderr.splitlines()
    assert first == "carbonlens: --live needs a terminal on stderr; the command runs without it"
    assert "saved run" in second


def test_without_rich_one_line_says_how_to_get_it_and_the_command_runs(tmp_path):
    (tmp_path / "shadow" / "rich").mkdir(parents=True)
    (tmp_path / "shadow" / "rich" / "__init__.py").write_text("raise ImportError('not here')\n")
    code, screen, raw = live(tmp_path, "echo", "hello", PYTHONPATH=str(tmp_path / "shadow"))
    assert code == 0
    assert 'pip install "carbonlens[analysis]"' in raw
    assert "hello" in screen.text()
    assert len(Ledger(tmp_path / "ledger").view().runs) == 1


@pytest.mark.slow
def test_units_that_the_command_counts_give_a_rate(tmp_path):
    code = (
        "import time\nfrom carbonlens import track\n"
        "with track('s', unit='image') as run:\n"
        "    for _ in range(80):\n        run.add_units(5); time.sleep(0.05)\n"
    )
    _, screen, _ = live(tmp_path, sys.executable, "-c", code)
    assert any("image/s" in update for update in screen.updates), screen.updates


def test_without_the_option_rich_is_not_loaded(tmp_path):
    code = (
        "import sys\nfrom carbonlens.app.command import run_command\n"
        "run_command(['true'], ledger=sys.argv[1])\nassert 'rich' not in sys.modules\nprint('ok')\n"
    )
    assert python(code, tmp_path, str(tmp_path / "ledger")).stdout == "ok\n"
