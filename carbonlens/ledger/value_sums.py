"""Value sums: counts, values and random errors of groups, in two steps.

First the parts of a group that are alike (of one grade, state and so on) are
counted and summed, with few sums a row; then what is told of the group is made
of those few. Sums are of decimals, which are the same in any order of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from carbonlens.ledger.amounts import Amount, at_float_rate, groups_of, squares, value, variance

if TYPE_CHECKING:
    import narwhals as nw

    Frame = nw.LazyFrame[Any]
    Expr = nw.Expr

GRADES: Final = ("A", "B", "C", "D", "E")
_STATES: Final = ("is_first", "run_state", "state")


def alike(parts: Frame, by: Sequence[str], amounts: Sequence[Amount], *, intervals: bool) -> Frame:
    """Sum the parts of each group that are alike in all that ``told`` tells apart.

    Args:
        parts: As of ``queries.totals``.
        by: Groups.
        amounts: What to sum.
        intervals: Whether random errors are summed too, and grades and widths told apart.
    """
    import narwhals as nw

    energy, random = nw.col("energy_j"), nw.col("u_random_j")
    apart = {"is_known": ~energy.is_null()}
    apart |= {f"is_rated_{a.name}": ~nw.col(f"{a.rate}_rate").is_null() for a in amounts if a.rate}
    sums: dict[str, Expr] = {"parts": nw.len(), "energy": energy.sum()}
    if "unit" in by:
        sums["units"] = nw.col("units").sum()
        sums["with_units"] = nw.col("units").count()
    sums |= {f"made_{a.name}": value(a).sum() for a in amounts if a.rate}
    if intervals:
        apart["is_wide"] = random.is_null()
        for a in amounts:
            small, large = squares(at_float_rate(random, a))
            sums |= {f"random_{a.name}": small.sum(), f"large_{a.name}": large.sum()}
    keys = [*_STATES, *apart, *(["grade"] if intervals else [])]
    groups = groups_of(by, amounts)
    return parts.with_columns(**apart).group_by(*groups, *(k for k in keys if k not in groups)).agg(**sums)


def told(by: Sequence[str], amounts: Sequence[Amount], *, intervals: bool) -> dict[str, Expr]:
    """Return the sums over the rows of ``alike``, by the names of ``types``."""
    import narwhals as nw

    first, state, known = nw.col("is_first"), nw.col("run_state"), nw.col("is_known")
    sums = {
        "runs": _parts(first),
        "runs_unknown": _parts(first & (state == "unknown")),
        "runs_unbounded": _parts(first & (state == "unbounded")),
        "parts_unknown": _parts(~known),
        "parts_unbounded": _parts(nw.col("state") == "unbounded"),
    }
    if "unit" in by:
        sums |= {"units": nw.col("units").sum(), "parts_with_units": nw.col("with_units").sum()}
    if intervals:
        sums |= {f"grade_{g.lower()}_j": _energy(nw.col("grade") == g) for g in GRADES}
        # Rows of common errors have no grade, and no energy either.
        sums |= {"ungraded_j": _energy(nw.col("grade").is_null()), "wide_j": _energy(nw.col("is_wide"))}
    for a in amounts:
        rated = nw.col(f"is_rated_{a.name}") if a.rate else None
        sums[f"value_{a.name}"] = nw.col(f"made_{a.name}" if a.rate else "energy").sum()
        sums[f"parts_known_{a.name}"] = _parts(known if rated is None else known & rated)
        if rated is not None:
            sums[f"unrated_j_{a.name}"] = _energy(~rated)
            sums[f"unrated_parts_{a.name}"] = _parts(~rated & known)
        if intervals:
            small, large = nw.col(f"random_{a.name}").sum(), nw.col(f"large_{a.name}").sum()
            sums[f"var_random_{a.name}"] = variance(small, large)
    return sums


def known_by(by: Sequence[str], amounts: Sequence[Amount]) -> dict[str, str]:
    """Return sums that are unknown where the count beside them is 0."""
    units = {"units": "parts_with_units"} if "unit" in by else {}
    return {f"value_{a.name}": f"parts_known_{a.name}" for a in amounts} | units


def types(by: Sequence[str], amounts: Sequence[Amount]) -> dict[str, Any]:
    """Return the sums' names and types, in the order of the answer's columns."""
    import narwhals as nw

    kinds: dict[str, Any] = {}
    for name in told(by, amounts, intervals=True):
        if name.startswith(("runs", "parts", "unrated_parts")):
            kinds[name] = nw.Int64()
        elif name.startswith("var_"):
            kinds[name] = nw.Float64()
        else:
            scaled = name in {f"value_{a.name}" for a in amounts if a.rate is not None}
            kinds[name] = nw.Decimal(38, 14 if scaled else 6)
    return kinds


def _parts(condition: Expr) -> Expr:
    import narwhals as nw

    return nw.when(condition).then(nw.col("parts")).sum()


def _energy(condition: Expr) -> Expr:
    import narwhals as nw

    return nw.when(condition).then(nw.col("energy")).sum()
