"""Use case: list and show the ledger's runs; seal what dead processes left."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_error import billed_run
from carbonlens.accounting.allocation_totals import Totals, totals
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.errors import SelectionError
from carbonlens.ledger.location import locate
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger, LedgerView
from carbonlens.metering.deposit import fallback_ledger
from carbonlens.metering.recovery import Recovery, recover

_SHORTEST_ID = 4
_MOST_STUDIES = 5


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that lie in the state folder, because their own ledger could not be written."""

    ledger: str
    runs: int


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one ledger.

    Attributes:
        runs: Oldest first, the ones still running last.
        recovered: Runs of this ledger sealed just now.
        unread_batches: Imported batches that need the ``analysis`` extra.
        billed: The same runs with the energy that each is billed of shared devices.
        totals: What the runs add up to, each joule once.
        kept_elsewhere: Where runs lie that did not reach their ledger; ``None`` without any.
    """

    ledger: str
    runs: tuple[Run, ...]
    recovered: tuple[Run, ...] = ()
    findings: tuple[Finding, ...] = ()
    unread_batches: int = 0
    billed: tuple[Run, ...] = ()
    totals: Totals
    kept_elsewhere: Elsewhere | None = None


def list_runs(*, ledger: str | Path | None = None, study: str | None = None) -> Listing:
    """Return the runs of a ledger, after sealing stale journals.

    Shared devices are divided among all runs of the ledger, also those that
    ``study`` leaves out.

    Args:
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        study: Only runs of this study.

    Raises:
        SelectionError: If a ledger or study is named that is not there.
    """
    store, found, view = _read(ledger)
    runs, notes = _current(store, found, view)
    if ledger is not None and not runs and not store.path.is_dir():
        raise SelectionError("the ledger is not there", where=str(store.path), mend="check --ledger")
    kept = tuple(r for r in runs if study is None or r.study == study)
    if study is not None and not kept:
        raise SelectionError(
            f"no run of a study {study!r}", where=str(store.path), mend=_studies(r.study for r in runs)
        )
    allocation = allocate(runs)
    return Listing(
        ledger=str(store.path),
        runs=kept,
        recovered=_recovered(found, store),
        findings=(*view.findings, *notes, *_damaged(found), *allocation.findings),
        unread_batches=view.unread_batches,
        billed=tuple(billed_run(r, allocation) for r in kept),
        totals=totals(runs, allocation, {r.run_id for r in kept}),
        kept_elsewhere=_kept_elsewhere(store),
    )


def recover_runs(*, ledger: str | Path | None = None) -> tuple[Run, ...]:
    """Seal stale journals and return the runs that went to this ledger."""
    return _recovered(recover(), Ledger(locate(ledger)))


def find_run(text: str, *, ledger: str | Path | None = None) -> Run:
    """Return the run whose id is, starts or ends with the text.

    Raises:
        SelectionError: If there is none, or more than one.
    """
    store, found, view = _read(ledger)
    runs, _ = _current(store, found, view)
    exact = [r for r in runs if r.run_id == text]
    if len(exact) == 1:
        return exact[0]
    partial = (
        [r for r in runs if r.run_id.startswith(text) or r.run_id.endswith(text)]
        if len(text) >= _SHORTEST_ID and not exact
        else exact
    )
    if len(partial) == 1:
        return partial[0]
    if partial:
        raise SelectionError(
            f"{len(partial)} runs match {text!r}", where=str(store.path), mend="give more of the run id"
        )
    raise SelectionError(f"no run {text!r}", where=str(store.path), mend="list them with: carbonlens runs")


def _read(ledger: str | Path | None) -> tuple[Ledger, Recovery, LedgerView]:
    store = Ledger(locate(ledger))
    if store.path.exists() and not store.path.is_dir():
        raise SelectionError("the ledger is no folder", where=str(store.path), mend="check --ledger")
    found = recover()
    return store, found, store.view()


def _current(store: Ledger, found: Recovery, view: LedgerView) -> tuple[tuple[Run, ...], tuple[Finding, ...]]:
    """Return the records that count, the runs still running last, and what is wrong with corrections."""
    return current((*view.runs, *_running(found, store)))


def _studies(names: Iterable[str | None]) -> str:
    known = sorted({n for n in names if n is not None})
    shown = ", ".join(known[:_MOST_STUDIES]) + (", ..." if len(known) > _MOST_STUDIES else "")
    return f"there are: {shown}" if known else "list all: carbonlens runs"


def _damaged(found: Recovery) -> tuple[Finding, ...]:
    """Say of journals that no run could be made of."""
    if not found.damaged:
        return ()
    count = len(found.damaged)
    return (
        Finding(
            code="CL159",
            severity="warning",
            message=f"{count} journal{'s' if count > 1 else ''} of killed runs cannot be read: moved aside",
            file=str(found.damaged[0].parent),
            mend="nothing can be recovered from them; remove the folder if you do not need it",
        ),
    )


def _kept_elsewhere(store: Ledger) -> Elsewhere | None:
    try:
        place = fallback_ledger()
        count = 0 if _same(place, store.path) else sum(1 for _ in (place / "runs").glob("*/*.json"))
    except OSError:
        return None
    return Elsewhere(ledger=str(place), runs=count) if count else None


def _recovered(found: Recovery, store: Ledger) -> tuple[Run, ...]:
    return tuple(d.run for d in found.recovered if d.ledger is not None and _same(d.ledger, store.path))


def _running(found: Recovery, store: Ledger) -> tuple[Run, ...]:
    return tuple(r.run for r in found.running if _same(r.ledger, store.path))


def _same(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()
