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
from carbonlens.app.sustainability_enclosed import Taken, Wanted, take
from carbonlens.domain.counting import counted
from carbonlens.errors import RecordError
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
    wanted: Wanted = Wanted(),  # noqa: B008  # frozen
) -> tuple[Gathered, Taken]:
    """Return what a report is made of, and what it carries of the same state of its ledger.

    Where the ledger was written to each time, its records stay behind, with the reason.

    Args:
        period: As of ``gather``, like the others.
        inventory: The inventory folder.
        factors: The user's own factors.
        ledger: The ledger's folder.
        now_us: The present, UTC microseconds.
        wanted: What the report is to carry.

    Raises:
        RecordError: If the ledger cannot be read, or its files went away each time.
        CarbonlensError: As of ``gather``.
    """
    gone: RecordError | None = None
    found: tuple[Gathered, Taken] | None = None
    for _ in range(_ATTEMPTS):
        with one_opening(ledger), open_ledger(ledger) as store:
            before = _states(store)
            try:
                gathered = gather(period, inventory=inventory, factors=factors, ledger=ledger, now_us=now_us)
                taken = take(gathered, wanted)
            except RecordError as error:
                gone = error
                continue
            # Runs after the quarter count too: those that share a device over its end move its figures.
            if not taken.records.content or before == _states(store):
                return gathered, taken
        found = gathered, msgspec.structs.replace(taken, records=Packed(why="changing"))
    if found is not None:
        return found
    again = "try again when no compaction or redaction is at work there"
    raise RecordError(
        f"files of the ledger could not be read, or went away, {counted(_ATTEMPTS, 'time')} in a row"
        + (f" ({gone.what})" if gone else ""),
        where=gone.where if gone else None,
        mend=f"{gone.mend}; else {again}" if gone else again,
    ) from gone


def _states(store: Ledger) -> _States:
    """Return what tells two states of the ledger apart; nothing does where its files go away meanwhile."""
    try:
        return states_of(store.path)
    except FileNotFoundError:
        return {"": (time.time_ns(), 0)}
    except OSError as error:
        raise store.unreadable(error) from error
