"""The table of watts a thread is what its own rules make of the published results."""

import csv
import importlib.util
import math
import re
import statistics
from collections import defaultdict
from pathlib import Path

import pytest
from scipy.special import stdtrit

from carbonlens.domain.units import Z_95
from carbonlens.metering.cpu_names import TdpTable
from carbonlens.metering.cpu_table import DEFAULT, ROWS, WALL_FULL, WALL_IDLE

SOURCE = Path(__file__).parents[3] / "shared" / "sources" / "ccf-coefficients" / "SPECpower-2026-03-09.csv"


def tdp_file():
    """Codecarbon's table as a file, found without importing codecarbon."""
    spec = importlib.util.find_spec("codecarbon")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "data" / "hardware" / "cpu_power.csv"
    return path if path.exists() else None


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


def over_families(logs, families):
    """Rule 5: geometric mean over families, and one sigma for one more server."""
    means = [statistics.fmean(logs[f]) for f in families]
    within = statistics.fmean(statistics.variance(logs[f]) for f in families)
    sigma = math.sqrt(statistics.variance(means) * (1 + 1 / len(means)) + within)
    return math.exp(statistics.fmean(means)), sigma * stdtrit(len(means) - 1, 0.975) / Z_95


def published():
    with SOURCE.open(encoding="utf-8") as stream:
        return [r for r in csv.DictReader(stream) if consistent(r)]


@pytest.mark.skipif(not SOURCE.exists(), reason="../shared/sources is not here")
@pytest.mark.skipif(tdp_file() is None, reason="codecarbon or its cpu_power.csv is not installed")
def test_the_design_powers_are_computed_from_the_published_results():
    with tdp_file().open(encoding="utf-8", newline="") as stream:
        table = TdpTable((r["Name"], r["TDP"]) for r in csv.DictReader(stream))
    tdp, full, idle = defaultdict(list), defaultdict(list), defaultdict(list)
    for row in published():
        family, found = family_of(row["CPU Description"]), table.look_up(row["CPU Description"])
        if family is None or found is None:
            continue
        watts = found[0] * number(row, "Chips")
        tdp[family].append(math.log(watts / number(row, "Total Threads")))
        full[family].append(math.log(number(row, "avg. watts @ 100%") / watts))
        idle[family].append(math.log(number(row, "avg. watts @ active idle") / watts))
    for row in ROWS:
        logs = tdp[row.family]
        if len(logs) < 3:
            assert (row.tdp_w, row.tdp_n) == (None, 0), row.family
            continue
        assert row.tdp_n == len(logs), row.family
        assert row.tdp_w == pytest.approx(math.exp(statistics.fmean(logs)), abs=6e-4)
        assert row.tdp_spread == pytest.approx(prediction_sigma(logs), abs=6e-4), row.family
    known = [r.family for r in ROWS if r.tdp_w is not None]
    assert (len(known), DEFAULT.tdp_n) == (29, sum(len(tdp[f]) for f in known))
    assert (DEFAULT.tdp_w, DEFAULT.tdp_spread) == pytest.approx(over_families(tdp, known), abs=6e-4)
    assert pytest.approx(over_families(idle, known), abs=6e-4) == WALL_IDLE
    assert pytest.approx(over_families(full, known), abs=6e-4) == WALL_FULL


@pytest.mark.skipif(not SOURCE.exists(), reason="../shared/sources is not here")
def test_each_row_is_computed_from_the_published_results():
    full, idle = defaultdict(list), defaultdict(list)
    rows = published()
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
