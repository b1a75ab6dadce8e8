"""What the ledger's queries cost, beside pandas and polars doing the same sums.

Run with ``python -m tests.bench.bench_ledger [FOLDER]``; prints a table and asserts
nothing about time. Each row is a process of its own, which works three times:
the first is cold (imports, reading), the best of the others warm; CPU time, of
all threads, tells what a busy machine hides. Contestants that are not installed
are left out. Needs about 3 GB of disk, freed at the end.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from carbonlens.ledger import calendar as calendars
from carbonlens.ledger import schema
from carbonlens.ledger.calendar import Calendar

BY = ["team", "model", "fiscal_quarter"]
CALENDAR = Calendar(fiscal_year_start=4)
ZONES = 50
SAMPLE_DAYS = 40
LISTED = 20
LIVE_MONTH = 12
HOSTS = 200
UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
"""Places and lengths of an id's parts in a hash."""


def year() -> tuple[int, int]:
    """Return first and end hour of the year of the data."""
    period = Calendar().period("2026")
    return period.first_hour, period.end_hour


def make_runs(folder: Path, runs: int, groups: int = 5000, hosts: int = 0) -> None:
    """Write a compacted ledger of one year, and hourly factors and monthly prices of 50 zones.

    Runs differ in zone, team and model independently of each other: the worst
    case for sums that keep sources apart. With ``hosts`` they tell their times, and each
    host has a GPU of its own, so that it must be found out which of them overlap.
    """
    import duckdb

    connection = duckdb.connect()
    first, end = year()
    own = {
        "run_id": "lpad(hex(i), 32, '0')",
        "role": "'training'",
        "status": "'complete'",
        "zone": f"'Z' || hash(i + 1) % {ZONES}",
        "team": f"'team-' || hash(i + 2) % {groups // 50}",
        "model": "'model-' || hash(i + 3) % 50",
        "unit": "'step'",
        "hour_utc": f"{first} + i * {end - first} // {runs}",
        "start_us": f"({first} + i * {end - first} // {runs}) * 3600000000",
        "part": "0",
        "is_first": "true",
        "counts": "true",
        "component": "'gpu'",
        "boundary": "'it'",
        "grade": "CASE WHEN i % 3 = 0 THEN 'D' ELSE 'B' END",
        "state": "'known'",
        "energy_j": "100000 + (hash(i) % 1000000000000)::DECIMAL(18,0) * 0.000001",
        "u_random_j": "(hash(i) % 1000 / 7)",
        "sensor_source_id": "CASE WHEN i % 3 > 0 THEN 'sensor:' || hash(i + 4) % 8 END",
        "u_sensor_j": "CASE WHEN i % 3 > 0 THEN hash(i) % 20000 END",
        "model_source_id": "CASE WHEN i % 3 = 0 THEN 'cpu_model:' || hash(i + 4) % 4 END",
        "u_model_j": "CASE WHEN i % 3 = 0 THEN hash(i) % 300000 END",
        "units": "100",
        "run_state": "'known'",
        "duration_s": "60",
        "record_sha256": "'0'",
        "row_schema": str(schema.VERSION),
    }
    if hosts:
        digits = f"md5((i % {hosts})::VARCHAR)"
        uuid = " || '-' || ".join(f"substr({digits}, {a}, {n})" for a, n in UUID_PARTS)
        own |= {
            "host_id": f"'host-' || i % {hosts}",
            "end_us": f"{own['start_us']} + 60000000",
            "sensor_source_id": f"CASE WHEN i % 3 > 0 THEN 'sensor:nvml_counter:GPU-' || {uuid} END",
        }
    columns = ", ".join(f"({own.get(n, 'NULL')})::{kind} AS {n}" for n, kind in schema.COLUMNS.items())
    for month in range(12):
        target = folder / "ledger" / "months" / f"2026{month + 1:02}"
        target.mkdir(parents=True)
        rows = f"range({month * runs // 12}, {(month + 1) * runs // 12}) t(i)"
        connection.execute(f"COPY (SELECT {columns} FROM {rows}) TO '{target}/m.parquet' (COMPRESSION zstd)")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    grid = f"range({ZONES}) z(z), range({first}, {first + 8760}) h(h)"
    factors = (
        "'Z' || z AS zone, h AS hour_utc, (0.2 + z * 0.01 + h % 24 * 0.00123457)::DECIMAL(13,8) AS rate,"
        " 'grid:Z' || z AS source_id, 0.1::DOUBLE AS u_relative"
    )
    connection.execute(f"COPY (SELECT {factors} FROM {grid}) TO '{folder}/factors.parquet'")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    tariffs = (
        "'Z' || z AS zone, 202601 + m AS month_utc, (0.1 + z * 0.003 + m * 0.01)::DECIMAL(13,8) AS rate,"
        " 'tariff:Z' || z AS source_id, 0.0::DOUBLE AS u_relative, 'EUR' AS currency"
    )
    months = f"range({ZONES}) z(z), range(12) m(m)"
    connection.execute(f"COPY (SELECT {tariffs} FROM {months}) TO '{folder}/prices.parquet'")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    month = (
        "(year(make_timestamp(hour_utc * 3600000000)) * 100 + month(make_timestamp(hour_utc * 3600000000)))"
    )
    for file in (folder / "ledger" / "months").glob("*/m.parquet"):
        # Kept simple above: the month of each hour, as the ledger's own writer makes it.
        fixed = f"SELECT * REPLACE ({month}::INTEGER AS month_utc) FROM '{file}'"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        connection.execute(f"COPY ({fixed}) TO '{file}.new' (FORMAT parquet, COMPRESSION zstd)")
        file.with_name("m.parquet.new").replace(file)
    rows = [r._asdict() for r in CALENDAR.rows(first, end)]
    (folder / "calendar.json").write_text("\n".join(json.dumps(r) for r in rows))
    kinds = ", ".join(f"{n}: '{k}'" for n, k in calendars.COLUMNS.items())
    source = f"read_json('{folder}/calendar.json', columns={{{kinds}}})"
    connection.execute(f"COPY (SELECT * FROM {source}) TO '{folder}/calendar.parquet'")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there


