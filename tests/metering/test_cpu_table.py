"""The table of watts a thread is what its own rules make of the published results."""

import csv
import math
import re
import statistics
from collections import defaultdict
from pathlib import Path

import pytest
from scipy.special import stdtrit

from carbonlens.domain.units import Z_95
from carbonlens.metering.cpu_table import DEFAULT, ROWS

SOURCE = Path(__file__).parents[3] / "shared" / "sources" / "ccf-coefficients" / "SPECpower-2026-03-09.csv"


def number(row, column):
    return float(row[column].replace(",", ""))


def consistent(row):
    threads, cores = number(row, "Total Threads"), number(row, "# Cores")
    return threads == cores * number(row, "# Threads Per Core") and cores == number(row, "Chips") * number(
        row, "# Cores Per Chip"
    )


def family_of(name):
    return next((r.family for r in ROWS if re.search(r.pattern, name)), None)


def prediction_sigma(logs):
    n = len(logs)
    return statistics.stdev(logs) * math.sqrt(1 + 1 / n) * stdtrit(n - 1, 0.975) / Z_95


@pytest.mark.skipif(not SOURCE.exists(), reason="../shared/sources is not here")
def test_each_row_is_computed_from_the_published_results():
    full, idle = defaultdict(list), defaultdict(list)
    with SOURCE.open(encoding="utf-8") as stream:
        rows = [r for r in csv.DictReader(stream) if consistent(r)]
    assert len(rows) == 1074
    for row in rows:
        family = family_of(row["CPU Description"])
        threads = number(row, "Total Threads")
        full[family].append(math.log(number(row, "avg. watts @ 100%") / threads))
        idle[family].append(math.log(number(row, "avg. watts @ active idle") / threads))
    for row in ROWS:
        assert row.n == len(full[row.family]), row.family
        assert row.full_w == pytest.approx(math.exp(statistics.fmean(full[row.family])), abs=6e-4)
        assert row.idle_w == pytest.approx(math.exp(statistics.fmean(idle[row.family])), abs=6e-4)
        assert row.spread == pytest.approx(prediction_sigma(full[row.family]), abs=6e-4), row.family
    within = statistics.fmean(statistics.variance(full[r.family]) for r in ROWS)
    logs = [math.log(r.full_w) for r in ROWS]
    sigma = math.sqrt(statistics.variance(logs) * (1 + 1 / len(logs)) + within)
    assert DEFAULT.spread == pytest.approx(sigma * stdtrit(len(logs) - 1, 0.975) / Z_95, abs=1e-3)


def test_the_class_default_counts_each_family_once():
    assert DEFAULT.n == sum(r.n for r in ROWS)
    assert DEFAULT.full_w == pytest.approx(
        math.exp(statistics.fmean(math.log(r.full_w) for r in ROWS)), abs=2e-3
    )
    assert DEFAULT.idle_w == pytest.approx(
        math.exp(statistics.fmean(math.log(r.idle_w) for r in ROWS)), abs=2e-3
    )
    assert DEFAULT.spread > statistics.median(r.spread for r in ROWS)


def test_rows_are_plausible_and_distinct():
    assert len({r.family for r in ROWS}) == len(ROWS) == 31
    for row in ROWS:
        assert 0 < row.idle_w < row.full_w
        assert row.n >= 3
        assert row.spread > 0
