"""Frames: everything a ledger holds as one lazy table, whatever form it lies in.

Live runs are JSON, imports and compacted months Parquet of the same columns. A
period reads the files that may hold rows of it; of the others it reads footers
and, where those say that there are any, corrections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import uuid7
from carbonlens.domain.units import S_PER_HOUR, US_PER_HOUR
from carbonlens.errors import MissingExtraError, RecordError, UsageError
from carbonlens.ledger import calendar as calendars
from carbonlens.ledger import exclusions, footers, holdings, layout, parquet, redaction, schema
from carbonlens.ledger.calendar import Calendar, Period
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.records import Stored, read_files, unique

if TYPE_CHECKING:
    import narwhals as nw
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

CORRECTIONS: Final = "corrections"
"""Folder of live records that supersede others; a period reads it whole."""

_SLACK_S: Final = 86_400
"""How much earlier than a run's end its file may seem to be written, for clocks that differ."""

_ATTEMPTS: Final = 5

_ID_TIME: Final = len("00000000-0000")
"""Part of a UUID of version 7 that holds its time."""

_COLUMNS: Final = {k: v for k, v in schema.COLUMNS.items() if k != "record"}


class View:
    """The rows of a ledger that count, for the queries of ``carbonlens.ledger.queries``.

    Attributes:
        parts: One row a part of a run's energy: each run once, corrected and
            redacted ones left out, within the period.
        orphans: Ids of parents that the ledger does not hold: their parts are
            runs of their own.
        findings: What could not be read, or is there twice.
        undated: Runs without a start: they are in no period.
    """

    def __init__(self, ledger: Path, period: Period | None = None) -> None:
        """Open the view; use it in a ``with`` block.

        Args:
            ledger: The ledger's folder.
            period: Hours asked for; all when ``None``.

        Raises:
            MissingExtraError: If DuckDB or narwhals is not installed.
            RecordError: If the folder cannot be read.
        """
        self.ledger = ledger
        self.period = period
        self.findings: list[Finding] = []
        self.undated = 0
        self.connection: DuckDBPyConnection = parquet.connect()
        try:
            import narwhals  # noqa: F401 - only to say at once that it is missing
        except ImportError as error:
            raise MissingExtraError("analysis", "narwhals") from error
        try:
            self._try_to_open()
        except OSError as error:
            self.close()
            raise RecordError(
                f"the ledger cannot be read ({error.strerror or error})",
                where=str(error.filename or ledger),
                mend="check the path and its permissions",
            ) from error

    def __enter__(self) -> View:
        """Return the view."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the view."""
        self.close()

    def close(self) -> None:
        """Release the files."""
        self.connection.close()

    def rows(self, frame: nw.LazyFrame[Any]) -> list[dict[str, Any]]:
        """Run a query and return its rows; decimals stay exact."""
        relation = frame.to_native()
        names = relation.columns
        return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]

    def table(
        self, columns: Mapping[str, str], rows: Iterable[object], name: str = "given"
    ) -> nw.LazyFrame[Any]:
        """Load rows as a frame.

        Args:
            columns: Name to DuckDB type.
            rows: Records or mappings that JSON can hold.
            name: Of the table.
        """
        self._load(name, columns, rows)
        return _frame(self.connection.table(name))

    def frame(self, query: str) -> nw.LazyFrame[Any]:
        """Return what DuckDB reads by an SQL query of our own as a frame."""
        return _frame(self.connection.sql(query))

    def calendar(self, calendar: Calendar) -> nw.LazyFrame[Any]:
        """Return the calendar of the hours that the view holds."""
        first, end = self._span()
        rows = (row._asdict() for row in calendar.rows(first, end))
        return self.table(calendars.COLUMNS, rows, "calendar")

    def _span(self) -> tuple[int, int]:
        if self.period is not None:
            return self.period.first_hour, self.period.end_hour
        import narwhals as nw

        hour = nw.col("hour_utc")
        (found,) = self.rows(self.parts.select(hour.min().alias("first"), hour.max().alias("last")))
        return (found["first"], found["last"] + 1) if found["first"] is not None else (0, 0)

    def _load(self, name: str, columns: Mapping[str, str], rows: Iterable[object]) -> None:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            source = parquet.rows_source(Path(folder) / "rows.json", columns, rows)
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {source}")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there

    def _try_to_open(self) -> None:
        """Open, again where another host's compaction or redaction took a file away meanwhile."""
        for _ in range(_ATTEMPTS):
            self.findings = []
            # Before the months are listed: compaction writes a month, then removes its files.
            files, self.undated = _live_files(self.ledger, self.period)
            live, said = read_files(files)
            whole, more = holdings.parquet_files(self.ledger)
            found, bad = footers.read(self.connection, whole)
            self.findings += [*said, *more, *bad]
            try:
                old, said = holdings.read_files_of([f.file for f in found if f.version is None])
                self.findings += said
                self._open([f for f in found if f.version is not None], [*old, *live])
            except FileNotFoundError:
                continue
            if all(file.exists() for file in whole):
                return
        raise FileNotFoundError(0, "files go away while they are read", str(self.ledger))

    def _open(self, every: Sequence[footers.Footer], loose: Sequence[Stored]) -> None:
        """Decide what counts: of several records of a run the first, in files before live ones."""
        stones, said = redaction.tombstones(self.ledger)
        self.findings += said
        touched = [f for f in every if f.touches(self.period)]
        pending = exclusions.unredacted(self.connection, touched, stones)
        kept, said = unique(redaction.applied([*pending, *loose], stones))
        self.findings += said
        gone, said = exclusions.superseded(self.connection, every, kept)
        self.findings += said
        left = {exclusions.excluded(r) for r in (*pending, *gone)}
        doubles, known, said = exclusions.duplicates(self.connection, touched, kept, left)
        self.findings += said
        corrected = {r.key for r in gone}
        self._load("left_out", exclusions.COLUMNS, (e._asdict() for e in sorted({*left, *doubles})))
        rest = [r for r in kept if r.key not in corrected and r.key not in known]
        self._load("loose", _COLUMNS, _loose_rows(rest))
        self._unite(touched, bool(left or doubles))
        self._count_undated(every, rest)
        self._find_orphans(touched, kept)

    def _unite(self, touched: Sequence[footers.Footer], some_left_out: bool) -> None:
        """Put live runs and files into one table; in a period, only its hours."""
        import narwhals as nw

        names = ", ".join(_COLUMNS)
        whole = f"SELECT {names}, NULL AS file FROM loose"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        if touched:
            listed = ", ".join(quoted(f.file) for f in touched)
            scan = f"read_parquet([{listed}], filename='file')"
            whole = f"SELECT {names}, file FROM {scan} UNION ALL {whole}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        every = self.frame(whole)
        left_out = _frame(self.connection.table("left_out")) if some_left_out else None
        self.every = every
        self.parts = that_count(every, left_out)
        if self.period is not None:
            hour = nw.col("hour_utc")
            self.parts = self.parts.filter(hour >= self.period.first_hour, hour < self.period.end_hour)

    def _count_undated(self, every: Sequence[footers.Footer], kept: Sequence[Stored]) -> None:
        if self.period is None:
            return
        self.undated += sum(r.run.start_us is None for r in kept)
        files = [f.file for f in every if f.has_undated]
        if not files:
            return
        listed = ", ".join(quoted(f) for f in files)
        query = (
            f"SELECT count(*) FROM read_parquet([{listed}]) WHERE is_first AND counts AND hour_utc IS NULL"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        )
        ((count,),) = self.connection.execute(query).fetchall()
        self.undated += count

    def _find_orphans(self, touched: Sequence[footers.Footer], kept: Sequence[Stored]) -> None:
        self.orphans: list[str] = []
        if not any(f.has_children for f in touched) and not any(r.run.parent_run_id for r in kept):
            return
        import narwhals as nw

        parent = nw.col("parent_run_id")
        parents = self.parts.filter(~parent.is_null()).select(parent.alias("run_id")).unique()
        known = self.every.select("run_id").unique()
        missing = {r["run_id"] for r in self.rows(parents.join(known, on="run_id", how="anti"))}
        # A corrected parent is still there, as its correction.
        self.orphans = sorted(missing - {r.run.run_id for r in kept})


