"""Use case: list and show the ledger's runs; seal what dead processes left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_error import billed_run
from carbonlens.accounting.allocation_totals import Totals, totals
from carbonlens.accounting.job_runs import JobRun, billed, job_runs
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import is_hidden_as
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import SelectionError
from carbonlens.ledger.location import address_of, is_address
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.records import current, family_of, heirs
from carbonlens.ledger.store import Ledger, LedgerView
from carbonlens.metering.deposit import fallback_ledger
from carbonlens.metering.recovery import Recovery, recover

_SHORTEST_ID = 4

LATEST = "latest"
"""Stands for the id of the run that began last."""

_MOST_STUDIES = 5

_READ_FOR_RANKS = 500
"""So many of the newest are read where ranks are among them: a job's runs are to be there whole."""

_APART_US = 60 * US_PER_S
"""The ranks of a job begin within this time: what began so long before them is none of it."""


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that lie in the state folder, because their own ledger could not be written."""

    ledger: str
    runs: int


class ListedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What several ranks recorded together.

    Attributes:
        run: Their runs, as far as they were read.
        billed: What they are billed; ``None`` where nothing tells that all of them were read.
    """

    run: JobRun
    billed: Estimate | None = None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one ledger.

    Attributes:
        runs: Oldest first, the ones still running last.
        recovered: Runs of this ledger sealed just now.
        unread_batches: Imported batches that need the ``analysis`` extra.
        billed: The same runs with the energy that each is billed of shared devices.
        totals: What the runs add up to, each joule once; ``None`` where only the newest were read.
        kept_elsewhere: Where runs lie that did not reach their ledger; ``None`` without any.
        jobs: Which of the runs are parts of one, recorded by several ranks.
    """

    ledger: str
    runs: tuple[Run, ...]
    recovered: tuple[Run, ...] = ()
    findings: tuple[Finding, ...] = ()
    unread_batches: int = 0
    billed: tuple[Run, ...] = ()
    totals: Totals | None = None
    kept_elsewhere: Elsewhere | None = None
    jobs: tuple[ListedJob, ...] = ()


def list_runs(
    *, ledger: str | Path | None = None, study: str | None = None, newest: int | None = None
) -> Listing:
    """Return the runs of a ledger, after sealing stale journals.

    Shared devices are divided among all runs of the ledger, also those that
    ``study`` leaves out.

    Args:
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        study: Only runs of this study.
        newest: So many lines are enough: of a large ledger older runs are not read, and
            nothing is added up but the ranks of a job.

    Raises:
        SelectionError: If a ledger or study is named that is not there.
    """
    with _opened(ledger) as (store, found):
        return _listing(store, found, ledger, study, newest)


def _listing(
    store: Ledger, found: Recovery, ledger: str | Path | None, study: str | None, newest: int | None
) -> Listing:
    if newest is not None and study is None and store.is_large:
        return _newest(store, found, newest)
    view = store.view()
    runs, notes = _current(store, found, view)
    if ledger is not None and not runs and not store.exists:
        raise SelectionError("the ledger is not there", where=store.shown, mend="check --ledger")
    kept = tuple(r for r in runs if study is None or r.study == study)
    if study is not None and not kept:
        raise SelectionError(
            f"no run of a study {study!r}", where=store.shown, mend=_studies(r.study for r in runs)
        )
    allocation = allocate(runs, heirs(view.runs))
    return Listing(
        ledger=store.shown,
        runs=kept,
        recovered=_recovered(found, store),
        findings=(*view.findings, *notes, *_of_journals(found, store), *allocation.findings),
        unread_batches=view.unread_batches,
        billed=tuple(billed_run(r, allocation) for r in kept),
        totals=totals(runs, allocation, {r.run_id for r in kept}),
        kept_elsewhere=_kept_elsewhere(store),
        jobs=tuple(ListedJob(run=j, billed=billed(j, allocation)) for j in job_runs(kept)),
    )


def _newest(store: Ledger, found: Recovery, most: int) -> Listing:
    last, asked = store.latest(most), most
    if any(
        r.job_id is not None and r.rank is not None for r in (*last.runs, *_running(found, store, last.runs))
    ):
        asked = max(most, _READ_FOR_RANKS)
        last = store.latest(asked)
    runs, notes = current((*reversed(last.runs), *_running(found, store, last.runs)))
    # Of what began before the first that was read nothing is known.
    since = min((r.start_us or 0 for r in last.runs), default=0) if len(last.runs) >= asked else None
    return Listing(
        ledger=store.shown,
        runs=runs if asked > most else runs[-most:],
        recovered=_recovered(found, store),
        findings=(*last.findings, *notes, *_of_journals(found, store)),
        unread_batches=last.unread_files,
        kept_elsewhere=_kept_elsewhere(store),
        jobs=_jobs_since(since, runs),
    )


def _jobs_since(since_us: int | None, runs: Sequence[Run]) -> tuple[ListedJob, ...]:
    """Return the jobs among the newest runs; what one is billed only where all its ranks were read.

    Devices are divided among the runs that were read, as nothing is known of the others.

    Args:
        since_us: When the earliest of the runs began; ``None`` where all of the ledger were read.
        runs: The newest.
    """
    jobs = job_runs(runs)
    if not jobs:
        return ()
    allocation = allocate(runs)
    return tuple(
        ListedJob(run=j, billed=billed(j, allocation) if _is_whole(j, since_us) else None) for j in jobs
    )


def _is_whole(job: JobRun, since_us: int | None) -> bool:
    """Tell whether no rank of a job can have begun before the first run that was read."""
    ranks = [r.rank for r in job.parts]
    if since_us is None:
        return True
    return (
        ranks == list(range(len(ranks))) and job.start_us is not None and job.start_us - since_us >= _APART_US
    )


def recover_runs(*, ledger: str | Path | None = None) -> tuple[Run, ...]:
    """Seal stale journals and return the runs that went to this ledger."""
    with _opened(ledger) as (store, found):
        return _recovered(found, store)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was asked for.

    Attributes:
        superseded_by: Id of the record that counts in its place; ``None`` where it counts itself.
    """

    run: Run
    superseded_by: str | None = None


