"""Carrying out a redaction: tombstones first, then every file that holds the content."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.run import Run
from carbonlens.errors import RecordError, SelectionError, UsageError
from carbonlens.ledger import atomic, layout, phase_words, redaction
from carbonlens.ledger.atomic import write_atomically
from carbonlens.ledger.compaction import LEFTOVER_S, rewrite
from carbonlens.ledger.holdings import each_folder, errors_of, parquet_files, read_files_of
from carbonlens.ledger.records import Stored, misfitting, read_file
from carbonlens.ledger.redaction import Tombstone
from carbonlens.ledger.retiring import remove_retired, retired

GONE_S: Final = 3600
"""A writer is taken for dead when its temporary file of a run to redact is so old."""


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """What a redaction did.

    Attributes:
        run_ids: Records that held a field: the run's, and those that correct it.
        files: Files written anew.
        energy: Whether the energy was taken out, which makes figures unknown.
        remaining: Files that may hold it still, and that this ledger does not write.
        tombstones: Of earlier redactions of the run, where findings were taken out: the reasons
            given then stay in them, because the record is proved by them.
    """

    run_ids: tuple[str, ...]
    fields: tuple[str, ...]
    files: tuple[str, ...]
    energy: bool
    remaining: tuple[str, ...] = ()
    tombstones: tuple[str, ...] = ()


def redact(
    ledger: Path, family: Sequence[Run], fields: Sequence[str], *, by: str, when_us: int, why: str
) -> Redaction:
    """Take fields out of all records of a run, wherever they lie.

    Args:
        ledger: The ledger's folder.
        family: The run's records: itself and those that correct it.
        fields: Paths such as ``tags.owner`` or ``origin.args``.
        by: Name or pseudonym of who does it.
        when_us: UTC microseconds.
        why: Reason, kept in the tombstone and in the record.

    Raises:
        SelectionError: If no record holds any of the fields.
        UsageError: If a field cannot be taken out.
        RecordError: If a file or folder that may hold it cannot be read, or an earlier tombstone of
            the run is not carried out; nothing was written then.
        MissingExtraError: If there are batches and DuckDB is not installed.
        OSError: If the ledger cannot be written; running it again goes on from there.
    """
    if not fields or not why.strip():
        raise UsageError("a redaction needs a field and a reason", mend="give --field NAME --why TEXT")
    keys = {(r.study, r.run_id) for r in family}
    # What newer files replaced may hold it too; who still reads it must open the ledger again.
    remove_retired(ledger, older_than_s=0)
    stones, _ = redaction.tombstones(ledger)
    before = _files(ledger)
    live, batches = _occurrences(ledger, keys)
    new: dict[str, Tombstone] = {}
    hardware = {r.hardware for r in family if r.hardware} - {redaction.PLACEHOLDER}
    for record in redaction.applied([*live, *batches], stones):
        if record.sha256 in stones:
            # Not carried out here; ours would take its name, and its reason and fields would be lost.
            raise RecordError(
                "an earlier redaction of the run is not carried out by this version",
                where=str(ledger / layout.REDACTIONS / stones[record.sha256].file_name),
                mend="upgrade carbonlens; or restore that file from a copy, or remove it",
            )
        stone = redaction.entomb(record, fields, by=by, when_us=when_us, why=why, hardware=hardware)
        if stone is not None:
            new[record.sha256] = stone
    pending = [r for r in (*live, *batches) if r.sha256 in stones]
    if not new and not pending:
        raise SelectionError(
            f"no record of the run holds {', '.join(fields)}",
            where=family[0].run_id,
            mend="see the fields with: carbonlens runs show RUN --json",
        )
    folder = ledger / layout.REDACTIONS
    folder.mkdir(parents=True, exist_ok=True)
    for stone in new.values():
        content = msgspec.json.format(msgspec.json.encode(stone), indent=1) + b"\n"
        write_atomically(folder / stone.file_name, content)
    linked = [str(f.resolve()) for f in {Path(r.file) for r in (*live, *batches)} if f.is_symlink()]
    files = _carry_out(ledger, live, batches, {**stones, **new})
    # A compaction that read the tombstones before ours were there may write the content anew.
    late = read_files_of(sorted(_files(ledger) - before))[0]
    files += _carry_out(ledger, [], [r for r in late if r.sha256 in {*stones, *new}], {**stones, **new})
    atomic.remove_leftovers(ledger, older_than_s=LEFTOVER_S)
    # Another host's compaction may have retired a file meanwhile, with what it held before.
    staying = [str(f) for f in retired(ledger)]
    ids = {r.run_id for r in family}
    remaining = [*sorted(linked), *staying, *_held_by_writers(ledger, ids), *_traces(family, fields)]
    earlier = [s for s in stones.values() if s.run_id in ids] if "findings" in fields else []
    return Redaction(
        run_ids=tuple(dict.fromkeys(s.run_id for s in (*new.values(), *(stones[r.sha256] for r in pending)))),
        fields=tuple(fields),
        files=files,
        energy="energy" in fields,
        remaining=tuple(remaining),
        tombstones=tuple(sorted(str(folder / s.file_name) for s in earlier)),
    )


def with_misfits(ledger: Path, known: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs of a view, and the live ones left out of it because no sum can hold them.

    Those may hold the content all the same.

    Args:
        ledger: The ledger's folder.
        known: Runs that the view holds: a further record of the same run is redacted with it.

    Raises:
        RecordError: If a file may not be read.
    """
    files, _ = each_folder(layout.folders_in(ledger / layout.RUNS), ".json")
    held = {(r.study, r.run_id) for r in known}
    found = {r.key: r.run for r in (_loose(f, ()) for f in files) if r is not None and misfitting(r)}
    return (*known, *(run for key, run in found.items() if key not in held))


