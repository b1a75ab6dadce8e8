#!/usr/bin/env python3
"""Write an invented company: five quarters of runs, with inventory, meters, bills and factors.

Every figure is invented, for examples and tests; nothing of it was measured. What a person would
type by hand (``inventory/``) lies in ``fixtures/company``; the run tables, factors and bills
follow from this script alone, and are not kept in git.

python -m scripts.write_company FOLDER
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

from scripts.write_quarters import FACTOR_COLUMNS, RUN_COLUMNS

FIXTURE: Final = Path(__file__).resolve().parents[1] / "fixtures" / "company"
QUARTERS: Final = ("2025Q3", "2025Q4", "2026Q1", "2026Q2", "2026Q3")
_BEGIN: Final = datetime(2025, 7, 1, tzinfo=UTC)
_DAYS: Final = 457
_EVERY: Final = 2
"""Days between runs: a run holds the work of two days."""

_SOURCE: Final = "Invented for this example"


class _Work(NamedTuple):
    """One class of work at one site: thousands of units a day and joules a unit, by quarter."""

    name: str
    unit: str
    site: str
    hardware: str
    grade: str
    k_units: tuple[float, ...]
    joules: tuple[float, ...]


TABLES: Final = {
    "assistant": (
        {"team": "serving", "model": "assistant-8b", "service": "serving"},
        (
            _Work(
                "chat",
                "token",
                "berlin",
                "gpu-node",
                "B",
                (30e3, 34e3, 38e3, 42e3, 50e3),
                (0.94, 0.93, 0.91, 0.90, 0.68),
            ),
            _Work(
                "summarise",
                "token",
                "berlin",
                "gpu-node",
                "B",
                (11e3, 12e3, 13e3, 14e3, 15e3),
                (1.42, 1.41, 1.40, 1.40, 1.38),
            ),
            _Work(
                "summarise",
                "token",
                "paris",
                "gpu-node",
                "B",
                (0, 2e3, 3e3, 4e3, 12e3),
                (1.40, 1.40, 1.40, 1.40, 1.39),
            ),
        ),
    ),
    "translator": (
        {"team": "serving", "model": "translator-2b", "service": "serving"},
        (
            _Work(
                "translate",
                "token",
                "berlin",
                "gpu-node",
                "B",
                (4e3, 4e3, 3e3, 3e3, 0),
                (1.10, 1.10, 1.10, 1.10, 1.10),
            ),
        ),
    ),
    "ranker": (
        {"team": "ranking", "model": "ranker-2", "service": "ranking"},
        (
            _Work(
                "rank",
                "request",
                "berlin",
                "cpu-node",
                "C",
                (610, 640, 660, 700, 680),
                (24.4, 24.3, 24.2, 24.0, 24.2),
            ),
            _Work("guard", "request", "paris", "cpu-node", "D", (0, 0, 0, 0, 260), (9.0, 9.0, 9.0, 9.0, 9.0)),
        ),
    ),
    "retrain": (
        {"team": "research", "model": "assistant-8b", "service": "research"},
        (
            _Work(
                "retrain", "", "berlin", "gpu-node", "B", (0, 0, 0, 0, 0), (4.8e6, 5.0e6, 5.1e6, 5.2e6, 6.4e6)
            ),
            _Work(
                "tune", "", "dublin", "cloud-gpu", "E", (0, 0, 0, 0, 0), (0.6e6, 0.6e6, 0.7e6, 0.9e6, 0.8e6)
            ),
        ),
    ),
}
"""Run tables by name: tags of their runs, and their work."""

_GRID: Final = {"DE": ("Germany", 0.372), "FR": ("France", 0.048), "IE": ("Ireland", 0.281)}
_RESIDUAL: Final = {"DE": ("Germany", 0.62), "FR": ("France", 0.06), "IE": ("Ireland", 0.41)}
_UPSTREAM: Final = {"DE": 0.052, "FR": 0.014, "IE": 0.041}
_LOSS: Final = {"DE": 0.045, "FR": 0.062, "IE": 0.072}
_PUE: Final = {"berlin": (1.44, 1.44, 1.43, 1.42, 1.34), "paris": (1.25,) * 5, "dublin": (1.14,) * 5}
_NOT_BY_RUNS: Final = 1.03
"""What the meter of the racks counts over what the runs recorded."""


def rows(name: str) -> Iterator[str]:
    """Yield a run table: its head, and a run of each class of work every other day.

    Args:
        name: Of ``TABLES``.
    """
    yield ",".join(RUN_COLUMNS)
    for work, number, start, units, energy in _runs(name):
        cells = [_run_id(work, start), "production", "live", "serving" if work.unit else "training"]
        cells += [f"{start:%Y-%m-%dT%H:%M:%SZ}", "3600", f"{energy:.0f}", work.grade, "it"]
        cells += [str(units) if work.unit else "", work.unit, work.name, work.hardware]
        yield ",".join([*cells, f"{work.site}-{work.hardware}-{number}", work.site])


def _run_id(work: _Work, start: datetime) -> str:
    return f"{work.name}-{work.site}-{start:%y%m%d}"


def _runs(name: str) -> Iterator[tuple[_Work, int, datetime, int, float]]:
    """Yield work, its number, start, units and joules of each run of a table."""
    first = list(TABLES).index(name) * 4
    for day in range(0, _DAYS, _EVERY):
        for number, work in enumerate(TABLES[name][1], first):
            start = _BEGIN + timedelta(days=day, hours=1 + number)
            quarter = _quarter(start)
            # Neither regular nor random: the same each time this is written.
            sway = 0.04 * math.sin(day * 1.7 + number) + 0.03 * math.sin(day * 0.37 + 2 * number)
            busy = 1 + 0.15 * math.sin(day * 0.9 + number)
            units = round(work.k_units[quarter] * 1000 * busy * _EVERY)
            per = work.joules[quarter] * (1 + sway)
            energy = units * per if work.unit else per * busy * _EVERY * 10
            if energy:
                yield work, number, start, units, energy


def _quarter(at: datetime) -> int:
    return _quarter_of(f"{at:%Y-%m}")


def _quarter_of(month: str) -> int:
    return QUARTERS.index(f"{month[:4]}Q{(int(month[5:]) + 2) // 3}")


def _after(month: str) -> str:
    year, number = int(month[:4]), int(month[5:])
    return f"{year + number // 12:04}-{number % 12 + 1:02}"


_BEFORE: Final = tuple(f"2025-{month:02}" for month in range(1, 7))
"""Months of the base year before anything ran: the meter counted nothing."""


def months() -> list[str]:
    """Return the months of all quarters."""
    return [f"{i // 12:04}-{i % 12 + 1:02}" for i in range(2025 * 12 + 6, 2026 * 12 + 9)]


def factors() -> Iterator[str]:
    """Yield a factor table: grid by month, residual mix, supply, losses by year, PUE by month."""
    yield ",".join(FACTOR_COLUMNS)
    tail = f"{_SOURCE},invented,CC0,2026"
    for number, month in enumerate([*_BEFORE, *months()], -len(_BEFORE)):
        season = 1 + 0.06 * math.cos(number * math.pi / 6) - 0.004 * number
        for zone, (name, value) in _GRID.items():
            basis = "location,average,direct,consumption"
            yield f"own/{zone}-{month},grid,{zone},{name},{month},{value * season:.4f},{basis},0.03,{tail}"
        quarter = 0 if month in _BEFORE else _quarter_of(month)
        for site, values in _PUE.items():
            yield f"own/pue-{site}-{month},pue,{site},{site},{month},{values[quarter]},,,,,0.01,{tail}"
    for year in ("2025", "2026"):
        for zone, (name, value) in _RESIDUAL.items():
            basis = "residual,average,direct,consumption"
            yield f"own/{zone}-residual-{year},grid,{zone},{name},{year},{value},{basis},0.1,{tail}"
        for zone, value in _UPSTREAM.items():
            yield f"own/{zone}-supply-{year},upstream,{zone},{zone},{year},{value},,,,,0.15,{tail}"
        for zone, value in _LOSS.items():
            yield f"own/{zone}-loss-{year},transmission,{zone},{zone},{year},{value},,,,,0.1,{tail}"


def readings() -> Iterator[str]:
    """Yield what the meter of the racks in Berlin counted, by month."""
    yield "meter,start,end,energy,unit,direction,method"
    yield f"gpu-racks,{_BEFORE[0]}-01,{_BEGIN:%Y-%m-%d},0,kWh,import,actual"
    sums = dict.fromkeys(months(), 0.0)
    for name in TABLES:
        for work, _, start, _, energy in _runs(name):
            if work.site == "berlin":
                sums[f"{start:%Y-%m}"] += energy / 3.6e6
    for month, kwh in sums.items():
        yield f"gpu-racks,{month}-01,{_after(month)}-01,{kwh * _NOT_BY_RUNS:.3f},kWh,import,actual"


BILL_COLUMNS: Final = (
    *("BillingAccountId", "BillingCurrency", "BillingPeriodStart", "BillingPeriodEnd"),
    *("ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodStart", "ChargePeriodEnd"),
    *("BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "PricingQuantity", "PricingUnit"),
    *("ServiceCategory", "ServiceName", "ProviderName", "PublisherName", "InvoiceIssuerName"),
    *("InvoiceId", "RegionId", "Tags"),
)
BILL_CURRENCY: Final = "USD"
CREDIT_MONTHS: Final = ("2025-12", "2026-08")
"""Months in which the cloud gave money back: a credit, and a refund of hours that were billed twice."""

_GPU_HOURS: Final = (540, 540, 600, 620, 560)
"""Hours of the cloud's instance a month, by quarter."""

