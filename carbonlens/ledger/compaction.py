"""Compaction: a month's live runs folded into one Parquet file.

Each step leaves the ledger whole: the month's file is written, synced, renamed
and read back, then its manifest likewise, and only then are the files removed
whose records it holds; an older file of the month stays a while for who reads
it (``retiring``). A record met in both counts once, so a crash between two
steps, or two hosts compacting one month, loses and doubles nothing.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from carbonlens._version import __version__
from carbonlens.domain.decoding import decode_json
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.errors import RecordError, SelectionError
from carbonlens.ledger import atomic, layout, parquet, redaction, retiring, samples
from carbonlens.ledger.atomic import sync_folder, write_atomically
from carbonlens.ledger.holdings import each_folder, errors_of, read_files_of
from carbonlens.ledger.records import Stored, content_sha256, read_files, unique
from carbonlens.ledger.regular_file import read_regular

MANIFEST_VERSION: Final = 1

_MOST_BYTES: Final = 1 << 30
"""Of a manifest; a million runs take 110 MB."""

_ATTEMPTS: Final = 5

_Done = TypeVar("_Done")

LEFTOVER_S: Final = 86_400
"""No writer works on one file for a day: an older temporary one is of a writer that was cut off."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a month's file holds and what it was made from; lies beside it as JSON.

    Attributes:
        file: Name of the Parquet file.
        file_sha256: Hash of its bytes.
        records: Run id to the hash of the record's content.
        inputs: File it was folded from to the hash of its bytes.
        compacted_us: When, UTC microseconds.
    """

    month: str
    file: str
    file_sha256: str
    records: Mapping[str, str]
    inputs: Mapping[str, str]
    compacted_us: int
    carbonlens: str = __version__
    schema_version: int = MANIFEST_VERSION


class FoldedMonth(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one month.

    Attributes:
        runs: Records in its file.
        folded: Files removed after their records were in it.
        size_bytes: Size of its file.
    """

    month: str
    runs: int
    folded: int
    size_bytes: int


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction did.

    Attributes:
        months: Months folded; those with nothing to fold are left out.
        left_open: Months left alone because they are not over.
        days: Days whose samples were put into one file.
        findings: Files that could not be read: they stay where they are.
    """

    months: tuple[FoldedMonth, ...] = ()
    left_open: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def compact(
    ledger: Path, *, before: str, months: Sequence[str] | None = None, is_copy: bool = False
) -> Compaction:
    """Fold the live runs of past months.

    Args:
        ledger: The ledger's folder.
        before: The present month ``yyyymm``: it and later ones stay files.
        months: Only these, whether past or not; all past ones when ``None``.
        is_copy: Whether nobody else reads the folder, so that no replaced file needs to stay.

    Raises:
        SelectionError: If months are given and the ledger has nothing of any of them.
        MissingExtraError: If DuckDB is not installed.
        UnwritableError, OSError: If the ledger cannot be written; it is as it was.
    """
    corrections, unread = _corrections(ledger)
    present = {f.name for f in layout.folders_in(ledger / layout.RUNS)} - {layout.CORRECTIONS}
    present |= {f.name for f in layout.folders_in(ledger / layout.MONTHS)} | corrections.keys()
    past = {m for m in present if m < before or m == layout.UNDATED}
    wanted = sorted(past if months is None else present & set(months))
    days = [d for d in samples.days(ledger) if (d[:6] < before if months is None else d[:6] in months)]
    if months is not None and not wanted and not days:
        raise SelectionError(
            "the ledger holds nothing of this month",
            where=", ".join(months),
            mend="carbonlens runs lists the runs and their times",
        )
    done: list[FoldedMonth] = []
    findings: list[Finding] = list(unread)
    for month in wanted:
        try:
            folding = partial(fold, ledger, month, corrections.get(month, ()), is_copy=is_copy)
            folded, more = again_where_gone(folding)
        except RecordError as error:
            # One month that cannot be folded stays as files, and keeps no other from it.
            findings.append(
                Finding(code="CL515", severity="error", message=error.what, file=error.where, mend=error.mend)
            )
            continue
        findings += more
        if folded is not None:
            done.append(folded)
    merged: list[str] = []
    for day in days:
        _, said = each_folder([ledger / layout.SAMPLES / day], ".parquet")
        file, more = (None, []) if said else again_where_gone(partial(samples.merge, ledger, day))
        findings += [*said, *more]
        merged += [day] if file is not None else []
    retiring.remove_retired(ledger, older_than_s=retiring.RETIRED_S)
    atomic.remove_leftovers(ledger, older_than_s=LEFTOVER_S)
    return Compaction(
        months=tuple(done),
        left_open=tuple(sorted(present - past - set(wanted))),
        days=tuple(merged),
        findings=tuple(findings),
    )


def again_where_gone(work: Callable[[], _Done]) -> _Done:
    """Do it again where another host's compaction took a file away meanwhile, as the view does.

    Raises:
        FileNotFoundError: If files still go away.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return work()
        except FileNotFoundError:
            continue
    return work()


