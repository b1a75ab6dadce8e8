"""Stored records: decoding, content identity, and which of several counts.

A record may be met several times: copied by hand, compacted while its file
still lies there, imported by two hosts at once. It counts once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.decoding import convert, json_decoder
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex, uuid7_ms
from carbonlens.domain.limits import LEAST_UNITS, has_too_few_units, misfit, oversize
from carbonlens.domain.run import SCHEMA_VERSION, Run
from carbonlens.errors import RecordError
from carbonlens.ledger import migration
from carbonlens.ledger.oddities import hours_fit
from carbonlens.ledger.regular_file import read_regular

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of one record; a year by hours takes a few MiB."""

_TOO_DEEP: Final = "it is nested too deeply"


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it lies in the ledger.

    Attributes:
        run: The record, brought forward to this schema version.
        text: Its JSON as stored, without insignificant white space.
        file: File it was read from.
    """

    run: Run
    text: bytes
    file: str

    @property
    def sha256(self) -> str:
        """Hash of the content as stored: the same in a file, a batch and a compacted month."""
        return sha256_hex(self.text)

    @property
    def key(self) -> tuple[str | None, str]:
        """What makes two records one run: imported ids are unique within a study only."""
        return self.run.study, self.run.run_id


def minified(raw: bytes) -> bytes:
    """Return JSON without insignificant white space; its hash is the content's identity.

    Raises:
        msgspec.DecodeError: If it is no JSON.
    """
    try:
        return msgspec.json.format(raw, indent=-1)
    except RecursionError as error:
        raise msgspec.DecodeError(_TOO_DEEP) from error


def content_sha256(raw: bytes) -> str:
    """Return the hash of a record's content, however it is indented.

    Raises:
        msgspec.DecodeError: If it is no JSON.
    """
    return sha256_hex(minified(raw))


def decode(raw: bytes) -> Run:
    """Return the record, brought forward where it is of an older schema version.

    Raises:
        NewerSchemaError: If it is of a newer one.
        RecordError: If its schema version makes no sense.
        msgspec.MsgspecError: If it is no run.
        UnicodeDecodeError: If it is no text.
    """
    try:
        return _decoded(raw)
    except RecursionError as error:
        raise msgspec.DecodeError(_TOO_DEEP) from error


@cache
def _decoder() -> msgspec.json.Decoder[Run]:
    """Return what decodes a record; `carbonlens run`, which writes one only, is spared making it."""
    return json_decoder(Run)


def _decoded(raw: bytes) -> Run:
    try:
        run = _decoder().decode(raw)
    except msgspec.ValidationError:
        # A newer or older record need not fit this version's fields: look at its version first.
        plain = msgspec.json.decode(raw)
        if not isinstance(plain, dict) or migration.version_of(plain) == SCHEMA_VERSION:
            raise
        return convert(migration.forward(plain), Run)
    if run.schema_version == SCHEMA_VERSION:
        return run
    return convert(migration.forward(msgspec.json.decode(raw)), Run, strict=False)


def read_file(file: Path) -> Stored:
    """Read one live run.

    Raises:
        OSError: If it cannot be read, or is no regular file: a pipe would keep the reader waiting.
        RecordError, msgspec.MsgspecError, UnicodeDecodeError: As of ``decode``.
    """
    raw = read_regular(file, at_most=MOST_BYTES)
    return Stored(run=decode(raw), text=minified(raw), file=str(file))


def read_files(files: Iterable[Path]) -> tuple[list[Stored], list[Finding]]:
    """Read live runs; what cannot be read becomes a Finding that names file and mend."""
    found: list[Stored] = []
    findings: list[Finding] = []
    for file in files:
        try:
            stored = read_file(file)
        except FileNotFoundError:
            if file.is_symlink():
                text = "record is left out: it is a link to a file that is not there"
                findings.append(_left_out("CL506", text, file, "restore what it names, or remove the link"))
            # Else compaction on another host took it meanwhile; it lies in a month now.
            continue
        except migration.NewerSchemaError as error:
            findings.append(_left_out("CL502", f"{error.what}; it is left out", file, error.mend))
        except RecordError as error:
            findings.append(_left_out("CL501", f"record is left out: {error.what}", file, error.mend))
        except PermissionError as error:
            text = f"record may not be read and is left out: {error.strerror}"
            findings.append(_left_out("CL506", text, file, "give yourself the right to read it"))
        except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
            text = f"record cannot be read and is left out: {error}"
            findings.append(_left_out("CL501", text, file, "restore the file from a copy"))
        else:
            fit, said = fitting(stored)
            if said is not None:
                findings.append(said)
            if fit is not None and file.stem == fit.run.run_id:
                found.append(fit)
            elif fit is not None:
                text = f"a copy of run {stored.run.run_id} under another name is left out, to count once"
                findings.append(_left_out("CL504", text, file, "remove the copy"))
    return found, findings


def misfitting(stored: Stored) -> Finding | None:
    """Return the Finding of a record whose figures no sum can hold: one would spoil every other."""
    reason = oversize(stored.run)
    if reason is None:
        return None
    text = f"run {stored.run.run_id} is left out: {reason}"
    mend = "check its unit and record it under a new id, then remove it"
    if stored.run.supersedes is not None:
        mend = f"remove it, then correct {stored.run.supersedes} once more"
    return _left_out("CL519", text, stored.file, mend, subject=stored.run.run_id)


def fitting(stored: Stored) -> tuple[Stored | None, Finding | None]:
    """Return a record as sums can hold it, ``None`` if none can, and the Finding of what they cannot.

    Older versions took any number of units above zero. One below the last place of their column
    divides nothing, so that the units are unknown; the run's energy counts as before. They took
    negative figures too: those stand in sums as they are, with a warning.
    """
    unfit = misfitting(stored)
    if unfit is not None:
        return None, unfit
    run = _with_units_that_count(stored.run)
    if run is stored.run:
        return stored, _negative(stored)
    told = Finding(
        code="CL527",
        severity="warning",
        message=f"run {run.run_id} counts {stored.run.units} of its unit, fewer than the {LEAST_UNITS:f} "
        "that a record holds: its units are unknown, its energy counts",
        file=stored.file,
        subject=run.run_id,
        mend="correct it: carbonlens runs supersede RUN --by units=...",
    )
    return msgspec.structs.replace(stored, run=run), told


def _negative(stored: Stored) -> Finding | None:
    reason = misfit(stored.run)
    if reason is None:
        return None
    return Finding(
        code="CL529",
        severity="warning",
        message=f"run {stored.run.run_id} was kept by an older version and counts as it is: {reason}",
        file=stored.file,
        subject=stored.run.run_id,
        mend="correct it: carbonlens runs supersede RUN --by FIELD=VALUE",
    )


def _with_units_that_count(run: Run) -> Run:
    return msgspec.structs.replace(run, units=None) if has_too_few_units(run) else run


def refuse_misfits(runs: Sequence[Run]) -> None:
    """Refuse what no sum can hold, and energy that no period of the run's own times would hold.

    A correction has of its original what it does not change, as an older version took it; who
    writes one refuses wrong figures that it gives (``editing``).

    Raises:
        RecordError: If a figure is no finite number, negative where it cannot be, or larger than a
            column takes, or hours do not fit the run's times and energy.
    """
    for run in runs:
        corrects = run.supersedes is not None
        reason = oversize(run) if corrects else misfit(run)
        if reason is None and not corrects and not hours_fit(run):
            reason = "its hours do not lie inside its times, or do not sum to its energy"
        if reason is not None:
            raise RecordError(
                f"the record cannot be kept: {reason}", where=run.run_id, mend="check the figure and its unit"
            )


def unique(stored: Iterable[Stored]) -> tuple[list[Stored], list[Finding]]:
    """Keep one record a run, the first given.

    Equal content is one record met twice and needs no words. Other content
    under the same id is left out with a Finding.
    """
    first: dict[tuple[str | None, str], Stored] = {}
    findings: list[Finding] = []
    for record in stored:
        earlier = first.setdefault(record.key, record)
        if earlier is record or earlier.text == record.text or earlier.run.says_the_same(record.run):
            continue
        text = f"run {record.run.run_id} is stored twice with different content; only the first counts"
        mend = f"compare it with {earlier.file} and keep one, or record it under a new id"
        findings.append(_left_out("CL505", text, record.file, mend, subject=record.run.run_id))
    return list(first.values()), findings


def current(runs: Sequence[Run]) -> tuple[tuple[Run, ...], tuple[Finding, ...]]:
    """Return the runs that count: of each family of corrections one record.

    A family that ends in two records, or goes in a circle, is a Finding; its
    latest record counts, so that nothing counts twice and nothing vanishes. It stands where
    the first of them stood: a baseline that is imported anew stays before its steps.

    Args:
        runs: All records of a ledger, each once.
    """
    found = families(runs)
    if not found:
        return tuple(runs), ()
    place = {id(run): number for number, run in enumerate(runs)}
    gone: set[int] = set()
    findings: list[Finding] = []
    for family in found:
        leaves = family.leaves
        last = max(leaves or family.runs, key=written_ms)
        gone.update(id(r) for r in family.runs if r is not last)
        place[id(last)] = min(place[id(r)] for r in family.runs)
        if len(leaves) > 1:
            findings.append(_superseded_twice(leaves, last))
        elif not leaves:
            findings.append(_circular(family.runs, last))
    kept = (r for r in runs if id(r) not in gone)
    return tuple(sorted(kept, key=lambda r: place[id(r)])), tuple(findings)


def heirs(runs: Sequence[Run]) -> dict[str, str]:
    """Return the ids of corrected records, each to that of the record which counts in its place.

    Args:
        runs: All records of a ledger, each once.
    """
    found: dict[str, str] = {}
    for family in families(runs):
        last = max(family.leaves or family.runs, key=written_ms)
        found |= {r.run_id: last.run_id for r in family.runs if r is not last}
    return found


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Records that correct each other, directly or over others.

    Attributes:
        runs: All of them, in the order given.
        leaves: Those that none supersedes: one, unless something is wrong.
    """

    runs: tuple[Run, ...]
    leaves: tuple[Run, ...]


