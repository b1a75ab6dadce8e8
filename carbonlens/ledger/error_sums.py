"""Error sums: the common errors of groups, summed over each source before they are squared.

The error of a shared sensor, model, factor or price does not average away: within
a source one sigma adds up as it is, sources then in quadrature. All sums are of
decimals, which are the same in any order of threads; floats are made of them last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from carbonlens.ledger import schema
from carbonlens.ledger.amounts import (
    Amount,
    at_float_rate,
    at_rate,
    exact_variance,
    groups_of,
    squares,
    variance,
)

if TYPE_CHECKING:
    import narwhals as nw

    Frame = nw.LazyFrame[Any]
    Expr = nw.Expr


def by_source(parts: Frame, by: Sequence[str], amounts: Sequence[Amount]) -> Frame:
    """Sum the errors of each source in each group.

    Columns: the groups, ``kind``, ``source_id`` and ``u_<amount>``, one sigma as a float.
    """
    import narwhals as nw

    groups = groups_of(by, amounts)
    found = []
    for kind in schema.KINDS:
        u = nw.col(f"u_{kind}_j")
        sums = {a.name: at_rate(u, a).sum() for a in amounts}
        found.append(_of_kind(parts, groups, kind, sums, amounts))
    for a in amounts:
        if a.rate is not None:
            # A rate's error is relative: it goes with what the rate made.
            relative = nw.col(f"{a.rate}_u_relative")
            share = at_float_rate(nw.col("energy_j"), a) * relative
            sums = {a.name: share.cast(exact_variance()).sum()}
            found.append(_of_kind(parts.filter(relative > 0), groups, a.rate, sums, amounts))
    return nw.concat(found, how="vertical")


def variances(parts: Frame, by: Sequence[str], amounts: Sequence[Amount]) -> Frame:
    """Sum the squares over a group's sources: ``var_common_<amount>``, floats."""
    import narwhals as nw

    groups = groups_of(by, amounts)
    sums: dict[str, Expr] = {}
    for a in amounts:
        small, large = squares(nw.col(f"u_{a.name}"))
        sums |= {f"small_{a.name}": small.sum(), f"large_{a.name}": large.sum()}
    found = by_source(parts, by, amounts).group_by(*groups).agg(**sums)
    names = {a.name: (nw.col(f"small_{a.name}"), nw.col(f"large_{a.name}")) for a in amounts}
    return found.select(*groups, **{f"var_common_{n}": variance(*pair) for n, pair in names.items()})


def _of_kind(
    parts: Frame, groups: Sequence[str], kind: str, sums: dict[str, Expr], amounts: Sequence[Amount]
) -> Frame:
    import narwhals as nw

    source = nw.col(f"{kind}_source_id")
    summed = (
        parts.filter(~source.is_null())
        .group_by(*groups, source.name.keep())
        .agg(**{f"u_{name}": u for name, u in sums.items()})
    )
    columns = {
        f"u_{a.name}": (nw.col(f"u_{a.name}") if a.name in sums else nw.lit(None)).cast(nw.Float64)
        for a in amounts
    }
    return summed.select(*groups, kind=nw.lit(kind), source_id=source, **columns)