def _corrections(ledger: Path) -> tuple[dict[str, list[Path]], list[Finding]]:
    """Return the live corrections by the month of their own start."""
    files, findings = each_folder([ledger / layout.RUNS / layout.CORRECTIONS], ".json")
    records, more = read_files(files)
    found: dict[str, list[Path]] = {}
    for record in records:
        found.setdefault(layout.month_of(record.run.start_us), []).append(Path(record.file))
    return found, [*findings, *more]


def fold(
    ledger: Path, month: str, corrections: Sequence[Path] = (), *, is_copy: bool = False
) -> tuple[FoldedMonth | None, list[Finding]]:
    """Fold one month; ``None`` where it is folded already.

    Args:
        ledger: The ledger's folder.
        month: ``yyyymm`` or ``undated``.
        corrections: Live corrections that start in it; they lie in a folder of their own.
        is_copy: As of ``compact``.
    """
    live, findings = each_folder([ledger / layout.RUNS / month], ".json")
    live += corrections
    parts, more = each_folder([ledger / layout.MONTHS / month], ".parquet")
    without = [p for p in parts if not _has_manifest(p)]
    if not live and len(parts) <= 1 and not without:
        return None, [*findings, *more]
    for part in without:
        _check_name(part)
    records, unread = read_files_of([*parts, *live])
    stones, bad_stones = redaction.tombstones(ledger)
    records = redaction.applied(records, stones)
    kept, doubles = unique(records)
    findings += [*more, *unread, *bad_stones, *doubles]
    if not kept:
        return None, findings
    inputs = {f: _file_sha256(f) for f in {Path(r.file) for r in records}}
    file = write_month(ledger, month, kept, {_relative(f, ledger): sha for f, sha in inputs.items()})
    held = {r.sha256 for r in kept}
    # A file of which a record was left out is the only one that has it.
    partly = {Path(f.file) for f in errors_of(unread) if f.file is not None}
    settled = _wholly_held(records, held) - {file} - partly
    staying = set() if is_copy else {f for f in settled if f.suffix == ".parquet"}
    retiring.retire(staying, file)
    _remove(settled - staying)
    return (
        FoldedMonth(month=month, runs=len(kept), folded=len(settled), size_bytes=file.stat().st_size),
        findings,
    )