_GPU_HOUR: Final = Decimal("2.50")
_STORAGE_MONTH: Final = Decimal("85.20")
_CREDIT: Final = Decimal("-150.00")
_REFUNDED_HOURS: Final = 40


def bill() -> Iterator[str]:
    """Yield the cloud's bill of all months (FOCUS 1.2, in dollars): instance, storage, what came back."""
    yield ",".join(BILL_COLUMNS)
    for month in months():
        hours = _GPU_HOURS[_quarter_of(month)]
        usage = ("Usage", "", "Hours", "Compute", "Compute instances")
        yield _billed(month, usage, "GPU instance on demand", hours, hours * _GPU_HOUR)
        stored = ("Usage", "", "GB-Months", "Storage", "Object storage")
        yield _billed(month, stored, "Storage of checkpoints", 4260, _STORAGE_MONTH)
    first, last = CREDIT_MONTHS
    credit = ("Credit", "", "", "Other", "Credits")
    yield _billed(first, credit, "Credit for an outage", None, _CREDIT)
    refund = ("Usage", "Correction", "Hours", "Compute", "Compute instances")
    amount = -_REFUNDED_HOURS * _GPU_HOUR
    yield _billed(last, refund, "Refund of hours billed twice", -_REFUNDED_HOURS, amount)