def _held_by_writers(ledger: Path, ids: Collection[str]) -> list[str]:
    """Remove what killed writers left of these runs; return what may be of a writer at work."""
    left: list[str] = []
    for place in atomic.leftovers(ledger):
        with suppress(FileNotFoundError):
            inside = sorted(place.iterdir()) if place.is_dir() else [place]
            holds = any(_may_hold(f, ids) for f in inside)
            if holds and not atomic.remove_leftover(place, older_than_s=GONE_S):
                left.append(str(place))
    return left


def _traces(family: Iterable[Run], fields: Iterable[str]) -> list[str]:
    """Return the files of readings that name the phases to take out, as the records name the files.

    They lie where the user put them; a relative name is of the folder that the work was started in, which
    no record tells, so that only an absolute one can be known to be gone.
    """
    if not any(phase_words.is_of(field) for field in fields):
        return []
    named = dict.fromkeys(r.trace.file for r in family if r.trace is not None)
    return [name for name in named if not Path(name).is_absolute() or not _is_gone(name)]


def _is_gone(name: str) -> bool:
    """Tell whether nothing of a name is there; what may not be looked at may be."""
    try:
        os.lstat(name)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    return False


def _may_hold(file: Path, ids: Collection[str]) -> bool:
    """Tell whether a temporary file may hold one of the runs; a Parquet file does not tell."""
    if not file.is_file():
        return False
    return file.suffix == ".parquet" or names_one(file.read_bytes(), ids)


def names_one(content: bytes, ids: Collection[str]) -> bool:
    """Tell whether a text, whole or torn, has one of the ids in quotes."""
    return any(msgspec.json.encode(i) in content for i in ids)


def _carry_out(
    ledger: Path, live: Iterable[Stored], batches: Iterable[Stored], stones: dict[str, Tombstone]
) -> tuple[str, ...]:
    written: list[str] = []
    for record in live:
        (after,) = redaction.applied([record], stones)
        if after is not record:
            write_atomically(Path(record.file), msgspec.json.format(after.text, indent=1) + b"\n")
            written.append(record.file)
    for file in dict.fromkeys(r.file for r in batches):
        if rewrite(ledger, Path(file), lambda r: redaction.applied([r], stones)[0]):
            written.append(file)
    return tuple(written)


def _files(ledger: Path) -> set[Path]:
    """Return the Parquet files that hold runs, and count."""
    return set(parquet_files(ledger)[0])


def _occurrences(ledger: Path, keys: set[tuple[str | None, str]]) -> tuple[list[Stored], list[Stored]]:
    """Return every place where a record lies: files of its own, also misnamed copies, and batches."""
    files, unlisted = each_folder(layout.folders_in(ledger / layout.RUNS), ".json")
    ids = {run_id for _, run_id in keys}
    live = [r for r in (_loose(f, ids) for f in files) if r is not None and r.key in keys]
    whole, faults = parquet_files(ledger)
    batches, findings = read_files_of(whole)
    for fault in errors_of([*unlisted, *faults, *findings]):
        raise RecordError(
            f"{fault.message}; it may hold the content too", where=fault.file, mend=fault.mend or "mend it"
        )
    return live, [r for r in batches if r.key in keys]


def _loose(file: Path, ids: Collection[str]) -> Stored | None:
    """Return a live record under whatever name; ``None`` for a file that holds none.

    Raises:
        RecordError: If it may not be read, or is one of these runs torn or of a newer version.
    """
    if not file.is_file():
        return None
    try:
        return read_file(file)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecordError) as error:
        if file.stem not in ids and not names_one(file.read_bytes(), ids):
            return None
        reason = error.what if isinstance(error, RecordError) else "it is damaged"
        raise RecordError(
            f"a file of the run cannot be redacted ({reason}); nothing was taken out",
            where=str(file),
            mend="upgrade carbonlens, or restore the file from a copy, or remove it; then redact",
        ) from error
    except OSError as error:
        raise RecordError(
            f"record cannot be read ({error.strerror or error}); it may hold the content too",
            where=str(file),
            mend="give yourself the right to read it",
        ) from error
