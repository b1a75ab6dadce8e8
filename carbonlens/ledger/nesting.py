"""Nesting: which runs that name a parent stand for themselves all the same.

A run inside another is never added to it. Where the ledger does not hold the parent, or
where parents go in a circle, nothing above it would count, so the run does; as
``accounting.allocation`` has it. Whether a parent is held is asked of the whole ledger:
a period must not make a root of a run whose parent has no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.ledger.footers import Footer
from carbonlens.ledger.parquet import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NAMED: Final = 5

Parents = Mapping[str, str | None]
"""Run id to the parent it names; an id that is not in it is not held."""


class Nesting(msgspec.Struct, frozen=True, kw_only=True):
    """What runs stand for themselves, told by the parents they name.

    Attributes:
        missing: Parents that the ledger does not hold.
        circling: Parents above which the circle never ends.
    """

    missing: frozenset[str] = frozenset()
    circling: frozenset[str] = frozenset()

    @property
    def findings(self) -> list[Finding]:
        """What must be said about it."""
        if not self.circling:
            return []
        names = sorted(self.circling)
        shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        return [
            Finding(
                code="CL525",
                severity="warning",
                message=f"parents go in a circle over {counted(len(names), 'run')} ({shown}): each run stands"
                " for itself, also those inside them",
                subject=names[0],
                mend="correct one: carbonlens runs supersede RUN --by parent_run_id=null",
            )
        ]


def nesting(named: Collection[str], above: Parents, look_up: Callable[[Collection[str]], Parents]) -> Nesting:
    """Return which of the named parents do not hold, and which go in a circle.

    Args:
        named: Parents that runs name.
        above: Those among the runs looked at, to the parent that they name.
        look_up: Returns of ids those that are held anywhere, and the parent each names.
    """
    known: dict[str, str | None] = dict(above)
    missing: set[str] = set()
    asked = set(named) - known.keys()
    asked |= {p for p in known.values() if p is not None} - known.keys()
    while asked:
        found = look_up(asked)
        missing |= asked - found.keys()
        known |= found
        asked = {p for p in found.values() if p is not None} - known.keys() - missing
    circling = frozenset(i for i in known if _goes_round(i, known))
    return Nesting(missing=frozenset(missing), circling=circling)


def parents_in_files(
    connection: DuckDBPyConnection, files: Iterable[Footer], ids: Collection[str]
) -> dict[str, str | None]:
    """Return those of the ids that lie in these files, and the parent that each names."""
    holding = [f.file for f in files if ids and f.may_hold(min(ids), max(ids))]
    if not holding:
        return {}
    scan = f"read_parquet([{', '.join(quoted(f) for f in holding)}])"
    query = f"SELECT run_id, max(parent_run_id) FROM {scan} WHERE is_first AND run_id IN (SELECT unnest(?)) GROUP BY run_id"  # noqa: E501, S608  # our own names and quoted paths: SQL takes no parameter there
    return dict(connection.execute(query, [sorted(ids)]).fetchall())


def _goes_round(run_id: str, known: Parents) -> bool:
    met = {run_id}
    here = known.get(run_id)
    while here is not None and here not in met:
        met.add(here)
        here = known.get(here)
    return here is not None