def write_month(ledger: Path, month: str, records: Iterable[Stored], inputs: Mapping[str, str]) -> Path:
    """Write a month's file and its manifest, read the file back, and return it.

    Its name is the hash of what it holds: the same records give the same name.

    Raises:
        RecordError: If the file does not read back as it was written.
        UnwritableError, OSError: If it cannot be written.
    """
    ordered = sorted(records, key=lambda r: (r.run.start_us or 0, r.run.run_id, r.run.study or ""))
    hashes = {r.run.run_id: r.sha256 for r in ordered}
    name = name_of(r.sha256 for r in ordered)
    file = ledger / layout.MONTHS / month / f"{name}.parquet"
    # A file of this name may have been retired; what it holds counts again.
    retiring.restore(file)
    write_runs(file, ordered)
    _check_read_back(file, ordered)
    manifest = Manifest(
        month=month,
        file=file.name,
        file_sha256=_file_sha256(file),
        records=hashes,
        inputs=dict(sorted(inputs.items())),
        compacted_us=time.time_ns() // 1000,
    )
    write_atomically(manifest_file(file), msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    return file


def name_of(hashes: Iterable[str]) -> str:
    """Return the name, without its ending, of a month's file that holds records of these hashes."""
    return sha256_hex(" ".join(hashes).encode())[:32]


def _has_manifest(file: Path) -> bool:
    try:
        read_manifest(file)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


def _check_name(file: Path) -> None:
    """Refuse to make a new manifest for a file that is not what its name says.

    Raises:
        RecordError: If the file was altered; one that cannot be read is told by who reads it.
    """
    records, unread = read_files_of([file])
    if not errors_of(unread) and name_of(r.sha256 for r in records) != file.stem:
        raise RecordError(
            "the month's manifest is lost, and its records do not give its name",
            where=str(file),
            mend="restore both files from a copy",
        )


def write_runs(file: Path, records: Sequence[Stored]) -> None:
    """Write runs as Parquet in the columns that queries read, each record's text unchanged."""
    from carbonlens.ledger import schema

    parquet.write(file, schema.COLUMNS, schema.rows_of(records))


def rewrite(ledger: Path, file: Path, change: Callable[[Stored], Stored]) -> bool:
    """Replace a batch or a month's file by one with changed records; tell whether any changed.

    A batch keeps its name, the hash of its source. A month's file gets the name of
    its new content, and the old one is removed after.
    """
    before, findings = read_files_of([file])
    error = next(iter(errors_of(findings)), None)
    if error is not None:
        raise RecordError(error.message, where=str(file), mend=error.mend or "restore it")
    after = [change(r) for r in before]
    if all(a is b for a, b in zip(after, before, strict=True)):
        return False
    if file.parent.parent.name != layout.MONTHS:
        write_runs(file, after)
        return True
    inputs = {_relative(file, ledger): _file_sha256(file)}
    replaced = write_month(ledger, file.parent.name, after, inputs)
    _remove({file} - {replaced})
    return True


def manifest_file(file: Path) -> Path:
    """Return the manifest that lies beside a month's file."""
    return file.with_suffix(".json")


def read_manifest(file: Path) -> Manifest:
    """Return the manifest beside a month's file.

    Raises:
        OSError: If there is none, or it may not be read.
        msgspec.MsgspecError: If it is damaged.
    """
    return decode_json(read_regular(manifest_file(file), at_most=_MOST_BYTES), Manifest)


def folded_file(folder: Path, run_id: str, content: bytes) -> Path | None:
    """Return the file of a month's folder that holds this record already.

    Raises:
        RecordError: If it holds a different one of this id: the new one would never count.
    """
    for file in layout.months_in(folder):
        sha = _hash_in(file, run_id)
        if sha == content_sha256(content):
            return file
        if sha is not None:
            raise RecordError(
                "a different record of this id exists", where=str(file), mend="record it under a new id"
            )
    return None


def _hash_in(file: Path, run_id: str) -> str | None:
    """Return the hash of a run's record in a month's file; ``None`` where its manifest does not name it."""
    try:
        # A manifest may be large: it is decoded only where the id stands in it.
        if msgspec.json.encode(run_id) not in manifest_file(file).read_bytes():
            return None
        return read_manifest(file).records.get(run_id)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _check_read_back(file: Path, records: Sequence[Stored]) -> None:
    found, findings = read_files_of([file])
    if errors_of(findings) or [r.text for r in found] != [r.text for r in records]:
        raise RecordError(
            "the month's file does not read back as it was written; nothing was removed",
            where=str(file),
            mend="check the disk, remove the file and compact again",
        )


def _wholly_held(records: Iterable[Stored], held: set[str]) -> set[Path]:
    """Return the files of which every record is held elsewhere now."""
    whole: dict[Path, bool] = {}
    for record in records:
        file = Path(record.file)
        whole[file] = whole.get(file, True) and record.sha256 in held
    return {file for file, all_held in whole.items() if all_held}


def _remove(files: Iterable[Path]) -> None:
    """Remove files whose records lie elsewhere; a folder left empty goes too."""
    folders = set()
    for file in sorted(files):
        # Another host may have compacted the month meanwhile.
        file.unlink(missing_ok=True)
        if file.suffix == ".parquet":
            manifest_file(file).unlink(missing_ok=True)
        folders.add(file.parent)
    for folder in folders:
        sync_folder(folder)


def _file_sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _relative(file: Path, ledger: Path) -> str:
    return file.relative_to(ledger).as_posix()