def _billed(
    month: str, kind: tuple[str, str, str, str, str], words: str, quantity: int | None, cost: Decimal
) -> str:
    """Return a line of the bill: kind is category, class, unit, and category and name of the service."""
    category, correction, unit, service_category, service = kind
    start, end = (f"{m}-01T00:00:00Z" for m in (month, _after(month)))
    cells = ["example-account", BILL_CURRENCY, start, end, category, correction, words, start, end]
    cells += [f"{cost}"] * 4
    cells += ["" if quantity is None else str(quantity), unit, service_category, service]
    cells += ["Example Cloud"] * 3
    tags = '"{""team"": ""research"", ""workload"": ""tune""}"' if service_category == "Compute" else ""
    return ",".join([*cells, f"EX-{month}", "dublin-1", tags])


CORRECTED_MONTH: Final = "2025-08"
CORRECTED_TIMES: Final = 8
"""Devices of the node of which one was counted in that month."""

CORRECTION_WHY: Final = "one GPU of eight was counted"


def corrections() -> Iterator[str]:
    """Yield what is found in August 2026 to be wrong in August 2025: runs, and their energy."""
    yield "run_id,energy_j"
    for work, _, start, _, energy in _runs("retrain"):
        if work.site == "dublin" and f"{start:%Y-%m}" == CORRECTED_MONTH:
            yield f"{_run_id(work, start)},{round(energy) * CORRECTED_TIMES}"


def write(folder: Path) -> Path:
    """Write everything into a folder, and return it.

    Args:
        folder: Made if need be.
    """
    shutil.copytree(FIXTURE / "inventory", folder / "inventory", dirs_exist_ok=True)
    texts = {f"{name}.csv": rows(name) for name in TABLES}
    texts |= {"factors.csv": factors(), "inventory/readings.csv": readings()}
    texts |= {"bill.csv": bill(), "corrections.csv": corrections()}
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


if __name__ == "__main__":
    write(Path(sys.argv[1]))
