"""What ``carbonlens charges`` prints."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.accounting.charges import FIELDS, KIND_OF
from carbonlens.app.charges import RunCharges
from carbonlens.app.explain_charges import (
    UNALLOCATED,
    charge_figures,
    invoice_id_of,
    part_id_of,
    run_id_of,
    savings_id_of,
    total_id_of,
)
from carbonlens.cli import output
from carbonlens.cli.import_view import cost_lines, costs_json, money
from carbonlens.domain.counting import counted
from carbonlens.domain.money import Money
from carbonlens.reporting.statement_json import figure_json

_MOST: Final = 10
"""Runs that are printed; ``--json`` has all."""

_CENT: Final = Decimal("0.01")


def print_as_json(found: RunCharges) -> None:
    """Print sums, and each charge's parts of the kind asked for; amounts are exact JSON numbers."""
    field = FIELDS[found.kind]
    output.print_json(
        {
            "schema": "carbonlens/charges/1",
            "period": found.period,
            "kind": found.kind,
            "basis": _basis(found),
            "cost": costs_json(found.totals),
            "savings": {currency: _number(amount) for currency, amount in found.savings.items()},
            "runs": {
                currency: {name or UNALLOCATED: _number(m) for name, m in amounts.items()}
                for currency, amounts in found.amounts.items()
            },
            "savings_figures": {currency: savings_id_of(found, currency) for currency in found.savings},
            "cost_figures": {
                currency: {kind: total_id_of(found, name, currency) for kind, name in FIELDS.items()}
                for currency in found.totals
            },
            "run_figures": {
                currency: {name or UNALLOCATED: run_id_of(found, currency, name) for name in amounts}
                for currency, amounts in found.amounts.items()
            },
            "parts": [
                {
                    "charge_id": p.charge_id,
                    "run_id": p.run_id,
                    "how": p.how,
                    "share": p.share,
                    "amount": _number(getattr(p, field)),
                    "figure": part_id_of(found, p),
                }
                for p in found.joined.parts
            ],
            "invoices": [
                {
                    "invoice_id": name,
                    "currency": currency,
                    "billed": _number(amount),
                    "figure": invoice_id_of(found, name, currency),
                }
                for (name, currency), amount in found.invoices.items()
            ],
            "figures": [figure_json(figure) for figure in charge_figures(found)],
            "findings": found.findings,
        }
    )


def print_as_text(found: RunCharges) -> None:
    """Print the costs of runs, the largest first, and what no run carries."""
    basis = _basis(found)
    output.say(f"{found.kind} cost{f' ({basis} basis)' if basis else ''}, {found.period or 'all bills'}")
    for currency, amounts in found.amounts.items():
        _print_currency(found, currency, amounts)
    for line in cost_lines(found.totals):
        output.say_words(line)
    output.print_findings(found.findings)


def _print_currency(found: RunCharges, currency: str, amounts: dict[str | None, Money]) -> None:
    ranked = sorted(
        ((name, m.amount) for name, m in amounts.items() if name is not None), key=lambda i: (-i[1], i[0])
    )
    shown, rest = ranked[:_MOST], ranked[_MOST:]
    lines = [(_name(found, name), amount) for name, amount in shown]
    if rest:
        lines.append((counted(len(rest), "more run"), sum((a for _, a in rest), Decimal(0))))
    if None in amounts:
        lines.append(("unallocated", amounts[None].amount))
    printed = _adding_up([amount for _, amount in lines])
    rows = [[name, f"{amount:.2f}"] for (name, _), amount in zip(lines, printed, strict=True)]
    rows.append(["sum", f"{sum(printed, Decimal(0)):.2f}"])
    for line in output.table(["run", currency], rows):
        output.say(line)


def _adding_up(amounts: list[Decimal]) -> list[Decimal]:
    """Round to cents so that the column sums to the rounded total (largest remainder)."""
    down = [a // _CENT * _CENT if a >= 0 else -(-a // _CENT * _CENT) for a in amounts]
    left = int((sum(amounts, Decimal(0)).quantize(_CENT) - sum(down, Decimal(0))) / _CENT)
    step = _CENT if left > 0 else -_CENT
    order = sorted(range(len(amounts)), key=lambda i: (amounts[i] - down[i]) * (1 if left > 0 else -1))
    for place in order[len(order) - abs(left) :]:
        down[place] += step
    return down


def _name(found: RunCharges, run_id: str) -> str:
    run = found.runs.get(run_id)
    told = "" if run is None or run.study is None else f" ({run.study}{f', {run.step}' if run.step else ''})"
    return output.clip(f"{run_id}{told}", 56)


def _basis(found: RunCharges) -> str | None:
    return next((basis for basis, kind in KIND_OF.items() if kind == found.kind), None)


def _number(amount: Money | None) -> msgspec.Raw | None:
    return money(None if amount is None else amount.amount)
