"""How long reports take, cold and warm, and how much memory; printed with what eats the time.

``make bench``, or ``python -m tests.bench.bench_reports [RUNS ...]`` for the report of a quarter alone. On
2 shared cores the processor's time is the figure to trust; the load stands beside it.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from carbonlens.render import worker
from carbonlens.render.worker import Worker
from tests.bench.bench_reports_ledger import PERIOD, make
from tests.render.pages import view

pytestmark = pytest.mark.bench
PDF = "carbonlens.render.pdf:render_pdf"
ONE = ("business-case",)

RUNS = (10_000, 1_000_000)
"""Runs of the quarter that is reported."""

_LOOK_S = 0.02
_COLD = """
from carbonlens.app.report import report
from tests.reporting.comparisons import comparison
import sys
from pathlib import Path
report(comparison(), sections=["business-case"], formats=["pdf"], out_dir=Path(sys.argv[1]))
"""


def used(pid: int) -> tuple[float, float]:
    """Processor time in seconds and the most memory in MB of a process so far."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    most = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return (int(parts[11]) + int(parts[12])) / 100, int(most[1]) / 1024


def resident(root: int) -> dict[int, float]:
    """Return the memory in MB that a process and those it started have now, by id."""
    held: dict[int, float] = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            tasks = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
            for task in tasks:
                waiting += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except (OSError, IndexError):
            continue  # it ended meanwhile
        held[pid] = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return held


def quarter(folder: Path) -> None:
    """Report a quarter as a user does, on two processors, and print what that took."""
    asked = ["report", "sustainability", "--period", PERIOD, "--format", "pdf", "-o", str(folder / "out")]
    for name in ("ledger", "inventory"):
        asked += [f"--{name}", str(folder / name)]
    asked += ["--factors", str(folder / "factors.csv")]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(
        ["taskset", "-c", "0,1", sys.executable, "-m", "carbonlens.cli.main", *asked],
        stdout=subprocess.DEVNULL,
    )
    most: dict[int, float] = {}
    together = 0.0
    while process.poll() is None:
        now = resident(process.pid)
        together = max(together, sum(now.values()))
        most = {pid: max(mb, most.get(pid, 0.0)) for pid, mb in (most | now).items()}
        time.sleep(_LOOK_S)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    each = ", ".join(f"{mb:.0f}" for mb in sorted(most.values(), reverse=True) if mb > 150)
    print(
        f"{wall:.2f} s, {cpu:.2f} s CPU; {together:.0f} MB of all processes at once ({each} MB the largest); "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    assert process.returncode == 0
    assert (folder / "out" / f"sustainability-{PERIOD}.pdf").stat().st_size > 100_000


@pytest.mark.parametrize("runs", RUNS)
def test_quarter(tmp_path, runs):
    make(tmp_path / "company", runs)
    print(f"\nquarter's PDF over {runs} synthetic runs, a new process: ", end="")
    quarter(tmp_path / "company")


def test_cold(tmp_path):
    took = []
    for n in range(3):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", _COLD, str(tmp_path / str(n))], check=True)
        took.append(time.perf_counter() - begun)
    print(f"\nbusiness case PDF, a new process: {min(took):.2f} s of {[round(t, 2) for t in took]}")
    assert min(took) < 30


def test_warm():
    made = Worker()
    begun = time.perf_counter()
    made.render(PDF, view("demo"), ONE)
    print(
        f"\nfirst PDF of a new renderer: {time.perf_counter() - begun:.2f} s, {used(made.pid)[0]:.2f} s CPU"
    )
    wall, cpu = [], []
    for _ in range(8):
        begun, before = time.perf_counter(), used(made.pid)[0]
        made.render(PDF, view("demo"), ONE)
        wall.append(time.perf_counter() - begun)
        cpu.append(used(made.pid)[0] - before)
    print(f"warm: {min(wall):.2f} s ({min(cpu):.2f} s CPU), {used(made.pid)[1]:.0f} MB at most")
    made.close()
    assert min(cpu) < 5
    assert worker.HEAD.size == 9


def test_what_eats_the_time():
    from carbonlens.render.charts import draw
    from carbonlens.render.html import compose
    from carbonlens.render.pdf import paper, warm_up, written

    warm_up()
    charts = draw(view("demo"), sections=ONE, narrow=False)
    page = compose(view("demo"), ONE, medium="paper", charts=charts)
    document = paper(page)
    parts = {
        "charts": lambda: draw(view("demo"), sections=ONE, narrow=False),
        "page and its check": lambda: compose(view("demo"), ONE, medium="paper", charts=charts),
        "layout": lambda: paper(page),
        "writing": lambda: written(paper(page), page, (), None),
    }
    print()
    for name, part in parts.items():
        spent = []
        for _ in range(5):
            before = time.process_time()
            part()
            spent.append(time.process_time() - before)
        print(f"{name:<20} {min(spent):.3f} s CPU")
    assert document.pages


if __name__ == "__main__":
    for count in [int(word) for word in sys.argv[1:]] or RUNS:
        with tempfile.TemporaryDirectory() as name:
            make(Path(name) / "company", count)
            print(f"quarter's PDF over {count} synthetic runs: ", end="", flush=True)
            quarter(Path(name) / "company")
