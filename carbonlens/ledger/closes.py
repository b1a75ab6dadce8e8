"""Closed periods as they lie in the ledger: manifests, and what came after them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

import msgspec

from carbonlens._version import __version__
from carbonlens.domain.decoding import convert, decode_json
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import Run
from carbonlens.domain.snapshot import Snapshot
from carbonlens.domain.units import Boundary
from carbonlens.errors import RecordError
from carbonlens.ledger import activity, layout, migration, records, redaction
from carbonlens.ledger.holdings import Holdings
from carbonlens.ledger.regular_file import read_regular
from carbonlens.ledger.superseding import Activity

NO_FACTOR_SET: Final = "no factor set was named: figures rest on the factors a report names"


VERSION: Final = 2
"""Of manifests. Version 1 had one energy over all boundaries."""

_TOO_DEEP: Final = "it is nested too deeply"

_MOST_BYTES: Final = 1 << 30
"""Of a manifest; a million records take 70 MB."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A period as instants, UTC microseconds, end exclusive; made by the calendar.

    Attributes:
        name: Of the period and of the calendar it is meant in: two quarters of one name differ.
        reporting_timezone: IANA name of the zone; ``None`` where a manifest does not say.
        fiscal_year_start: Month the fiscal year begins in; ``None`` where a manifest does not say.
    """

    name: str
    start_us: int
    end_us: int
    reporting_timezone: str | None = "UTC"
    fiscal_year_start: int | None = 1


class Adjustment(msgspec.Struct, frozen=True, kw_only=True):
    """A record that changes a closed period's figures: an adjustment of it for ever.

    Attributes:
        period: The closed period.
        sha256: Hash of the record as it is now.
        name: Its id.
        kind: Whether it came after the close, or was redacted after it.
        taken_up: The later close that names it; ``None`` until there is one.
    """

    period: str
    sha256: str
    name: str
    kind: Literal["late", "redacted"] = "late"
    taken_up: str | None = None


class ClosedEnergy(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of one boundary: those of two are never added.

    Attributes:
        boundary: ``None`` where the sources do not say.
        energy_j: As far as known; ``None`` where nothing is.
        is_whole: Whether all of it is known; ``None`` where the manifest does not say.
    """

    boundary: Boundary | None = None
    energy_j: Decimal | None = None
    is_whole: bool | None = None