def find_run(text: str, *, study: str | None = None, ledger: str | Path | None = None) -> Run:
    """Return the run whose id is, starts or ends with the text.

    Args:
        text: Run id, or enough of its start or end, or ``latest``; of a superseded record only
            where no run that counts matches.
        study: Of the run, where several studies have its id.
        ledger: The ledger's folder; found as the command line finds it when ``None``.

    Raises:
        SelectionError: If there is none, or more than one.
    """
    return find_record(text, study=study, ledger=ledger).run


def find_record(text: str, *, study: str | None = None, ledger: str | Path | None = None) -> Found:
    """Return the record whose id is, starts or ends with the text, and what counts in its place.

    Raises:
        SelectionError: As of ``find_run``.
    """
    with _opened(ledger) as (store, found):
        view = store.view()
        runs, _ = _current(store, found, view)
        asked = [r for r in runs if study is None or r.study == study]
        counting = _matching(text, asked) or (_begun_last(asked) if text.lower() == LATEST else [])
        if not counting:
            older = _matching(text, [r for r in view.runs if study is None or r.study == study])
            if len(older) == 1:
                family = {id(r) for r in family_of(older[0], view.runs)}
                (newer,) = [r for r in runs if id(r) in family]
                return Found(run=older[0], superseded_by=newer.run_id)
            counting = older
        if len(counting) == 1:
            return Found(run=counting[0])
        if counting:
            several = len({r.study for r in counting}) > 1 and len({r.run_id for r in counting}) == 1
            mend = "give the run's study too: --study" if several else "give more of the run id"
            raise SelectionError(f"{len(counting)} runs match {text!r}", where=store.shown, mend=mend)
        raise SelectionError(f"no run {text!r}", where=store.shown, mend="list them with: carbonlens runs")


