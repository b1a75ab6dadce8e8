"""Accounts: what queries return, as estimates with their units, grades and sources."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.accounting.formulas import energy_kwh
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, combined_grade, grade_shares, unknown
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import Boundary, Grade
from carbonlens.ledger import queries, schema, settling
from carbonlens.ledger.amounts import COST, EMISSIONS, ENERGY, Amount, groups_of
from carbonlens.ledger.schema import unescaped
from carbonlens.ledger.value_sums import GRADES
from carbonlens.ledger.went_away import asking

if TYPE_CHECKING:
    from carbonlens.ledger.calendar import Calendar
    from carbonlens.ledger.frames import View
    from carbonlens.ledger.rates import Rates
    from carbonlens.ledger.settling import Settled

_UNITS: Final = {"energy": "J", "emissions": "kg"}
_NAMED: Final = 5
_PLACES: Final = Decimal("1e-12")

_SUMMED: Final = (
    *("study", "run_id", "boundary", "is_first", "run_state", "state", "grade"),
    *("energy_j", "u_random_j", "units"),
)
"""Columns that sums are made of, without those of errors and rates."""

_RATED: Final = ("rate", "source_id", "u_relative")
"""Columns that come with a rate, after its name."""


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """One amount of one group.

    Attributes:
        exact: The exact sum in the estimate's unit; ``None`` when nothing is known.
        estimate: The same with its interval; ``unbounded`` where a part is unknown.
        unrated_j: Energy that found no rate and is not in the sum.
    """

    exact: Decimal | None
    estimate: Estimate
    unrated_j: Decimal = Decimal(0)


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of one group within one boundary.

    Attributes:
        group: Label to value; ``None`` where the runs state none.
        boundary: What the energy includes; ``None`` where the source does not say.
        currency: Of ``cost``; ``None`` without one.
        runs: Runs that start in the group; those that only reach into it are not counted.
        runs_unknown: How many of them have no known energy.
        runs_unbounded: How many have a known part only.
        units: Work done, where ``unit`` is a group.
        grade_shares: Share of the energy by evidence grade; ungraded counts as E.
    """

    group: Mapping[str, str | int | None]
    boundary: Boundary | None
    currency: str | None = None
    runs: int
    runs_unknown: int
    runs_unbounded: int
    units: Decimal | None = None
    grade_shares: Mapping[Grade, float]
    energy: Sum
    emissions: Sum | None = None
    cost: Sum | None = None


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The totals asked for and what must be said about them.

    Attributes:
        unknown_ids: Ids of the runs with a part in them of whose energy something is unknown.
    """

    totals: tuple[Total, ...]
    findings: tuple[Finding, ...] = ()
    unknown_ids: tuple[str, ...] = ()

    @property
    def unknown_runs(self) -> int:
        """How many runs with a part in them have an energy of which something is unknown."""
        return len(self.unknown_ids)


def account(
    view: View,
    by: Sequence[str] = (),
    *,
    rates: Sequence[Rates] = (),
    calendar: Calendar | None = None,
) -> Account:
    """Sum the runs of a view per group: energy, and what the rates make of it.

    Args:
        view: Of a period or of the whole ledger.
        by: Labels of ``queries.LABELS``, or ``tag:NAME``.
        rates: At most one set a name.
        calendar: Needed for local dates and fiscal periods, in ``by`` or as keys of rates.

    Raises:
        SelectionError: If a label is not known.
        RecordError: If a file of the ledger went away since the view was opened, or is damaged.
        UnwritableError: If there is no room for temporary files.
    """
    with asking(view):
        dates = None if calendar is None else view.calendar(calendar)
        parts = queries.labelled(queries.roots(view.parts, view.orphans), by, dates)
        return account_of(view, parts, by, rates)


def account_of(view: View, parts: Any, by: Sequence[str], rates: Sequence[Rates] = ()) -> Account:  # noqa: ANN401 - a frame
    """Sum parts per group; for who prepares them otherwise than ``account`` does.

    Args:
        view: Whose parts they are.
        parts: Of root runs, with all columns of ``by`` and of the rates' keys.
        by: Columns to group by.
        rates: At most one set a name.
    """
    rated = queries.rated(parts, rates)
    held = rated.collect_schema().names()
    wanted = [n for n in dict.fromkeys((*by, *needed(rates))) if n in held]
    settled = settling.settle(view, rated.select(*wanted))
    try:
        return account_over(settled, rates, by)
    finally:
        settled.file.unlink()  # nobody asks these rows again, and a view may be open for long


def needed(rates: Sequence[Rates]) -> tuple[str, ...]:
    """Return the columns that sums are made of, beside those to group by.

    Args:
        rates: What the parts are rated with.
    """
    kinds = [name for kind in schema.KINDS for name in (f"{kind}_source_id", f"u_{kind}_j")]
    own = [name for r in rates for name in (*r.keys, *(f"{r.name}_{n}" for n in _RATED))]
    return tuple(dict.fromkeys((*_SUMMED, *kinds, *own, "currency", "zone")))


def account_over(
    settled: Settled,
    rates: Sequence[Rates],
    by: Sequence[str],
    *,
    unrated: bool = True,
) -> Account:
    """Sum settled parts per group.

    Args:
        settled: Rated, with all columns of ``by``, of the rates' keys, and those ``needed``.
        rates: With which they are rated.
        by: Columns to group by.
        unrated: Whether it is said of which places energy found no rate.
    """
    view, amounts = settled.view, _amounts(rates)
    groups = groups_of(by, amounts)
    asked = (tuple(by), tuple(a.name for a in amounts))

    def found(name: str, build: Callable[[Any], Any], *further: object) -> list[dict[str, Any]]:
        return settling.ask(settled, (name, asked, further), build)

    errors: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for row in found("sources", lambda parts: queries.sources(parts, by, amounts)):
        errors.setdefault(tuple(row[g] for g in groups), []).append(row)
    rows = found("totals", lambda parts: queries.totals(parts, by, amounts, common=False))
    totals = [_total(row, by, amounts, errors.get(tuple(row[g] for g in groups), [])) for row in rows]
    known = all(t.energy.estimate.state == "known" for t in totals)
    unknown_runs = [] if known else found("unknowns", queries.unknowns)
    missing = [
        (one, found("unrated", partial(queries.without_rate, given=one), one.name, one.keys))
        for one in (rates if unrated else ())
    ]
    return Account(
        totals=tuple(totals),
        findings=_findings(view, missing, totals, unknown_runs),
        unknown_ids=tuple(str(row["run_id"]) for row in unknown_runs),
    )


def read_total(row: Mapping[str, Any], by: Sequence[str], amounts: Sequence[Amount]) -> Total:
    """Return a row of ``queries.totals`` alone: its common errors stand in it as one.

    For groups too many to fetch each source. The one error is named after the
    group: such a total must not be added to another or taken from it.
    """
    name = "sum:" + ",".join(str(row[label]) for label in [*by, "boundary"])
    common = {f"u_{a.name}": math.sqrt(row[f"var_common_{a.name}"] or 0) for a in amounts}
    return _total(row, by, amounts, [{"source_id": name, **common}])


def _amounts(rates: Sequence[Rates]) -> list[Amount]:
    named = {r.name for r in rates}
    return [ENERGY, *(a for a in (EMISSIONS, COST) if a.rate in named)]


def _total(
    row: Mapping[str, Any], by: Sequence[str], amounts: Sequence[Amount], errors: Sequence[Mapping[str, Any]]
) -> Total:
    shares = _graded(row)
    grade = combined_grade((g, float(v)) for g, v in shares)
    sums = {a.name: _sum(row, a, errors, grade) for a in amounts}
    return Total(
        group={label: _told(label, row[label]) for label in dict.fromkeys(by)},
        boundary=row["boundary"],
        currency=row.get("currency"),
        runs=int(row["runs"]),
        runs_unknown=int(row["runs_unknown"]),
        runs_unbounded=int(row["runs_unbounded"]),
        units=row.get("units"),
        grade_shares=grade_shares((g, float(v)) for g, v in shares) if any(v for _, v in shares) else {},
        energy=sums["energy"],
        emissions=sums.get("emissions"),
        cost=sums.get("cost"),
    )


def _told(label: str, value: Any) -> str | int | None:  # noqa: ANN401 - a label of any column
    """Return a label as it was given: the column of tags has what ends one escaped."""
    if label.startswith(queries.TAG) and isinstance(value, str):
        return unescaped(value)
    named: str | int | None = value
    return named


def _graded(row: Mapping[str, Any]) -> list[tuple[Grade | None, Decimal]]:
    graded: list[tuple[Grade | None, Decimal]] = [
        (g, row[f"grade_{g.lower()}_j"] or Decimal(0)) for g in GRADES
    ]
    return [(g, v) for g, v in [*graded, (None, row["ungraded_j"] or Decimal(0))] if v]


def _sum(
    row: Mapping[str, Any], amount: Amount, errors: Sequence[Mapping[str, Any]], grade: Grade | None
) -> Sum:
    unit = _UNITS.get(amount.name) or row.get("currency") or "?"
    unrated = row.get(f"unrated_j_{amount.name}") or Decimal(0)
    exact = _scaled(row[f"value_{amount.name}"], amount)
    if exact is None:
        return Sum(exact=None, estimate=unknown(unit), unrated_j=unrated)
    known = not (row["parts_unknown"] or row["parts_unbounded"] or row.get(f"unrated_parts_{amount.name}"))
    sources: dict[str, float] = {}
    for error in errors:
        u = _scaled_float(error.get(f"u_{amount.name}"), amount)
        if u:
            sources[error["source_id"]] = sources.get(error["source_id"], 0.0) + u
    estimate = Estimate(
        value=float(exact),
        unit=unit,
        state="known" if known else "unbounded",
        grade=grade,
        u_random=_scaled_float(math.sqrt(row[f"var_random_{amount.name}"] or 0), amount),
        u_by_source=sources,
        bounds=(None, None) if row["wide_j"] else None,
    )
    return Sum(exact=exact, estimate=estimate, unrated_j=unrated)


def _scaled(value: Decimal | None, amount: Amount) -> Decimal | None:
    """Return a sum in its own unit: energy as it is, the others were kept per kWh times joules."""
    if value is None or amount.rate is None:
        return value
    with localcontext(prec=60):
        scaled: Decimal = energy_kwh(value)
        return scaled.quantize(_PLACES)


def _scaled_float(value: Decimal | float | None, amount: Amount) -> float:
    if value is None:
        return 0.0
    return float(value) if amount.rate is None else float(energy_kwh(float(value)))


def _findings(
    view: View,
    missing: Sequence[tuple[Rates, Sequence[Mapping[str, Any]]]],
    totals: Sequence[Total],
    unknown_runs: Sequence[Mapping[str, Any]],
) -> tuple[Finding, ...]:
    found = list(view.findings)
    if view.undated:
        found.append(_undated(view.undated))
    if unknown_runs:
        found.append(_unknown(unknown_runs))
    found += [_unrated(one, rows) for one, rows in missing if rows]
    boundaries = {t.boundary for t in totals}
    if len(boundaries) > 1:
        found.append(_mixed(sorted(str(b or "unstated") for b in boundaries)))
    return tuple(found)


def _undated(count: int) -> Finding:
    return Finding(
        code="CL520",
        severity="warning",
        message=f"{counted(count, 'run has no start: it is', 'runs have no start: they are')} in no period",
        mend="import them with their times",
    )


def _unknown(rows: Sequence[Mapping[str, Any]]) -> Finding:
    names = ", ".join(str(row["run_id"]) for row in rows[:_NAMED])
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return Finding(
        code="CL521",
        severity="warning",
        message=f"energy that is not known, or in part only, in {counted(len(rows), 'run')}: {names}{more}; "
        "sums over them are lower bounds",
        mend="see carbonlens runs show RUN for the reason",
    )


def _unrated(rates: Rates, rows: Sequence[Mapping[str, Any]]) -> Finding:
    keys = [k for k in rows[0] if k != "energy_j"]
    places = "; ".join(
        ", ".join(f"{k} {'not stated' if row[k] is None else row[k]}" for k in keys) for row in rows[:_NAMED]
    )
    joules = sum((row["energy_j"] for row in rows), Decimal(0))
    what = "emission factor" if rates.name == "emissions" else "price"
    return Finding(
        code="CL522",
        severity="warning",
        message=f"no {what} for {energy_kwh(joules):.6g} kWh ({places}): they are not in the sum",
        mend=f"import the {what}s of these places and times",
    )


def _mixed(boundaries: Sequence[str]) -> Finding:
    return Finding(
        code="CL523",
        severity="info",
        message=f"energies of the boundaries {', '.join(boundaries)} stand apart: they cannot be added",
    )
