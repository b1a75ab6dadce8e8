"""Comparison: what each step changed, how sure that is, and what to decide."""

from __future__ import annotations

from typing import Literal

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.latency import LatencySketch
from carbonlens.domain.study import Study
from carbonlens.domain.trace import PowerTrace
from carbonlens.domain.units import Boundary, Decision, GateOutcome, Role, StepStatus, Verdict


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
        minimum_detectable: Smallest relative change to which this design would give
            its verdict with 80 % power (0.02 is 2 %), and so none much below the
            margin; ``None`` when not computable.
        method: How the interval was made: ``t``, ``bca`` or ``exact`` (bootstrap). The
            verdict rests on the same interval, or on Student's t where this is ``exact``.
        drift_per_round: Change of ln ratio from one round to the next; ``None``
            below five numbered rounds.
        drift_p: Two-sided p of "no drift", unadjusted.
        outlier_rounds: Numbers of rounds that do not belong to the others. They
            are counted all the same.
        is_disturbed: An arm has no round of a quiet, unchanged machine, so there is no verdict.
    """

    reference: str
    ratio: Estimate
    p_value: float | None
    p_holm: float | None
    verdict: Verdict
    n_rounds: int
    minimum_detectable: float | None = None
    method: str = "t"
    drift_per_round: float | None = None
    drift_p: float | None = None
    outlier_rounds: tuple[int, ...] = ()
    is_disturbed: bool = False


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """One amount in all currencies of the report; positive when less is used."""

    energy_j: Estimate
    emissions_location_kg: Estimate
    emissions_market_kg: Estimate
    embodied_kg: Estimate
    cost: Estimate


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one gate, with the estimate it rests on.

    Attributes:
        observed: The loss for a ``max_loss`` gate, the ratio to the baseline for
            ``max_ratio``, the share kept for ``min_retention``, else the metric itself.
        p_value: McNemar's exact p of "no difference", for paired outcomes.
        bootstrap: 95 % interval of the paired bootstrap, evidence beside the
            interval that decides.
        is_share: Whether all figures of a quality lie within 0 and 1; one of 0 to 100 does not.
    """

    name: str
    metric: str
    outcome: GateOutcome
    observed: Estimate
    limit: float
    kind: str
    reason: str | None = None
    p_value: float | None = None
    bootstrap: tuple[float, float] | None = None
    is_share: bool = True


class ArmMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured on one arm, beside its energy.

    Attributes:
        cpu_s_per_unit: CPU seconds of the process per functional unit.
        throughput_per_s: Functional units a second of wall time.
        quality: Value per quality name, with its binomial interval where n is known.
        load_1m_max, steal_s: Worst load and summed steal over the rounds.
        rounds: Rounds measured.
        energy_by_round_j: Energy per unit of each round, in the order of their numbers,
            else of when they started.
        first_round: Energy of the first round over the mean of the others, with
            the 95 % prediction interval of one more round: warm-up, apart from
            the steady state. It is counted all the same.
        dynamic_per_unit_j: Energy above the share of idle power, where every
            reading tells it; evidence beside the energy that is compared.
        power_w: Mean power over the rounds' windows, at the boundary of the energy.
        peak_memory_bytes: Largest resident memory, with its range over the rounds.
        throttled_s: Longest time that heat slowed a device in a round, where told.
        latency: Latencies of all calls of all rounds, merged; ``None`` where a round keeps no sketch.
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
    first_round: Estimate | None = None
    dynamic_per_unit_j: Estimate | None = None
    power_w: Estimate | None = None
    peak_memory_bytes: Estimate | None = None
    throttled_s: float | None = None
    latency: LatencySketch | None = None


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """After how many units an effort is earned back, in one measure.

    Attributes:
        measure: ``energy``, ``carbon_location``, ``carbon_market`` or ``cost``.
        effort: What the steps' own work took.
        saving_per_unit: What one unit saves afterwards.
        units: Effort over saving, with Fieller's interval; without an upper end it may
            never be earned back, without a lower one too nobody knows how sure it is.
        outcome: ``reached``, ``may_never`` or ``never`` or ``unknown``.
        days: The same in days at the expected volume; ``None`` without one.
    """

    measure: str
    effort: Estimate
    saving_per_unit: Estimate
    units: Estimate
    outcome: str
    days: Estimate | None = None


