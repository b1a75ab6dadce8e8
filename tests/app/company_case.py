"""The illustrative company of ``fixtures/company`` as a ledger, with its inventory and factors."""

from __future__ import annotations

from pathlib import Path

from carbonlens.app.importing import import_files
from carbonlens.app.importing_placing import Said, placing_of
from scripts.write_company import TABLES, write

NOW_US = 1_800_000_000_000_000
"""After all of its quarters."""


def make(folder: Path, begin: str = "") -> dict[str, object]:
    """Write the company into a folder, and return where it lies, as the use cases take it.

    Args:
        folder: Made if need be.
        begin: First day of the runs that are imported, ``2026-07-01``; all when empty.
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
    return {"ledger": ledger, "inventory": folder / "inventory", "factors": folder / "factors.csv"}
