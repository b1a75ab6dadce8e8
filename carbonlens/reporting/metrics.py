"""Metrics: how quality names and gates are worded and printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from carbonlens.domain.comparison import GateResult
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.names import clip

_FRACTIONS: Final = (
    "accuracy",
    "precision",
    "recall",
    "f1",
    "auc",
    "match",
    "top1",
    "top5",
    "top-1",
    "top-5",
)


_UNITS: Final = {"power_w": "W", "throughput_per_s": "1/s"}
_WORDS: Final = {
    "model_bytes": "model size",
    "peak_memory_bytes": "peak memory",
    "power_w": "power",
    "throughput_per_s": "throughput",
    "energy_j": "energy",
}


QUALITIES: Final = ("quality", "accuracy", "precision", "recall", "error", "loss", "perplexity", "latency")
"""Names of qualities that are plain words, so that a capital at the head of a column changes none."""


def metric_words(metric: str) -> str:
    """Return a metric's name as printed: ``latency_p95_ms`` is ``P95 latency``."""
    match = re.fullmatch(r"latency_p([0-9]+)_ms", metric)
    if match:
        return f"P{match[1]} latency"
    return _WORDS.get(metric) or clip(metric.replace("_", " "), 24)


def is_fraction(metric: str, values: Iterable[float | None] = ()) -> bool:
    """Tell whether a quality stands for a share of 0 to 1.

    Args:
        metric: Its name.
        values: What the arms have of it; one beyond 0 to 1 tells of another scale.
    """
    named = any(word in metric.lower() for word in _FRACTIONS)
    return named and all(v is None or 0 <= v <= 1 for v in values)


def gate_format(gate: GateResult) -> Callable[[Estimate], fmt.Printed]:
    """Return the format of what a gate observed and of its limit."""
    if gate.kind in ("min_retention", "max_ratio"):
        return fmt.percent
    if gate.metric.startswith("latency_"):
        return lambda e: fmt.plain(e, "ms")
    if gate.metric in ("model_bytes", "peak_memory_bytes"):
        return fmt.size
    if gate.metric in _UNITS:
        return lambda e: fmt.plain(e, _UNITS[gate.metric])
    if is_fraction(gate.metric) and gate.is_share:
        return fmt.points if gate.kind == "max_loss" else fmt.percent
    return fmt.plain
