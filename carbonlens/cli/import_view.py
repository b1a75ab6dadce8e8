"""How an import's result is printed."""

from __future__ import annotations

from carbonlens.app.importing import FileResult, ImportResult, Totals
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import J_PER_KWH
from carbonlens.reporting import format as fmt

_MOST_FILES = 8


def print_as_json(result: ImportResult) -> None:
    """Print the versioned JSON shape."""
    output.print_json(
        {
            "schema": "carbonlens/import/1",
            "ledger": result.ledger,
            "totals": result.totals,
            "files": [
                {
                    "path": f.path,
                    "format": f.format,
                    "status": f.status,
                    "totals": f.totals,
                    "findings": f.findings,
                }
                for f in result.files
            ],
        }
    )


def print_as_text(result: ImportResult) -> None:
    """Print at most about ten lines: what was saved, then what to look at."""
    if len(result.files) > 1:
        rows = [_row(f) for f in result.files[:_MOST_FILES]]
        for line in output.table(["file", "status", "runs", "energy"], rows, left=2):
            output.say(line)
        if len(result.files) > _MOST_FILES:
            output.say(f"... and {counted(len(result.files) - _MOST_FILES, 'more file')} (--json lists all)")
    output.say(_summary(result))
    output.print_findings([finding for f in result.files for finding in f.findings])


def _row(file: FileResult) -> list[str]:
    return [output.clip(file.path, 40), file.status, str(file.totals.runs), _energy(file.totals)]


def _summary(result: ImportResult) -> str:
    totals = result.totals
    rejected = f", {counted(totals.rows_rejected, 'row')} rejected" if totals.rows_rejected else ""
    if not totals.runs:
        return f"nothing new to save{rejected}"
    runs = counted(totals.runs, "run")
    return f"saved {runs}, {_energy(totals)}{rejected}, in {result.ledger}"


def _energy(totals: Totals) -> str:
    if totals.energy_kwh is None:
        return "energy unknown" if totals.runs else "-"
    return fmt.energy(Estimate(value=totals.energy_kwh * J_PER_KWH, unit="J")).text