def families(runs: Sequence[Run]) -> list[Family]:
    """Return the families of corrections with more than one record."""
    linked = links(runs)
    parent = list(range(len(runs))) if linked else []

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for newer, older in linked:
        parent[root(newer)] = root(older)
    members: dict[int, list[int]] = defaultdict(list)
    for i in sorted({i for link in linked for i in link}):
        members[root(i)].append(i)
    superseded = {older for _, older in linked}
    return [
        Family(
            runs=tuple(runs[i] for i in group), leaves=tuple(runs[i] for i in group if i not in superseded)
        )
        for group in members.values()
    ]


def family_of(run: Run, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return every record of the run's family, itself alone where it has none."""
    for family in families(runs):
        if any(r is run or (r.study, r.run_id) == (run.study, run.run_id) for r in family.runs):
            return family.runs
    return (run,)


def superseded_ids(run: Run) -> tuple[str, ...]:
    """Return the ids of the records that a record corrects; none where it is no correction."""
    return () if run.supersedes is None else (run.supersedes, *run.supersedes_also)


def links(runs: Sequence[Run]) -> list[tuple[int, int]]:
    """Return (successor, superseded) as places in the sequence.

    Args:
        runs: Records, each once.
    """
    newer = [i for i, r in enumerate(runs) if r.supersedes]
    wanted = {name for i in newer for name in superseded_ids(runs[i])}
    by_id: dict[str, list[int]] = defaultdict(list)
    for i, run in enumerate(runs):
        if run.run_id in wanted:
            by_id[run.run_id].append(i)
    return [
        (i, t)
        for i in newer
        for name in superseded_ids(runs[i])
        for t in _meant(runs[i], name, [(t, runs[t]) for t in by_id.get(name, [])])
    ]


def _meant(newer: Run, name: str, targets: Sequence[tuple[int, Run]]) -> list[int]:
    """Return which of the records of one id a correction means.

    Ids of imported runs are unique within a study only: a correction names the study it means,
    and where its record is not there it corrects nothing. One that names none, as older versions
    wrote it, means its own study's, else what was there when it was written.
    """
    if newer.supersedes_study is not None and name == newer.supersedes:
        return [i for i, run in targets if (run.study or "") == newer.supersedes_study]
    if len(targets) > 1:
        own = [(i, run) for i, run in targets if run.study == newer.study]
        at_ms = written_ms(newer)[0]
        targets = own or [(i, run) for i, run in targets if run.recorded_us[0] // 1000 <= at_ms]
        if not own and len({run.study for _, run in targets}) > 1:
            return []
    return [i for i, _ in targets]


def written_ms(run: Run) -> tuple[int, str]:
    """Return when a record was written, as far as it tells, in milliseconds; for ordering."""
    stamped = uuid7_ms(run.run_id)
    return (run.recorded_us[0] // 1000 if stamped is None else stamped), run.run_id


def _superseded_twice(leaves: Sequence[Run], last: Run) -> Finding:
    names = ", ".join(r.run_id for r in leaves)
    return Finding(
        code="CL507",
        severity="error",
        message=f"one run was corrected twice ({names}); only the latest counts, {last.run_id}",
        subject=last.run_id,
        mend="settle it by one more correction or tag: it supersedes all of them",
    )


def _circular(circle: Sequence[Run], last: Run) -> Finding:
    names = ", ".join(r.run_id for r in circle)
    return Finding(
        code="CL508",
        severity="error",
        message=f"corrections go in a circle ({names}); only the latest counts, {last.run_id}",
        subject=last.run_id,
        mend="supersede it by a record that is right",
    )


def _left_out(code: str, text: str, file: Path | str, mend: str, subject: str | None = None) -> Finding:
    return Finding(code=code, severity="error", message=text, file=str(file), mend=mend, subject=subject)