class Close(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of a closed period.

    Attributes:
        period: Its name, also that of its file.
        start_us, end_us: Its instants: the calendar of that time is not needed to check it.
        runs, readings, charges, snapshots: Hashes of the records that touch it, sorted.
        adjustments: Records of periods closed before that came after their close.
        counting: Runs that counted.
        energy: Their energy by boundary, as far as known.
        unknown_energy: How many runs with a part in it have an energy that is unknown, or known in part.
        reporting_timezone, fiscal_year_start: The calendar it was meant in; ``None`` where it is
            not known, as in manifests of version 1.
        factor_set_sha256: Hash of the factors the figures rest on.
        factor_set_note: Why there is none.
        inventory: Snapshots of the inventory's files that they rest on, file name to id.
        previous: Period closed before, ``None`` for the first.
        previous_sha256: Hash of that period's manifest.
        others: Further periods that no close named yet, closed at once on several hosts: to their hashes.
        by: Name or pseudonym of who closed it.
    """

    period: str
    start_us: int
    end_us: int
    closed_us: int
    by: str
    runs: tuple[str, ...]
    readings: tuple[str, ...] = ()
    charges: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    counting: int
    energy: tuple[ClosedEnergy, ...] = ()
    unknown_energy: int
    reporting_timezone: str | None = None
    fiscal_year_start: int | None = None
    factor_set_sha256: str | None = None
    factor_set_note: str | None = NO_FACTOR_SET
    inventory: Mapping[str, str] = {}
    previous: str | None = None
    previous_sha256: str | None = None
    others: Mapping[str, str] = {}
    carbonlens: str = __version__
    schema_version: int = VERSION

    @property
    def partial(self) -> frozenset[Boundary | None]:
        """Boundaries of whose energy a part is unknown, or may be, where it does not say of which."""
        is_all = self.unknown_energy == 0
        whole = [is_all if e.is_whole is None else e.is_whole for e in self.energy]
        return frozenset(e.boundary for e, is_whole in zip(self.energy, whole, strict=True) if not is_whole)

    @property
    def hashes(self) -> frozenset[str]:
        """Hashes of everything it holds, adjustments too."""
        parts = (self.runs, self.readings, self.charges, self.snapshots, [a.sha256 for a in self.adjustments])
        return frozenset(h for part in parts for h in part)


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """The manifests there are: by period, with the hash of each file."""

    closes: Mapping[str, Close]
    hashes: Mapping[str, str]
    findings: tuple[Finding, ...] = ()

    @property
    def heads(self) -> list[str]:
        """Periods that no later close names; one, unless two hosts closed at once."""
        named = {p for c in self.closes.values() for p in (c.previous, *c.others)}
        return sorted((p for p in self.closes if p not in named), key=lambda p: self.closes[p].closed_us)


def load(ledger: Path) -> Chain:
    """Read the manifests; a damaged one is a Finding.

    Raises:
        OSError: If the folder cannot be read.
    """
    closes: dict[str, Close] = {}
    hashes: dict[str, str] = {}
    findings: list[Finding] = []
    for file in layout.files_in(ledger / layout.CLOSES, ".json"):
        try:
            content = read_regular(file, at_most=_MOST_BYTES)
            closes[file.stem] = decode(content)
            hashes[file.stem] = sha256_hex(content)
        except RecordError as error:
            findings.append(fault(f"the manifest of {file.stem}: {error.what}", file, error.mend))
        except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
            text = f"the manifest of {file.stem} cannot be read: {error}"
            findings.append(fault(text, file, "restore the file from a copy"))
    return Chain(closes=closes, hashes=hashes, findings=tuple(findings))


def decode(content: bytes) -> Close:
    """Return a manifest, brought forward where it is of an older version.

    Raises:
        RecordError: If it is of a newer version.
        msgspec.MsgspecError: If it is none.
        UnicodeDecodeError: If it is no text.
    """
    try:
        plain = msgspec.json.decode(content)
    except RecursionError as error:
        raise msgspec.DecodeError(_TOO_DEEP) from error
    if not isinstance(plain, dict) or migration.version_of(plain) == VERSION:
        return decode_json(content, Close)
    return convert(migration.forward(plain, steps=_STEPS, to=VERSION), Close, strict=False)


def _by_boundary(plain: migration.Plain) -> migration.Plain:
    """Leave version 1: its one energy does not say of which boundary it is."""
    energy = {"boundary": None, "energy_j": plain.get("energy_j")}
    # Nor did it say of which calendar its period is.
    unsaid = {"reporting_timezone": None, "fiscal_year_start": None}
    return {**unsaid, **{k: v for k, v in plain.items() if k != "energy_j"}, "energy": [energy]}


_STEPS: Final[Mapping[int, migration.Step]] = {1: _by_boundary}


def adjustments(ledger: Path, held: Holdings, chain: Chain) -> list[Adjustment]:
    """Return every adjustment of the closed periods: those that a later close named, and those since."""
    named = [
        msgspec.structs.replace(a, taken_up=close.period)
        for close in sorted(chain.closes.values(), key=lambda c: c.closed_us)
        for a in close.adjustments
    ]
    return [*named, *late_records(ledger, held, chain)]


def late_records(ledger: Path, held: Holdings, chain: Chain) -> list[Adjustment]:
    """Return records of closed periods that no manifest holds as they are now."""
    if not chain.closes:
        return []
    taken = frozenset[str]().union(*(c.hashes for c in chain.closes.values()))
    before = originals(ledger)
    ordered = sorted(chain.closes.values(), key=lambda c: c.start_us)
    late: list[Adjustment] = []
    for name, sha, times in everything(ledger, held):
        if sha in taken:
            continue
        was = before.get(sha, frozenset[str]())
        holding = _adjusted_by(ordered, was)
        if holding:
            late += [Adjustment(period=p, sha256=sha, name=name, kind="redacted") for p in holding]
            continue
        # Every period it has a part in: a run may lie over the end of one, a correction may move it.
        touched = [c.period for c in ordered if any(touches(*t, span_of(c)) for t in times)]
        late += [Adjustment(period=p, sha256=sha, name=name) for p in touched]
    return late


def _adjusted_by(ordered: Sequence[Close], was: Collection[str]) -> list[str]:
    """Return the periods whose figures hold a record: those it was closed with, or was an adjustment of."""
    found: dict[str, None] = {}
    for close in ordered:
        own = (*close.runs, *close.readings, *close.charges, *close.snapshots)
        if not set(own).isdisjoint(was):
            found[close.period] = None
        # The close that names an adjustment has none of it in its own figures.
        found |= dict.fromkeys(a.period for a in close.adjustments if a.sha256 in was)
    return list(found)


Times = tuple[int | None, int | None]
"""Start and end, UTC microseconds."""


def everything(ledger: Path, held: Holdings) -> Iterable[tuple[str, str, Sequence[Times]]]:
    """Yield name, hash and times of every record, of runs and others; see ``times_by_record``."""
    times = times_by_record(held)
    for record in held.records:
        yield record.run.run_id, record.sha256, times[id(record)]
    if held.unread_files:
        return
    for kind in activity.KINDS.values():
        for row, sha in activity.read_stored(ledger / kind.folder, kind)[0]:
            yield str(getattr(row, kind.id_field)), sha, [times_of(row)]


def times_by_record(held: Holdings) -> dict[int, list[Times]]:
    """Return when each record has a part: in its own time, and in that of what it corrects.

    The key is the record's ``id()``. A correction that moves a run to another month
    changes the figures of both, and where one run was corrected twice, of a third.
    """
    replaced: dict[int, list[Run]] = {}
    for family in records.families([r.run for r in held.records]):
        for run in family.runs:
            if run.supersedes:
                others = (r for r in family.runs if r is not run)
                own = records.superseded_ids(run)
                replaced[id(run)] = [
                    r for r in others if r.run_id in own or not set(own).isdisjoint(records.superseded_ids(r))
                ]
    return {
        id(r): [(x.start_us, x.end_us) for x in (r.run, *replaced.get(id(r.run), ()))] for r in held.records
    }


def span_of(one: Close) -> Span:
    """Return the period of a manifest."""
    return Span(
        name=one.period,
        start_us=one.start_us,
        end_us=one.end_us,
        reporting_timezone=one.reporting_timezone,
        fiscal_year_start=one.fiscal_year_start,
    )


def originals(ledger: Path) -> dict[str, set[str]]:
    """Return, for the hash of a redacted record, its own and those of all it was before."""
    stones, _ = redaction.tombstones(ledger)
    before = {s.redacted_sha256: s.original_sha256 for s in stones.values()}
    found: dict[str, set[str]] = {}
    for sha in before:
        chain = {sha}
        here = sha
        while here in before and before[here] not in chain:
            here = before[here]
            chain.add(here)
        found[sha] = chain
    return found


def touches(start_us: int | None, end_us: int | None, span: Span) -> bool:
    """Tell whether something that took this time has a part in the period."""
    if start_us is None or start_us >= span.end_us:
        return False
    return start_us >= span.start_us or (end_us is not None and end_us > span.start_us)


def times_of(record: Activity) -> tuple[int | None, int | None]:
    """Return start and end of a row that is no run."""
    if isinstance(record, Snapshot):
        return record.taken_us, None
    return record.start_us, record.end_us


def file_of(ledger: Path, period: str) -> Path:
    """Return where the manifest of a period lies."""
    return ledger / layout.CLOSES / f"{period}.json"


def fault(text: str, file: Path, mend: str) -> Finding:
    """Return the Finding of a chain that does not hold."""
    return Finding(code="CL511", severity="error", message=text, file=str(file), mend=mend)
