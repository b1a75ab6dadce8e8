"""What each trace importer reads a second of CPU time: its samples, from the file to the run.

Run with ``python -m tests.bench.bench_traces [SAMPLES] [FORMAT...]``; prints a table, asserts
nothing. Each log is of one or two devices at one reading a second, as its tool writes it plainly.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Final

from carbonlens.importers.claiming import claims, importers
from carbonlens.importers.contract import Options
from carbonlens.importers.harvest import harvest
from carbonlens.importers.sources import Source

SAMPLES: Final = 200_000
BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
BEGIN_S: Final = int(BEGIN.timestamp())
PAIRS: Final = "Volts,230.000000,Amps,0.500000,PF,0.990000"


def _at(second: int, form: str) -> str:
    return (BEGIN + timedelta(seconds=second)).strftime(form)


def _watts(second: int, device: int) -> str:
    return f"{100 + (second * 37 + device * 11) % 900 / 10:.2f}"


def _gauge(second: int, gpu: int) -> str:
    labels = f'gpu="{gpu}",UUID="GPU-{gpu:04}",Hostname="n1"'
    at_ms = (BEGIN_S + second) * 1000
    return f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} {_watts(second, gpu)} {at_ms}"


LOGS: Final[dict[str, tuple[str, Callable[[int, int], str], int]]] = {
    "nvidia-smi": (
        "timestamp, index, power.draw [W]",
        lambda s, d: f"{_at(s, '%Y/%m/%d %H:%M:%S')}.000, {d}, {_watts(s, d)} W",
        2,
    ),
    "nvidia-smi-dmon": (
        "#Date       Time        gpu    pwr  gtemp\n#YYYYMMDD   HH:MM:SS    Idx      W      C",
        lambda s, d: f" {_at(s, '%Y%m%d   %H:%M:%S')}      {d}    {100 + s % 90}     45",
        2,
    ),
    "amd-smi": (
        "timestamp,gpu,socket_power",
        lambda s, d: f"{BEGIN_S + s},{d},{100 + s % 90}",
        2,
    ),
    "prometheus-text": ("# TYPE DCGM_FI_DEV_POWER_USAGE gauge", _gauge, 2),
    "tegrastats": (
        "",
        lambda s, d: (
            f"{_at(s, '%m-%d-%Y %H:%M:%S')} RAM 2000/7772MB (lfb 1x4MB) SWAP 0/3886MB (cached 0MB) "
            f"CPU [1%@1190] VDD_IN {4000 + s % 90}mW/4000mW VDD_CPU_GPU_CV 500mW/500mW"
        ),
        1,
    ),
    "ptdaemon": (
        "",
        lambda s, d: (
            f"Time,{_at(s, '%m-%d-%Y %H:%M:%S')}.250,Watts,{_watts(s, d)}0000,{PAIRS},Mark,run_testing"
        ),
        1,
    ),
    "alumet": (
        "metric;timestamp;value;resource_kind;resource_id;consumer_kind;consumer_id;domain;__late_attributes",
        lambda s, d: (
            f"rapl_consumed_energy_J;{_at(s, '%Y-%m-%dT%H:%M:%S')}.5Z;{_watts(s, d)};"
            f"cpu_package;{d};local_machine;;package;"
        ),
        2,
    ),
    "zeus-power": (
        "Time,Power",
        lambda s, d: f"{_at(s, '%Y-%m-%d %H:%M:%S')}.123456789,{200_000 + s % 900}",
        1,
    ),
    "energibridge": (
        "Delta,Time,CPU_USAGE_0,DRAM_ENERGY (J),PACKAGE_ENERGY (J)",
        lambda s, d: (
            f"{1000 if s else 0},{(BEGIN_S + max(s - 1, 0)) * 1000},12.5,{s * 2}.5,{5000 + s * 60}.25"
        ),
        1,
    ),
    "monsoon": (
        "Time(s),Main(mA),Main Voltage(V)",
        lambda s, d: f"{s / 5000:.4f},{_watts(s, d)},4.0",
        1,
    ),
    "otii": (
        "Timestamp (s),Main Current (A),Main Voltage (V)",
        lambda s, d: f"{s / 1000:.3f},0.{100000 + s % 900},3.3000",
        1,
    ),
}


def main(count: int, names: list[str]) -> None:
    """Read a log of each format, and print a row."""
    print(f"{'format':18} {'samples':>9} {'CPU s':>7} {'a CPU second':>13}")
    readers = importers()
    for name in names or LOGS:
        head, line, devices = LOGS[name]
        seconds = range(count // devices)
        lines = [line(s, d) for s, d in product(seconds, range(devices))]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.txt"
            path.write_text("\n".join([head, *lines] if head else lines) + "\n")
            source = Source(path)
            (claim,), _ = claims([source], readers)
            began_s = time.process_time()
            told = source.sha256  # an import hashes what it reads
            found = harvest(claim.importer, claim.group, Options(tz="UTC", voltage_v=3.8))
            cpu_s = time.process_time() - began_s
        assert told
        assert (claim.importer.name, found.rejected) == (name, 0), found.findings[:3]
        assert found.records, name
        print(f"{name:18} {len(lines):>9,} {cpu_s:>7.2f} {len(lines) / cpu_s:>13,.0f}", flush=True)


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    main(numbers[0] if numbers else SAMPLES, [text for text in sys.argv[1:] if not text.isdigit()])
