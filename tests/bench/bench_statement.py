"""What a statement of a million runs costs: hourly factors, tariffs, market, embodied, intervals.

Run with ``python -m tests.bench.bench_statement [RUNS]``; prints seconds and memory and
asserts nothing about time. The ledger is a compacted year of ``bench_ledger``, with five
sites in place of its zones, a factor of their own for every hour, and a tariff each.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.bench_ledger import make_runs, year

HOURS = 273 * 24
SITES = ("DE", "FR", "ES", "IT", "PL")


def make(folder: Path, runs: int) -> None:
    """Write ledger, inventory and factors."""
    import duckdb

    make_runs(folder, runs)
    connection = duckdb.connect()
    names = ", ".join(f"'{s.lower()}'" for s in SITES)
    for file in (folder / "ledger" / "months").glob("*/m.parquet"):
        site = f"[{names}][(1 + hash(run_id) % {len(SITES)})::BIGINT]"
        query = f"SELECT * REPLACE ({site} AS site, NULL::VARCHAR AS zone) FROM '{file}'"  # noqa: S608 - our own names
        connection.execute(f"COPY ({query}) TO '{file}.new' (FORMAT parquet, COMPRESSION zstd)")
        file.with_name("m.parquet.new").replace(file)
    inventory = folder / "inventory"
    inventory.mkdir()
    (inventory / "reporting.toml").write_text('entity = "E"\ntimezone = "UTC"\ncurrency = "EUR"\n')
    (inventory / "sites.toml").write_text("".join(map(_site, SITES)))
    (inventory / "tariffs.toml").write_text("".join(map(_tariff, SITES)))
    (inventory / "assets.csv").write_text(
        "id,hardware,count,site,purchased,life_years,embodied_kg,embodied_source\nnode,server,100,de,2025-01-01,5,1000,s\n"
    )
    _factors(folder / "factors.csv")


def _site(zone: str) -> str:
    return (
        f'[[site]]\nid = "{zone.lower()}"\nkind = "own"\nentity = "E"\nzone = "{zone}"\nmarket = "{zone}"\n'
        'pue = 1.3\npue_source = "s"\npue_u_relative = 0.02\n'
    )


def _tariff(zone: str) -> str:
    return (
        f'[[tariff]]\nid = "t-{zone}"\nsite = "{zone.lower()}"\ncurrency = "EUR"\ntimezone = "UTC"\n'
        'valid_from = 2025-01-01\nsource = "s"\n'
        '[[tariff.band]]\nname = "day"\namount_per_kwh = "0.3"\nstart_hour = 8\nend_hour = 20\n'
        '[[tariff.band]]\nname = "night"\namount_per_kwh = "0.2"\nstart_hour = 20\nend_hour = 8\n'
    )


def _factors(file: Path) -> None:
    """Write a factor of each zone for each hour of nine months: factors of the future are refused."""
    first, _ = year()
    end = first + HOURS
    names = "factor_id,kind,subject,name,period,value,method,averaging,span,flow,u_relative,source,address,"
    names += "licence,vintage"
    rows = [names]
    for zone in SITES:
        for hour in range(first, end):
            stamp = time.strftime("%Y-%m-%dT%H", time.gmtime(hour * 3600))
            value = f"{0.2 + hour % 24 / 100:.3f}"
            basis = "location,average,direct,consumption,0.1,h,h,CC0,2026"
            rows.append(f"h/{zone}/{stamp},grid,{zone},{zone},{stamp},{value},{basis}")
    file.write_text("\n".join(rows) + "\n")


def measure(folder: Path) -> None:
    """Make the statement three times and print what each took."""
    from carbonlens.app.statement import make_statement

    for n in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        made = make_statement(
            "2026",
            inventory=folder / "inventory",
            factors=folder / "factors.csv",
            ledger=folder / "ledger",
        )
        took = f"{time.perf_counter() - wall:.2f} s wall, {time.process_time() - cpu:.2f} s CPU"
        total = made.statement.total
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{'cold' if n == 0 else 'warm'}: {took}, {memory:.0f} MiB; {total.runs} runs, {total.key}")


def main() -> None:
    """Make a ledger and measure in a process of its own."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, runs)
        code = "import sys, pathlib; from tests.bench.bench_statement import measure; "
        code += "measure(pathlib.Path(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", code, name], check=True)


if __name__ == "__main__":
    main()