def ours(folder: Path, *, intervals: bool) -> tuple[int, Decimal]:
    """Sum energy, emissions and cost per team, model and fiscal quarter through the ledger's view."""
    from carbonlens.ledger import amounts, queries, rates
    from carbonlens.ledger.frames import View

    with View(folder / "ledger") as view:
        view.connection.execute("SET threads = 2")
        given = [
            rates.load_file(view, "emissions", folder / "factors.parquet"),
            rates.load_file(view, "cost", folder / "prices.parquet"),
        ]
        parts = queries.labelled(queries.roots(view.parts, view.orphans), BY, view.calendar(CALENDAR))
        parts = queries.rated(parts, given)
        summed = [amounts.ENERGY, amounts.EMISSIONS, amounts.COST]
        rows = view.rows(queries.totals(parts, BY, summed, intervals=intervals))
    return len(rows), sum((r["value_emissions"] for r in rows), Decimal(0))


def with_pandas(folder: Path, *, exact: str) -> tuple[int, Decimal | float]:
    """Do the same sums of values in pandas: floats, Decimal objects, or whole numbers in two halves."""
    import duckdb
    import pandas as pd

    columns = "team, model, zone, hour_utc, month_utc, boundary, energy_j"
    connection = duckdb.connect()
    # Whole numbers are made while reading, so that no conversion is pandas' burden.
    whole = "(energy_j * 1000000)::BIGINT" if exact == "halves" else "energy_j"
    rate = "(rate * 100000000)::BIGINT" if exact == "halves" else "rate"
    made = columns.replace("energy_j", f"{whole} AS energy_j")

    def table(query: str) -> pd.DataFrame:
        if exact != "objects":
            return connection.execute(query).df()
        relation = connection.sql(query)
        return pd.DataFrame(relation.fetchall(), columns=relation.columns)

    runs = table(f"SELECT {made} FROM read_parquet('{folder}/ledger/months/*/*.parquet')")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    factors = table(f"SELECT zone, hour_utc, {rate} AS factor FROM '{folder}/factors.parquet'")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    prices = table(f"SELECT zone, month_utc, {rate} AS price, currency FROM '{folder}/prices.parquet'")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    dates = connection.execute(f"SELECT hour_utc, fiscal_quarter FROM '{folder}/calendar.parquet'").df()  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    joined = runs.merge(factors, on=["zone", "hour_utc"], how="left")
    joined = joined.merge(prices, on=["zone", "month_utc"], how="left").merge(dates, on="hour_utc")
    half = 1_000_000
    if exact == "halves":
        joined["high"], joined["low"] = joined["energy_j"] // half, joined["energy_j"] % half
        for rate_name in ("factor", "price"):
            joined[f"{rate_name}_high"] = joined["high"] * joined[rate_name]
            joined[f"{rate_name}_low"] = joined["low"] * joined[rate_name]
        names = ["energy_j", "factor_high", "factor_low", "price_high", "price_low"]
    else:
        joined["kg"], joined["eur"] = (joined["energy_j"] * joined[r] for r in ("factor", "price"))
        names = ["energy_j", "kg", "eur"]
    summed = joined.groupby([*BY, "boundary", "currency"], observed=True)[names].sum()
    if exact == "halves":
        total = sum(map(int, summed["factor_high"])) * half + sum(map(int, summed["factor_low"]))
        return len(summed), Decimal(total) / 10**14
    return len(summed), summed["kg"].sum()


