#!/usr/bin/env python3
"""Write fixtures/quarters: two invented quarters of a ledger, with their inventory and factors.

Every figure is invented, for examples and tests; a real ledger has nothing of it.

python -m scripts.write_quarters [FOLDER]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).resolve().parents[1] / "fixtures" / "quarters"
_BEGIN: Final = datetime(2026, 4, 1, tzinfo=UTC)
_DAYS: Final = (91, 92)
_EVERY: Final = 2
"""Days between runs: a run holds the work of two days."""


class _Work(NamedTuple):
    """One class of work at one site: thousands of units and joules a unit, in both quarters."""

    name: str
    unit: str
    site: str
    hardware: str
    k_units: tuple[float, float]
    joules: tuple[float, float]


_SERVED: Final = (
    _Work("chat", "token", "berlin", "gpu-node", (42_000, 50_000), (0.90, 0.68)),
    _Work("summarise", "token", "berlin", "gpu-node", (14_000, 15_000), (1.40, 1.38)),
    _Work("summarise", "token", "paris", "gpu-node", (4_000, 12_000), (1.40, 1.39)),
    _Work("translate", "token", "berlin", "gpu-node", (3_000, 0), (1.10, 0)),
)
_RANKED: Final = (
    _Work("rank", "request", "berlin", "cpu-node", (700, 680), (24.0, 24.2)),
    _Work("guard", "request", "paris", "cpu-node", (0, 260), (0, 9.0)),
    _Work("retrain", "", "berlin", "gpu-node", (0, 0), (5.2e6, 6.4e6)),
)

RUN_COLUMNS: Final = (
    *("run_id", "study", "step", "role", "start_utc", "duration_s", "energy_j", "energy_grade"),
    *("boundary", "units", "unit", "workload", "hardware", "host", "site"),
)
_SITES: Final = """# Illustrative: invented for examples and tests.

[[site]]
id = "berlin"
kind = "own"
entity = "Example AG"
zone = "DE"
market = "DE"

[[site]]
id = "paris"
kind = "own"
entity = "Example AG"
zone = "FR"
market = "FR"
"""
_REPORTING: Final = """# Illustrative: invented for examples and tests.
entity = "Example AG"
timezone = "UTC"
currency = "EUR"
example = true
"""
_INITIATIVES: Final = """# Illustrative: invented for examples and tests. Claimed amounts are a year's.

[[initiative]]
id = "int8-chat"
title = "Serve chat in int8"
owner = "serving"
start = 2026-07-01
tags = { service = "serving", workload = "chat" }
claimed = { energy_kwh = 1450, emissions_location_kg = 520, money = { amount = 350, currency = "EUR" } }

[[initiative]]
id = "short-summaries"
title = "Shorter prompts for summaries"
owner = "serving"
start = 2026-07-01
tags = { service = "serving", workload = "summarise" }
claimed = { energy_kwh = 200 }

