"""How an import's result is printed."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from carbonlens.app.importing import FileResult, ImportResult, Totals
from carbonlens.app.importing_charges import CostTotals
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
            "totals": _totals_json(result.totals),
            "files": [
                {
                    "path": f.path,
                    "format": f.format,
                    "status": f.status,
                    "totals": _totals_json(f.totals),
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
    for line in cost_lines(result.totals.cost or {}):
        output.say(line)
    for currency, amount in (result.totals.cost_stated or {}).items():
        output.say(f"{currency}: stated by runs {_money(amount)}")
    output.print_findings([finding for f in result.files for finding in f.findings])


def _row(file: FileResult) -> list[str]:
    totals = file.totals
    if totals.readings:
        return [output.clip(file.path, 40), file.status, counted(totals.readings, "reading"), "-"]
    if totals.charges:
        return [output.clip(file.path, 40), file.status, counted(totals.charges, "charge"), _billed(totals)]
    return [output.clip(file.path, 40), file.status, str(totals.runs), _energy(totals)]


def _summary(result: ImportResult) -> str:
    totals = result.totals
    rejected = f", {counted(totals.rows_rejected, 'row')} rejected" if totals.rows_rejected else ""
    saved = [f"{counted(totals.runs, 'run')}, {_energy(totals)}"] if totals.runs else []
    if totals.charges:
        saved.append(counted(totals.charges, "charge"))
    if totals.readings:
        saved.append(counted(totals.readings, "meter reading"))
    if not saved:
        return f"nothing new to save{rejected}"
    return f"saved {', '.join(saved)}{rejected}, in {result.ledger}"


def cost_lines(costs: Mapping[str, CostTotals]) -> list[str]:
    """Return a line a currency, each cost with its basis: they are never added."""
    lines = []
    for currency, cost in costs.items():
        parts = (
            ("cash (billed)", cost.billed),
            ("accrual (effective)", cost.effective),
            ("list", cost.list_cost),
            ("contracted", cost.contracted),
        )
        told = "; ".join(f"{name} {_money(amount)}" for name, amount in parts)
        lines.append(f"{currency}: {told}")
    return lines


def _energy(totals: Totals) -> str:
    if totals.energy_kwh is None:
        return "energy unknown" if totals.runs else "-"
    return fmt.energy(Estimate(value=totals.energy_kwh * J_PER_KWH, unit="J")).text


def _billed(totals: Totals) -> str:
    return ", ".join(f"{_money(c.billed)} {currency}" for currency, c in (totals.cost or {}).items())


def _money(amount: Decimal | None) -> str:
    if amount is None:
        return "unknown"
    # Less than a cent is shown by its first digits, never as 0.00.
    small = 0 < abs(amount) < Decimal("0.01")
    return f"{amount:.2g}" if small else f"{amount:.2f}"


def costs_json(costs: Mapping[str, CostTotals]) -> dict[str, dict[str, msgspec.Raw | None]]:
    """Return the four costs by currency as JSON numbers of all their digits."""
    return {
        currency: {
            "billed": money(c.billed),
            "effective": money(c.effective),
            "list": money(c.list_cost),
            "contracted": money(c.contracted),
        }
        for currency, c in costs.items()
    }


def money(amount: Decimal | None) -> msgspec.Raw | None:
    """Return an amount as a JSON number of all its digits; ``null`` where it is unknown."""
    return None if amount is None else msgspec.Raw(f"{amount:f}".encode())


def _totals_json(totals: Totals) -> dict[str, object]:
    """Return totals; those of bills, readings, and runs that state a cost, only where there are any."""
    shape = {name: getattr(totals, name) for name in totals.__struct_fields__}
    for name in ("charges", "readings", "cost", "cost_stated"):
        if not shape[name]:
            del shape[name]
    if totals.cost is not None:
        shape["cost"] = costs_json(totals.cost)
    if totals.cost_stated is not None:
        shape["cost_stated"] = {currency: money(a) for currency, a in totals.cost_stated.items()}
    return shape