def with_polars(folder: Path) -> tuple[int, Decimal | float]:
    """Do the same sums of values in polars, with its decimals."""
    import polars as pl

    runs = pl.scan_parquet(f"{folder}/ledger/months/*/*.parquet")
    factors = pl.scan_parquet(f"{folder}/factors.parquet").select("zone", "hour_utc", factor="rate")
    prices = pl.scan_parquet(f"{folder}/prices.parquet").select("zone", "month_utc", "currency", price="rate")
    joined = (
        runs.join(factors, on=["zone", "hour_utc"], how="left")
        .join(prices, on=["zone", "month_utc"], how="left")
        .join(pl.scan_parquet(f"{folder}/calendar.parquet"), on="hour_utc")
    )
    energy = pl.col("energy_j")
    sums = joined.group_by(*BY, "boundary", "currency").agg(
        energy.sum(), kg=(energy * pl.col("factor")).sum(), eur=(energy * pl.col("price")).sum()
    )
    found = sums.sort(BY).collect()
    return found.height, sum(found["kg"].to_list())


def make_samples(folder: Path, samples: int) -> None:
    """Write samples as ``ledger.samples`` stores them: 40 days, 500 runs a day, rows mixed by time."""
    import duckdb

    connection = duckdb.connect()
    first = year()[0] * 3_600_000_000
    per_day = samples // SAMPLE_DAYS
    power = "(200000 + hash(i) % 100000)"
    for day in range(SAMPLE_DAYS):
        target = folder / "ledger" / "samples" / f"2026{day // 28 + 1:02}{day % 28 + 1:02}"
        target.mkdir(parents=True)
        query = (
            f"SELECT 'run-' || {day} || '-' || i % 500 AS run_id, 'GPU-0' AS device,"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
            f" {first + day * 86_400_000_000} + i // 500 * 100000 + hash(i + 1) % 5000 AS t_us,"
            f" {power}::INTEGER AS power_mw,"
            " CASE WHEN i >= 500 THEN 100000 + hash(i + 1) % 5000 - hash(i - 499) % 5000 END::BIGINT dt_us,"
            f" CASE WHEN i >= 500 THEN {power} + 200000 + hash(i - 500) % 100000 END::BIGINT AS pair_mw"
            f" FROM range({per_day}) t(i)"
        )
        target = target / "all.parquet"
        connection.execute(f"COPY ({query}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


def sampled(folder: Path) -> tuple[int, Decimal]:
    """Integrate all samples, a day at a time."""
    from carbonlens.ledger import samples

    energies, _ = samples.energy(folder / "ledger")
    return len(energies), sum((e.energy_j or Decimal(0) for e in energies), Decimal(0))


def make_records(folder: Path, runs: int) -> None:
    """Write a ledger of live runs twice: as files, and compacted by month."""
    import msgspec

    from carbonlens.domain.identity import uuid7
    from carbonlens.ledger import batches, layout
    from tests.ledger.test_schema import live_run

    first, end = year()
    months: dict[str, list[object]] = {}
    for i in range(runs):
        start = (first + i * (end - first) // runs) * 3_600_000_000 + i % 3600 * 1_000_000
        stamp = uuid7(start // 1000, (i * 2_654_435_761 % 2**80).to_bytes(10, "big"))
        length = {"start_us": start, "end_us": start + 600_000_000, "run_id": stamp, "energy_by_hour": ()}
        # Runs that overlap on one host share its devices: that is another question's cost.
        length["host_id"] = f"host-{i:06}"
        run = msgspec.structs.replace(live_run(i), **length)
        months.setdefault(layout.month_of(start), []).append(run)
        live = folder / "live" / "runs" / layout.month_of(start)
        live.mkdir(parents=True, exist_ok=True)
        file = live / f"{run.run_id}.json"
        # As ``Ledger.append``, without its syncs: reading is measured here.
        file.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
        os.utime(file, (start / 1e6 + 600, start / 1e6 + 600))
    for month, records in months.items():
        batches.write(folder / "compacted" / "months" / month / "m.parquet", records)


def listed(folder: Path, kind: str) -> tuple[int, str]:
    """List the last 20 runs."""
    from carbonlens.ledger.latest import latest

    found = latest(folder / kind, LISTED)
    return len(found.runs), found.runs[0].run_id


def one_month(folder: Path, kind: str) -> tuple[int, Decimal]:
    """Sum a month of twelve per team."""
    from carbonlens.ledger.accounts import account
    from carbonlens.ledger.reading import open_view

    with open_view(folder / kind, f"2026-{LIVE_MONTH}") as view:
        totals = account(view, ["team"]).totals
    return len(totals), sum((t.energy.exact or Decimal(0) for t in totals), Decimal(0))


WORK: dict[str, Callable[[Path], tuple[int, object]]] = {
    "carbonlens, exact values": lambda f: ours(f, intervals=False),
    "carbonlens, exact values and intervals": lambda f: ours(f, intervals=True),
    "pandas, whole numbers in two halves (exact)": lambda f: with_pandas(f, exact="halves"),
    "pandas, Decimal objects (exact)": lambda f: with_pandas(f, exact="objects"),
    "pandas, floats (not exact)": lambda f: with_pandas(f, exact="floats"),
    "polars, its decimals": with_polars,
    "samples to energy per run": sampled,
    "last 20 of live files": lambda f: listed(f, "live"),
    "last 20 of compacted months": lambda f: listed(f, "compacted"),
    "one month of twelve, live files": lambda f: one_month(f, "live"),
    "one month of twelve, compacted": lambda f: one_month(f, "compacted"),
}
SLOW = frozenset({"pandas, Decimal objects (exact)"})


def measure(name: str, folder: Path, times: int = 3) -> dict[str, object]:
    """Run one contestant in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.bench_ledger", "--one", name, str(folder), str(times)]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"name": name, "failed": done.stderr.strip().splitlines()[-1]}
    return {"name": name, "process_s": time.perf_counter() - begin, **json.loads(done.stdout)}


def one(name: str, folder: Path, times: int) -> None:
    """Work here and print what it took."""
    took, cpu = [], []
    for _ in range(times):
        begin, used = time.perf_counter(), time.process_time()
        rows, result = WORK[name](folder)
        took.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - used)
    # Not getrusage: its maximum is the parent's where that was larger.
    status = Path("/proc/self/status").read_text()
    rss = next(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM")) / 1024
    found = {"cold_s": took[0], "warm_s": min(took[1:], default=took[0]), "cpu_s": min(cpu), "rss_mib": rss}
    print(json.dumps({**found, "rows": rows, "result": str(result)}))


def line(found: dict[str, object]) -> str:
    """Return a row of the table."""
    if "failed" in found:
        return f"| {found['name']} | not run: {found['failed']} | | | | | |"
    times = f"{found['cold_s']:.2f} | {found['warm_s']:.2f} | {found['cpu_s']:.2f} | {found['rss_mib']:.0f}"
    return f"| {found['name']} | {times} | {found['rows']} | {found['result']} |"


def table(title: str, names: list[str], folder: Path, times: int = 3) -> None:
    """Measure and print one table."""
    print(f"\n### {title}\n\n| | cold s | warm s | CPU s | peak RSS MiB | rows | result |")
    print("|---|--:|--:|--:|--:|--:|---|")
    for name in names:
        print(line(measure(name, folder, 1 if name in SLOW else times)), flush=True)


def machine() -> str:
    """Return the machine and the versions."""
    model = next(
        (
            x.split(":")[1].strip()
            for x in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in x
        ),
        platform.processor(),
    )
    packages = []
    for name in ("duckdb", "narwhals", "pandas", "polars", "numpy", "msgspec"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"{name} not installed")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, "
        f"{platform.system()} {platform.release()}, load {load:.1f} at the start; {', '.join(packages)}"
    )


SUMS = [name for name in WORK if name.startswith(("carbonlens", "pandas", "polars"))]
LISTS = [name for name in WORK if name.startswith(("last", "one"))]


def everything(folder: Path, scale: int = 1) -> None:
    """Print all tables; each data set is removed before the next is made.

    Args:
        folder: Where the data may lie.
        scale: Divides every size.
    """
    print(machine())
    for runs, names in ((10**6 // scale, SUMS), (10**7 // scale, SUMS[:2])):
        data = folder / f"runs-{runs}"
        make_runs(data, runs, 5000 // min(scale, 10))
        table(f"{runs:,} runs x 438,000 hourly factors x prices, to team, model, quarter", names, data)
        shutil.rmtree(data)
    data = folder / "hosts"
    make_runs(data, 10**6 // scale, 5000 // min(scale, 10), HOSTS)
    table(f"{10**6 // scale:,} runs on {HOSTS} hosts with a GPU each, none overlapping", SUMS[:2], data)
    shutil.rmtree(data)
    data = folder / "samples"
    make_samples(data, 10**8 // scale)
    table(f"{10**8 // scale:,} samples in {SAMPLE_DAYS} days", ["samples to energy per run"], data, times=2)
    shutil.rmtree(data)
    data = folder / "records"
    make_records(data, 10**5 // scale)
    size = sum(f.stat().st_size for f in (data / "compacted").rglob("*.parquet"))
    table(f"{10**5 // scale:,} records; compacted {size / (10**5 // scale):.0f} bytes each", LISTS, data)
    shutil.rmtree(data)


@pytest.mark.bench
def test_the_tables(tmp_path):
    everything(tmp_path, scale=100)


def main() -> None:
    """Print the tables, or measure one row of them."""
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
        return
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as folder:
        everything(Path(folder))


if __name__ == "__main__":
    main()
