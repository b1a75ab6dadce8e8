"""Closing a period: a manifest of what it held, chained to the last one by hash.

A closed period is never reopened. A record that comes later is a prior-period
adjustment, named as such; what a report prints of an open period is a draft.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import MissingExtraError, RecordError, UsageError
from carbonlens.ledger import activity, layout
from carbonlens.ledger.accounts import Account, account
from carbonlens.ledger.atomic import write_once
from carbonlens.ledger.calendar import Period
from carbonlens.ledger.closes import (
    Adjustment,
    Chain,
    Close,
    ClosedEnergy,
    Span,
    adjustments,
    late_records,
    load,
    times_by_record,
    times_of,
    touches,
)
from carbonlens.ledger.frames import View
from carbonlens.ledger.holdings import Holdings, read_all
from carbonlens.ledger.records import current

_ATTEMPTS: Final = 5
"""How often records and figures are read again when runs are sealed between the two."""


class PeriodStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a period's figures are final.

    Attributes:
        state: ``closed`` when closed periods cover it whole.
        closes: Names of those.
        adjustments: Records that came after the close, or were redacted after it, whether or not
            a later close named them: the figures are no more those of the manifest. What a later
            close of the period itself held already is none of its adjustments.
    """

    period: str
    state: Literal["open", "closed"]
    closes: tuple[str, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()

    @property
    def label(self) -> str:
        """What is printed beside the period's figures.

        ``DRAFT`` for an open period, ``ADJUSTED`` for a closed one whose figures changed, else empty.
        """
        if self.state == "open":
            return "DRAFT"
        return "ADJUSTED" if self.adjustments else ""


def close(  # noqa: PLR0913 - each is a fact of the manifest
    ledger: Path,
    held: Holdings,
    span: Span,
    *,
    now_us: int,
    by: str,
    factor_set: str | None = None,
    inventory: Mapping[str, str] | None = None,
) -> Close:
    """Close a period and return its manifest.

    Args:
        ledger: The ledger's folder.
        held: All its records.
        span: The period.
        now_us: The present, UTC microseconds.
        by: Name or pseudonym of who closes it.
        factor_set: Hash of the factors the figures rest on.
        inventory: Snapshots of the inventory's files that they rest on, file name to id.

    Raises:
        UsageError: If the period is not over, or closed already.
        RecordError: If a part of the ledger cannot be read, or one run was corrected twice: it
            would be left out.
        MissingExtraError: If DuckDB or narwhals is not installed.
        OSError: If the ledger cannot be written.
    """
    refuse_open(span, now_us)
    _refuse_unread(ledger, held)
    chain = load(ledger)
    if chain.findings:
        # A close that does not see the last one would begin a second chain.
        raise RecordError(
            chain.findings[0].message,
            where=chain.findings[0].file,
            mend="restore the file from a copy, then close",
        )
    if span.name in chain.closes and not _is_of(chain.closes[span.name], span):
        raise UsageError(
            "a close of this name covers other days",
            where=span.name,
            mend="close the months of the period, whose names tell them apart",
        )
    covering = period_status(ledger, held, span).closes
    if covering:
        others = [name for name in covering if name != span.name]
        raise UsageError(
            "the period is closed already"
            if span.name in covering
            else f"the period lies in {' and '.join(others)}, closed already",
            where=span.name,
            mend="what came later is a prior-period adjustment: carbonlens ledger verify lists it",
        )
    held, found = _account_of_one_moment(ledger, held, span)
    manifest = _manifest(ledger, held, found, span, chain, now_us=now_us, by=by)
    manifest = msgspec.structs.replace(manifest, inventory=dict(inventory or {}))
    if factor_set is not None:
        manifest = msgspec.structs.replace(manifest, factor_set_sha256=factor_set, factor_set_note=None)
    if chain.heads:
        *others, last = chain.heads
        named = {p: chain.hashes[p] for p in others}
        manifest = msgspec.structs.replace(
            manifest, previous=last, previous_sha256=chain.hashes[last], others=named
        )
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    folder = ledger / layout.CLOSES
    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_once(folder / f"{span.name}.json", content)
    except FileExistsError as error:
        raise UsageError(
            "another host closed the period just now", where=span.name, mend="see: carbonlens ledger verify"
        ) from error
    return manifest


def period_status(ledger: Path, held: Holdings, span: Span) -> PeriodStatus:
    """Return whether a period is closed, and what came after its close.

    Args:
        ledger: The ledger's folder.
        held: All its records.
        span: The period.

    Raises:
        OSError: If the folder cannot be read.
    """
    chain = load(ledger)
    covering = _covering(span, chain.closes.values())
    own = {c.period: c for c in covering}
    late = [
        a
        for a in adjustments(ledger, held, chain)
        if a.period in own and not _is_held(a, own[a.period], covering, span)
    ]
    return PeriodStatus(
        period=span.name,
        state="closed" if covering else "open",
        closes=tuple(c.period for c in covering),
        adjustments=tuple(late),
    )


def label_of(ledger: Path, span: Span) -> str:
    """Return ``PeriodStatus.label`` of a period; records are read where it is closed only.

    Args:
        ledger: The ledger's folder.
        span: The period.

    Raises:
        OSError: If the folder cannot be read.
    """
    return period_status(ledger, read_all(ledger), span).label if is_closed(ledger, span) else "DRAFT"


def is_closed(ledger: Path, span: Span) -> bool:
    """Return whether closed periods cover a period whole; reads no record.

    Args:
        ledger: The ledger's folder.
        span: The period.

    Raises:
        OSError: If the folder cannot be read.
    """
    return bool(_covering(span, load(ledger).closes.values()))


def refuse_open(span: Span, now_us: int) -> None:
    """Refuse to close a period before its end.

    Args:
        span: The period.
        now_us: The present, UTC microseconds.

    Raises:
        UsageError: If it is not over.
    """
    if span.end_us > now_us:
        raise UsageError("the period is not over", where=span.name, mend="close it after its last day")


def inventories_of(ledger: Path, span: Span) -> dict[str, Mapping[str, str]]:
    """Return the snapshots of the inventory that each close of a closed period names, by its name.

    Closes that name none, as those of older versions, are left out.

    Args:
        ledger: The ledger's folder.
        span: The period.

    Raises:
        OSError: If the folder cannot be read.
    """
    return {c.period: c.inventory for c in _covering(span, load(ledger).closes.values()) if c.inventory}


def factor_sets_of(ledger: Path, span: Span) -> dict[str, str]:
    """Return the hash of the factor set that each close of a closed period names, by its name.

    Args:
        ledger: The ledger's folder.
        span: The period.

    Raises:
        OSError: If the folder cannot be read.
    """
    closes = _covering(span, load(ledger).closes.values())
    return {c.period: c.factor_set_sha256 for c in closes if c.factor_set_sha256 is not None}


def _manifest(  # noqa: PLR0913 - each is a fact of the manifest
    ledger: Path,
    held: Holdings,
    found: Account,
    span: Span,
    chain: Chain,
    *,
    now_us: int,
    by: str,
) -> Close:
    times = times_by_record(held)
    # A correction that moved a run out of the period belongs to it too: it says why one is missing.
    inside = [r for r in held.records if any(touches(*t, span) for t in times[id(r)])]
    rows = {
        kind.folder: sorted(
            sha
            for record, sha in activity.read_stored(ledger / kind.folder, kind)[0]
            if touches(*times_of(record), span)
        )
        for kind in activity.KINDS.values()
    }
    return Close(
        period=span.name,
        start_us=span.start_us,
        end_us=span.end_us,
        closed_us=now_us,
        by=by,
        runs=tuple(sorted(r.sha256 for r in inside)),
        readings=tuple(rows["readings"]),
        charges=tuple(rows["charges"]),
        snapshots=tuple(rows["snapshots"]),
        adjustments=tuple(late_records(ledger, held, chain)),
        counting=sum(t.runs for t in found.totals),
        energy=tuple(
            ClosedEnergy(
                boundary=t.boundary, energy_j=t.energy.exact, is_whole=t.energy.estimate.state == "known"
            )
            for t in found.totals
        ),
        unknown_energy=found.unknown_runs,
        reporting_timezone=span.reporting_timezone,
        fiscal_year_start=span.fiscal_year_start,
    )


def _account_of_one_moment(ledger: Path, held: Holdings, span: Span) -> tuple[Holdings, Account]:
    """Return records and figures that belong together, though runs may be sealed meanwhile.

    Raises:
        RecordError: If records come faster than the ledger is read.
    """
    for _ in range(_ATTEMPTS):
        found = _account(ledger, span)
        now = read_all(ledger)
        _refuse_unread(ledger, now)
        if {r.sha256 for r in now.records} == {r.sha256 for r in held.records}:
            return now, found
        held = now
    raise RecordError(
        "records come while the period is closed", where=span.name, mend="close it when none are written"
    )


def _account(ledger: Path, span: Span) -> Account:
    """Return what a query of the period gives: of each run its hours inside, of shared devices its part."""
    hours = Period(span.start_us // US_PER_HOUR, span.end_us // US_PER_HOUR, span.name)
    with View(ledger, hours) as view:
        return account(view)


def _refuse_unread(ledger: Path, held: Holdings) -> None:
    if held.unread_files:
        raise MissingExtraError("analysis", "duckdb")
    _, broken = current([r.run for r in held.records])
    said = [*held.findings, *broken]
    for kind in activity.KINDS.values():
        said += activity.read(ledger / kind.folder, kind)[1]
    faults = [f for f in said if f.severity == "error"]
    if faults:
        raise RecordError(
            f"{counted(len(faults), 'record')} unreadable, counted twice or corrected twice,"
            f" which a close would leave out: {faults[0].message}",
            where=faults[0].file or faults[0].subject,
            mend="mend what carbonlens ledger verify lists, then close",
        )


def _is_of(one: Close, span: Span) -> bool:
    return (one.start_us, one.end_us) == (span.start_us, span.end_us)


def _covering(span: Span, closes: Iterable[Close]) -> list[Close]:
    """Return the closes that together cover the period, none if they leave a part of it open."""
    inside = sorted((c for c in closes if c.start_us < span.end_us and c.end_us > span.start_us), key=_start)
    upto = span.start_us
    for one in inside:
        if one.start_us > upto:
            break
        upto = max(upto, one.end_us)
    return inside if upto >= span.end_us else []


def _is_held(late: Adjustment, adjusted: Close, covering: Iterable[Close], span: Span) -> bool:
    """Return whether a later close of this period, or of a part of it, had the record in its figures.

    A quarter closed after one of its months holds what came after the month's close.
    """
    return any(
        adjusted.start_us >= c.start_us >= span.start_us
        and adjusted.end_us <= c.end_us <= span.end_us
        and late.sha256 in {*c.runs, *c.readings, *c.charges, *c.snapshots}
        for c in covering
        if c is not adjusted
    )


def _start(one: Close) -> int:
    return one.start_us
