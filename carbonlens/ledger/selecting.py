"""Selecting: a view of some of its runs alone, and what runs there are by role, unit and stage."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from carbonlens.accounting.sci_boundary import RunGroup
from carbonlens.ledger import fetching, queries

if TYPE_CHECKING:
    import narwhals as nw

    from carbonlens.ledger.frames import View

STAGE: Final = "stage"
"""Tag by which a run names its stage of the life cycle."""

Kind = tuple[str, str | None, str | None, str | None]
"""Role, stage, unit and study of a group of runs; ``None`` where they state none."""

_KEYS: Final = ("role", "stage", "unit", "step", "study")


def only(view: View, keep: nw.Expr) -> View:
    """Return a view of those rows for which an expression holds; it shares the files of the whole.

    Args:
        view: Open; it stays the one to close.
        keep: Over the columns of ``parts``.
    """
    held = copy.copy(view)
    held.parts = view.parts.filter(keep)
    held.counting = view.counting.filter(keep)
    return held


def in_group(role: str, stage: str | None, unit: str | None, study: str | None) -> nw.Expr:
    """Return what holds for the rows of the runs of a group."""
    import narwhals as nw

    tag = queries.tag(STAGE)
    of_stage = tag.is_null() if stage is None else tag == stage
    of_unit = nw.col("unit").is_null() if unit is None else nw.col("unit") == unit
    of_study = nw.col("study").is_null() if study is None else nw.col("study") == study
    return (nw.col("role") == role) & of_stage & of_unit & of_study


def of_kinds(kinds: Sequence[Kind]) -> nw.Expr:
    """Return what holds for the rows of the runs of any of some groups.

    Args:
        kinds: Arguments of ``in_group``, at least of one.
    """
    return functools.reduce(operator.or_, (in_group(*kind) for kind in kinds))


def run_groups(view: View) -> tuple[RunGroup, ...]:
    """Return the root runs of a view by role, stage, unit, step and study."""
    import narwhals as nw

    parts = queries.roots(view.parts, view.orphans).with_columns(stage=queries.tag(STAGE))
    timed = (~nw.col("end_us").is_null()) | (~nw.col("duration_s").is_null())
    each = parts.group_by(*_KEYS, "run_id").agg(
        units=nw.col("units").sum(),
        has_units=nw.col("units").count(),
        energy_j=nw.col("energy_j").sum(),
        has_energy=nw.col("energy_j").count(),
        timed=nw.when(timed).then(nw.lit(1)).count(),
    )
    one = nw.lit(1)
    rows = each.group_by(*_KEYS).agg(
        runs=nw.col("run_id").count(),
        units=nw.col("units").sum(),
        with_units=nw.when(nw.col("has_units") > 0).then(one).count(),
        energy_j=nw.col("energy_j").sum(),
        with_energy=nw.when(nw.col("has_energy") > 0).then(one).count(),
        timed=nw.when(nw.col("timed") > 0).then(one).count(),
    )
    return tuple(
        RunGroup(
            role=row["role"],
            stage=row["stage"],
            unit=row["unit"],
            step=row["step"],
            study=row["study"],
            runs=row["runs"],
            without_units=row["runs"] - row["with_units"],
            untimed=row["runs"] - row["timed"],
            units=row["units"] if row["with_units"] else None,
            energy_j=row["energy_j"] if row["with_energy"] else None,
        )
        for row in view.rows(rows.sort(*_KEYS, nulls_last=True))
    )


def untimed_runs(view: View) -> int:
    """Return how many root runs of a view state neither an end nor a duration, as ``run_groups`` has them."""
    keys = ", ".join((*_KEYS, "run_id"))
    parts = queries.roots(view.parts, view.orphans).with_columns(stage=queries.tag(STAGE))
    each = f"SELECT {keys} FROM ({fetching.sql_of(parts)}) GROUP BY ALL HAVING "  # noqa: S608  # our own names: SQL takes no parameter there
    each += "count(CASE WHEN end_us IS NOT NULL OR duration_s IS NOT NULL THEN 1 END) = 0"
    ((found,),) = view.run(f"SELECT count(*) FROM ({each})")  # noqa: S608  # likewise
    return int(found)
