"""Use case part: gather a quarter's report and take what it carries from the same state of its ledger.

Runs are sealed and files compacted while a report is made. Records of another state than that of its
figures would show an honest report to be wrong.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.app.sustainability import Gathered, gather
from carbonlens.app.sustainability_carried import Packed, states_of
from carbonlens.app.sustainability_enclosed import Taken, take
from carbonlens.domain.counting import counted
from carbonlens.errors import RecordError
from carbonlens.ledger import layout
from carbonlens.ledger.opening import one_opening, open_ledger
from carbonlens.ledger.store import Ledger

_States = Mapping[str, tuple[int, int]]

_ATTEMPTS: Final = 3
"""How often all is gathered where the ledger is written to meanwhile; it takes seconds each time."""


def gathered_with_files(
    period: str | None = None,
    *,
    inventory: str | Path | None = None,
    factors: str | Path | None = None,
    ledger: str | Path | None = None,
    now_us: int | None = None,
    with_records: bool = True,
) -> tuple[Gathered, Taken]:
    """Return what a report is made of, and what it carries of the same state of its ledger.

    Where the ledger was written to each time, its records stay behind, with the reason.

    Args:
        period: As of ``gather``, like the others.
        inventory: The inventory folder.
        factors: The user's own factors.
        ledger: The ledger's folder.
        now_us: The present, UTC microseconds.
        with_records: Whether the ledger's records travel, where they are few enough.

    Raises:
        RecordError: If the ledger cannot be read, or its files went away each time.
        CarbonlensError: As of ``gather``.
    """
    gone: RecordError | None = None
    found: tuple[Gathered, Taken] | None = None
    for _ in range(_ATTEMPTS):
        with one_opening(ledger), open_ledger(ledger) as store:
            before = _states(store)
            gathered = gather(period, inventory=inventory, factors=factors, ledger=ledger, now_us=now_us)
            try:
                taken = take(gathered, with_records=with_records)
            except RecordError as error:
                gone = error
                continue
            if not taken.records.content or _same(before, _states(store), gathered.end_us):
                return gathered, taken
        found = gathered, msgspec.structs.replace(taken, records=Packed(why="changing"))
    if found is not None:
        return found
    raise RecordError(
        f"files of the ledger could not be read, or went away, {counted(_ATTEMPTS, 'time')} in a row"
        + (f" ({gone.what})" if gone else ""),
        where=gone.where if gone else None,
        mend="check its permissions, and try again when no compaction or redaction is at work there",
    ) from gone


def _states(store: Ledger) -> _States:
    """Return what tells two states of the ledger apart; nothing does where its files go away meanwhile."""
    try:
        return states_of(store.path)
    except FileNotFoundError:
        return {"": (time.time_ns(), 0)}
    except OSError as error:
        raise store.unreadable(error) from error


def _same(before: _States, after: _States, end_us: int) -> bool:
    """Tell whether nothing changed that may move a figure: runs of months after the quarter do not."""
    last = layout.month_of(end_us - 1)

    def counts(name: str) -> bool:
        kind, _, rest = name.partition("/")
        month = rest.partition("/")[0]
        return kind not in (layout.RUNS, layout.MONTHS) or not month.isdigit() or month <= last

    return {n: s for n, s in before.items() if counts(n)} == {n: s for n, s in after.items() if counts(n)}