class OrderRange(msgspec.Struct, frozen=True, kw_only=True):
    """What a step saves by itself, least and most, over the measured orders of all steps."""

    low_j: float
    high_j: float


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """Orders of all optimizations whose every step was measured, of how many there are."""

    measured: int
    possible: int

    @property
    def coverage(self) -> float:
        """Share of the orders that was measured."""
        return self.measured / self.possible


class ParetoPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One arm among all arms, by best values.

    Attributes:
        values: By measure: a quality name, ``energy_j``, a latency.
        on_front: No other arm is at least as good in every measure and better in one.
        dominated_by: The arm that is so with the least energy.
    """

    step: str
    values: dict[str, float]
    on_front: bool
    dominated_by: str | None = None


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
        break_even: Its own effort over its own saving, one entry a measure.
        leave_one_out: Lattice: what the full set saves more than the same without it.
        order_range: Lattice: least and most over the measured orders.
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
    break_even: tuple[BreakEven, ...] = ()
    leave_one_out: Amounts | None = None
    order_range: OrderRange | None = None

    @property
    def joules_say(self) -> str | None:
        """What the step does by its joules where its verdict says the opposite, in a verb.

        ``costs``, ``saves``, or ``may cost``, ``may save`` where the interval of its part
        holds zero; ``None`` where both agree, or one of them says nothing.
        """
        part = self.attribution or self.would_have
        saved = None if part is None else part.energy_j
        if saved is None or not saved.value:
            return None
        loses = saved.value < 0
        if self.verdict != ("better" if loses else "worse"):
            return None
        is_sure = saved.low is not None and saved.high is not None and (saved.high < 0 or saved.low > 0)
        verb = "cost" if loses else "save"
        return f"{verb}s" if is_sure else f"may {verb}"


class PhasePower(msgspec.Struct, frozen=True, kw_only=True):
    """Mean power of a run in one of its phases, all stretches of that name together."""

    name: str
    duration_s: float
    power_w: Estimate


class ArmPower(msgspec.Struct, frozen=True, kw_only=True):
    """Power over time of one run of an arm, which stands for the others.

    Attributes:
        run_id: The run.
        role: What it was: a measured round (``variant``), or one beside the rounds.
        kept: How many runs of the arm keep their power over time, it included.
        alike: Of how many of them its energy is the median: those with phases where any has
            them, rounds where any is one.
        power_w: Mean over the whole run.
        peak_w: The most that was read; of several devices a bound of what they drew together, of
            a counter a mean (``PowerTrace.over_s``).
        phases: In the order of their first entry.
        idle_w: Power of the same machine in runs of role ``idle``; ``None`` where there is none.
    """

    step: str
    run_id: str
    role: Role
    kept: int
    alike: int
    boundary: Boundary | None
    duration_s: float
    trace: PowerTrace
    power_w: Estimate
    peak_w: float
    phases: tuple[PhasePower, ...] = ()
    idle_w: Estimate | None = None


class NoPower(msgspec.Struct, frozen=True, kw_only=True):
    """An arm whose trace was asked for, and which has no power over time all the same.

    Attributes:
        why: Reason, as the record of its run gives it, or as found here.
        mend: What would settle it.
    """

    step: str
    why: str
    mend: str


AttributionMethod = Literal["ladder", "shapley", "shapley_estimate", "order_mean"]
"""How a saving is divided among steps: along the accepted path; by Shapley value over a
full lattice; by its unbiased estimate from orders drawn at random; by the mean over the
orders that happen to be measured."""


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
        attribution_method: How ``attribution`` of the steps was made; ``None``
            where there is none.
        total_gates: Gates of what ``total`` is the saving of: the path's end, or
            a lattice's full set.
        total_decision: On it as a whole; ``None`` when nothing is adopted, or the
            full set was not measured.
        orders: Lattice: coverage of the orders.
        pareto: All arms by quality, energy and latency; empty without two measures.
        power: Power over time of one run an arm, the baseline's first; without those that keep none.
        no_power: Of those, the arms that asked for a trace.
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
    total_gates: tuple[GateResult, ...] = ()
    total_decision: Decision | None = None
    attribution_method: AttributionMethod | None = None
    orders: Orders | None = None
    pareto: tuple[ParetoPoint, ...] = ()
    power: tuple[ArmPower, ...] = ()
    no_power: tuple[NoPower, ...] = ()
