"""``carbonlens run`` in odd surroundings: what the command sees and how it ends are its own."""

import os
import signal
import subprocess
import sys

import pytest

from carbonlens import track
from tests.instrument.wrapper import is_alive, kill_if_alive, wait_until

RUN = (sys.executable, "-m", "carbonlens.cli.main", "run", "--ledger", "kept", "--")


def by_shell(shell, script, *command, **options):
    """Run a line of sh with the wrapper, and what it runs, as ``"$@"``."""
    environ = {**shell.env, **options.pop("env", {})}
    return subprocess.run(
        ["/bin/sh", "-c", script, "sh", *RUN, *command],
        cwd=shell.folder,
        env=environ,
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )


def kept(shell):
    (run,) = shell.json("runs", "--ledger", "kept")["runs"]
    return run


def test_a_closed_stdin_is_closed_for_the_command(shell):
    done = by_shell(shell, '"$@" <&-', "/bin/sh", "-c", "cat 2>/dev/null; echo $?")
    assert (done.returncode, done.stdout) == (0, b"1\n")
    assert kept(shell)["status"] == "complete"


def test_a_reader_that_goes_away_ends_the_command_by_sigpipe_as_ever(shell):
    done = by_shell(shell, '{ "$@"; echo "ended $?" >&2; } | head -c 3', "yes")
    assert done.stdout == b"y\ny"
    assert b"ended 141" in done.stderr
    assert kept(shell)["status"] == "failed"


def test_megabytes_of_output_pass_through(shell):
    done = by_shell(shell, '"$@" | wc -c', "head", "-c", "64000000", "/dev/zero")
    assert done.stdout.split() == [b"64000000"]


def test_without_a_path_programs_are_found_as_the_system_finds_them(shell):
    done = by_shell(shell, 'unset PATH; "$@"', "true")
    assert (done.returncode, kept(shell)["status"]) == (0, "complete")


def test_a_working_folder_that_is_gone(shell):
    line = 'mkdir gone; cd gone; rmdir ../gone; "$@"'
    done = by_shell(shell, line, "/bin/echo", "ran")
    assert (done.returncode, done.stdout) == (0, b"ran\n")
    assert b"Traceback" not in done.stderr


def test_arguments_that_are_no_text_reach_the_command_as_they_are(shell):
    done = by_shell(shell, '"$@" "$(printf \'\\377\\001\')"', "printf", "%s")
    assert done.stdout == b"\xff\x01"


def test_a_program_that_makes_itself_a_daemon_is_not_waited_for(shell):
    code = (
        "import os, sys\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "open('pid.new', 'w').write(str(os.getpid())); os.rename('pid.new', 'pid')\n"
        "for n in (0, 1, 2): os.close(n)\n"
        "import time; time.sleep(120)\n"
    )
    done = by_shell(shell, '"$@"', sys.executable, "-S", "-c", code)
    assert done.returncode == 0
    wait_until((shell.folder / "pid").exists)
    pid = int((shell.folder / "pid").read_text())
    try:
        assert is_alive(pid)
        assert kept(shell)["status"] == "complete"
    finally:
        kill_if_alive(pid)


def test_no_units_are_refused_before_the_command_is_started(shell):
    done = shell("run", "--units", "0", "--", "touch", "ran", code=2)
    assert "no positive number" in done.stderr
    assert not (shell.folder / "ran").exists()


def test_a_block_that_did_nothing_has_no_energy_per_unit(shell):
    for number in range(10):
        for step, units in (("base", 5), ("none", 0)):
            with track(step, study="s", unit="image", repeat=number, ledger=shell.folder / "kept") as run:
                run.add_units(units)
    assert (run.run.units, run.run.status) == (0, "complete")
    told = shell.json("compare", "--study", "s", "--ledger", "kept")
    (step,) = told["steps"]
    assert (step["step"], step["verdict"], step["decision"]) == ("none", "inconclusive", "undetermined")
    assert "CL404" in str(told)


STOPPED = """
import os, signal, sys, time
print("up", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end and not os.path.exists("over"):
    time.sleep(0.02)
sys.exit(4)
"""


def state_of(pid):
    with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123  # as short as it gets
        return stream.read().rpartition(")")[2].split()[0]


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as stream:  # noqa: PTH123  # as short as it gets
        return int(stream.read().split()[0])


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs /proc")  # noqa: PTH110  # as above
def test_a_job_that_is_stopped_and_continued_ends_as_ever(shell):
    """As with Ctrl-Z and ``fg``, which stop and continue the wrapper and its command alike."""
    process = subprocess.Popen(
        [*RUN, sys.executable, "-S", "-c", STOPPED],
        cwd=shell.folder,
        env=shell.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A job of its own, as a shell makes one: a group without a parent beside it is not stopped.
        process_group=0,
    )
    try:
        assert process.stdout.readline() == b"up\n"
        both = (process.pid, child_of(process.pid))
        for number, stops in ((signal.SIGTSTP, True), (signal.SIGCONT, False)) * 2:
            for pid in both:
                os.kill(pid, number)
                wait_until(lambda pid=pid, stops=stops: (state_of(pid) == "T") is stops)
        (shell.folder / "over").touch()
        process.communicate(timeout=60)
    finally:
        kill_if_alive(process.pid)
    assert process.returncode == 4
    assert kept(shell)["status"] == "failed"
