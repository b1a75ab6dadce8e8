"""What importers cost: rows and samples a second of CPU time, and the memory of a large session.

Run with ``python -m tests.bench.bench_importers [SAMPLES]``; prints a table and asserts nothing
about time. Each row is a process of its own. CPU seconds are of all threads: they tell what a
busy machine hides. The session has 170 million samples (1 GB) unless SAMPLES says otherwise.
Imports into a ledger of their own are of 10 000, 100 000 and a million codecarbon rows: to the batch
in memory, which holds every run that is to be kept, and on to the batch on the disk; ``--imports
ROWS...`` makes those alone, three times each.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from carbonlens.importers import codecarbon, joulescope, monsoon, ppk2
from carbonlens.importers.contract import Importer, Options
from carbonlens.importers.harvest import harvest
from carbonlens.importers.sources import sources_of

WHOLE = 170_000_000
ROWS = 100_000
IMPORTS = (10_000, 100_000, 1_000_000)
SAMPLES = 4_000_000
RATE_HZ = 100_000
VOLTS = Options(voltage_v=3.0, tz="UTC")


def make_codecarbon(folder: Path, count: int) -> Path:
    """Write runs of one second, a minute apart, each with its own energies."""
    path = folder / "emissions.csv"
    with path.open("w") as file:
        file.write(
            "timestamp,project_name,run_id,experiment_id,duration,emissions,emissions_rate,cpu_power,"
            "gpu_power,ram_power,cpu_energy,gpu_energy,ram_energy,energy_consumed,country_name,"
            "country_iso_code,region,cloud_provider,cloud_region,os,python_version,codecarbon_version,"
            "cpu_count,cpu_model,gpu_count,gpu_model,longitude,latitude,ram_total_size,tracking_mode,on_cloud,pue\n"
        )
        for i in range(count):
            day, minute = divmod(i, 1440)
            stamp = np.datetime64("2026-01-01T00:00:00") + np.timedelta64(day * 86400 + minute * 60, "s")
            kwh = (50.0 + i % 7) / 3.6e6
            file.write(
                f"{stamp},p{i % 20},{i:032x},e,1.0,{3 * kwh * 0.05},{3 * kwh * 0.05},{kwh * 3.6e6},"
                f"{kwh * 3.6e6},{kwh * 3.6e6},{kwh},{kwh},{kwh},{3 * kwh},France,FRA,,,,Linux,3.11.7,"
                "2.8.0,8,cpu,1,gpu,2.35,48.85,16.0,process,N,1.0\n"
            )
    return path


def make_csv(
    folder: Path, head: str, cells: Callable[[np.ndarray, np.ndarray], np.ndarray], count: int
) -> Path:
    """Write a table of numbers.

    Args:
        folder: Where.
        head: Its header line.
        cells: Columns of times in seconds and milliamperes.
        count: Rows.
    """
    path = folder / "trace.csv"
    chance = np.random.default_rng(7)
    with path.open("w") as file:
        file.write(head)
        for first in range(0, count, 1 << 18):
            t_s = np.arange(first, min(first + (1 << 18), count)) / RATE_HZ
            table = cells(t_s, 50 + 10 * chance.standard_normal(len(t_s)))
            np.savetxt(file, table, fmt="%.6f", delimiter=",")
    return path


def make_session(folder: Path, count: int) -> Path:
    """Write a ``.ppk2`` session, stored without compression."""
    path = folder / "session.ppk2"
    chance = np.random.default_rng(7)
    told = {
        "metadata": {"samplesPerSecond": RATE_HZ, "startSystemTime": 1_772_445_600_000},
        "formatVersion": 2,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        with archive.open("session.raw", "w", force_zip64=True) as file:
            for first in range(0, count, 1 << 20):
                frames = np.zeros(min(1 << 20, count - first), dtype=[("ua", "<f4"), ("pins", "<u2")])
                frames["ua"] = 50_000 + 10_000 * chance.standard_normal(len(frames), dtype=np.float32)
                file.write(frames.tobytes())
        archive.writestr("metadata.json", json.dumps(told))
        archive.writestr("minimap.raw", "{}")
    return path


CASES: dict[str, tuple[Importer, Callable[[Path, int], Path], int]] = {
    "codecarbon rows": (codecarbon.IMPORTER, make_codecarbon, ROWS),
    "PPK2 CSV samples": (
        ppk2.IMPORTER,
        lambda folder, count: make_csv(
            folder, "Timestamp(ms),Current(uA)\n", lambda t, ma: np.column_stack([t * 1e3, ma * 1e3]), count
        ),
        SAMPLES,
    ),
    "Joulescope CSV samples": (
        joulescope.IMPORTER,
        lambda folder, count: make_csv(
            folder,
            "#time (s),current (A),voltage (V)\n",
            lambda t, ma: np.column_stack([t, ma * 1e-3, np.full(len(t), 3.3)]),
            count,
        ),
        SAMPLES,
    ),
    "Monsoon CSV samples": (
        monsoon.IMPORTER,
        lambda folder, count: make_csv(
            folder,
            "Time(s),Main(mA),Main Voltage(V)\n",
            lambda t, ma: np.column_stack([t * 20, ma, np.full(len(t), 4.0)]),
            count,
        ),
        SAMPLES,
    ),
    ".ppk2 samples": (ppk2.IMPORTER, make_session, WHOLE),
}


HEAD = f"{'':24} {'read':>11} {'CPU s':>8} {'wall s':>8} {'a CPU second':>12} {'MB':>7} {'peak MB':>7}"


def measure(name: str, path: Path) -> None:
    """Read a file in this process, and print what it took."""
    importer, _, _ = CASES[name]
    (group,) = importer.claim(sources_of(path))
    before_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began_s, cpu_s = time.perf_counter(), time.process_time()
    got = harvest(importer, group, VOLTS)
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - began_s
    rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    joules = sum(float(r.stated_j or 0) for r in got.records)
    print(
        f"{name:24} {got.rows:>11,} {cpu_s:>8.2f} {wall_s:>8.2f} {got.rows / cpu_s:>12,.0f} "
        f"{before_mb:>7.0f} {rss_mb:>7.0f}  {joules:.6g} J"
    )


def _moment() -> tuple[float, float, float]:
    """Return seconds of wall and CPU time, and the peak so far in MB."""
    return time.perf_counter(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_import(path: Path) -> None:
    """Import a file into a new ledger in this process, and print what it took up to the batch, and in all."""
    from carbonlens.app.importing import import_files
    from carbonlens.app.importing_placing import Placing
    from carbonlens.ledger.store import Ledger

    moments = [_moment()]
    before_mb = moments[0][2]

    write = Ledger.add_batch

    def noted(*args: Any, **named: Any) -> Path:
        moments.append(_moment())
        return write(*args, **named)

    with patch.object(Ledger, "add_batch", noted):
        got = import_files([path], ledger=path.parent / "ledger", placing=Placing(tz="UTC")).totals
    moments.append(_moment())
    names = ("to the batch in memory", "rows into the ledger")
    for name, (wall_s, cpu_s, peak_mb) in zip(names, moments[1:], strict=True):
        cpu_s, wall_s = cpu_s - moments[0][1], wall_s - moments[0][0]  # noqa: PLW2901  # since the begin
        print(
            f"{name:24} {got.rows:>11,} {cpu_s:>8.2f} {wall_s:>8.2f} "
            f"{got.rows / cpu_s:>12,.0f} {before_mb:>7.0f} {peak_mb:>7.0f}  "
            f"{got.rows / wall_s:,.0f} a second, load {os.getloadavg()[0]:.1f}"
        )


def imports(counts: Sequence[int]) -> None:
    """Import files of so many rows, three times each, every time in a process and a ledger of its own."""
    print(HEAD)
    for count in counts:
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                path = make_codecarbon(Path(folder), count)
                subprocess.run(
                    [sys.executable, "-m", "tests.bench.bench_importers", "--import", str(path)], check=True
                )


def main(whole: int) -> None:
    """Make each file, read it in a process of its own, and print a row."""
    print(HEAD)
    for name, (_, make, count) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = make(Path(folder), whole if count == WHOLE else count)
            subprocess.run(
                [sys.executable, "-m", "tests.bench.bench_importers", "--one", name, str(path)], check=True
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2], Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--import"]:
        measure_import(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--imports"]:
        imports([int(count) for count in sys.argv[2:]] or IMPORTS)
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else WHOLE)
        imports(IMPORTS)
