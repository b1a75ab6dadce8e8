"""How long a report takes, cold and warm, and how much memory; printed with what eats the time.

``make bench``. On 2 shared cores the processor's time is the figure to trust.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbonlens.render import worker
from carbonlens.render.worker import Worker
from tests.render.pages import view

pytestmark = pytest.mark.bench
PDF = "carbonlens.render.pdf:render_pdf"
ONE = ("business-case",)

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
