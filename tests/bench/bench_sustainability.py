"""What a quarter's report of 10,000 or a million runs costs, by part, in seconds and memory.

Run with ``python -m tests.bench.bench_sustainability [RUNS]``; prints and asserts nothing about
time. The ledger is that of ``bench_statement``: a compacted year at five sites with a factor for
every hour. The command line is run as a user does, on two processors, and so are the parts.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.bench.bench_statement import make

CPUS = {0, 1}
PERIOD = "2026Q2"

T = TypeVar("T")


def measured(words: str, call: Callable[[], T]) -> T:
    """Run a call and print what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = call()
    took = f"{time.perf_counter() - wall:.2f} s wall, {time.process_time() - cpu:.2f} s CPU"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{words}: {took}, {memory:.0f} MiB so far", flush=True)
    return made


def parts(folder: Path) -> None:
    """Print what gathering, the view, and each format take, all in this process."""
    import msgspec

    from carbonlens.app.sustainability import gather
    from carbonlens.app.sustainability_enclosed import enclosed
    from carbonlens.app.sustainability_report import material, rendered, shape_of
    from carbonlens.render.blocks import render_document_pdf

    held = {n: folder / n for n in ("inventory", "ledger")}
    found = measured("gather", lambda: gather(PERIOD, factors=folder / "factors.csv", **held))
    given = measured("view", lambda: material(found))
    view = given.view
    print(f"{len(view.figures)} figures, {len(view.plots)} charts, {found.given.runs} runs")
    files = measured("attachments", lambda: enclosed(msgspec.json.encode(shape_of(given)), found))
    for file in files:
        print(f"  {file.name} {len(file.content) / 1e6:.2f} MB")
    content = measured("pdf", lambda: render_document_pdf(view, enclosed=files))
    print(f"  {len(content) / 1e6:.2f} MB")
    for name in ("xlsx", "md", "json"):
        measured(name, lambda name=name: rendered(given, name))


def command(folder: Path) -> None:
    """Print what the command takes for a PDF, its renderer's memory too."""
    wall = time.perf_counter()
    asked = ["report", "sustainability", "--period", PERIOD, "--format", "pdf", "-o", str(folder / "out")]
    asked += ["--ledger", str(folder / "ledger"), "--inventory", str(folder / "inventory")]
    asked += ["--factors", str(folder / "factors.csv")]
    subprocess.run([sys.executable, "-m", "carbonlens.cli.main", *asked], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"command: {time.perf_counter() - wall:.2f} s wall, {used.ru_utime + used.ru_stime:.2f} s CPU, "
        f"largest process {used.ru_maxrss / 1024:.0f} MiB"
    )


def main() -> None:
    """Make a ledger and measure the command, then its parts in a process of its own."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    os.sched_setaffinity(0, CPUS & os.sched_getaffinity(0) or os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), runs)
        command(Path(name))
        code = "import sys, pathlib; from tests.bench.bench_sustainability import parts; "
        subprocess.run([sys.executable, "-c", f"{code}parts(pathlib.Path(sys.argv[1]))", name], check=True)


if __name__ == "__main__":
    main()
