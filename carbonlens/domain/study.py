"""Study: a baseline, its ordered steps, the functional unit and the gates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, Literal

import msgspec

from carbonlens.domain.factor import Vector

GateKind = Literal["max_loss", "max_value", "min_value", "min_retention", "max_ratio"]
IntervalMethod = Literal["t", "bca", "exact"]

LATENCIES: Final = ("latency_p50_ms", "latency_p95_ms", "latency_p99_ms")
SHORT_METRICS: Final[Mapping[str, str]] = {
    "latency": "latency_p95_ms",
    "latency_p50": "latency_p50_ms",
    "latency_p95": "latency_p95_ms",
    "latency_p99": "latency_p99_ms",
    "size": "model_bytes",
    "memory": "peak_memory_bytes",
    "power": "power_w",
    "throughput": "throughput_per_s",
}
"""Metrics by the short names that a gate or a condition may give them."""


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A condition a step must meet besides saving energy.

    Attributes:
        name: Printed name.
        metric: Quality name (``accuracy``), or ``latency_p50_ms``,
            ``latency_p95_ms``, ``latency_p99_ms``, ``model_bytes``,
            ``throughput_per_s``, ``power_w``, ``peak_memory_bytes``.
        kind: ``max_loss`` against the baseline (positive when things get worse), an
            absolute limit, ``max_ratio`` of the metric itself to the baseline's, or
            ``min_retention``: the share of the baseline's goodness that is kept, the
            inverse ratio where less is better.
        limit: In the metric's own unit; an accuracy of 0..1 has a loss limit
            of 0.01 for one percentage point. A ratio's limit is a plain number:
            a retention of 0.98 keeps 98 %.
    """

    name: str
    metric: str
    kind: GateKind
    limit: float


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs of the ledger are meant; every field that is stated must agree.

    Attributes:
        run: Ids of runs.
        on: Optimizations that were on, in any order.
        host: ``host_id`` or ``machine_id``.
        tag: Tags with their values.
    """

    study: str | None = None
    step: str | None = None
    run: tuple[str, ...] | None = None
    job: str | None = None
    on: tuple[str, ...] | None = None
    workload: str | None = None
    hardware: str | None = None
    host: str | None = None
    zone: str | None = None
    site: str | None = None
    role: str | None = None
    tag: Mapping[str, str] = msgspec.field(default_factory=dict)


class Engineering(msgspec.Struct, frozen=True, kw_only=True):
    """What an hour of engineering costs."""

    amount_per_hour: Decimal
    currency: str
    source: str
    u_relative: float = 0.0


class EffortPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Factors and prices of where and when effort runs ran, if not those of the serving site.

    Attributes:
        zone, site: As the runs state them; any when ``None``.
        period: Year (``2025``) or month (``2025-03``) in UTC; any when ``None``.
        vector: What holds there.
    """

    vector: Vector
    zone: str | None = None
    site: str | None = None
    period: str | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One optimization step.

    Attributes:
        name: Name the runs carry.
        title: Words for a reader; the name where absent.
        measured_on: The step it is compared with; the preceding one when ``None``.
        on: Optimizations that are on in its runs, when stated.
        select: Its runs in the ledger, where they do not carry its name.
        engineering_hours: Hours of work to make it, as the user states them.
    """

    name: str
    title: str | None = None
    measured_on: str | None = None
    on: tuple[str, ...] | None = None
    select: Selector | None = None
    engineering_hours: float | None = None


_DAYS: Final = {
    "day": 1.0,
    "week": 7.0,
    "month": 365.2425 / 12,
    "quarter": 365.2425 / 4,
    "year": 365.2425,
}
"""Days of a period in words (mean Gregorian year)."""

_PLAIN_PERIOD: Final = re.compile(
    rf"(?:/|in|per|each|every)?\s*(?:a|an|one|1)?\s*(?P<period>{'|'.join(_DAYS)})"
)


class Adjustment(msgspec.Struct, frozen=True, kw_only=True):
    """A declared routine adjustment: arms measured at different sizes of one variable.

    Energy per unit is taken to go with ``value ** exponent``, so that an arm
    measured at ``value`` is brought to ``at`` by ``(at / value) ** exponent``.

    Attributes:
        tag: Tag of the runs that holds the value: ``batch``, ``sequence_length``
            or ``volume``.
        exponent: 0 declares that the variable is part of the step (batching as an
            optimization) or changes nothing, so that figures stand as measured.
        u_exponent: One sigma of the exponent.
        at: Value that all arms are brought to; that of the last step when ``None``.
        source: Where the exponent comes from.
    """

    tag: str
    exponent: float = 0.0
    u_exponent: float = 0.0
    at: float | None = None
    source: str | None = None


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared with what, per which functional unit.

    Attributes:
        baseline: Name of the step all savings are measured against.
        margin: Relative change regarded as none (0.01 is 1 %).
        volume_units: Expected functional units; savings are per unit when ``None``.
        volume_period: Words for that volume's period, for example ``a year``; a plain
            day, week, month, quarter or year gives units a day.
        adjustments: Routine adjustments between arms.
        interval: How a ratio's interval is made: Student's t; ``bca`` for the
            seeded bootstrap, from 20 rounds on. ``exact`` prints the bootstrap over
            every resample, C(2n - 1, n) different ones of n rounds, up to 10 rounds
            (92,378); it is too narrow for a verdict, which rests on Student's t there.
            p values are Student's in any case.
        is_sequential: The scatter of the rounds decided how many were measured
            (``bench``); intervals are a little wider then, to keep their rates.
        select: Which runs of the ledger belong to the study; those that carry its
            name when ``None``.
        baseline_select: Runs of the baseline, where they do not carry its name.
        optimizations: Of a lattice: its steps are the measured combinations of these.
        optimization_hours: Of a lattice: hours of engineering to make each optimization.
        orders: Orders of the optimizations that were drawn at random, each followed
            by its reverse (``study plan``); only then is a mean over orders an
            unbiased estimate of Shapley values.
        units_per_day: Expected functional units a day, for break-even in days.
        engineering: Price of engineering hours.
        effort_places: Where and when effort runs ran; the first that fits counts.
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
    adjustments: tuple[Adjustment, ...] = ()
    interval: IntervalMethod = "t"
    is_sequential: bool = False
    select: Selector | None = None
    baseline_select: Selector | None = None
    optimizations: tuple[str, ...] = ()
    orders: tuple[tuple[str, ...], ...] = ()
    optimization_hours: Mapping[str, float] = msgspec.field(default_factory=dict)
    units_per_day: float | None = None
    engineering: Engineering | None = None
    effort_places: tuple[EffortPlace, ...] = ()

    @property
    def per_day(self) -> float | None:
        """Expected functional units a day: as stated, else the volume over its period in words."""
        if self.units_per_day is not None or self.volume_units is None or self.volume_period is None:
            return self.units_per_day
        # "half a year" or "every other day" is no plain period: what is not understood is unknown.
        found = _PLAIN_PERIOD.fullmatch(self.volume_period.strip().lower())
        return None if found is None else self.volume_units / _DAYS[found["period"]]
