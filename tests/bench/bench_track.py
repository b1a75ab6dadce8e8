"""What measuring costs: imports, start and stop of ``track()``, the sampler, a wrapped command.

Run with ``python -m tests.bench.bench_track``; prints a table and asserts nothing.
Disk syncs are shown apart: they are the storage's time, and the ledger's promise.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROUNDS = 15


def median_ms(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median wall time of some work in milliseconds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def python_ms(code: str) -> float:
    """Return the median time of a fresh interpreter that runs the code."""
    return median_ms(lambda: subprocess.run([sys.executable, "-c", code], check=True))


def imports() -> None:
    """Print import times above bare Python."""
    bare = python_ms("pass")
    print(f"{'bare Python':44}{bare:8.1f} ms")
    for code in ("import carbonlens", "import msgspec", "import carbonlens.instrument.track"):
        print(f"{code + ' (above bare)':44}{python_ms(code) - bare:8.1f} ms")


def start_and_stop(folder: Path) -> None:
    """Print what a block costs in wall and CPU time, and the share of disk syncs."""
    from carbonlens import track

    syncs: list[float] = []
    real = os.fsync

    def timed(handle: int) -> None:
        begin = time.perf_counter()
        real(handle)
        syncs.append(time.perf_counter() - begin)

    os.fsync = timed
    starts, stops, disks, cpus = [], [], [], []
    for _ in range(100):
        syncs.clear()
        cpu = time.process_time()
        begin = time.perf_counter()
        with track("bench", ledger=folder):
            inside = time.perf_counter()
        end = time.perf_counter()
        cpus.append(time.process_time() - cpu)
        stops_at = end - inside
        # The block's own time is a clock reading: what remains is start and stop.
        starts.append(inside - begin)
        stops.append(stops_at)
        disks.append(sum(syncs))
    os.fsync = real
    both = [a + b for a, b in zip(starts, stops, strict=True)]
    own = [t - d for t, d in zip(both, disks, strict=True)]
    for name, values in (
        ("track() start", starts),
        ("track() stop, disk syncs included", stops),
        ("  of it disk syncs (2 a record)", disks),
        ("track() start + stop without syncs [<= 5]", own),
        ("track() start + stop, CPU time", cpus),
    ):
        print(f"{name:44}{statistics.median(values) * 1e3:8.2f} ms   worst {max(values) * 1e3:.2f}")


def allowed() -> None:
    """Print what it costs to read what the work may use, once a run."""
    from carbonlens.metering.allowance import allowance

    begin = time.perf_counter()
    allowance()
    first = (time.perf_counter() - begin) * 1e3
    usual = median_ms(allowance, 500)
    print(f"{'limits of CPU and memory [<= 0.3]':44}{usual:8.2f} ms   first {first:.2f}")


def sampling(folder: Path) -> None:
    """Print what the sampler uses of one core while the program sleeps."""
    from carbonlens import track

    begin = time.process_time()
    with track("idle", ledger=folder):
        time.sleep(10)
    used = time.process_time() - begin
    print(
        f"{'CPU over 10 s of sleep, start and stop in it':44}{used * 1e3:8.2f} ms   {used / 10:.2%} of a core"
    )


def command(folder: Path) -> None:
    """Print what the wrapper adds to a command."""
    wrap = (
        "import sys\nfrom pathlib import Path\nfrom carbonlens.app.command import run_command\n"
        "run_command(sys.argv[2:], ledger=Path(sys.argv[1]))"
    )
    bare = median_ms(lambda: subprocess.run(["true"], check=True))
    wrapped = median_ms(lambda: subprocess.run([sys.executable, "-c", wrap, str(folder), "true"], check=True))
    print(f"{'carbonlens run -- true, above true':44}{wrapped - bare:8.1f} ms")


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        ledger = Path(folder) / "ledger"
        imports()
        allowed()
        start_and_stop(ledger)
        sampling(ledger)
        command(ledger)


@pytest.mark.bench
def test_print_track(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "")  # put back afterwards: main sets a folder of its own
    main()


if __name__ == "__main__":
    main()
