"""What a run loads while its command works: the command's end is seen all the same, and nothing is lost."""

import os
import subprocess
import sys
import time

import pytest

from carbonlens.instrument import child
from carbonlens.instrument.child import held_signals, run_child


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder that modules are found in."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("meanwhile_")]:
        del sys.modules[name]


def ended(command, *names):
    with held_signals() as held:
        return run_child(command, {"PATH": "/usr/bin:/bin"}, held, meanwhile=names)


def module(folder, name, text="value = 1\n"):
    (folder / f"meanwhile_{name}.py").write_text(text)
    return f"meanwhile_{name}"


def test_modules_are_loaded_in_order_while_the_command_works(folder):
    names = [module(folder, k, "import time\nat_s = time.monotonic()\n") for k in "abc"]
    assert ended(["sleep", "1"], *names).exit_code == 0
    times = [sys.modules[name].at_s for name in names]
    assert times == sorted(times)


def test_a_command_that_has_ended_is_not_kept_waiting(folder):
    slow = module(folder, "slow", "import time\ntime.sleep(0.5)\n")
    never = module(folder, "never")
    assert ended(["sh", "-c", "exit 3"], slow, never).exit_code == 3
    assert "meanwhile_never" not in sys.modules


def test_one_that_cannot_be_loaded_costs_nothing(folder):
    broken, missing = module(folder, "broken", "raise ValueError\n"), "meanwhile_missing"
    last = module(folder, "last")
    assert ended(["sh", "-c", "sleep 0.5; exit 4"], broken, missing, last).exit_code == 4
    assert "meanwhile_last" in sys.modules


def test_a_signal_that_comes_meanwhile_reaches_the_command(folder):
    """In a process of its own: a signal to a process with other threads goes to any of them."""
    name = module(folder, "signal", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    after = module(folder, "after")
    script = (
        "from carbonlens.instrument.child import held_signals, run_child\n"
        "with held_signals() as held:\n"
        "    end = run_child(['sleep', '60'], {'PATH': '/usr/bin:/bin'}, held,"
        f" meanwhile={(name, after)!r})\n"
        "print(end.signal, end.exit_code)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    said = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True)
    assert said.stdout.split() == ["15", "143"], said.stderr


class Clock:
    """Stands still but for what modules do, after a first look that begins with 0."""

    def __init__(self, now):
        self.now, self.is_first = now, True

    def monotonic(self):
        told, self.is_first = 0.0 if self.is_first else self.now, False
        return told


@pytest.mark.parametrize(("now", "is_loaded"), [(0.05, False), (0.099, False), (0.11, True)])
def test_nothing_is_loaded_beside_a_short_command(folder, monkeypatch, now, is_loaded):
    """Its end would be seen when the module is loaded: its duration would be another one."""
    name = module(folder, "short")
    monkeypatch.setattr(child, "time", Clock(now))
    assert ended(["sh", "-c", "sleep 0.3; exit 3"], name).exit_code == 3
    assert (name in sys.modules) is is_loaded


def test_loading_that_takes_long_waits_for_a_longer_command(folder, monkeypatch):
    """A module may be loaded for a small share of the time that the command has taken so far."""
    clock = Clock(0.2)
    slow = module(folder, "long", "from carbonlens.instrument import child\nchild.time.now += 0.1\n")
    wakes = module(folder, "wakes", "from carbonlens.instrument import child\nchild.time.now += 1.7\n")
    after = module(folder, "after")
    monkeypatch.setattr(child, "time", clock)
    assert ended(["sh", "-c", "sleep 0.3; exit 3"], slow, wakes, after).exit_code == 3
    assert (slow in sys.modules, wakes in sys.modules) == (True, False)
    clock.now, clock.is_first = 2.1, True
    del sys.modules[slow]
    assert ended(["sh", "-c", "sleep 0.3; exit 3"], slow, wakes, after).exit_code == 3
    assert (wakes in sys.modules, after in sys.modules) == (True, False)


@pytest.mark.parametrize("seconds", [0.01, 0.03])
def test_the_end_of_a_short_command_is_not_told_late(folder, seconds):
    slow = module(folder, "slow", "import time\ntime.sleep(0.4)\n")
    took = []
    for _ in range(5):
        begin_s = time.monotonic()
        ended(["sleep", str(seconds)], slow)
        took.append(time.monotonic() - begin_s)
        sys.modules.pop(slow, None)
    assert min(took) < seconds + 0.2