def _matching(text: str, runs: Sequence[Run]) -> list[Run]:
    exact = [r for r in runs if r.run_id == text]
    if exact or len(text) < _SHORTEST_ID:
        return exact
    near = [r for r in runs if r.run_id.startswith(text) or r.run_id.endswith(text)]
    # Tables that leave the house have a pseudonym where an id ends with the name of a host.
    return near or [r for r in runs if is_hidden_as(r.run_id, text)]


def _begun_last(runs: Sequence[Run]) -> list[Run]:
    """Return the run that began last, in a list; of two at once the later id."""
    return [max(runs, key=lambda r: (r.start_us or 0, r.run_id))] if runs else []


@contextmanager
def _opened(ledger: str | Path | None) -> Iterator[tuple[Ledger, Recovery]]:
    """Lend the ledger after sealing stale journals, which may belong into it."""
    found = recover()
    with open_ledger(ledger) as store:
        if store.path.exists() and not store.path.is_dir():
            raise SelectionError("the ledger is no folder", where=store.shown, mend="check --ledger")
        yield store, found


def _current(store: Ledger, found: Recovery, view: LedgerView) -> tuple[tuple[Run, ...], tuple[Finding, ...]]:
    """Return the records that count, the runs still running last, and what is wrong with corrections."""
    return current((*view.runs, *_running(found, store, view.runs)))


def _studies(names: Iterable[str | None]) -> str:
    known = sorted({n for n in names if n is not None})
    shown = ", ".join(known[:_MOST_STUDIES]) + (", ..." if len(known) > _MOST_STUDIES else "")
    return f"there are: {shown}" if known else "list all: carbonlens runs"


def _of_journals(found: Recovery, store: Ledger) -> tuple[Finding, ...]:
    """Say of journals what is in no run: damaged ones, of another version, and of another machine."""
    notes: list[Finding] = []
    if found.damaged:
        notes.append(
            _journals(
                f"{counted(len(found.damaged), 'journal')} of killed runs cannot be read: moved aside",
                str(found.damaged[0].parent),
                "nothing can be recovered from them; remove the folder if you do not need it",
            )
        )
    if found.foreign:
        notes.append(
            _journals(
                f"{counted(len(found.foreign), 'journal')} of another version of carbonlens: not read",
                str(found.foreign[0].parent),
                "`carbonlens runs` of the version that wrote them recovers their runs",
            )
        )
    away = [r for r in found.running if r.elsewhere and _same(r.ledger, store)]
    if away:
        notes.append(
            _journals(
                f"{counted(len(away), 'run is', 'runs are')} of another machine: whether still running "
                "cannot be told from here",
                None,
                "`carbonlens runs` there recovers what was killed",
            )
        )
    return tuple(notes)


def _journals(message: str, file: str | None, mend: str) -> Finding:
    return Finding(code="CL159", severity="warning", message=message, file=file, mend=mend)


def _kept_elsewhere(store: Ledger) -> Elsewhere | None:
    try:
        place = fallback_ledger()
        count = 0 if _same(place, store) else sum(1 for _ in (place / "runs").glob("*/*.json"))
    except OSError:
        return None
    return Elsewhere(ledger=str(place), runs=count) if count else None


def _recovered(found: Recovery, store: Ledger) -> tuple[Run, ...]:
    return tuple(d.run for d in found.recovered if d.ledger is not None and _same(d.ledger, store))


def _running(found: Recovery, store: Ledger, sealed: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs that went on when journals were looked at, and that are not sealed since."""
    ended = {r.run_id for r in sealed}
    return tuple(r.run for r in found.running if _same(r.ledger, store) and r.run.run_id not in ended)


def _same(place: Path, store: Ledger) -> bool:
    if is_address(place):
        return address_of(place) == store.shown
    return store.shown == str(store.path) and place.resolve() == store.path.resolve()
