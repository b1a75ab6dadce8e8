"""The illustrative company of ``fixtures/company`` as a ledger, with its inventory and factors."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import msgspec

from carbonlens.app.importing import import_files
from carbonlens.app.importing_placing import Said, placing_of
from carbonlens.app.ledger_care import close, supersede
from carbonlens.app.restatement import restate
from carbonlens.app.statement import make_statement
from carbonlens.reporting.statement_json import statement_json
from scripts.write_company import CORRECTION_WHY, TABLES, write

NOW_US = 1_800_000_000_000_000
"""After all of its quarters."""

CLOSED = "2025Q3"
RESTATED = "2025"
"""The quarter that was closed before records of it were corrected, and the base year, restated for it."""


def make(folder: Path, begin: str = "") -> dict[str, Path]:
    """Write the company into a folder, and return where it lies, as the use cases take it.

    Args:
        folder: Made if need be.
        begin: First day of the runs that are imported, ``2026-07-01``, without bill, close and
            restatement; the whole company when empty.
    """
    write(folder)
    ledger = folder / "ledger"
    for name, (tags, _) in TABLES.items():
        table = folder / f"{name}.csv"
        head, *rows = table.read_text("utf-8").splitlines()
        start = head.split(",").index("start_utc")
        kept = [row for row in rows if row.split(",")[start] >= begin]
        table.write_text("\n".join([head, *kept]) + "\n", "utf-8")
        if kept:
            import_files([table], ledger=ledger, placing=placing_of(Said(tags=tags)))
    if not begin:
        billed = import_files([folder / "bill.csv"], ledger=ledger, site="dublin").totals
        assert billed.rows_rejected == 0
        _close_and_correct(folder)
    return {"ledger": ledger, "inventory": folder / "inventory", "factors": folder / "factors.csv"}


def _close_and_correct(folder: Path) -> None:
    """Close a quarter, print the base year, correct records of the quarter, and restate the year."""
    ledger, inventory, factors = folder / "ledger", folder / "inventory", folder / "factors.csv"
    with _at("2025-10-20"), patch.dict(os.environ, {"CARBONLENS_FACTORS": str(factors)}):
        close(CLOSED, ledger=ledger, by="controller", inventory=inventory)
    with _at("2026-01-20"):
        options = {"ledger": ledger, "inventory": inventory, "factors": factors}
        printed = make_statement(RESTATED, **options).statement
        before = folder / "statement-2025.json"
        before.write_bytes(msgspec.json.encode(statement_json(printed)))
    with _at("2026-08-12"):
        for row in csv.DictReader((folder / "corrections.csv").read_text("utf-8").splitlines()):
            supersede(row["run_id"], {"energy_j": row["energy_j"]}, why=CORRECTION_WHY, ledger=ledger)
        restate_year(folder)


def restate_year(folder: Path, *, keep: bool = True):
    """Restate the base year from what was printed of it."""
    places = {"ledger": folder / "ledger", "inventory": folder / "inventory"}
    old, new = str(folder / "statement-2025.json"), str(folder / "factors.csv")
    said = {"reason": "error", "why": CORRECTION_WHY, "by": "controller"}
    return restate(RESTATED, old, new, keep=keep, **said, **places)


@contextmanager
def _at(day: str) -> Iterator[None]:
    """Set the clock to noon of a day, UTC."""
    noon = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC)
    with patch("time.time_ns", lambda: int(noon.timestamp()) * 10**9):
        yield
