"""Trade-offs: what the Pareto and latency charts draw, as records."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from carbonlens.domain.comparison import ArmMetrics, ParetoPoint
from carbonlens.domain.direction import known_direction
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.latency import LatencySketch
from carbonlens.domain.units import Z_95
from carbonlens.reporting.content import Latencies, Pareto, ParetoMark, Spot, Spread, phrase, quoted
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.figures import Entry
from carbonlens.reporting.metrics import metric_words
from carbonlens.reporting.names import clip
from carbonlens.reporting.number_words import in_words, join_words
from carbonlens.reporting.room import of_more
from carbonlens.reporting.step_tables import LATENCIES, every_arm, latency
from carbonlens.signals.latency import buckets

MOST_POINTS: Final = 16
"""Arms in a scatter whose names can be read."""
MOST_NAMES: Final = 8
"""With more arms than these, those that another beats have no name beside their marks."""
MOST_SPREADS: Final = 12
_BINS: Final = 60
"""Bins of a histogram, over the latencies of all arms."""
_SAID: Final = 4
"""Arms named in an alternative text."""


def paretos(facts: Facts) -> tuple[Pareto, ...]:
    """Return energy against latency and against quality, as far as all arms have them."""
    every = facts.comparison.pareto
    # Those that none beats find room first; the order stays that of the study.
    first = sorted(every, key=lambda p: not p.on_front)[:MOST_POINTS]
    points = tuple(p for p in every if p in first)
    others = [m for m in (points[0].values if points else ()) if m != "energy_j"]
    # Latency first, as the front's own order has quality first.
    made = (_pareto(facts, points, m) for m in sorted(others, key=lambda m: not _is_latency(m)))
    return tuple(p for p in made if p is not None)


def _is_latency(measure: str) -> bool:
    return measure.startswith("latency_")


def _pareto(facts: Facts, points: tuple[ParetoPoint, ...], measure: str) -> Pareto | None:
    arms = {a.step: a.metrics for a in every_arm(facts) if a.metrics is not None}
    marks = [m for p in points if p.step in arms and (m := _mark(facts, p, arms[p.step], measure))]
    if len(marks) < 2:
        return None
    if len(marks) > MOST_NAMES:
        marks = [msgspec.structs.replace(m, is_named=m.on_front) for m in marks]
    words, hidden = metric_words(measure), len(facts.comparison.pareto) - len(points)
    best = [m for m in marks if m.on_front]
    said = "; ".join(f"{clip(m.name, 30)} {m.x.text}, {m.y.text}" for m in best[:_SAID])
    beaten = len(marks) - len(best)
    every = join_words(metric_words(m) for m in points[0].values)
    return Pareto(
        name="pareto_latency" if _is_latency(measure) else "pareto_quality",
        title=phrase("Energy per ", quoted(facts.unit), " against ", quoted(words)),
        alt=(
            f"Scatter of steps ({in_words(len(marks))}{of_more(hidden)}) by energy and {words}. "
            f"Not beaten: {said}. "
            f"{in_words(beaten).capitalize()} beaten by another."
        ),
        marks=tuple(marks),
        x_axis=f"energy per {facts.unit} in {facts.energy_scale.unit}; left is better",
        y_axis=_y_axis(facts, measure, words),
        note=phrase(
            "Filled: no step is better in ", quoted(every), " at once. Hollow and “beaten”: another is. ",
            "" if all(m.is_named for m in marks) else "The beaten are too many to be named. ",
            "Whiskers of energy are what varies between rounds; the common error moves all alike.",
        ),
        hidden=hidden,
    )  # fmt: skip


def _y_axis(facts: Facts, measure: str, words: str) -> str:
    if _is_latency(measure):
        return f"{words} in ms; down is better"
    better = {True: "; up is better", False: "; down is better", None: ""}[known_direction(measure)]
    return f"{words}{' in percent' if facts.is_share(measure) else ''}{better}"


def _mark(facts: Facts, point: ParetoPoint, metrics: ArmMetrics, measure: str) -> ParetoMark | None:
    energy = facts.energy_per_unit(point.step, metrics.energy_per_unit_j)
    if _is_latency(measure):
        which = measure.removeprefix("latency_").removesuffix("_ms")
        other, factor = latency(facts, point.step, metrics, which), 1.0
    elif measure in metrics.quality:
        other = facts.quality(point.step, measure, metrics.quality[measure])
        factor = 100.0 if facts.is_share(measure) else 1.0
    else:
        return None
    x = _spot(energy, facts.energy_scale.factor, random_only=True)
    y = _spot(other, factor)
    if x is None or y is None:
        return None
    beaten_by = "" if point.dominated_by is None else facts.name(point.dominated_by)
    return ParetoMark(name=facts.name(point.step), x=x, y=y, on_front=point.on_front, beaten_by=beaten_by)


def _spot(entry: Entry, factor: float = 1.0, *, random_only: bool = False) -> Spot | None:
    """Return a figure as a chart draws it; ``None`` without a number."""
    estimate = entry.printed.figure.estimate
    if estimate.value is None or not math.isfinite(estimate.value):
        return None
    low, high = _random(estimate) if random_only else (estimate.low, estimate.high)
    known = low is not None and high is not None
    return Spot(
        value=estimate.value * factor,
        figure_id=entry.figure_id,
        text=entry.printed.text,
        factor=factor,
        low=low * factor if known and low is not None else None,
        high=high * factor if known and high is not None else None,
    )


def _random(estimate: Estimate) -> tuple[float | None, float | None]:
    """Return the interval of what is random alone; none where nothing is told of it."""
    if not estimate.value or estimate.u_random <= 0:
        return None, None
    spread = math.exp(Z_95 * estimate.u_random / abs(estimate.value))
    return estimate.value / spread, estimate.value * spread


# Latencies -----------------------------------------------------------------


def latencies(facts: Facts) -> Latencies | None:
    """Return how each arm's latencies are spread; ``None`` where no arm keeps a sketch."""
    arms = [(a.step, a.metrics) for a in every_arm(facts) if a.metrics is not None]
    every = [(step, m, m.latency) for step, m in arms if m.latency is not None and m.latency.counts]
    if not every:
        return None
    found, hidden = every[:MOST_SPREADS], max(len(every) - MOST_SPREADS, 0)
    edges = _edges([sketch for _, _, sketch in found])
    spreads = tuple(
        Spread(name=facts.name(step), bins=_bins(sketch, edges), marks=_percentiles(facts, step, m))
        for step, m, sketch in found
    )
    said = "; ".join(f"{clip(s.name, 30)} {s.label}" for s in spreads)
    return Latencies(
        title=phrase("Latency of single calls, all rounds together"),
        alt=(
            f"Histograms of the latency of steps ({in_words(len(spreads))}{of_more(hidden)}), "
            f"with percentiles: {said}."
        ),
        spreads=spreads,
        axis="ms, logarithmic; each row’s height is its own share of calls",
        hidden=hidden,
    )


