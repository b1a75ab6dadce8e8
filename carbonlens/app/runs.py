"""Use case: list and show the ledger's runs; seal what dead processes left."""

from __future__ import annotations

from pathlib import Path

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.errors import SelectionError
from carbonlens.ledger.location import locate
from carbonlens.ledger.store import Ledger
from carbonlens.metering.recovery import Recovery, recover

_SHORTEST_ID = 4


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one ledger.

    Attributes:
        runs: Oldest first, the ones still running last.
        recovered: Runs of this ledger sealed just now.
        unread_batches: Imported batches that need the ``analysis`` extra.
    """

    ledger: str
    runs: tuple[Run, ...]
    recovered: tuple[Run, ...] = ()
    findings: tuple[Finding, ...] = ()
    unread_batches: int = 0


def list_runs(*, ledger: str | Path | None = None, study: str | None = None) -> Listing:
    """Return the runs of a ledger, after sealing stale journals.

    Args:
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        study: Only runs of this study.
    """
    store = Ledger(locate(ledger))
    found = recover()
    view = store.view()
    superseded = {r.supersedes for r in view.runs if r.supersedes}
    runs = [r for r in (*view.runs, *_running(found, store)) if r.run_id not in superseded]
    return Listing(
        ledger=str(store.path),
        runs=tuple(r for r in runs if study is None or r.study == study),
        recovered=_recovered(found, store),
        findings=view.findings,
        unread_batches=view.unread_batches,
    )


def recover_runs(*, ledger: str | Path | None = None) -> tuple[Run, ...]:
    """Seal stale journals and return the runs that went to this ledger."""
    return _recovered(recover(), Ledger(locate(ledger)))


def find_run(text: str, *, ledger: str | Path | None = None) -> Run:
    """Return the run whose id is, starts or ends with the text.

    Raises:
        SelectionError: If there is none, or more than one.
    """
    listing = list_runs(ledger=ledger)
    exact = [r for r in listing.runs if r.run_id == text]
    if len(exact) == 1:
        return exact[0]
    partial = (
        [r for r in listing.runs if r.run_id.startswith(text) or r.run_id.endswith(text)]
        if len(text) >= _SHORTEST_ID and not exact
        else exact
    )
    if len(partial) == 1:
        return partial[0]
    if partial:
        raise SelectionError(
            f"{len(partial)} runs match {text!r}", where=listing.ledger, mend="give more of the run id"
        )
    raise SelectionError(f"no run {text!r}", where=listing.ledger, mend="list them with: carbonlens runs")


def _recovered(found: Recovery, store: Ledger) -> tuple[Run, ...]:
    return tuple(d.run for d in found.recovered if d.ledger is not None and _same(d.ledger, store.path))


def _running(found: Recovery, store: Ledger) -> tuple[Run, ...]:
    return tuple(r.run for r in found.running if _same(r.ledger, store.path))


def _same(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()
