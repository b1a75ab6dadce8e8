"""Power samples by UTC day, and their integral per run and device, one day at a time.

A stored sample carries the interval since the one before it, also across
midnight: the integral is then a plain sum of whole numbers, exact, the same for
any order of rows, and never needs more than one day in memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import RecordError
from carbonlens.ledger import layout, parquet
from carbonlens.ledger.atomic import write_atomically

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
_PAIR_NJ_PER_J: Final = 2_000_000_000
"""``pair_mw * dt_us`` is twice the trapezoid, in nanojoules."""

_MICRO: Final = Decimal("0.000001")
_MERGED: Final = "merged-"

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


class _Merged(msgspec.Struct, frozen=True):
    files: tuple[str, ...]
    schema_version: int = 1


def write(ledger: Path, run_id: str, series: Mapping[str, Series]) -> list[Path]:
    """Store a run's samples, one file a UTC day; the same again changes nothing.

    Args:
        ledger: The ledger's folder.
        run_id: The run.
        series: Device to its samples.

    Raises:
        RecordError: If a device's samples are not in order of time.
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If a file cannot be written.
        OSError: If the folder cannot be written.
    """
    rows = [row for device in sorted(series) for row in rows_of(run_id, device, series[device])]
    rows.sort(key=lambda r: (_day(r.t_us), r.device, r.t_us))
    files = []
    for day, of_day in itertools.groupby(rows, key=lambda r: _day(r.t_us)):
        file = ledger / layout.SAMPLES / day / f"{run_id}.parquet"
        if not file.exists():
            parquet.write(file, COLUMNS, of_day)
        files.append(file)
    return files


def rows_of(run_id: str, device: str, series: Series) -> Iterator[SampleRow]:
    """Yield one device's rows.

    Raises:
        RecordError: If they are not in order of time.
    """
    before: tuple[int, int] | None = None
    for t_us, power_w in series:
        power = round(power_w * _MW_PER_W)
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


def days(ledger: Path) -> list[str]:
    """Return the UTC days ``yyyymmdd`` that have samples.

    Raises:
        OSError: If the folder cannot be read.
    """
    return [folder.name for folder in layout.folders_in(ledger / layout.SAMPLES)]


def merge(ledger: Path, day: str) -> Path | None:
    """Put a day's files into one; ``None`` where there are fewer than two.

    The manifest is what makes the new file count and the old ones not, so that
    a crash at any point leaves each sample counted once.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If a file cannot be written.
        OSError: If the folder cannot be written.
    """
    folder = ledger / layout.SAMPLES / day
    singles = [f for f in _counting(folder) if not f.name.startswith(_MERGED)]
    if len(singles) < 2:
        return None
    names = tuple(f.name for f in singles)
    file = folder / f"{_MERGED}{sha256_hex(chr(10).join(names).encode())[:32]}.parquet"
    parquet.merge(singles, file, order=("run_id", "device", "t_us"))
    write_atomically(file.with_suffix(".json"), msgspec.json.encode(_Merged(names)))
    for single in singles:
        single.unlink(missing_ok=True)
    return file


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
    import duckdb

    sums: dict[tuple[str, str], list[int]] = {}
    findings: list[Finding] = []
    connection = parquet.connect()
    try:
        for day in days(ledger):
            files = _counting(ledger / layout.SAMPLES / day)
            try:
                rows = _of_files(connection, files, longest_gap_s)
            except duckdb.Error:
                # One of them is damaged: the others still count.
                rows, said = _of_each(connection, files, longest_gap_s)
                findings += said
            for run_id, device, *values in rows:
                known = sums.setdefault((run_id, device), [0] * len(values))
                for i, value in enumerate(values):
                    known[i] += int(value or 0)
    finally:
        connection.close()
    return [_sampled(*key, *sums[key]) for key in sorted(sums)], findings


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
            findings.append(
                Finding(
                    code="CL524",
                    severity="error",
                    message=f"samples cannot be read and are left out: {str(error).splitlines()[0]}",
                    file=str(file),
                    mend="restore the file from a copy; the run's record keeps its energy",
                )
            )
    return rows, findings


def _counting(folder: Path) -> list[Path]:
    """Return the files whose samples count: merged ones with their manifest, others not in one."""
    files = layout.files_in(folder, ".parquet")
    manifests = layout.files_in(folder, ".json")
    merged = {name for m in manifests for name in msgspec.json.decode(m.read_bytes(), type=_Merged).files}
    whole = {m.stem for m in manifests}
    return [f for f in files if f.name not in merged and (not f.name.startswith(_MERGED) or f.stem in whole)]


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
