"""Comparison: what each step changed, how sure that is, and what to decide."""

from __future__ import annotations

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import Study
from carbonlens.domain.units import Boundary, Decision, GateOutcome, StepStatus, Verdict


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Change of energy per unit against a reference, over complete rounds.

    Attributes:
        reference: Step it is compared with.
        ratio: ``E_step / E_reference``: the geometric mean over rounds with a
            simultaneous 95 % t-interval. State ``unbounded``, without an interval,
            where a component's energy is unknown.
        p_value: Two-sided, unadjusted.
        p_holm: Adjusted over the study's steps (Holm 1979).
        verdict: Of this change alone.
        n_rounds: Complete rounds it rests on.
        minimum_detectable: Smallest relative change this design would detect
            with 80 % power (0.02 is 2 %); ``None`` when not computable.
    """

    reference: str
    ratio: Estimate
    p_value: float | None
    p_holm: float | None
    verdict: Verdict
    n_rounds: int
    minimum_detectable: float | None = None


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """One amount in all currencies of the report; positive when less is used."""

    energy_j: Estimate
    emissions_location_kg: Estimate
    emissions_market_kg: Estimate
    embodied_kg: Estimate
    cost: Estimate


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one gate, with the estimate it rests on.

    ``observed`` is the loss for a ``max_loss`` gate, else the metric itself.
    """

    name: str
    metric: str
    outcome: GateOutcome
    observed: Estimate
    limit: float
    kind: str
    reason: str | None = None


class ArmMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured on one arm, beside its energy.

    Attributes:
        cpu_s_per_unit: CPU seconds of the process per functional unit.
        throughput_per_s: Functional units a second of wall time.
        quality: Value per quality name, with its binomial interval where n is known.
        load_1m_max, steal_s: Worst load and summed steal over the rounds.
        rounds: Rounds measured.
        energy_by_round_j: Energy per unit of each round, in run order.
    """

    energy_per_unit_j: Estimate
    boundary: Boundary | None
    cpu_s_per_unit: Estimate
    throughput_per_s: Estimate
    latency_p50_ms: Estimate
    latency_p95_ms: Estimate
    latency_p99_ms: Estimate
    model_bytes: int | None
    macs_per_unit: int | None
    quality: dict[str, Estimate]
    load_1m_max: float | None
    steal_s: float | None
    rounds: int
    energy_by_round_j: tuple[float, ...]


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """After how many units an effort is earned back, in one measure.

    Attributes:
        measure: ``energy``, ``carbon_location``, ``carbon_market`` or ``cost``.
        effort: What the steps' own work took.
        saving_per_unit: What one unit saves afterwards.
        units: Effort over saving, with Fieller's interval; ``None`` bounds mean
            that it may never be earned back.
        outcome: ``reached``, ``may_never`` or ``never`` or ``unknown``.
    """

    measure: str
    effort: Estimate
    saving_per_unit: Estimate
    units: Estimate
    outcome: str


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about one step.

    Attributes:
        on_known: Whether study or runs say which optimizations were on; ``on``
            is empty when they do not.
        savings: Against the baseline, per unit or for the volume (``basis``).
        attribution: The step's own part along the accepted path; ``None``
            for a step that is not on it.
        would_have: The step's part against the step it was measured on, also
            when it was not accepted.
        effort: Energy, emissions and cost of making the step.
        error: Text of the error when the step failed.
        reason: Code of what decided: ``better``, ``worse``, ``same``, ``gate``,
            ``inconclusive``, ``incomplete_energy``, ``gate_undetermined``,
            ``rests_on`` or ``failed``.
        amounts: What the step's arm itself uses, on the comparison's basis.
    """

    step: str
    title: str
    on: tuple[str, ...]
    measured_on: str
    status: StepStatus
    vs_previous: Effect | None
    vs_baseline: Effect | None
    savings: Amounts | None
    attribution: Amounts | None
    would_have: Amounts | None
    verdict: Verdict
    gates: tuple[GateResult, ...]
    decision: Decision
    reasons: tuple[str, ...]
    metrics: ArmMetrics | None
    effort: Amounts | None
    error: str | None = None
    reason: str | None = None
    amounts: Amounts | None = None
    on_known: bool = True


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A study's result, from which every report and JSON is made.

    Attributes:
        basis: ``per_unit`` unless the study states a volume.
        mode: ``ladder`` for a chain of sets, else ``lattice``.
        path: Ladder: baseline and accepted steps in order. Lattice: baseline and
            every optimization, accepted or not, because its total is that of the
            full set.
        total: Savings of the path (lattice: of the full set); its parts sum to it.
        total_effect: Change of the path's end against the baseline; ``None``
            when nothing is accepted, or the full set was not measured.
        baseline_amounts: What the baseline uses, on the same basis.
        final_amounts: What the end of the path uses, on the same basis.
        baseline_effort: Work to make the baseline, not counted against steps.
        rejected_effort: Work on steps that were not accepted.
        break_even: One entry a measure, over the whole accepted path.
    """

    study: Study
    basis: str
    mode: str
    baseline_metrics: ArmMetrics | None
    baseline_amounts: Amounts | None
    final_amounts: Amounts | None
    steps: tuple[StepResult, ...]
    path: tuple[str, ...]
    total: Amounts | None
    interaction_j: Estimate | None
    baseline_effort: Amounts | None
    accepted_effort: Amounts | None
    rejected_effort: Amounts | None
    break_even: tuple[BreakEven, ...]
    vector: Vector
    findings: tuple[Finding, ...]
    environment: tuple[tuple[str, str], ...] = ()
    total_effect: Effect | None = None
