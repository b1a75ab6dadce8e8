"""Footers: what the statistics of Parquet files tell, without reading their data.

They say which files a period needs, which hold corrections or children, and
which could hold the same run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.ledger.calendar import Period
from carbonlens.ledger.layout import IMPORTS
from carbonlens.ledger.parquet import UnreadableParquetError, quoted
from carbonlens.ledger.schema import VERSION

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Footer(msgspec.Struct, frozen=True, kw_only=True):
    """What one file's footer tells.

    Attributes:
        version: Of the columns; ``None`` for a batch older than ``schema``.
        hours: First and last ``hour_utc``; ``None`` when no row has one, or the
            footer does not tell.
        has_undated: Whether rows without an hour may be in it.
        ids: First and last ``run_id`` in text order; ``None`` when untold.
        corrects: Whether a record in it may supersede another.
        has_children: Whether a run in it may be part of another.
        has_hosts: Whether a run in it may tell its host.
        has_negative: Whether an amount in it is below 0, as older versions took them.
    """

    file: Path
    version: int | None
    hours: tuple[int, int] | None = None
    has_undated: bool = False
    ids: tuple[str, str] | None = None
    corrects: bool = False
    has_children: bool = False
    has_hosts: bool = True
    has_negative: bool = False

    def touches(self, period: Period | None) -> bool:
        """Tell whether a period may need the file."""
        if period is None:
            return True
        return (
            self.hours is not None and self.hours[0] < period.end_hour and self.hours[1] >= period.first_hour
        )

    def may_hold(self, first_id: str, last_id: str) -> bool:
        """Tell whether a run of an id in this span may be in the file."""
        return self.ids is None or (self.ids[0] <= last_id and self.ids[1] >= first_id)


def read(connection: DuckDBPyConnection, files: Sequence[Path]) -> tuple[list[Footer], list[Finding]]:
    """Read the footers of files; one that is damaged or of a newer version is left out with a Finding."""
    if not files:
        return [], []
    findings: list[Finding] = []
    try:
        found = _read(connection, files)
    except UnreadableParquetError:
        # One of them is damaged: ask each.
        found = []
        for file in files:
            try:
                found += _read(connection, [file])
            except UnreadableParquetError as error:
                findings.append(_damaged(file, str(error)))
    newer = [f for f in found if f.version is not None and f.version > VERSION]
    return [f for f in found if f not in newer], [*findings, *(_newer(f) for f in newer)]


AMOUNTS: Final = ("energy_j", "units", "duration_s", "u_random_j", "u_sensor_j", "u_model_j", "u_host_j")
"""Columns that are never below 0 in what this version takes."""

_WANTED: Final = ("hour_utc", "run_id", "supersedes", "parent_run_id", "host_id", "row_schema", *AMOUNTS)

_STATISTICS = """
SELECT file_name, path_in_schema,
       min(try_cast(stats_min_value AS BIGINT)), max(try_cast(stats_max_value AS BIGINT)),
       min(stats_min_value), max(stats_max_value),
       sum(num_values - stats_null_count), sum(stats_null_count),
       bool_and(stats_min_value IS NOT NULL OR stats_null_count = num_values)
FROM parquet_metadata([{files}])
WHERE path_in_schema IN ({wanted})
GROUP BY file_name, path_in_schema
"""


class _Column(msgspec.Struct, frozen=True):
    low: int | None
    high: int | None
    first: str | None
    last: str | None
    filled: int | None
    empty: int | None
    told: bool


def _read(connection: DuckDBPyConnection, files: Sequence[Path]) -> list[Footer]:
    import duckdb

    listed = ", ".join(quoted(f) for f in files)
    query = _STATISTICS.format(files=listed, wanted=", ".join(quoted(c) for c in _WANTED))
    try:
        rows = connection.execute(query).fetchall()
    except duckdb.Error as error:
        raise UnreadableParquetError(str(error).splitlines()[0]) from error
    columns: dict[str, dict[str, _Column]] = {}
    for name, column, *values in rows:
        columns.setdefault(name, {})[column] = _Column(*values)
    untold = [f for f in files if str(f) not in columns]
    if untold:
        _refuse_foreign(connection, untold)
    # A file without rows has no statistics, and nothing to say.
    return [_footer(f, columns[str(f)]) for f in files if str(f) in columns]


def _refuse_foreign(connection: DuckDBPyConnection, files: Sequence[Path]) -> None:
    """Refuse files that have rows and none of our columns.

    Raises:
        UnreadableParquetError: If one has; it is none of a ledger's.
    """
    listed = ", ".join(quoted(f) for f in files)
    query = f"SELECT count(*) FROM parquet_file_metadata([{listed}]) WHERE num_rows > 0"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    ((foreign,),) = connection.execute(query).fetchall()
    if foreign:
        raise UnreadableParquetError("it has none of a ledger's columns")


def _footer(file: Path, columns: dict[str, _Column]) -> Footer:
    schema = columns.get("row_schema")
    if schema is None or schema.high is None:
        return Footer(file=file, version=None)
    hours, ids = columns["hour_utc"], columns["run_id"]
    return Footer(
        file=file,
        version=schema.high,
        hours=(hours.low, hours.high) if hours.low is not None and hours.high is not None else None,
        has_undated=hours.empty != 0,
        ids=(ids.first, ids.last) if ids.told and ids.first is not None and ids.last is not None else None,
        corrects=columns["supersedes"].filled != 0,
        has_children=columns["parent_run_id"].filled != 0,
        has_hosts=columns["host_id"].filled != 0,
        # As text the least begins with the sign, if one has it.
        has_negative=any((columns[c].first or "").startswith("-") for c in AMOUNTS if c in columns),
    )


def _damaged(file: Path, reason: str) -> Finding:
    mend = "import its source again after removing the file"
    return Finding(
        code="CL503",
        severity="error",
        message=f"batch cannot be read and is left out: {reason}",
        file=str(file),
        mend=mend if file.parent.name == IMPORTS else "restore the file from a copy",
    )


def _newer(footer: Footer) -> Finding:
    return Finding(
        code="CL502",
        severity="error",
        message=f"columns have version {footer.version}, newer than {VERSION}; the batch is left out",
        file=str(footer.file),
        mend="upgrade carbonlens",
    )
