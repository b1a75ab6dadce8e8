"""A statement as JSON: its lines, and every figure with formula and inputs."""

from __future__ import annotations

from typing import Any, Final

from carbonlens.accounting.initiative_lines import figure_id, of_initiative
from carbonlens.accounting.site_energy import SiteTerms
from carbonlens.accounting.statement import Statement
from carbonlens.accounting.statement_lines import Line
from carbonlens.domain.estimate import Estimate
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
        else {
            "label": statement.label,
            "lines": [_line(line, statement) for line in statement.groups],
            "unattributed": [line.key for line in statement.unattributed],
            "bills": [
                {
                    "group": one.value,
                    "kind": one.line.cost_kind,
                    "amount": _told(one.line.amount, f"statement.{statement.period.name}.{one.name}"),
                }
                for one in statement.bills
            ],
        },
        "total": {**_line(statement.total, statement), "without": [line.key for line in statement.beside]},
        "at_least": None if statement.at_least is None else _line(statement.at_least, statement),
        "scopes": _scopes(statement),
        "market": _market(statement),
        "meters": _meters(statement),
        "embodied": _embodied(statement),
        "cost": _cost(statement),
        "initiatives": _initiatives(statement),
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


def _initiatives(statement: Statement) -> list[dict[str, Any]]:
    """Return what each initiative claims and what was verified, a year; no line of the statement."""
    prefix = f"statement.{statement.period.name}"
    return [
        {
            "id": one.initiative_id,
            "title": one.title,
            "owner": one.owner,
            "status": one.status,
            "verified_by": one.verified_by,
            "a_year": {
                said: {name: _told(e, figure_id(prefix, one, said, name)) for name, e in held.items()} or None
                for said, held in of_initiative(one).items()
            },
        }
        for one in statement.initiatives
    ]


def _cost(statement: Statement) -> dict[str, Any]:
    cost, in_one = statement.cost, statement.reported_cost
    at = f"statement.{statement.period.name}.cost"
    ids = [f"{n}.{line.name}" for n, line in enumerate(cost.lines, 1)]
    converted: list[dict[str, Any] | None] = [None] * len(cost.lines)
    if in_one is not None:
        converted = [
            _told(e, f"{at}.in_{in_one.currency}.{i}") for e, i in zip(in_one.lines, ids, strict=True)
        ]
    return {
        "lines": [
            {
                "name": line.name,
                "part": line.part,
                "site": line.site_id,
                "kind": line.cost_kind,
                "label": line.label,
                "amount": _told(line.amount, f"{at}.{name}"),
                "reported": amount,
            }
            for line, amount, name in zip(cost.lines, converted, ids, strict=True)
        ],
        "totals": {
            currency: _told(total, f"{at}.total.{currency}") for currency, total in cost.totals.items()
        },
        "reported": None
        if in_one is None
        else {
            "currency": in_one.currency,
            "total": _told(in_one.total, f"{at}.in_{in_one.currency}.total"),
            "rates": in_one.how,
            "price_year": in_one.price_year,
            "real": None
            if in_one.real is None
            else _told(in_one.real, f"{at}.in_{in_one.currency}.total_{in_one.price_year}"),
            "real_how": in_one.real_how or None,
        },
    }


def _told(estimate: Estimate, figure_id: str) -> dict[str, Any]:
    """Return an estimate with the id that ``explain`` takes; what does not apply is no figure."""
    shape = estimate.as_json()
    return shape if estimate.state == "not_applicable" else {**shape, "id": figure_id}


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
    at = f"statement.{statement.period.name}"
    return [
        {
            "place": total.place.key,
            "method": total.method,
            "emissions_kg": _told(total.kg, f"{at}.{total.place.key}.{total.method}_kg"),
            "at_least_kg": _told(total.at_least_kg, f"{at}.{total.place.key}.{total.method}_at_least_kg"),
        }
        for total in statement.scopes
    ]


def _market(statement: Statement) -> list[dict[str, Any]]:
    at = f"statement.{statement.period.name}"
    return [
        {
            "factor_id": blend.factor_id,
            "provisional": blend.is_provisional,
            "rate_kg_per_kwh": _told(blend.rate, blend.factor_id),
            "parts": [
                {
                    "source": part.source_id,
                    "kind": part.kind,
                    "energy_kwh": _told(
                        part.kwh, f"{at}.{blend.demand.entity}.{blend.demand.market}.part_{n}_kwh"
                    ),
                }
                for n, part in enumerate(blend.parts, 1)
            ],
        }
        for blend in statement.blends
    ]


def _meters(statement: Statement) -> list[dict[str, Any]]:
    begin = f"statement.{statement.period.name}"
    at = {id(one): f"{begin}.{one.metered.site_id}.{one.metered.name}" for one in statement.reconciliations}
    return [
        {
            "site": one.metered.site_id,
            "meters": one.metered.meter_ids,
            "boundary": one.metered.boundary,
            "covers": one.metered.covers,
            "coverage": one.metered.covered,
            "is_activity_data": one.is_activity,
            "metered_kwh": _told(one.metered_kwh, f"{at[id(one)]}.metered_kwh"),
            "recorded_kwh": _told(one.recorded_kwh, f"{at[id(one)]}.recorded_kwh"),
            "difference_kwh": _told(one.difference_kwh, f"{at[id(one)]}.difference_kwh"),
        }
        for one in statement.reconciliations
    ]


def _embodied(statement: Statement) -> dict[str, Any]:
    at = f"statement.{statement.period.name}"
    capital = statement.capital
    return {
        "capital_goods_kg": None if capital is None else _told(capital.kg, f"{at}.capital_goods_kg"),
        "amortised": [
            {
                "asset": one.asset.asset_id,
                "basis": one.basis,
                "hours": one.hours,
                "used_hours": one.used_hours,
                "embodied_each_kg": _told(
                    one.each_kg, f"{at}.{one.asset.asset_id}.amortised.embodied_each_kg"
                ),
                "embodied_of": one.how,
                "used_kg": _told(one.used_kg, f"{at}.{one.asset.asset_id}.amortised.used_kg"),
                "idle_kg": _told(one.idle_kg, f"{at}.{one.asset.asset_id}.amortised.idle_kg"),
                "written_off_kg": _told(
                    one.written_off_kg, f"{at}.{one.asset.asset_id}.amortised.written_off_kg"
                ),
            }
            for one in statement.amortised
        ],
    }


def _terms(terms: SiteTerms) -> dict[str, Any]:
    """Return what holds at a site; null where the months differ or nobody states it."""
    pues = {None if t.overheads.pue is None else t.overheads.pue.value for t in terms.variants}
    wues = {None if t.wue is None else t.wue.value for t in terms.variants}
    return {
        "pue": pues.pop() if len(pues) == 1 else None,
        "wue_l_per_kwh": wues.pop() if len(wues) == 1 else None,
        "span": terms.span,
        "site_kind": None if terms.site is None else terms.site.kind,
    }


def _line(line: Line, statement: Statement) -> dict[str, Any]:
    terms = statement.terms.get(line.site_id)
    at = f"statement.{statement.period.name}.{line.key}"
    return {
        "line": line.key,
        "site": line.site_id or None,
        "kind": line.kind,
        "lower_bound": line.is_lower_bound,
        "runs": line.runs,
        "place": None if terms is None else terms.place_name,
        "factors": [] if terms is None else terms.input_ids,
        "terms": None if terms is None else _terms(terms),
        "amounts": {name: _told(a.estimate, f"{at}.{name}") for name, a in line.amounts.items()},
    }