def _frame(relation: DuckDBPyRelation) -> nw.LazyFrame[Any]:
    import narwhals as nw

    frame: nw.LazyFrame[Any] = nw.from_native(relation).lazy()
    return frame


def that_count(every: nw.LazyFrame[Any], left_out: nw.LazyFrame[Any] | None) -> nw.LazyFrame[Any]:
    """Leave out duplicates, corrected runs and what is redacted elsewhere, in one expression."""
    import narwhals as nw

    counted = every.filter(nw.col("counts"))
    if left_out is None:
        return counted
    keyed = counted.with_columns(study_key=nw.col("study").fill_null(""))
    return keyed.join(left_out, on=["file", "study_key", "run_id"], how="anti").drop("study_key")


def _loose_rows(records: Iterable[Stored]) -> Iterable[schema.Row]:
    for row in schema.rows_of(records):
        # The text is there already, as the record it was read from.
        yield msgspec.structs.replace(row, record=None)


def _live_files(ledger: Path, period: Period | None) -> tuple[list[Path], int]:
    """Return the live runs a period needs, and how many have no start.

    A run lies in the month of its start and may reach into later ones; it was
    written at its end, so that older months are chosen by the files' times. A
    correction may have moved its run out of the period: its id tells another
    month than its folder, unless it moved the run into the month it was written in;
    such a one belongs into ``CORRECTIONS``.
    """
    if period is None:
        return [f for folder in layout.folders_in(ledger / layout.RUNS) for f in _json(folder)], 0
    first = layout.month_of(period.first_hour * US_PER_HOUR)
    last = layout.month_of((period.end_hour - 1) * US_PER_HOUR)
    not_before = period.first_hour * S_PER_HOUR - _SLACK_S
    files: list[Path] = []
    undated = 0
    for folder in layout.folders_in(ledger / layout.RUNS):
        month = folder.name
        if month == layout.UNDATED:
            undated = len(_json(folder))
        elif month == CORRECTIONS or first <= month <= last:
            files += _json(folder)
        else:
            inside = _id_starts(month)
            files += [
                f
                for f in _json(folder)
                if not inside(f.stem) or (month < first and f.stat().st_mtime >= not_before)
            ]
    return files, undated


def _id_starts(month: str) -> Callable[[str], bool]:
    """Return a test whether a run id was given within a month; ids that do not tell pass."""
    try:
        period = Calendar().period(f"{month[:4]}-{month[4:]}")
    except UsageError:
        return lambda _: True
    low, high = (
        uuid7(hour * S_PER_HOUR * 1000, bytes(10))[:_ID_TIME] for hour in (period.first_hour, period.end_hour)
    )
    # As texts: a month may hold very many.
    return lambda run_id: run_id[_ID_TIME : _ID_TIME + 2] != "-7" or low <= run_id[:_ID_TIME] < high


def _json(folder: Path) -> list[Path]:
    return layout.files_in(folder, ".json")