def _edges(sketches: list[LatencySketch]) -> list[float]:
    """Return the edges of bins, equal on a logarithmic scale, that hold all latencies."""
    all_ = [b for s in sketches for b in buckets(s)]
    low, high = math.log(min(b[0] for b in all_)), math.log(max(b[1] for b in all_))
    return [math.exp(low + (high - low) * i / _BINS) for i in range(_BINS + 1)]


def _bins(sketch: LatencySketch, edges: list[float]) -> tuple[tuple[float, float, float], ...]:
    """Return the bins that hold calls; a bucket counts where its middle lies."""
    n = sketch.zero_count + sum(sketch.counts.values())
    counts = [0] * _BINS
    first, step = math.log(edges[0]), math.log(edges[-1] / edges[0]) / _BINS
    for low, high, count in buckets(sketch):
        middle = math.log(math.sqrt(low * high))
        counts[min(int((middle - first) / step), _BINS - 1)] += count
    return tuple((edges[i], edges[i + 1], c / n) for i, c in enumerate(counts) if c)


def _percentiles(facts: Facts, step: str, metrics: ArmMetrics) -> tuple[tuple[str, Spot], ...]:
    spots = ((which.upper(), _spot(latency(facts, step, metrics, which))) for which in LATENCIES)
    return tuple((name, spot) for name, spot in spots if spot is not None)
