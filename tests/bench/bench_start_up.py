"""Start-up, printed: of the import, of the help, and what ``run`` adds to a command.

Everything is a whole process. A machine that others use makes each take longer, never
shorter, so that the least of many interleaved runs is nearest to a quiet machine's; CPU
time stands beside the wall clock, which also counts waiting for a core.
"""

import os
import statistics
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.bench

RUNS = 21


def spent_ms(command, environ):
    """Return CPU time and wall time of a command, its children's included."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return (usage.ru_utime + usage.ru_stime) * 1e3, wall * 1e3


def interleaved(commands, environ):
    """Return a list of CPU and wall times for each command, one run of each after the other."""
    for command in commands.values():
        spent_ms(command, environ)  # the first run compiles
    found = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            found[name].append(spent_ms(command, environ))
    return found


@pytest.fixture
def environ(tmp_path):
    """Return an environment as a user has it: compiled modules are kept, here in a folder of the test."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CARBONLENS", "PYTHON", "XDG"))}
    return {
        **kept,
        "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"),
        "HOME": str(tmp_path / "home"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


def least(times):
    """Return the least CPU time and the least wall time."""
    return min(cpu for cpu, _ in times), min(wall for _, wall in times)


def test_print_start_up(environ):
    found = interleaved(
        {
            "bare": [sys.executable, "-c", "pass"],
            "package": [sys.executable, "-c", "import carbonlens"],
            "tracking": [sys.executable, "-c", "import carbonlens; carbonlens.track"],
            "help": [sys.executable, "-m", "carbonlens.cli.main", "--help"],
        },
        environ,
    )
    cpu, wall = least(found["bare"])
    print(f"\nleast of {RUNS}                   CPU       wall")
    print(f"bare python            {cpu:8.1f}   {wall:8.1f} ms")
    for name, words in (("package", "import carbonlens"), ("tracking", "import carbonlens; .track")):
        more_cpu, more_wall = (a - b for a, b in zip(least(found[name]), (cpu, wall), strict=True))
        print(f"{words:<25}{more_cpu:+6.1f}   {more_wall:+8.1f} ms (target: at most +60)")
    print("carbonlens --help      {:8.1f}   {:8.1f} ms (target: at most 150)".format(*least(found["help"])))


def test_print_what_run_adds_to_a_command(environ, tmp_path):
    ledger = str(tmp_path / "ledger")
    work = ["sleep", "0.05"]
    found = interleaved(
        {
            "bare": work,
            "python": [sys.executable, "-c", "pass"],
            "run": [sys.executable, "-m", "carbonlens.cli.main", "run", "--ledger", ledger, "--", *work],
        },
        environ,
    )
    pairs = [r[1] - b[1] for r, b in zip(found["run"], found["bare"], strict=True)]
    cpu, wall = (a - b for a, b in zip(least(found["run"]), least(found["bare"]), strict=True))
    python = least(found["python"])
    print(f"\nrun adds, least of {RUNS}: {cpu:.1f} ms CPU, {wall:.1f} ms wall (target: at most 150 ms wall)")
    print(f"  median of the pairs {statistics.median(pairs):.1f} ms wall, load {os.getloadavg()[0]:.1f}")
    print(f"  of it bare python {python[0]:.1f} ms CPU, {python[1]:.1f} ms wall")