[[initiative]]
id = "rank-cache"
title = "Cache the ranking of repeated requests"
owner = "ranking"
start = 2026-07-01
tags = { service = "ranking", workload = "rank" }
claimed = { energy_kwh = 8 }
"""
FACTOR_COLUMNS: Final = (
    *("factor_id", "kind", "subject", "name", "period", "value", "method", "averaging", "span", "flow"),
    *("u_relative", "source", "address", "licence", "vintage"),
)
_GRID: Final = {
    "DE": ("Germany", "grid", (0.380, 0.372, 0.366, 0.352, 0.345, 0.350), 0.03),
    "FR": ("France", "grid", (0.052, 0.049, 0.047, 0.045, 0.044, 0.046), 0.03),
}
_RESIDUAL: Final = {"DE": ("Germany", 0.62), "FR": ("France", 0.06)}
_PUE: Final = {"berlin": (1.42, 1.34), "paris": (1.25, 1.25)}
_PRICES: Final = {"berlin": ("0.2210", "0.2430"), "paris": ("0.1720", "0.1720")}
_SOURCE: Final = "Invented for this example"


def rows(works: tuple[_Work, ...]) -> Iterator[str]:
    """Yield a run table: its head, and a run of each class of work every other day."""
    yield ",".join(RUN_COLUMNS)
    for day in range(0, sum(_DAYS), _EVERY):
        quarter = int(day >= _DAYS[0])
        for number, work in enumerate(works):
            # One after the other: runs that overlap on a host would share its energy.
            start = _BEGIN + timedelta(days=day, hours=2 + 3 * number + (10 if work.unit == "" else 0))
            # Neither regular nor random: the same each time this is written.
            sway = 0.04 * math.sin(day * 1.7 + number) + 0.03 * math.sin(day * 0.37 + 2 * number)
            busy = 1 + 0.15 * math.sin(day * 0.9 + number)
            units = round(work.k_units[quarter] * 1000 * busy * _EVERY)
            per = work.joules[quarter] * (1 + sway)
            energy = units * per if work.unit else per * busy * _EVERY * 10
            if energy == 0:
                continue
            run_id = f"{work.name}-{work.site}-{start:%m%d}"
            role = "serving" if work.unit else "effort"
            cells = [
                run_id,
                "production",
                "live",
                role,
                f"{start:%Y-%m-%dT%H:%M:%SZ}",
                "3600",
                f"{energy:.0f}",
            ]
            cells += ["B", "it", str(units) if work.unit else "", work.unit, work.name, work.hardware]
            yield ",".join([*cells, f"{work.site}-{work.hardware}", work.site])


def factors() -> Iterator[str]:
    """Yield a factor table: grid by month, residual mix of the year, PUE by month."""
    yield ",".join(FACTOR_COLUMNS)
    tail = f"{_SOURCE},invented,CC0,2026"
    for zone, (name, kind, values, sigma) in _GRID.items():
        for month, value in enumerate(values, 4):
            basis = "location,average,direct,consumption"
            period = f"2026-{month:02}"
            yield f"own/{zone}-{period},{kind},{zone},{name},{period},{value},{basis},{sigma},{tail}"
    for zone, (name, value) in _RESIDUAL.items():
        basis = "residual,average,direct,consumption"
        yield f"own/{zone}-residual,grid,{zone},{name},2026,{value},{basis},0.1,{tail}"
    for site, both in _PUE.items():
        for month in range(4, 10):
            period, value = f"2026-{month:02}", both[month > 6]
            yield f"own/pue-{site}-{period},pue,{site},{site},{period},{value},,,,,0.01,{tail}"


def tariffs() -> Iterator[str]:
    """Yield the tariffs of both sites, one a quarter."""
    yield "# Illustrative: invented for examples and tests."
    spans = (("2026-04-01", "2026-07-01"), ("2026-07-01", "2026-10-01"))
    for site, both in _PRICES.items():
        for (begin, end), amount in zip(spans, both, strict=True):
            yield f"""
[[tariff]]
id = "{site}-{begin}"
site = "{site}"
currency = "EUR"
timezone = "UTC"
valid_from = {begin}
valid_to = {end}
u_relative = 0.0
source = "{_SOURCE}"

[[tariff.band]]
name = "all"
amount_per_kwh = "{amount}"
start_hour = 0
end_hour = 24"""


def write(folder: Path = FOLDER) -> None:
    """Write all files into a folder."""
    inventory = folder / "inventory"
    inventory.mkdir(parents=True, exist_ok=True)
    texts = {
        folder / "serving.csv": "\n".join(rows(_SERVED)),
        folder / "ranking.csv": "\n".join(rows(_RANKED)),
        folder / "factors.csv": "\n".join(factors()),
        inventory / "sites.toml": _SITES,
        inventory / "reporting.toml": _REPORTING,
        inventory / "initiatives.toml": _INITIATIVES,
        inventory / "tariffs.toml": "\n".join(tariffs()),
        folder / "README.md": _README,
    }
    for file, text in texts.items():
        file.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


_README: Final = """# Two illustrative quarters

Everything here is invented, for examples and tests: 2026Q2 and 2026Q3 of a company that serves
language models in two places. `python -m scripts.write_quarters` writes it again, byte for byte.

`serving.csv` and `ranking.csv` are plain run tables, a run every other day for each kind of work
at each site; `inventory/` declares sites, tariffs and initiatives, `factors.csv` grid factors and
PUE by month.
"""


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
