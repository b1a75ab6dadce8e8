"""Study: a baseline, its ordered steps, the functional unit and the gates."""

from __future__ import annotations

from typing import Literal

import msgspec

GateKind = Literal["max_loss", "max_value", "min_value"]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A condition a step must meet besides saving energy.

    Attributes:
        name: Printed name.
        metric: Quality name (``accuracy``), or ``latency_p50_ms``,
            ``latency_p95_ms``, ``latency_p99_ms``, ``model_bytes``.
        kind: ``max_loss`` against the baseline, or an absolute limit.
        limit: In the metric's own unit; an accuracy of 0..1 has a loss limit
            of 0.01 for one percentage point.
    """

    name: str
    metric: str
    kind: GateKind
    limit: float


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One optimization step.

    Attributes:
        name: Name the runs carry.
        title: Words for a reader; the name where absent.
        measured_on: The step it is compared with; the preceding one when ``None``.
        on: Optimizations that are on in its runs, when stated.
    """

    name: str
    title: str | None = None
    measured_on: str | None = None
    on: tuple[str, ...] | None = None


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared with what, per which functional unit.

    Attributes:
        baseline: Name of the step all savings are measured against.
        margin: Relative change regarded as none (0.01 is 1 %).
        volume_units: Expected functional units; savings are per unit when ``None``.
        volume_period: Words for that volume's period, for example ``a year``.
    """

    name: str
    baseline: str
    steps: tuple[Step, ...]
    unit: str
    title: str | None = None
    baseline_title: str | None = None
    gates: tuple[Gate, ...] = ()
    margin: float = 0.01
    volume_units: float | None = None
    volume_period: str | None = None
