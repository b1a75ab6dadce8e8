"""How an inventory is printed: a table of its files, then what is wrong with it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from carbonlens.accounting.deliveries import Coverage
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.inventory.faults import Fault
from carbonlens.inventory.folder import FileRead, Loaded

SCHEMA = "carbonlens/inventory/1"
_MOST_FAULTS = 10
_MOST_FINDINGS = 6
_NAME_WIDTH = 40


def print_as_json(loaded: Loaded, came: Coverage | None) -> None:
    """Print every file, fault and Finding.

    Args:
        loaded: What was read.
        came: What of the expected deliveries came; ``None`` where it was not asked.
    """
    inventory = loaded.inventory
    findings = () if inventory is None else inventory.findings
    faults, found = _counts(loaded)
    output.print_json(
        {
            "schema": SCHEMA,
            "folder": str(loaded.folder),
            "example": inventory is not None and inventory.terms.example,
            "files": [
                {
                    "file": f.name,
                    "kind": f.kind,
                    "rows": f.rows,
                    "faults": faults[f.name],
                    "findings": found[f.name],
                }
                for f in loaded.files
            ],
            "faults": [
                {"file": f.file, "line": f.line or None, "message": f.what, "mend": f.mend}
                for f in loaded.faults
            ],
            "findings": [*findings, *(() if came is None else came.findings)],
            "deliveries": _deliveries(came),
        }
    )


def print_as_text(loaded: Loaded, came: Coverage | None) -> None:
    """Print the table, what it comes to, then faults or the worst Findings; arguments as above."""
    faults, found = _counts(loaded)
    rows = [_row(f, faults[f.name], found[f.name]) for f in loaded.files]
    for line in output.table(["file", "rows", "findings", "faults"], rows):
        output.say(line)
    for line in _wrapped(_summary(loaded)):
        output.say(line)
    if loaded.inventory is not None and loaded.inventory.terms.example:
        output.say("This is an example: its figures are invented.")
    if came is not None:
        output.say(f"Deliveries: {came.line}.")
    _print_faults(loaded.faults)
    findings = () if loaded.inventory is None else loaded.inventory.findings
    output.print_findings([*findings, *(() if came is None else came.findings)], most=_MOST_FINDINGS)


def print_example(folder: Path, names: Sequence[str], *, json: bool) -> None:
    """Print what was written.

    Args:
        folder: Where.
        names: Of the files.
        json: Whether as JSON.
    """
    if json:
        output.print_json({"schema": "carbonlens/inventory-init/1", "folder": str(folder), "files": names})
        return
    output.say(f"saved {counted(len(names), 'file')} of an invented company in {folder}")
    output.say(f"Replace its figures with your own, then: carbonlens inventory check {folder}")


def _row(file: FileRead, faults: int, findings: int) -> list[str]:
    rows = "not read" if file.kind is None else str(file.rows)
    return [output.clip(file.name, _NAME_WIDTH), rows, str(findings or "-"), str(faults or "-")]


def _counts(loaded: Loaded) -> tuple[Counter[str], Counter[str]]:
    """Return faults and Findings by file."""
    findings = () if loaded.inventory is None else loaded.inventory.findings
    return Counter(f.file for f in loaded.faults), Counter(f.file or "" for f in findings)


def _summary(loaded: Loaded) -> str:
    inventory = loaded.inventory
    if inventory is None:
        return f"{counted(len(loaded.faults), 'fault')} to mend before the inventory can be used."
    parts = (
        counted(len(inventory.sites), "site"),
        counted(len(inventory.meters), "meter"),
        counted(len(inventory.readings), "reading"),
        counted(len(inventory.certificates), "certificate"),
        counted(len(inventory.assets), "asset"),
    )
    return f"Well-formed, {counted(len(inventory.findings), 'finding')}: {', '.join(parts)}."


def _print_faults(faults: Sequence[Fault]) -> None:
    for fault in faults[:_MOST_FAULTS]:
        for line in _wrapped(output.clean(str(fault))):
            output.note(line)
    if len(faults) > _MOST_FAULTS:
        output.note(f"... and {counted(len(faults) - _MOST_FAULTS, 'more fault')} (--json lists all)")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, output.width(), subsequent_indent="  ", break_long_words=False)


def _deliveries(came: Coverage | None) -> dict[str, Any] | None:
    if came is None:
        return None
    return {"expected": came.expected, "came": came.came, "share": came.share}
