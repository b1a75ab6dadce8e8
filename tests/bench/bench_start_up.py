"""Start-up, printed: the import above bare Python, and the help, each as a whole process."""

import statistics
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.bench

RUNS = 21


def median_ms(*command: str) -> float:
    """Return the median wall time of a command."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def test_print_start_up():
    bare = median_ms(sys.executable, "-c", "pass")
    package = median_ms(sys.executable, "-c", "import carbonlens")
    tracking = median_ms(sys.executable, "-c", "import carbonlens; carbonlens.track")
    help_ = median_ms(sys.executable, "-m", "carbonlens.cli.main", "--help")
    print(f"\nbare python                 {bare:7.1f} ms")
    print(f"import carbonlens           {package - bare:+7.1f} ms (target: at most +60)")
    print(f"import carbonlens; .track   {tracking - bare:+7.1f} ms")
    print(f"carbonlens --help           {help_:7.1f} ms (target: at most 150)")
