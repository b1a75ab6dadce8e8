"""Queries: each accounting question once, as expressions that run on any backend narwhals knows.

They take the parts of ``frames.View`` and return lazy frames. Values are sums of
exact decimals; one sigma is kept apart by source until it is summed, so that the
error of a shared sensor, model, factor or price does not average away. Rows of
different boundaries, and of different currencies, are never added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from carbonlens.errors import SelectionError
from carbonlens.ledger import calendar, error_sums, rates, schema, value_sums
from carbonlens.ledger.amounts import ENERGY, Amount, groups_of
from carbonlens.ledger.rates import Rates

if TYPE_CHECKING:
    import narwhals as nw

    Frame = nw.LazyFrame[Any]
    Expr = nw.Expr

LABELS: Final = (
    *("study", "step", "role", "status", "job_id", "host_id", "hardware", "workload"),
    *("zone", "site", "team", "model", "unit", "component"),
    *(name for name in calendar.COLUMNS if name != "hour_utc"),
    *("hour_utc", "month_utc"),
)
"""Columns one may group by; ``tag:NAME`` is any tag."""

TAG: Final = "tag:"
"""Before the name of a tag."""


def roots(parts: Frame, orphans: Sequence[str] = ()) -> Frame:
    """Return the parts of runs that are no part of another run: only those are summed.

    Args:
        parts: Of the view.
        orphans: Parents the ledger does not hold; their parts stand for themselves.
    """
    return parts.filter(is_root(orphans))


def is_root(orphans: Sequence[str] = ()) -> Expr:
    """Return what holds for those parts; arguments as of ``roots``."""
    import narwhals as nw

    parent = nw.col("parent_run_id")
    return parent.is_null() | parent.is_in(list(orphans)) if orphans else parent.is_null()


def labelled(parts: Frame, by: Sequence[str], dates: Frame | None = None) -> Frame:
    """Return the parts with the columns to group by.

    Args:
        parts: Of the view, or of ``roots``.
        by: ``LABELS`` and ``tag:NAME``.
        dates: The calendar, for local dates and fiscal periods.

    Raises:
        SelectionError: If a label is not known.
    """
    unknown = [name for name in by if name not in LABELS and not (name.startswith(TAG) and name != TAG)]
    if unknown:
        raise SelectionError(
            f"no label {unknown[0]!r} to group by", mend=f"known: {', '.join(LABELS)}, tag:NAME"
        )
    tags = {name: tag(name.removeprefix(TAG)) for name in by if name.startswith(TAG)}
    if tags:
        parts = parts.with_columns(**tags)
    return parts if dates is None else parts.join(dates, on="hour_utc", how="left")


def tag(name: str) -> Expr:
    """Return a tag of any name as a column, as ``schema.escaped`` writes it; null where it is not set."""
    import narwhals as nw

    start = f"\x1f{schema.escaped(name)}="
    # Two plain replacements: engines write references to groups differently.
    value = (
        nw.col("tags").str.replace_all(f"(?s)^.*{re.escape(start)}", "").str.replace_all("(?s)\x1f.*$", "")
    )
    return nw.when(nw.col("tags").str.contains(start, literal=True)).then(value)


def matching(parts: Frame, labels: Mapping[str, str]) -> Frame:
    """Return the parts of runs that have these values; a name that is no label is that of a tag.

    Args:
        parts: Of the view, or of ``roots``.
        labels: Value by name; a run has one as its label, or as its tag of that name.
    """
    import narwhals as nw

    for name, value in labels.items():
        found = tag(name) == schema.escaped(value)
        if name in LABELS:
            # A comparison with nothing is nothing, not false: the other one must stand alone.
            found = found.fill_null(value=False) | (nw.col(name) == value).fill_null(value=False)
        parts = parts.filter(found)
    return parts


def rated(parts: Frame, given: Sequence[Rates]) -> Frame:
    """Return the parts with their rates; where there is none, a null."""
    for one in given:
        names = {"rate": f"{one.name}_rate", "source_id": f"{one.name}_source_id"}
        names["u_relative"] = f"{one.name}_u_relative"
        kept = [*one.keys, *(c for c in rates.COLUMNS if c != "currency" or one.name == "cost")]
        renamed = one.frame.select(*kept).rename(names)
        # Without a key the rate is the same for all.
        on = {"on": list(one.keys), "how": "left"} if one.keys else {"how": "cross"}
        parts = parts.join(renamed, **on)
    return parts


def totals(
    parts: Frame,
    by: Sequence[str],
    amounts: Sequence[Amount] = (ENERGY,),
    *,
    intervals: bool = True,
    common: bool = True,
) -> Frame:
    """Sum per group and boundary (per currency too, for a cost), in one query.

    Columns beside the groups: ``runs`` that start there, how many of them are
    of unknown or unbounded energy, ``parts_unknown`` without energy, ``units``
    where ``unit`` is a group, energy by grade, and per amount: its value,
    ``wide_j`` the energy whose width nobody knows, ``unrated_j`` the energy that
    found no rate, and the variances of the random and of the common errors.

    Args:
        parts: Labelled, and rated where an amount needs it.
        by: Groups.
        amounts: What to sum.
        intervals: False leaves variances, grades and widths null, for who needs
            the values alone.
        common: False leaves the variances of the common errors null, for who fetches
            these errors themselves (``sources``).
    """
    import narwhals as nw

    groups = groups_of(by, amounts)
    types = value_sums.types(by, amounts)
    squares = {f"var_common_{a.name}": nw.Float64() for a in amounts}
    alike = value_sums.alike(parts, by, amounts, intervals=intervals)
    with_common = intervals and common
    if with_common:
        alike = _with_common(alike, error_sums.variances(parts, by, amounts), groups)
    else:
        alike = alike.with_columns(**{n: nw.lit(None).cast(kind) for n, kind in squares.items()})
    sums = value_sums.told(by, amounts, intervals=intervals)
    sums |= {n: nw.col(n).sum() for n in squares if with_common}
    values = alike.group_by(*groups).agg(**sums)
    every = types | squares
    values = values.with_columns(
        **{n: (nw.col(n) if n in sums else nw.lit(None)).cast(kind) for n, kind in every.items()}
    )
    # A sum of nothing is 0 in narwhals: here it is unknown.
    known = value_sums.known_by(by, amounts)
    told = {n: nw.when(nw.col(count) > 0).then(nw.col(n).cast(types[n])) for n, count in known.items()}
    return values.with_columns(**told).select(*groups, *every).sort(*groups, nulls_last=True)


def _with_common(alike: Frame, errors: Frame, groups: Sequence[str]) -> Frame:
    """Add the variances of the common errors: a union, as a join would lose groups named null."""
    import narwhals as nw

    kinds, added = alike.collect_schema(), errors.collect_schema()
    common = [n for n in added if n not in groups]
    left = {n: nw.lit(None).cast(added[n]) for n in common}
    right = {n: nw.lit(None).cast(kind) for n, kind in kinds.items() if n not in groups}
    columns = [*kinds, *common]
    both = [alike.with_columns(**left).select(*columns), errors.with_columns(**right).select(*columns)]
    return nw.concat(both, how="vertical")


def sources(parts: Frame, by: Sequence[str], amounts: Sequence[Amount] = (ENERGY,)) -> Frame:
    """Sum each common error over its group: parts of one source add up as they are.

    Columns: the groups, ``kind``, ``source_id`` and ``u_<amount>``, one sigma.
    """
    order = [*groups_of(by, amounts), "kind", "source_id"]
    return error_sums.by_source(parts, by, amounts).sort(*order, nulls_last=True)


def top(parts: Frame, by: Sequence[str], amount: Amount, n: int) -> Frame:
    """Return the groups of the largest values, the largest first.

    Groups of different boundaries stand beside each other; compare within one.
    """
    groups = groups_of(by, [amount])
    rows = totals(parts, by, [amount])
    order = [f"value_{amount.name}", *groups]
    return rows.sort(*order, descending=[True, *(False for _ in groups)], nulls_last=True).head(n)


def trend(parts: Frame, period: str, by: Sequence[str] = (), amounts: Sequence[Amount] = (ENERGY,)) -> Frame:
    """Sum per period of the calendar, in order of time.

    Args:
        parts: Labelled with the calendar, and rated where an amount needs it.
        period: ``date``, ``month``, ``fiscal_quarter`` or ``fiscal_year``.
        by: Further groups.
        amounts: What to sum.
    """
    return totals(parts, [period, *by], amounts)


def drivers(parts: Frame, period: str, by: Sequence[str], amounts: Sequence[Amount] = (ENERGY,)) -> Frame:
    """Return volume, energy and what is made of it per group and period: what a change is explained by.

    Volumes of different units stand apart; a run's units are split over its
    hours as its energy is.
    """
    return totals(parts, [period, *(name for name in by if name != "unit"), "unit"], amounts)


def unknowns(parts: Frame) -> Frame:
    """Return the runs of whose energy something is unknown, each once, by name.

    Also those that only reach into the period: a part of unknown energy stands in each of a run's hours.
    """
    import narwhals as nw

    names = ("study", "run_id")
    found = parts.filter(nw.col("state") != "known")
    return found.select(*names).unique().sort(*names, nulls_last=True)


def without_rate(parts: Frame, given: Rates) -> Frame:
    """Return the keys of energy that found no rate, without the hour, and how much energy that is."""
    import narwhals as nw

    keys = [k for k in given.keys if k not in {"hour_utc", "date"}] or ["zone"]
    found = parts.filter(nw.col(f"{given.name}_rate").is_null(), ~nw.col("energy_j").is_null())
    return found.group_by(*keys).agg(energy_j=nw.col("energy_j").sum()).sort(*keys, nulls_last=True)


def run_table(parts: Frame) -> Frame:
    """Return one row a run and boundary: its labels, and the energy that is known.

    With ``parts_unknown`` above 0 the energy is a lower bound, and null when nothing is known.
    """
    import narwhals as nw

    labels = list(schema.COLUMNS)[: list(schema.COLUMNS).index("hour_utc")]
    energy, units = nw.col("energy_j"), nw.col("units")
    sums = {
        "hour_utc": nw.col("hour_utc").min(),
        "run_state": nw.col("run_state").max(),
        "duration_s": nw.col("duration_s").max(),
        "units": units.sum(),
        "parts_with_units": _count(~units.is_null()),
        "energy_j": energy.sum(),
        "parts_known": _count(~energy.is_null()),
        "parts_unknown": _count(energy.is_null()),
    }
    told = {
        "units": nw.when(nw.col("parts_with_units") > 0).then(units),
        "energy_j": nw.when(nw.col("parts_known") > 0).then(energy),
    }
    table = parts.group_by(*labels, "boundary").agg(**sums).with_columns(**told)
    return table.drop("parts_with_units").sort("start_us", *labels, "boundary", nulls_last=True)


def _count(condition: Expr) -> Expr:
    import narwhals as nw

    return nw.when(condition).then(nw.lit(1)).count()
