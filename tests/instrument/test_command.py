"""A measured command: its own exit code, signals, streams and environment; its tree's CPU time."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from hashlib import sha256

import pytest

from carbonlens.errors import UsageError
from carbonlens.instrument.command import run_command
from carbonlens.metering.journal import read
from tests.instrument.wrapper import WRAP, is_alive, kill_if_alive, only_run, start, wait_until, wrap
from tests.metering.processes import BURN, files_holding, python, runs

PYTHON = sys.executable
TRAPPING = """
import os, signal, sys, time
def got(number, frame):
    # A print could interrupt the print of the pid.
    os.write(1, b"got %d\\n" % number)
    sys.exit(40 + number)
for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT):
    signal.signal(s, got)
print(os.getpid(), flush=True)
time.sleep(90)
"""


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_passes_through(tmp_path, code):
    assert wrap(tmp_path, "sh", "-c", f"exit {code}").returncode == code
    run = only_run(tmp_path)
    assert run.exit_code == code
    assert run.status == ("complete" if code == 0 else "failed")
    assert run.error == (None if code == 0 else f"exited with {code}")
    assert (run.step, run.role, run.unit, run.units) == ("s", "variant", "file", 4)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT])
def test_the_wrapper_dies_by_the_commands_signal(tmp_path, number):
    done = wrap(tmp_path, "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
    assert done.returncode == -number
    run = only_run(tmp_path)
    assert (run.status, run.exit_code, run.error) == (
        "failed",
        128 + number,
        f"killed by signal {int(number)}",
    )


def test_a_command_that_does_not_exist_is_127(tmp_path):
    done = wrap(tmp_path, "no-such-command-here", "x")
    assert done.returncode == 127
    assert "no-such-command-here: command not found" in done.stderr
    assert (only_run(tmp_path).status, only_run(tmp_path).exit_code) == ("failed", 127)


def test_a_file_that_cannot_be_executed_is_126(tmp_path):
    (tmp_path / "plain").write_text("echo no\n")
    done = wrap(tmp_path, str(tmp_path / "plain"))
    assert done.returncode == 126
    assert wrap(tmp_path, str(tmp_path)).returncode == 126


def test_a_script_without_an_interpreter_line_runs_in_sh(tmp_path):
    script = tmp_path / "script"
    script.write_text("echo script $1\nexit 3\n")
    script.chmod(0o755)
    done = wrap(tmp_path, str(script), "arg")
    assert (done.returncode, done.stdout) == (3, "script arg\n")


def test_streams_folder_and_arguments_are_the_commands_own(tmp_path):
    done = wrap(tmp_path, "sh", "-c", 'cat; pwd; echo "$1"; echo err >&2', "sh", "a b *")
    assert done.stdout == f"what stdin says\n{tmp_path}\na b *\n"
    assert done.stderr == "err\n"


def test_the_child_learns_the_run_and_keeps_its_environment(tmp_path):
    done = wrap(tmp_path, "sh", "-c", "echo $CARBONLENS_RUN_ID $MINE", MINE="yes")
    assert done.stdout.split() == [only_run(tmp_path).run_id, "yes"]


def test_signals_that_python_ignores_are_default_in_the_child(tmp_path):
    # A writer into a closed pipe dies by SIGPIPE under a shell, and must here.
    done = wrap(tmp_path, "sh", "-c", "grep SigIgn /proc/self/status; grep SigBlk /proc/self/status")
    ignored, blocked = (int(line.split()[1], 16) for line in done.stdout.splitlines())
    assert ignored & (1 << (signal.SIGPIPE - 1)) == 0
    assert blocked == 0


def test_twelve_children_are_all_counted(tmp_path):
    script = f"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {PYTHON} -S -c '{BURN.format(0.3)}' & done; wait"
    assert wrap(tmp_path, "sh", "-c", script).returncode == 0
    cpu_s = only_run(tmp_path).conditions.cpu_s
    # Start-up of twelve interpreters comes on top of their 3.6 s.
    assert 0.95 * 12 * 0.3 <= cpu_s < 12 * 0.3 + 2.0


BURNT = 'open("burnt", "w").close()'
UNTIL_BURNT = "while [ ! -e burnt ]; do sleep 0.05; done"
"""However long a busy machine takes over it."""


def test_grandchildren_whose_parent_left_are_counted(tmp_path):
    script = f"({PYTHON} -S -c '{BURN.format(0.5)}{BURNT}' &) ; {UNTIL_BURNT}; sleep 1"
    wrap(tmp_path, "sh", "-c", script)
    assert only_run(tmp_path).conditions.cpu_s >= 0.48


def test_a_daemon_is_counted_so_far_and_not_waited_for(tmp_path):
    work = f"{BURN.format(0.3)}{BURNT}; import time; time.sleep(90)"
    script = f"{PYTHON} -S -c '{work}' >/dev/null 2>&1 & echo $!; {UNTIL_BURNT}"
    begin = time.monotonic()
    done = wrap(tmp_path, "sh", "-c", script)
    pid = int(done.stdout)
    try:
        assert time.monotonic() - begin < 60
        assert is_alive(pid)
        run = only_run(tmp_path)
        assert run.conditions.cpu_s >= 0.28
        assert [f.code for f in run.findings] == ["CL109"]
    finally:
        kill_if_alive(pid)


def test_a_sleep_measures_far_below_load(tmp_path):
    wrap(tmp_path, "sleep", "0.5")
    run = only_run(tmp_path)
    assert run.duration_s >= 0.5
    assert run.conditions.cpu_s < 0.05


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_signals_are_forwarded_once(tmp_path, number):
    process = start(tmp_path, PYTHON, "-c", TRAPPING)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert out == f"got {int(number)}\n"
    assert process.returncode == 40 + number
    assert only_run(tmp_path).exit_code == 40 + number


ASKING = """
import os, signal, sys, time
NUMBERS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT}
NUMBERS -= {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
for s in NUMBERS:
    signal.signal(s, lambda number, frame: os.write(1, b"got %d\\n" % number))
print("up", flush=True)
end = time.monotonic() + 90
while time.monotonic() < end:
    time.sleep(0.05)
    if len(sys.argv) > 1 and os.path.exists(sys.argv[1]):
        sys.exit(7)
"""
# Python ignores SIGPIPE and SIGXFSZ, so that the wrapper lives through them and says nothing of them.
CATCHABLE = sorted(
    signal.valid_signals()
    - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT, signal.SIGTSTP}
    - {signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE, signal.SIGXFSZ}
)


def test_every_signal_that_can_be_caught_is_forwarded_and_none_ends_the_wrapper(tmp_path):
    over = tmp_path / "over"
    process = start(tmp_path, PYTHON, "-c", ASKING, str(over))
    for number in (*CATCHABLE, signal.SIGPIPE, signal.SIGXFSZ):
        process.send_signal(number)
        time.sleep(0.02)
    time.sleep(0.5)
    over.touch()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 7
    assert sorted(int(line.removeprefix("got ")) for line in out.splitlines()) == [int(n) for n in CATCHABLE]
    assert only_run(tmp_path).exit_code == 7


@pytest.mark.parametrize("number", [signal.SIGXCPU, signal.SIGALRM, signal.SIGRTMIN])
def test_a_signal_to_the_whole_group_leaves_the_commands_end_as_it_is(tmp_path, number):
    over = tmp_path / "over"
    process = start(tmp_path, PYTHON, "-c", ASKING, str(over), start_new_session=True)
    os.killpg(process.pid, number)
    time.sleep(0.3)
    over.touch()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 7
    assert f"got {int(number)}\n" in out
    assert only_run(tmp_path).exit_code == 7


def test_a_timer_set_before_ends_the_command_as_without_the_wrapper(tmp_path):
    # alarm(2) outlives exec(2): perl -e 'alarm 5; exec @ARGV' is how a time limit is often set.
    process = start(tmp_path, "sh", "-c", "echo up; exec sleep 30", preexec_fn=lambda: signal.alarm(4))
    assert process.wait(60) == -signal.SIGALRM
    assert only_run(tmp_path).exit_code == 128 + signal.SIGALRM


def test_the_hang_up_of_a_terminal_reaches_a_command_whose_wrapper_leads_the_session(tmp_path):
    """The kernel tells the session's leader alone, so that its command would live on unseen."""
    ours, theirs = pty.openpty()
    process = start(
        tmp_path,
        PYTHON,
        "-c",
        TRAPPING,
        stdin=theirs,
        start_new_session=True,
        preexec_fn=lambda: (
            signal.signal(signal.SIGHUP, signal.SIG_DFL),
            fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        ),
    )
    os.close(theirs)
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == (f"got {int(signal.SIGHUP)}\n", 40 + signal.SIGHUP)
    assert only_run(tmp_path).exit_code == 40 + signal.SIGHUP


def test_an_ignored_signal_stays_ignored(tmp_path):
    process = start(
        tmp_path,
        "sh",
        "-c",
        "echo up; sleep 1; exit 5",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 5


def test_a_command_that_ignores_term_is_waited_for(tmp_path):
    process = start(tmp_path, "sh", "-c", "trap '' TERM; echo up; sleep 1; exit 6")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 6
    assert only_run(tmp_path).exit_code == 6


def seen_cpu_s(journal):
    """Return the CPU seconds of the command that its journal tells of so far."""
    told = [s.values[0][0] for s in read(journal).samples if s.values[0]]
    return told[-1] - told[0] if told else 0.0


def test_a_killed_wrapper_leaves_a_journal_and_the_command_runs_on(tmp_path):
    process = start(
        tmp_path, PYTHON, "-c", "import os,time\nprint(os.getpid(), flush=True)\n" + BURN.format(3)
    )
    (journal,) = (tmp_path / "state" / "carbonlens" / "journal").iterdir()
    wait_until(lambda: seen_cpu_s(journal) >= 0.6)
    process.kill()
    process.wait()
    recovering = "from carbonlens.metering.recovery import recover\nprint(len(recover().recovered))"
    assert python(recovering, tmp_path).stdout == "1\n"
    run = only_run(tmp_path)
    assert (run.status, run.step) == ("recovered", "s")
    assert run.conditions.cpu_s > 0.5


def test_arguments_are_hashed_and_the_environment_is_not_kept(tmp_path):
    token = "hf_tokenInArgv0123456789"  # noqa: S105  # a made-up address, to look for in records
    secret = "sk-secretInEnvironment0123"  # noqa: S105  # a made-up address, to look for in records
    # The journal too must not hold them: the command reads it while the run is open.
    script = 'cat "$XDG_STATE_HOME"/carbonlens/journal/*.jsonl'
    done = wrap(tmp_path, "/usr/bin/env", "sh", "-c", script, token, API_KEY=secret)
    assert '"header"' in done.stdout
    assert token not in done.stdout
    assert secret not in done.stdout
    run = only_run(tmp_path)
    assert run.origin.program == "env"
    arguments = ["sh", "-c", script, token]
    assert run.origin.args_sha256 == sha256("\0".join(arguments).encode()).hexdigest()
    assert run.origin.args is None
    assert files_holding(tmp_path, token) == []
    assert files_holding(tmp_path, secret) == []


def test_arguments_are_kept_on_request(tmp_path):
    result = run_command(["true", "a", "\udcff"], ledger=tmp_path / "ledger", record_args=True)
    assert result.exit_code == 0
    assert only_run(tmp_path).origin.args == ("a", "\ufffd")


def test_an_unwritable_ledger_does_not_stop_the_command(tmp_path):
    (tmp_path / "ledger").write_text("a file where the folder should be")
    result = run_command(["sh", "-c", "exit 9"], ledger=tmp_path / "ledger")
    assert result.exit_code == 9
    assert result.stored.fault
    assert result.stored.ledger == tmp_path / "state" / "carbonlens" / "ledger"


def test_no_command_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no command"):
        run_command([], ledger=tmp_path)


def test_the_callers_own_children_signals_and_role_are_left_alone(tmp_path):
    own = subprocess.Popen([PYTHON, "-c", "raise SystemExit(3)"])
    os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert run_command(["sh", "-c", "sleep 0.1; exit 2"], ledger=tmp_path / "ledger").exit_code == 2
    assert own.wait() == 3
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    # Nobody adopts orphans for us any more: a grandchild goes to init, not to this process.
    code = (
        "import os,sys,time\nif os.fork() == 0:\n"
        "    time.sleep(0.3); print(os.getppid()); sys.stdout.flush()\n"
    )
    found = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) != os.getpid()


def test_it_also_works_outside_the_main_thread(tmp_path):
    import threading

    results = []
    work = threading.Thread(
        target=lambda: results.append(run_command(["sh", "-c", "exit 4"], ledger=tmp_path / "ledger"))
    )
    work.start()
    work.join(60)
    assert [r.exit_code for r in results] == [4]


def test_a_run_inside_a_run_is_its_part(tmp_path):
    inner = [PYTHON, "-c", WRAP, str(tmp_path / "inner"), "true"]
    assert wrap(tmp_path, *inner).returncode == 0
    (part,) = runs(tmp_path / "inner")
    assert part.parent_run_id == only_run(tmp_path).run_id


COUNTING = """
import signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda n, f: seen.append(n))
print("up", flush=True)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    time.sleep(0.05)
print("seen", len(seen), flush=True)
"""


def test_a_terminals_interrupt_reaches_the_command_once(tmp_path):
    """Ctrl-C goes to the whole foreground group: forwarding it would double it."""
    ours, theirs = pty.openpty()
    process = start(
        tmp_path,
        PYTHON,
        "-c",
        COUNTING,
        stdin=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.write(ours, b"\x03")
    out, _ = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (out, process.returncode) == ("seen 1\n", 0)


def test_a_signal_while_the_run_is_sealed_does_not_lose_it(tmp_path):
    process = start(tmp_path, "sh", "-c", "trap 'exit 55' TERM; echo up; while :; do sleep 0.02; done")
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    # Once the run is recorded a signal may end the wrapper as it ends any process.
    assert process.returncode in (55, -signal.SIGTERM)
    assert (only_run(tmp_path).status, only_run(tmp_path).exit_code) == ("failed", 55)


def test_a_signal_the_command_may_not_be_sent_does_not_end_the_wrapper(tmp_path):
    if os.getuid() != 0:
        pytest.skip("needs root to run a command of another user")
    # The wrapper without its rights, the command with them: as with sudo.
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom carbonlens.instrument import child\n"
        "read, write = os.pipe()\n"
        "with child.held_signals() as held:\n"
        "    pid = child._spawn(['sh', '-c', 'echo up; sleep 0.6; exit 9'], dict(os.environ), frozenset())\n"
        "    os.setresuid(65534, 65534, 65534)\n"
        "    os.kill(os.getpid(), 15)\n"
        "    status = child._wait(pid, held.waited_for, frozenset())\n"
        "print(os.waitstatus_to_exitcode(status))\n"
    )
    done = python(code, tmp_path)
    assert done.stdout.split() == ["up", "9"], done.stderr
