"""Power samples by UTC day, and their integral per run and device, one day at a time.

A stored sample carries the interval since the one before it, also across
midnight: the integral is then a plain sum of whole numbers, exact, the same for
any order of rows, and never needs more than one day in memory.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.units import US_PER_HOUR, US_PER_S
from carbonlens.errors import RecordError, UnwritableError
from carbonlens.ledger import layout, parquet
from carbonlens.ledger.atomic import write_atomically
from carbonlens.ledger.calendar import FIRST_HOUR, LAST_HOUR
from carbonlens.ledger.sample_files import ATTEMPTS, MERGED, counting, manifest_of, merged_name, names_in

if TYPE_CHECKING:
    import narwhals as nw
    from duckdb import DuckDBPyConnection

COLUMNS: Final[Mapping[str, str]] = {
    "run_id": "VARCHAR",
    "device": "VARCHAR",
    "t_us": "BIGINT",
    "power_mw": "INTEGER",
    "dt_us": "BIGINT",
    "pair_mw": "BIGINT",
}
"""Column to DuckDB type: time, power, time since the sample before, and both powers' sum."""

LONGEST_GAP_S: Final = 10.0
"""Samples further apart tell nothing of the time between: it is not covered."""

_MW_PER_W: Final = 1000
_MOST_W: Final = 2_000_000
"""A column of milliwatts takes a little more."""

_FIRST_US: Final = FIRST_HOUR * US_PER_HOUR
_END_US: Final = LAST_HOUR * US_PER_HOUR
_PAIR_NJ_PER_J: Final = 2_000_000_000
"""``pair_mw * dt_us`` is twice the trapezoid, in nanojoules."""

_MICRO: Final = Decimal("0.000001")
RESTORE: Final = "restore the file from a copy; the run's record keeps its energy"
_PLAIN_NAME: Final = re.compile(r"\w[\w.-]{0,99}", re.ASCII)

Series = Sequence[tuple[int, float]]
"""UTC microseconds and watts, in order of time."""


class SampleRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stored sample; fields as in ``COLUMNS``."""

    run_id: str
    device: str
    t_us: int
    power_mw: int
    dt_us: int | None = None
    pair_mw: int | None = None


class SampledEnergy(msgspec.Struct, frozen=True, kw_only=True):
    """The integral of one device's samples in one run.

    Attributes:
        energy_j: By the trapezoid rule, to a microjoule; ``None`` without any interval.
        covered_s: Time it covers.
        gap_s: Time between samples too far apart, which it leaves out.
    """

    run_id: str
    device: str
    energy_j: Decimal | None
    covered_s: float
    gap_s: float
    samples: int


def write(ledger: Path, run_id: str, series: Mapping[str, Series]) -> list[Path]:
    """Store a run's samples by UTC day; the same again changes nothing.

    Of a series that was stored in part, what is new is stored.

    Args:
        ledger: The ledger's folder.
        run_id: The run.
        series: Device to its samples.

    Raises:
        RecordError: If a device's samples are not in order of time, one is impossible, or others
            of the same time are stored.
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If a file cannot be written.
        OSError: If the folder cannot be written.
    """
    rows = [row for device in sorted(series) for row in rows_of(run_id, device, series[device])]
    rows.sort(key=lambda r: (_day(r.t_us), r.device, r.t_us))
    files: list[Path] = []
    new: list[tuple[Path, list[SampleRow]]] = []
    for day, of_day in itertools.groupby(rows, key=lambda r: _day(r.t_us)):
        folder = ledger / layout.SAMPLES / day
        known, holding = _stored(folder, run_id)
        missing = [row for row in of_day if _is_new(row, known.get(row.device, []))]
        if missing:
            # Named by its content: another part of the run never stands in its place.
            name = sha256_hex(b"\n".join(msgspec.json.encode(row) for row in missing))[:32]
            new.append((folder / f"{_file_stem(run_id)}-{name}.parquet", missing))
            files.append(new[-1][0])
        else:
            files += holding
    for file, missing in new:
        parquet.write(file, COLUMNS, missing)
    return files


def _stored(folder: Path, run_id: str) -> tuple[dict[str, list[SampleRow]], list[Path]]:
    """Return what a day holds of a run, by device and in order of time, and the files that hold it."""
    stem = _file_stem(run_id)
    names = (f"{stem}.parquet", f"{stem}-", MERGED)
    files = [f for f in counting(folder) if f.name.startswith(names)]
    if not files:
        return {}, []
    connection = parquet.connect()
    import duckdb

    found: dict[str, list[SampleRow]] = defaultdict(list)
    holding: list[Path] = []
    try:
        for file in files:
            query = f"SELECT {', '.join(COLUMNS)} FROM read_parquet({parquet.quoted(file)}) WHERE run_id = ?"  # noqa: S608  # our own names and quoted paths
            try:
                rows = connection.execute(query, [run_id]).fetchall()
            except duckdb.Error as error:
                raise RecordError(
                    "samples stored before cannot be read: the new ones might count twice",
                    where=str(file),
                    mend=RESTORE,
                ) from error
            for row in rows:
                sample = SampleRow(**dict(zip(COLUMNS, row, strict=True)))
                found[sample.device].append(sample)
            if rows:
                holding.append(file)
    finally:
        connection.close()
    for samples in found.values():
        samples.sort(key=_time)
    return found, holding


def _is_new(row: SampleRow, known: Sequence[SampleRow]) -> bool:
    """Tell whether a sample is not stored yet.

    Raises:
        RecordError: If its interval is covered by other samples.
    """
    place = bisect_left(known, row.t_us, key=_time)
    same = list(itertools.takewhile(lambda k: k.t_us == row.t_us, known[place:]))
    if row in same or (row.dt_us is None and any(k.power_mw == row.power_mw for k in same)):
        return False
    began = row.t_us - (row.dt_us or 0)
    differs = any(k.power_mw != row.power_mw or (k.dt_us and row.dt_us) for k in same)
    inside = place > 0 and known[place - 1].t_us > began
    after = known[place + len(same) :][:1]
    if differs or inside or any(k.t_us - (k.dt_us or 0) < row.t_us for k in after):
        raise RecordError(
            f"other samples of {row.device} are stored for the same time",
            where=row.run_id,
            mend="give the series whose part is stored, longer, or another name of the device",
        )
    return True


def _time(row: SampleRow) -> int:
    return row.t_us


def _file_stem(run_id: str) -> str:
    """Return the name of a run's file: its id, unless that is no file's name or one of ours."""
    if _PLAIN_NAME.fullmatch(run_id) and not run_id.startswith(MERGED):
        return run_id
    return f"id-{sha256_hex(run_id.encode())[:32]}"


def rows_of(run_id: str, device: str, series: Series) -> Iterator[SampleRow]:
    """Yield one device's rows.

    Raises:
        RecordError: If they are not in order of time, or one has a time or a power that is none.
    """
    before: tuple[int, int] | None = None
    for t_us, power_w in series:
        power = _milliwatts(run_id, device, t_us, power_w)
        if before is None:
            yield SampleRow(run_id=run_id, device=device, t_us=t_us, power_mw=power)
        else:
            if t_us < before[0]:
                raise RecordError(
                    f"samples of {device} go back in time",
                    where=run_id,
                    mend="sort them, or take them by a clock that only runs forward",
                )
            pair, dt_us = power + before[1], t_us - before[0]
            yield SampleRow(
                run_id=run_id, device=device, t_us=t_us, power_mw=power, dt_us=dt_us, pair_mw=pair
            )
        before = t_us, power


def _milliwatts(run_id: str, device: str, t_us: int, power_w: float) -> int:
    """Return a power as it is stored.

    Raises:
        RecordError: If no column holds it, it is negative, or its time lies in no year of four digits.
    """
    if not (0 <= power_w <= _MOST_W and _FIRST_US <= t_us < _END_US):
        raise RecordError(
            f"a sample of {device} is impossible: {power_w!r} W at {t_us} us",
            where=run_id,
            mend="give watts from 0, and UTC microseconds since 1970",
        )
    return round(power_w * _MW_PER_W)


def days(ledger: Path) -> list[str]:
    """Return the UTC days ``yyyymmdd`` that have samples.

    Raises:
        OSError: If the folder cannot be read.
    """
    return [folder.name for folder in layout.folders_in(ledger / layout.SAMPLES)]


def merge(ledger: Path, day: str) -> tuple[Path | None, list[Finding]]:
    """Put a day's files into one; ``None`` where there are fewer than two.

    The manifest is what makes the new file count and the old ones not, so that
    a crash at any point leaves each sample counted once. A file that cannot be
    read is a Finding, and stays beside the others.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If a file cannot be written.
        FileNotFoundError: If another host merged the day meanwhile.
        OSError: If the folder cannot be written.
    """
    folder = ledger / layout.SAMPLES / day
    _remove_merged(folder)
    singles = [f for f in counting(folder) if not f.name.startswith(MERGED)]
    try:
        return _merged(folder, singles), []
    except UnwritableError:
        for single in singles:
            single.stat()  # Gone: another host merged the day meanwhile.
        connection = parquet.connect()
        try:
            damaged = _of_each(connection, singles, LONGEST_GAP_S)[1]
        finally:
            connection.close()
        if not damaged:
            raise
    said = {f.file for f in damaged}
    return _merged(folder, [f for f in singles if str(f) not in said]), damaged


def _merged(folder: Path, singles: Sequence[Path]) -> Path | None:
    if len(singles) < 2:
        return None
    names = tuple(f.name for f in singles)
    file = folder / f"{merged_name(names)}.parquet"
    parquet.merge(singles, file, order=("run_id", "device", "t_us"))
    write_atomically(file.with_suffix(".json"), manifest_of(names))
    for single in singles:
        single.unlink(missing_ok=True)
    return file


def _remove_merged(folder: Path) -> None:
    """Remove what a merging that was cut off left: files whose samples a merged one holds."""
    for manifest in layout.files_in(folder, ".json"):
        if manifest.with_suffix(".parquet").exists():
            for name in names_in(manifest) or ():
                (folder / name).unlink(missing_ok=True)


def energy(
    ledger: Path, *, longest_gap_s: float = LONGEST_GAP_S
) -> tuple[list[SampledEnergy], list[Finding]]:
    """Return the energy of each run and device of which samples are stored.

    Args:
        ledger: The ledger's folder.
        longest_gap_s: Longest time between two samples that is integrated.

    Raises:
        MissingExtraError: If DuckDB or narwhals is not installed.
        OSError: If the folder cannot be read.
    """
    sums: dict[tuple[str, str], list[int]] = {}
    findings: list[Finding] = []
    connection = parquet.connect()
    try:
        for day in days(ledger):
            rows, said = _of_day(connection, ledger / layout.SAMPLES / day, longest_gap_s)
            findings += said
            for run_id, device, *values in rows:
                known = sums.setdefault((run_id, device), [0] * len(values))
                for i, value in enumerate(values):
                    known[i] += int(value or 0)
    finally:
        connection.close()
    return [_sampled(*key, *sums[key]) for key in sorted(sums)], findings


def _of_day(
    connection: DuckDBPyConnection, folder: Path, longest_gap_s: float
) -> tuple[list[tuple[Any, ...]], list[Finding]]:
    """Return a day's sums, read again where another host's merging took a file away meanwhile."""
    import duckdb

    for _ in range(ATTEMPTS):
        files = counting(folder)
        try:
            return _of_files(connection, files, longest_gap_s), []
        except duckdb.Error:
            if all(file.exists() for file in files):
                break
    # One of them is damaged: the others still count.
    return _of_each(connection, counting(folder), longest_gap_s)


def unreadable(file: Path, error: Exception) -> Finding:
    """Return the Finding of samples that DuckDB cannot read."""
    return Finding(
        code="CL524",
        severity="error",
        message=f"samples cannot be read and are left out: {str(error).splitlines()[0]}",
        file=str(file),
        mend=RESTORE,
    )


def integrals(samples: nw.LazyFrame[Any], longest_gap_us: int) -> nw.LazyFrame[Any]:
    """Sum intervals per run and device: double nanojoules, covered and uncovered time, counts."""
    import narwhals as nw

    dt = nw.col("dt_us")
    short = dt <= longest_gap_us
    return (
        samples.group_by("run_id", "device")
        .agg(
            pair_nj=nw.when(short).then(nw.col("pair_mw") * dt).sum(),
            covered_us=nw.when(short).then(dt).sum(),
            gap_us=nw.when(~short).then(dt).sum(),
            intervals=short.cast(nw.Int64).sum(),
            samples=nw.len(),
        )
        .sort("run_id", "device")
    )


def _of_files(
    connection: DuckDBPyConnection, files: Iterable[Path], longest_gap_s: float
) -> list[tuple[Any, ...]]:
    import narwhals as nw

    listed = ", ".join(parquet.quoted(f) for f in files)
    if not listed:
        return []
    scan = connection.sql(f"SELECT * FROM read_parquet([{listed}])")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    frame: nw.LazyFrame[Any] = nw.from_native(scan).lazy()
    rows: list[tuple[Any, ...]] = integrals(frame, round(longest_gap_s * US_PER_S)).to_native().fetchall()
    return rows


def _of_each(
    connection: DuckDBPyConnection, files: Iterable[Path], longest_gap_s: float
) -> tuple[list[tuple[Any, ...]], list[Finding]]:
    import duckdb

    rows: list[tuple[Any, ...]] = []
    findings: list[Finding] = []
    for file in files:
        try:
            rows += _of_files(connection, [file], longest_gap_s)
        except duckdb.Error as error:
            findings.append(unreadable(file, error))
    return rows, findings


def _sampled(  # noqa: PLR0913, PLR0917 - the columns of one row
    run_id: str, device: str, pair_nj: int, covered_us: int, gap_us: int, intervals: int, samples: int
) -> SampledEnergy:
    joules = (Decimal(pair_nj) / _PAIR_NJ_PER_J).quantize(_MICRO) if intervals else None
    return SampledEnergy(
        run_id=run_id,
        device=device,
        energy_j=joules,
        covered_s=covered_us / US_PER_S,
        gap_s=gap_us / US_PER_S,
        samples=samples,
    )


def _day(t_us: int) -> str:
    return datetime.fromtimestamp(t_us / US_PER_S, tz=UTC).strftime("%Y%m%d")
