"""Use case: take tables of others into the user's factor folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.errors import InputFileError, UnwritableError, UsageError
from carbonlens.factors import checks, store
from carbonlens.factors.place import locate_factors
from carbonlens.factors.table_file import write_csv


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import took, and what it did not.

    Attributes:
        file: Table that was written; ``None`` when nothing was taken.
        taken: Rows in it.
        refused: Errors of rows that are implausible.
        left_out: Why further lines were not taken, to how many.
        findings: Warnings about rows that were taken.
    """

    source: str
    format: str
    file: str | None
    taken: int
    refused: tuple[Finding, ...]
    left_out: Mapping[str, int]
    findings: tuple[Finding, ...]


def import_factors(
    file: Path, *, factors: str | Path | None = None, since: int = 2019, replace: bool = False
) -> Imported:
    """Take the plausible rows of a table into the user's factor folder.

    Args:
        file: carbonlens's own table, or one of Electricity Maps, Ember or OWID.
        factors: The user's factor folder; found as the command line finds it when ``None``.
        since: First year that is taken from tables of many years.
        replace: Whether a table of that name may be replaced.

    Raises:
        ConfigError: If the file is no known table, or says again what another of the user's says.
        InputFileError: If it cannot be read.
        UsageError: If no folder is named, or it has a table of that name.
        UnwritableError: If the folder cannot be written.
    """
    from carbonlens.factors import foreign

    if not file.exists():
        raise InputFileError("there is no such file", where=str(file), mend="check the path")
    folder = _folder(factors)
    target = folder / f"{file.stem}.csv"
    if target.exists() and not replace:
        raise UsageError(
            "there is a table of that name", where=str(target), mend="--replace takes the new one"
        )
    now = store.present()
    taken = foreign.read(file, since=since)
    checked = checks.check_table(taken.table, today=now)
    kept = checked.kept
    others = [] if not folder.is_dir() else [f for f in store.files_of(folder) if f != target]
    # Beside the user's other tables, before anything is written.
    together = store.checked_tables([*map(store.read_table, others), kept], now=now)
    held, ids = store.with_own(store.bundled(), together), {row.factor_id for row in kept.rows}
    if kept.rows:
        _write(target, write_csv(kept.rows))
    return Imported(
        source=str(file),
        format=taken.format,
        file=str(target) if kept.rows else None,
        taken=len(kept.rows),
        refused=checked.findings,
        left_out=taken.left_out,
        findings=tuple(f for f in held.findings if f.subject in ids),
    )


def _folder(factors: str | Path | None) -> Path:
    folder = locate_factors(factors)
    if folder is None:
        raise UsageError(
            "no folder for your factors is named",
            where="--factors",
            mend='give one, set CARBONLENS_FACTORS, or write factors = "factors" below [tool.carbonlens] '
            "in pyproject.toml",
        )
    if folder.is_file():
        raise UsageError("is a file", where=str(folder), mend="name a folder: each import is a table in it")
    return folder


def _write(target: Path, content: str) -> None:
    from carbonlens.ledger.atomic import write_atomically

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, content.encode())
    except OSError as error:
        raise UnwritableError(
            f"cannot be written ({error.strerror or error})", where=str(target), mend="name another folder"
        ) from error
