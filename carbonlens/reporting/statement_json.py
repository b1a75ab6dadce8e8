"""A statement as JSON: its lines, and every figure with formula and inputs."""

from __future__ import annotations

from typing import Any, Final

from carbonlens.accounting.statement import Statement
from carbonlens.accounting.statement_lines import Line
from carbonlens.domain.figure import Figure

SCHEMA: Final = "carbonlens/account/1"


def statement_json(statement: Statement) -> dict[str, Any]:
    """Return the statement as a mapping that JSON can hold.

    Args:
        statement: Of a period.
    """
    return {
        "schema": SCHEMA,
        "period": statement.period.name,
        "months": statement.period.months,
        "status": "draft" if statement.period.is_open else "closed",
        "entity": statement.entity,
        "heading": statement.heading,
        "sites": [_line(line, statement) for line in statement.lines],
        "by": None
        if statement.label is None
        else {"label": statement.label, "lines": [_line(line, statement) for line in statement.groups]},
        "total": _line(statement.total, statement),
        "at_least": None if statement.at_least is None else _line(statement.at_least, statement),
        "scopes": _scopes(statement),
        "market": _market(statement),
        "meters": _meters(statement),
        "embodied": _embodied(statement),
        "cost": {
            "lines": [
                {"name": line.name, "label": line.label, "amount": line.amount.as_json()}
                for line in statement.cost.lines
            ],
            "totals": {currency: total.as_json() for currency, total in statement.cost.totals.items()},
        },
        "grade_shares": dict(statement.grade_shares),
        "span_shares": dict(statement.span_shares),
        "deliveries": None
        if statement.coverage is None
        else {
            "expected": statement.coverage.expected,
            "came": statement.coverage.came,
            "share": statement.coverage.share,
        },
        "figures": [figure_json(figure) for figure in statement.figures],
        "findings": statement.findings,
    }


def figure_json(figure: Figure) -> dict[str, Any]:
    """Return a figure as a mapping that JSON can hold."""
    return {
        "id": figure.figure_id,
        "label": figure.label,
        "estimate": figure.estimate.as_json(),
        "formula": figure.formula,
        "inputs": figure.inputs,
    }


def _scopes(statement: Statement) -> list[dict[str, Any]]:
    return [
        {
            "place": total.place.key,
            "method": total.method,
            "emissions_kg": total.kg.as_json(),
            "at_least_kg": total.at_least_kg.as_json(),
        }
        for total in statement.scopes
    ]


def _market(statement: Statement) -> list[dict[str, Any]]:
    return [
        {
            "factor_id": blend.factor_id,
            "provisional": blend.is_provisional,
            "rate_kg_per_kwh": blend.rate.as_json(),
            "parts": [
                {"source": part.source_id, "kind": part.kind, "energy_kwh": part.kwh.as_json()}
                for part in blend.parts
            ],
        }
        for blend in statement.blends
    ]


def _meters(statement: Statement) -> list[dict[str, Any]]:
    return [
        {
            "site": one.metered.site_id,
            "meters": one.metered.meter_ids,
            "boundary": one.metered.boundary,
            "covers": one.metered.covers,
            "coverage": one.metered.covered,
            "is_activity_data": one.is_activity,
            "metered_kwh": one.metered_kwh.as_json(),
            "recorded_kwh": one.recorded_kwh.as_json(),
            "difference_kwh": one.difference_kwh.as_json(),
        }
        for one in statement.reconciliations
    ]


def _embodied(statement: Statement) -> dict[str, Any]:
    return {
        "capital_goods_kg": None if statement.capital is None else statement.capital.kg.as_json(),
        "amortised": [
            {
                "asset": one.asset.asset_id,
                "basis": one.basis,
                "used_kg": one.used_kg.as_json(),
                "idle_kg": one.idle_kg.as_json(),
                "written_off_kg": one.written_off_kg.as_json(),
            }
            for one in statement.amortised
        ],
    }


def _line(line: Line, statement: Statement) -> dict[str, Any]:
    terms = statement.terms.get(line.site_id)
    return {
        "line": line.key,
        "site": line.site_id or None,
        "kind": line.kind,
        "runs": line.runs,
        "place": None if terms is None else terms.place_name,
        "factors": [] if terms is None else terms.input_ids,
        "amounts": {name: amount.estimate.as_json() for name, amount in line.amounts.items()},
    }
