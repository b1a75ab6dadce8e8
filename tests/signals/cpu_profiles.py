"""Public runs of CPU load against RAPL power, beside the project (mlco2/codecarbon, MIT)."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from carbonlens.signals.cpu_curve import LoadCurve, factor_within, fit, two_points

PROFILES = Path(__file__).parents[2] / ".." / "shared" / "cpu_profiles"
ABSENT = "the public CPU profiles (../shared/cpu_profiles) are not here"

TDP_W = {"AMD_EPYC": 90.0, "E3-1240": 69.0, "AMD_Threadripper": 180.0, "E5-2620": 170.0}
"""Beginning of the file names, and the TDP the README of the data states."""


@dataclass(frozen=True)
class Point:
    """Mean power of one machine at one load."""

    machine: str
    load: float
    watts: float

    @property
    def share(self) -> float:
        return self.watts / TDP_W[self.machine]


@dataclass(frozen=True)
class Errors:
    """Mean relative error of a way to tell power from load, and the width that holds 90 %."""

    mean: float
    factor_90: float


def points() -> list[Point]:
    found = []
    for path in sorted(PROFILES.glob("*.csv")):
        machine = next(name for name in TDP_W if path.name.startswith(name))
        for row in csv.DictReader(path.read_text().splitlines()):
            watts = float(row["rapl_energy"]) * 3.6e6 / float(row["duration"])
            found.append(Point(machine, float(row["cpu_load"]) / 100, watts))
    return found


def errors(ratios: list[float]) -> Errors:
    """Errors of predictions given as multiples of the truth."""
    misses = sorted(abs(math.log(r)) for r in ratios)
    return Errors(
        mean=sum(abs(r - 1) for r in ratios) / len(ratios),
        factor_90=math.exp(misses[math.ceil(0.9 * len(misses)) - 1]),
    )


def cubic(load: float) -> float:
    """The machine-mode curve of codecarbon, as a share of the TDP."""
    return 0.1 + 0.9 * load**3


def linear(load: float) -> float:
    """The process-mode line of codecarbon with a floor, as a share of the TDP."""
    return max(0.1, load)


def left_out() -> dict[str, list[float]]:
    """Ratios of each machine's points by the curve fitted to the other machines."""
    every = points()
    ratios = {}
    for machine in TDP_W:
        curve = fit([(p.load, p.share) for p in every if p.machine != machine])
        ratios[machine] = [curve.at(p.load) / p.share for p in every if p.machine == machine]
    return ratios


def calibrated() -> dict[str, list[float]]:
    """Ratios of each machine's points by the curve through its own idle and full power."""
    every = points()
    ratios = {}
    for machine in TDP_W:
        own = [p for p in every if p.machine == machine]
        idle, full = min(own, key=lambda p: p.load), max(own, key=lambda p: p.load)
        curve = two_points((idle.load, idle.watts), (full.load, full.watts))
        ratios[machine] = [curve.at(p.load) / p.watts for p in own]
    return ratios


def bundled_within(curve: LoadCurve, share: float) -> float:
    return factor_within(curve, [(p.load, p.share) for p in points()], share)
