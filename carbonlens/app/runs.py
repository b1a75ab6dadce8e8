"""Use case: list and show the ledger's runs; seal what dead processes left."""

from __future__ import annotations

from pathlib import Path

import msgspec

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_error import billed_run
from carbonlens.accounting.allocation_totals import Totals, totals
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.errors import SelectionError
from carbonlens.ledger.location import locate
from carbonlens.ledger.store import Ledger, LedgerView
from carbonlens.metering.recovery import Recovery, recover

_SHORTEST_ID = 4


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one ledger.

    Attributes:
        runs: Oldest first, the ones still running last.
        recovered: Runs of this ledger sealed just now.
        unread_batches: Imported batches that need the ``analysis`` extra.
        billed: The same runs with the energy that each is billed of shared devices.
        totals: What the runs add up to, each joule once.
    """

    ledger: str
    runs: tuple[Run, ...]
    recovered: tuple[Run, ...] = ()
    findings: tuple[Finding, ...] = ()
    unread_batches: int = 0
    billed: tuple[Run, ...] = ()
    totals: Totals


def list_runs(*, ledger: str | Path | None = None, study: str | None = None) -> Listing:
    """Return the runs of a ledger, after sealing stale journals.

    Shared devices are divided among all runs of the ledger, also those that
    ``study`` leaves out.

    Args:
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        study: Only runs of this study.
    """
    store, found, view = _read(ledger)
    runs = _current(store, found, view)
    kept = tuple(r for r in runs if study is None or r.study == study)
    allocation = allocate(runs)
    return Listing(
        ledger=str(store.path),
        runs=kept,
        recovered=_recovered(found, store),
        findings=(*view.findings, *allocation.findings),
        unread_batches=view.unread_batches,
        billed=tuple(billed_run(r, allocation) for r in kept),
        totals=totals(runs, allocation, {r.run_id for r in kept}),
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
    runs = _current(store, found, view)
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
    found = recover()
    return store, found, store.view()


def _current(store: Ledger, found: Recovery, view: LedgerView) -> list[Run]:
    """Return the records that no later one supersedes, the runs still running last."""
    superseded = {r.supersedes for r in view.runs if r.supersedes}
    return [r for r in (*view.runs, *_running(found, store)) if r.run_id not in superseded]


def _recovered(found: Recovery, store: Ledger) -> tuple[Run, ...]:
    return tuple(d.run for d in found.recovered if d.ledger is not None and _same(d.ledger, store.path))


def _running(found: Recovery, store: Ledger) -> tuple[Run, ...]:
    return tuple(r.run for r in found.running if _same(r.ledger, store.path))


def _same(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()
