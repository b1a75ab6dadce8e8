"""The two public traces that pair a GPU's own power with an external meter.

They lie beside the project (JimZeyuYang/GPU_Power_Benchmark, MIT); its README
there states the formats. The meter's samples are taken as straight lines between
each other, at 4.78 kHz.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

METER = Path(__file__).parents[2] / ".." / "shared" / "meter"
ABSENT = "the public meter traces (../shared/meter) are not here"

TICKS_PER_US = 2.9345
VOLTS, AMPERES = 0.007568, 0.0488
METER_AHEAD_US = 50_000
PERIOD_US = 100_000
"""Update period of both boards, seen in the logs."""


@dataclass(frozen=True)
class Trace:
    """One board's log and the meter on its supply, times in microseconds UTC."""

    name: str
    t_us: np.ndarray
    power_w: np.ndarray
    meter_us: np.ndarray
    meter_w: np.ndarray
    _joules: np.ndarray

    def truth(self, start_us: float, end_us: float) -> float:
        """Joules at the meter."""
        low, high = np.interp([start_us, end_us], self.meter_us, self._joules)
        return float(high - low)

    @property
    def span_us(self) -> tuple[float, float]:
        """Times that both the log and the meter cover."""
        return max(self.t_us[0], self.meter_us[0]), min(self.t_us[-1], self.meter_us[-1])


def load(board: str, field: str = "power.draw.instant [W]") -> Trace:
    folder = METER / f"5050-{board}"
    rows = list(csv.reader((folder / "gpudata.csv").read_text().splitlines(), skipinitialspace=True))
    column = rows[0].index(field)
    full = [row for row in rows[1:] if len(row) == len(rows[0])]
    t_us = [datetime.strptime(f"{row[0]} +0100", "%Y/%m/%d %H:%M:%S.%f %z").timestamp() * 1e6 for row in full]
    meter_us, meter_w = _meter(folder)
    steps = np.diff(meter_us) / 1e6 * (meter_w[1:] + meter_w[:-1]) / 2
    return Trace(
        name=board,
        t_us=np.array(t_us),
        power_w=np.array([float(row[column]) for row in full]),
        meter_us=meter_us,
        meter_w=meter_w,
        _joules=np.concatenate(([0.0], np.cumsum(steps))),
    )


def _meter(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    raw = np.frombuffer((folder / "PMD_data.bin").read_bytes(), "<u2").reshape(-1, 9)
    ticks = np.concatenate(([0], np.cumsum(np.diff(raw[:, 0].astype(int)) % 65536)))
    start_us = int((folder / "PMD_start_ts.txt").read_text()) - METER_AHEAD_US
    pairs = raw[:, 1:].copy().view("<i2").astype(int) >> 4
    watts = (pairs[:, 0::2] * VOLTS) * (pairs[:, 1::2] * AMPERES)
    return start_us + ticks / TICKS_PER_US, watts.sum(axis=1)


def windows(span_us: tuple[float, float], lengths_s: Iterable[float], seed: int) -> list[tuple[float, float]]:
    """One window of each length at a random place in the span."""
    # A stream of its own: with the lengths' stream, place and length would go together.
    rng = np.random.default_rng((seed, len("place")))
    found = []
    for length in lengths_s:
        start = rng.uniform(span_us[0], span_us[1] - length * 1e6)
        found.append((start, start + length * 1e6))
    return found


def change_point_trapezoid(trace: Trace, start_us: float, end_us: float) -> float:
    """Energy as zeus's PowerMonitor makes it: changed samples in the window, joined by lines."""
    changed = np.concatenate(([True], np.diff(trace.power_w) != 0))
    t, w = trace.t_us[changed], trace.power_w[changed]
    inside = (t >= start_us) & (t <= end_us)
    return float(np.trapezoid(w[inside], t[inside])) / 1e6


def trapezoid(trace: Trace, start_us: float, end_us: float) -> float:
    """Energy as the samples in the window, joined by lines."""
    inside = (trace.t_us >= start_us) & (trace.t_us <= end_us)
    return float(np.trapezoid(trace.power_w[inside], trace.t_us[inside])) / 1e6
