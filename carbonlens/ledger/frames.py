"""Frames: everything a ledger holds as one lazy table, whatever form it lies in.

Live runs are JSON, imports and compacted months Parquet of the same columns. A
period reads the files that may hold rows of it; of the others it reads footers
and, where those say that there are any, corrections.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.errors import MissingExtraError, RecordError
from carbonlens.ledger import calendar as calendars
from carbonlens.ledger import (
    exclusions,
    fetching,
    footers,
    holdings,
    live,
    nesting,
    parquet,
    redaction,
    schema,
    sharing,
    went_away,
)
from carbonlens.ledger.calendar import Calendar, Period
from carbonlens.ledger.records import Stored, read_files, unique
from carbonlens.ledger.scratch import Scratch

if TYPE_CHECKING:
    import narwhals as nw
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_ATTEMPTS: Final = 5

_COLUMNS: Final = {k: v for k, v in schema.COLUMNS.items() if k != "record"}


class View:
    """The rows of a ledger that count, for the queries of ``carbonlens.ledger.queries``.

    Attributes:
        parts: One row a part of a run's energy: each run once, corrected and
            redacted ones left out, within the period. Runs that overlap on a device
            have what they are billed of it (``sharing``), never more than it drew.
        orphans: Ids of parents above which nothing counts, because the ledger does not
            hold them or they go in a circle: their parts are runs of their own.
        findings: What could not be read, or is there twice.
        undated: Runs without a start: they are in no period.
        kept, scratch: What was made of it and is wanted again, and files of it; they go when it is closed.
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
        self.ledger, self.period = ledger, period
        self.findings: list[Finding] = []
        self.undated = 0
        self._touched: tuple[footers.Footer, ...] = ()
        self.scratch, self.is_lent = Scratch(), False
        self.kept: dict[Hashable, Any] = {}
        self.connection: DuckDBPyConnection = parquet.connect_to_one()
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
        """Close the view, if it is not somebody else's; DuckDB's errors become ours, as of ``rows``."""
        told = went_away.told_of(error, self.files, self.ledger)
        if not self.is_lent:
            self.close()
        if told is not None:
            raise told from error

    def close(self) -> None:
        """Release the files."""
        self.connection.close()
        self.scratch.close()

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """Run an SQL query of our own; errors as of ``rows``."""
        return fetching.run(self.connection, query, self.files, self.ledger)

    def rows(self, frame: nw.LazyFrame[Any]) -> list[dict[str, Any]]:
        """Run a query and return its rows; decimals stay exact.

        Raises:
            RecordError: If a file went away since the view was opened, or is damaged.
        """
        return fetching.rows(frame.to_native(), self.files, self.ledger)

    def fetch(self, frame: nw.LazyFrame[Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Run a query and return its columns' names, and its rows as DuckDB gives them.

        Raises:
            RecordError: As of ``rows``.
        """
        relation = frame.to_native()
        return relation.columns, fetching.fetch(relation, self.files, self.ledger)

    @property
    def files(self) -> list[Path]:
        """Files that a query may read."""
        return [footer.file for footer in self._touched]

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

    def records(self, run_ids: Collection[str]) -> list[Stored]:
        """Return the records of some runs that count, from the files that may hold a part of the period.

        Raises:
            RecordError: As of ``rows``.
        """
        import duckdb

        loose = [r for r in self._loose if r.run.run_id in run_ids]
        try:
            folded = exclusions.records_where(self.connection, self._touched, "run_id", run_ids)
        except duckdb.Error as error:
            raise went_away.unread(error, self.files, self.ledger) from error
        return [*loose, *folded]

    def frame(self, query: str) -> nw.LazyFrame[Any]:
        """Return what DuckDB reads by an SQL query of our own as a frame."""
        return _frame(self.connection.sql(query))

    def calendar(self, calendar: Calendar) -> nw.LazyFrame[Any]:
        """Return the calendar of the hours that the view holds.

        An hour that no calendar has, of a clock that was never set, has no row.
        """
        rows = (row._asdict() for row in calendar.rows_of(self._hours()))
        return self.table(calendars.COLUMNS, rows, "calendar")

    def _hours(self) -> Iterable[int]:
        if self.period is not None:
            return range(self.period.first_hour, self.period.end_hour)
        # Not all from the first to the last: a start in nanoseconds lies thousands of years off.
        found = self.rows(self.parts.select("hour_utc").unique().sort("hour_utc"))
        return [row["hour_utc"] for row in found if row["hour_utc"] is not None]

    def _load(self, name: str, columns: Mapping[str, str], rows: Iterable[object]) -> None:
        parquet.load(self.connection, name, columns, rows)

    def _try_to_open(self) -> None:
        """Open, again where another host's compaction or redaction took a file away meanwhile."""
        import duckdb

        for _ in range(_ATTEMPTS):
            # Before the months are listed: compaction writes a month, then removes its files.
            listed, self.findings = live.listing(self.ledger)
            files, undated = live.files_of(listed, self.period)
            loose, said = read_files(files)
            whole, more = holdings.parquet_files(self.ledger)
            found, bad = footers.read(self.connection, whole)
            self.findings += [*said, *more, *bad]
            try:
                old, said = holdings.read_files_of([f.file for f in found if f.version is None])
                self.findings += said
                self._open([f for f in found if f.version is not None], [*old, *loose], listed, undated)
            except FileNotFoundError:
                continue
            except duckdb.Error as error:
                if all(file.exists() for file in whole):
                    raise went_away.unread(error, whole, self.ledger) from error
                continue
            if all(file.exists() for file in whole):
                return
        raise FileNotFoundError(0, "files go away while they are read", str(self.ledger))

    def _open(
        self,
        every: Sequence[footers.Footer],
        loose: Sequence[Stored],
        listed: Mapping[str, Sequence[Path]],
        undated: Sequence[Path],
    ) -> None:
        """Decide what counts: of several records of a run the first, in files before live ones."""
        stones, said = redaction.tombstones(self.ledger)
        self.findings += said
        touched = [f for f in every if f.touches(self.period)]
        pending = exclusions.unredacted(self.connection, touched, stones)
        # What an older version wrote in other rows than this one would is read anew.
        pending += exclusions.outdated(self.connection, every)
        few, said = exclusions.of_few_units(self.connection, touched)
        pending += few
        self.findings += said
        kept, said = unique(redaction.applied([*pending, *loose], stones))
        self.findings += said
        gone, heirs, said = exclusions.superseded(self.connection, every, kept, self._live_runs)
        self.findings += said
        left = {exclusions.excluded(r) for r in (*pending, *gone)}
        doubles, known, said = exclusions.duplicates(self.connection, every, touched, kept, left)
        self.findings += said
        read = {r.key: r.run for r in (*kept, *gone)}
        self.findings = holdings.unsettled(self.findings, list(read.values()))
        corrected = {r.key for r in gone}
        self._load("left_out", exclusions.COLUMNS, (e._asdict() for e in sorted({*left, *doubles})))
        rest = [r for r in kept if r.key not in corrected and r.key not in known]
        self._touched, self._loose = tuple(touched), tuple(rest)
        self._load("loose", _COLUMNS, _loose_rows(rest))
        self._unite(touched, bool(left or doubles))
        self.findings += exclusions.negative(self.connection, touched, {*left, *doubles})
        replaced = {r.run.run_id for r in gone}
        self.undated = sum(f.stem not in replaced for f in undated)
        self._count_undated(every, rest)
        self._heirs = heirs
        self._find_orphans(every, [*kept, *gone], listed)
        self._divide(every, touched, rest, {*left, *doubles}, corrected, listed)

    def _divide(
        self,
        every: Sequence[footers.Footer],
        touched: Sequence[footers.Footer],
        rest: Sequence[Stored],
        left: Collection[exclusions.Excluded],
        corrected: Collection[tuple[str | None, str]],
        listed: Mapping[str, Sequence[Path]],
    ) -> None:
        """Put what runs that overlap on a device are billed in the place of what they read."""

        def more_live(period: Period) -> list[Stored]:
            # As listed before the months were: what went away since lies in one of them, or in one
            # that came later.
            files, _ = live.files_of(listed, period)
            found, _ = read_files(files)
            folded = self._folded(every, [f.stem for f in files])
            names = {run_id for _, run_id in folded}
            for file in files:
                if file.stem not in names and not os.path.lexists(file):
                    raise FileNotFoundError(0, "the run went into a month meanwhile", str(file))
            return [
                r for r in found if r.key not in corrected and (r.run.study or "", r.run.run_id) not in folded
            ]

        found = sharing.shared(
            sharing.Whole(
                connection=self.connection,
                some_left_out=bool(left),
                footers=every,
                loose=rest,
                orphans=self.orphans,
                period=self.period,
                more_live=more_live,
                live_runs=self._live_runs,
                heirs=self._heirs,
            )
        )
        self.findings += found.findings
        if not found.billed:
            return
        replaced = {r.key for r in found.measured}
        out = {*left, *(exclusions.excluded(r) for r in found.measured)}
        self._load("left_out", exclusions.COLUMNS, (e._asdict() for e in sorted(out)))
        loose = [*(r for r in rest if r.key not in replaced), *found.billed]
        self._loose = tuple(loose)
        rows = [*_loose_rows(loose), *_loose_rows(found.beside, is_first=False)]
        self._load("loose", _COLUMNS, rows)
        self._unite(touched, some_left_out=True)

    def _folded(self, every: Sequence[footers.Footer], ids: Sequence[str]) -> set[tuple[str, str]]:
        """Return study and id of those runs that lie in a Parquet file, of whatever month."""
        holding = [f.file for f in every if ids and f.may_hold(min(ids), max(ids))]
        if not holding:
            return set()
        scan = f"read_parquet([{', '.join(parquet.quoted(f) for f in holding)}])"
        wanted = "is_first AND counts AND run_id IN (SELECT unnest(?))"
        query = f"SELECT coalesce(study, ''), run_id FROM {scan} WHERE {wanted}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        return set(self.connection.execute(query, [ids]).fetchall())

    def _live_runs(self, ids: Collection[str]) -> Sequence[Stored]:
        return read_files(live.files_named(self.ledger, ids))[0]

    def _unite(self, touched: Sequence[footers.Footer], some_left_out: bool) -> None:
        """Put live runs and files into one table; in a period, only its hours."""
        import narwhals as nw

        names = ", ".join(_COLUMNS)
        whole = f"SELECT {names}, NULL AS file FROM loose"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        if touched:
            listed = ", ".join(parquet.quoted(f.file) for f in touched)
            scan = f"read_parquet([{listed}], filename='file')"
            whole = f"SELECT {names}, file FROM {scan} UNION ALL {whole}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        self.every = self._named("every", whole)
        left_out = _frame(self.connection.table("left_out")) if some_left_out else None
        self.counting = self.parts = self._named(
            "counting", fetching.sql_of(that_count(self.every, left_out))
        )
        if self.period is not None:
            hour = nw.col("hour_utc")
            inside = self.parts.filter(hour >= self.period.first_hour, hour < self.period.end_hour)
            self.parts = self._named("parts", fetching.sql_of(inside))

    def _named(self, name: str, query: str) -> nw.LazyFrame[Any]:
        """Return a query under a name: DuckDB then binds a question of it without all that it is made of."""
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW all_{name} AS {query}")
        return _frame(self.connection.table(f"all_{name}"))

    def _count_undated(self, every: Sequence[footers.Footer], kept: Sequence[Stored]) -> None:
        if self.period is None:
            return
        self.undated += sum(r.run.start_us is None for r in kept)
        files = [f.file for f in every if f.has_undated]
        if not files:
            return
        listed = ", ".join(parquet.quoted(f) for f in files)
        named = f"SELECT file, coalesce(study, '') AS study_key, run_id FROM read_parquet([{listed}], filename='file')"  # noqa: E501, S608  # our own names and quoted paths: SQL takes no parameter there
        named += " WHERE is_first AND counts AND hour_utc IS NULL"
        query = f"SELECT count(*) FROM ({named}) ANTI JOIN left_out USING (file, study_key, run_id)"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        ((count,),) = self.connection.execute(query).fetchall()
        self.undated += count

    def _find_orphans(
        self,
        every: Sequence[footers.Footer],
        read: Sequence[Stored],
        listed: Mapping[str, Sequence[Path]],
    ) -> None:
        self.orphans: list[str] = []
        touched = any(f.has_children and f.touches(self.period) for f in every)
        if not touched and not any(r.run.parent_run_id for r in read):
            return
        import narwhals as nw

        parent = nw.col("parent_run_id")
        inside = ~parent.is_null()
        parents = self.parts.filter(inside).select(parent.alias("run_id")).unique()
        missing = self.rows(parents.join(self.every.select("run_id").unique(), on="run_id", how="anti"))
        above = self.counting.filter(inside).select("run_id", "parent_run_id").unique()
        above = above.join(parents, on="run_id", how="semi")
        # A corrected parent is still there, as its correction.
        again = {i: run.parent_run_id for i, run in self._heirs.items()}
        here = {r.run.run_id: r.run.parent_run_id for r in read} | again

        def look_up(ids: Collection[str]) -> dict[str, str | None]:
            found = {i: here[i] for i in ids if i in here}
            rest = set(ids) - found.keys()
            found |= nesting.parents_in_files(self.connection, every, rest)
            rest -= found.keys()
            files = [f for files in listed.values() for f in files if rest and f.stem in rest]
            return found | {r.run.run_id: r.run.parent_run_id for r in read_files(files)[0]}

        named = {r["run_id"]: r["parent_run_id"] for r in self.rows(above)}
        ids = {*(r["run_id"] for r in missing), *named}
        found = nesting.nesting(ids, named | {i: again[i] for i in ids if i in again}, look_up)
        self.findings += found.findings
        self.orphans = sorted(found.missing | found.circling)


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


def _loose_rows(records: Iterable[Stored], *, is_first: bool = True) -> Iterable[schema.Row]:
    """Yield the rows of records that all count; of further parts of a run none is the first."""
    for record in records:
        for row in schema.rows(record, is_first=is_first):
            # The text is there already, as the record it was read from.
            yield msgspec.structs.replace(row, record=None)
