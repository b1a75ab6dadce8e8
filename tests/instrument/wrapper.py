"""A wrapper process as ``carbonlens run`` is: it ends as the command did."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.metering.processes import clean_environment, runs

WRAP = """
import os, signal, sys
from carbonlens.instrument.command import run_command
from pathlib import Path
result = run_command(sys.argv[2:], ledger=Path(sys.argv[1]), step="s", unit="file", units=4)
if result.message:
    print(result.message, file=sys.stderr)
if result.signal is not None:
    if result.signal != signal.SIGKILL:
        signal.signal(result.signal, signal.SIG_DFL)
    os.kill(os.getpid(), result.signal)
sys.exit(result.exit_code)
"""


def wrap(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the wrapper to its end."""
    return subprocess.run(
        [sys.executable, "-c", WRAP, str(folder / "ledger"), *command],
        cwd=folder,
        env=clean_environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        input="what stdin says\n",
    )


def start(folder: Path, *command: str, **options) -> subprocess.Popen[str]:
    """Start a command in the wrapper and wait for the first line it prints."""
    # Under nohup these would be ignored, which the wrapper rightly passes on.
    options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    process = subprocess.Popen(
        [sys.executable, "-c", WRAP, str(folder / "ledger"), *command],
        cwd=folder,
        env=clean_environment(folder),
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def only_run(folder: Path):
    """Return the one record of the folder's ledger."""
    (run,) = runs(folder / "ledger")
    return run


def is_alive(pid: int) -> bool:
    """Tell whether a process lives (a zombie does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition, seconds: float = 60.0) -> None:
    """Wait for a condition, or fail."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def kill_if_alive(pid: int) -> None:
    """End a process that the test started."""
    if is_alive(pid):
        os.kill(pid, signal.SIGKILL)
