"""The two illustrative quarters of ``fixtures/quarters`` as a ledger, and their sums in plain floats."""

from __future__ import annotations

import csv
from pathlib import Path

from carbonlens.app.importing import import_files
from carbonlens.app.importing_placing import Said, placing_of

FIXTURE = Path(__file__).parents[2] / "fixtures" / "quarters"
NOW_US = 1_800_000_000_000_000
"""After both quarters."""


def write(folder: Path) -> Path:
    """Import both run tables into ``folder/ledger`` and return it."""
    ledger = folder / "ledger"
    for service in ("serving", "ranking"):
        placing = placing_of(Said(tags={"service": service}))
        import_files([FIXTURE / f"{service}.csv"], ledger=ledger, placing=placing)
    return ledger


def given(ledger: Path) -> dict[str, object]:
    """Return where the quarters lie, as the use cases take it."""
    return {
        "ledger": ledger,
        "inventory": FIXTURE / "inventory",
        "factors": FIXTURE / "factors.csv",
        "now_us": NOW_US,
    }


def rows() -> list[dict[str, str]]:
    """Return all rows of both tables, with their quarter."""
    found = []
    for service in ("serving", "ranking"):
        with (FIXTURE / f"{service}.csv").open(encoding="utf-8") as file:
            found += list(csv.DictReader(file))
    for row in found:
        row["quarter"] = "2026Q2" if row["start_utc"] < "2026-07-01" else "2026Q3"
    return found


def pue(row: dict[str, str]) -> float:
    """Return the PUE of a row's site and month, as the factor table states it."""
    with (FIXTURE / "factors.csv").open(encoding="utf-8") as file:
        held = {(r["kind"], r["subject"], r["period"]): float(r["value"]) for r in csv.DictReader(file)}
    return held["pue", row["site"], row["start_utc"][:7]]


def it_kwh(quarter: str, **wanted: str) -> float:
    """Return IT energy of a quarter's rows that have these values."""
    return sum(
        float(r["energy_j"]) / 3.6e6
        for r in rows()
        if r["quarter"] == quarter and all(r[k] == v for k, v in wanted.items())
    )


def units(quarter: str, **wanted: str) -> float:
    """Return the work of a quarter's rows that have these values."""
    return sum(
        float(r["units"] or 0)
        for r in rows()
        if r["quarter"] == quarter and all(r[k] == v for k, v in wanted.items())
    )
