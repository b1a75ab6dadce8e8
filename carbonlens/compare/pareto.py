"""Pareto front: arms that no other arm beats in quality, energy and latency at once.

By best values: whether a difference is sure is the verdict's business. A measure
that an arm lacks is left out for all, so that no arm wins by not being measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from carbonlens.compare.latency import PERCENTILES, percentile_of
from carbonlens.compare.material import Material
from carbonlens.compare.quality import find_quality
from carbonlens.domain.comparison import ParetoPoint

_LATENCIES: Final = ("latency_p95_ms", "latency_p99_ms", "latency_p50_ms")
"""Which percentile stands for latency, the best known first, unless a gate names one."""


def pareto(material: Material) -> tuple[ParetoPoint, ...]:
    """Return all measured arms that did not fail, with those on the front marked.

    Quality is that of the study's first gate on one, else the first that all arms
    have; latency likewise. Fewer than two measures or arms make no front.

    Args:
        material: The study's arms.
    """
    arms = [n for n in material.arms if not material.groups[n].has_failed]
    costs: dict[str, dict[str, float]] = {n: {} for n in arms}
    shown: dict[str, dict[str, float]] = {n: {} for n in arms}
    for measure, sign, values in _measures(material, arms):
        for name, value in zip(arms, values, strict=True):
            shown[name][measure], costs[name][measure] = value, sign * value
    if len(arms) < 2 or len(next(iter(costs.values()))) < 2:
        return ()
    return tuple(_point(n, shown[n], costs) for n in arms)


def _point(name: str, values: dict[str, float], costs: Mapping[str, Mapping[str, float]]) -> ParetoPoint:
    better = [n for n, one in costs.items() if _dominates(one, costs[name])]
    best = min(better, key=lambda n: costs[n]["energy_j"], default=None)
    return ParetoPoint(step=name, values=values, on_front=best is None, dominated_by=best)


def _dominates(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Return whether an arm is at least as good in every measure and better in one; less is better."""
    return all(one[m] <= other[m] for m in other) and any(one[m] < other[m] for m in other)


def _measures(material: Material, arms: Sequence[str]) -> list[tuple[str, float, list[float]]]:
    """Return the measures that all arms have: name, sign that makes less better, values."""
    gated = [g.metric for g in material.study.gates]
    found = [_quality(material, arms, name) for name in _qualities(material, gated)]
    quality = next((q for q in found if q is not None), None)
    energy = _complete("energy_j", 1.0, [material.arms[n].series["energy_j"].mean.value for n in arms])
    names = [*(m for m in gated if m in PERCENTILES), *_LATENCIES]
    latencies = (
        _complete(m, 1.0, [percentile_of(material.arms[n], m).value for n in arms])
        for m in dict.fromkeys(names)
    )
    latency = next((x for x in latencies if x is not None), None)
    return [m for m in (quality, energy, latency) if m is not None]


def _qualities(material: Material, gated: Sequence[str]) -> list[str]:
    recorded = [q.name for r in material.groups[material.study.baseline].all for q in r.quality]
    return list(dict.fromkeys([*(m for m in gated if m in recorded), *recorded]))


def _quality(material: Material, arms: Sequence[str], name: str) -> tuple[str, float, list[float]] | None:
    figures = []
    for arm in arms:
        measured = material.measured(arm)
        figures.append(None if measured is None else find_quality(measured.arm, measured.recorded, name))
    directions = {f.higher_is_better for f in figures if f is not None}
    if len(directions) != 1 or None in directions:
        return None
    return _complete(
        name, -1.0 if directions.pop() else 1.0, [None if f is None else f.value for f in figures]
    )


def _complete(
    measure: str, sign: float, values: Sequence[float | None]
) -> tuple[str, float, list[float]] | None:
    known = [v for v in values if v is not None and math.isfinite(v)]
    return (measure, sign, known) if known and len(known) == len(values) else None
