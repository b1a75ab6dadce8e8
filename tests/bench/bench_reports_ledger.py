"""A synthetic ledger for ``bench_reports``: the invented company with as many runs as one asks for.

Nothing in it was measured. The company is that of ``scripts.write_company``: five quarters at three
sites, with its meters, bills, tariffs, certificates and initiatives. Each of its runs stands for two
days of work; here it is cut into as many pieces one after the other as make the number of runs, with
energy and units in equal parts, and lies in compacted months as a long-kept ledger does. Berlin's grid
has a factor for every hour, so that accounting by the hour is in the figures.
"""

from __future__ import annotations

import csv
import math
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from carbonlens.ledger import schema
from scripts.write_company import QUARTERS, TABLES, write

PERIOD: Final = QUARTERS[-1]
EARLIER: Final = 10
"""How many times fewer runs each of the four quarters before has."""

_SLOT_US: Final = 48 * 3_600_000_000
_US_PER_HOUR: Final = 3_600_000_000
_BY_HOUR: Final = ("DE", "Germany", 0.372)


def make(folder: Path, runs: int) -> None:
    """Write ledger, inventory and factors.

    Args:
        folder: Empty, or not there.
        runs: Of the quarter that is reported; the four before have a tenth as many each.
    """
    write(folder)
    _hourly_factors(folder / "factors.csv")
    for name, (tags, _) in TABLES.items():
        _cut(folder, name, tags)
    _compacted(folder, runs)


def _hourly_factors(file: Path) -> None:
    """Add a factor for each hour of the reported quarter: a day's and a week's sway about the mean."""
    zone, name, mean = _BY_HOUR
    basis = "location,average,direct,consumption,0.03,Invented for this example,invented,CC0,2026"
    at, end = datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC)
    with file.open("a", encoding="utf-8") as rows:
        for hour in range(int((end - at).total_seconds()) // 3600):
            stamp = f"{at + timedelta(hours=hour):%Y-%m-%dT%H}"
            value = mean * (1 + 0.2 * math.sin(hour * math.tau / 24) + 0.05 * math.sin(hour * math.tau / 168))
            rows.write(f"own/{zone}-{stamp},grid,{zone},{name},{stamp},{value:.4f},{basis}\n")


def _cut(folder: Path, name: str, tags: dict[str, str]) -> None:
    """Write the table's runs with their tags as JSON that DuckDB reads below."""
    import json

    told = "\x1f" + "".join(f"{key}={value}\x1f" for key, value in sorted(tags.items()))
    with (folder / f"{name}.csv").open(encoding="utf-8") as table:
        held = [{**row, "tags": told, **tags} for row in csv.DictReader(table)]
    (folder / f"{name}.json").write_text("\n".join(map(json.dumps, held)), encoding="utf-8")


def _compacted(folder: Path, runs: int) -> None:
    import duckdb

    connection = duckdb.connect()
    names = ", ".join(f"'{folder / name}.json'" for name in TABLES)
    source = f"read_json([{names}], format='newline_delimited', union_by_name=true)"
    connection.execute(
        f"CREATE TABLE given AS SELECT *, epoch_us(start_utc::TIMESTAMP) AS begun, "  # noqa: S608  # our own names
        f"quarter(start_utc::TIMESTAMP) = {PERIOD[-1]} "
        f"AND year(start_utc::TIMESTAMP) = {PERIOD[:4]} AS is_last "
        f"FROM {source}"
    )
    ((last, before),) = connection.execute(
        "SELECT count(*) FILTER (is_last), count(*) FILTER (NOT is_last) FROM given"
    ).fetchall()
    pieces = (max(1, round(runs / last)), max(1, round(runs / EARLIER * (len(QUARTERS) - 1) / before)))
    each = f"(CASE WHEN is_last THEN {pieces[0]} ELSE {pieces[1]} END)"
    start = f"(begun + k * ({_SLOT_US} // {each}))"
    columns = ", ".join(
        f"({_own(each, start).get(n, 'NULL')})::{t} AS {n}" for n, t in schema.COLUMNS.items()
    )
    cut = f"FROM given, LATERAL (SELECT unnest(range({each})) AS k)"
    connection.execute(f"CREATE VIEW cut AS SELECT {columns} {cut}")
    for (month,) in connection.execute("SELECT DISTINCT month_utc FROM cut ORDER BY 1").fetchall():
        target = folder / "ledger" / "months" / str(month)
        target.mkdir(parents=True)
        query = f"SELECT * FROM cut WHERE month_utc = {month} ORDER BY start_us, run_id"  # noqa: S608  # our own names
        connection.execute(f"COPY ({query}) TO '{target}/m.parquet' (COMPRESSION zstd)")
    connection.close()


def _own(each: str, start: str) -> dict[str, str]:
    """Return the columns that a piece of a run has, as SQL."""
    same = ("study", "step", "role", "hardware", "workload", "site", "team", "model", "tags", "boundary")
    source = "('grade_' || energy_grade || ':' || host)"
    moment = f"make_timestamp({start})"
    return {n: n for n in same} | {
        "run_id": "run_id || '-' || k",
        "status": "'complete'",
        "host_id": "host",
        "unit": "nullif(unit::VARCHAR, '')",
        "start_us": start,
        "end_us": f"{start} + {_SLOT_US} // {each} // 2",
        "hour_utc": f"{start} // {_US_PER_HOUR}",
        "month_utc": f"year({moment}) * 100 + month({moment})",
        "part": "0",
        "is_first": "true",
        "counts": "true",
        "component": "'total'",
        "grade": "energy_grade",
        "state": "'known'",
        "run_state": "'known'",
        "energy_j": f"round(energy_j::DOUBLE / {each}, 6)",
        "u_random_j": "0",
        "sensor_source_id": source,
        "u_sensor_j": f"round(energy_j::DOUBLE / {each} * 0.0255, 6)",
        "units": f"round(nullif(units::VARCHAR, '')::DOUBLE / {each}, 6)",
        "duration_s": f"{_SLOT_US} // {each} // 2 / 1e6",
        "record_sha256": "md5(run_id || k)",
        "row_schema": str(schema.VERSION),
    }


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
