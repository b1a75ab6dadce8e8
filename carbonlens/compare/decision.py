"""Decision: from verdict and gates to adopt, reject or undetermined, with reasons."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.compare.arms import ROUNDS_NEEDED
from carbonlens.domain.comparison import Effect, GateResult, StepResult
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import Decision, StepStatus, Verdict


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on one step.

    Attributes:
        reason: Code of what decided.
        reasons: Short sentences with figures, most important first.
    """

    decision: Decision
    status: StepStatus
    reason: str
    reasons: tuple[str, ...]


def decide(verdict: Verdict, gates: Sequence[GateResult]) -> Decision:
    """Return adopt for better with all gates passed, reject for a loss or a failed gate.

    Everything else is undetermined: what is not known is never adopted.

    Args:
        verdict: On the metric alone.
        gates: Outcomes of the step's gates.
    """
    if verdict in ("worse", "same") or any(g.outcome == "fail" for g in gates):
        return "reject"
    if verdict == "better" and all(g.outcome == "pass" for g in gates):
        return "adopt"
    return "undetermined"


def judge(
    effect: Effect | None,
    gates: Sequence[GateResult],
    *,
    unit: str,
    margin: float,
    rests_on: str | None = None,
) -> Judgement:
    """Return decision, status and reasons of a measured step.

    Args:
        effect: Change against the step it was measured on.
        gates: Outcomes of its gates.
        unit: Functional unit, for the words.
        margin: Relative change regarded as none.
        rests_on: Name of the step it was measured on when that was not accepted.
    """
    verdict: Verdict = "inconclusive" if effect is None else effect.verdict
    decision = decide(verdict, gates)
    reasons = [_of_effect(effect, unit, margin), *(of_gate(g) for g in gates if g.outcome != "pass")]
    reason = _code(verdict, gates)
    if reason == "inconclusive" and is_incomplete(effect):
        reason = "incomplete_energy"
    if rests_on is not None and decision != "reject":
        decision, reason = "undetermined", "rests_on"
        reasons.insert(0, f"it was measured on {rests_on}, which is not accepted: measure it without")
    status: dict[Decision, StepStatus] = {
        "adopt": "accepted",
        "reject": "rejected",
        "undetermined": "undetermined",
    }
    return Judgement(decision=decision, status=status[decision], reason=reason, reasons=tuple(reasons))


def failed(error: str) -> Judgement:
    """Return the judgement on a step that raised, in one run or in all."""
    return Judgement(decision="undetermined", status="failed", reason="failed", reasons=(f"failed: {error}",))


def not_beside(judgement: Judgement, others: str, error: str) -> Judgement:
    """Return the judgement on an optimization that raised in combination with others.

    What was to be adopted is undetermined; nothing else changes.

    Args:
        judgement: On the optimization by its figures.
        others: The combination that raised.
        error: What it raised.
    """
    if judgement.decision != "adopt":
        return judgement
    return replace(
        judgement,
        decision="undetermined",
        status="undetermined",
        reason="failed",
        reasons=(f"the combination {others} failed: {error}", *judgement.reasons),
    )


def about_total(steps: Sequence[StepResult], gates: Sequence[GateResult]) -> tuple[Finding, ...]:
    """Say what a lattice's total, the saving of all steps together, holds that is not adopted.

    Args:
        steps: The single optimizations.
        gates: Of the full set.
    """
    findings = [
        Finding(
            code="CL446",
            severity="warning",
            message=f"all steps together: {of_gate(gate)}; their total is no saving that can be claimed",
            mend="adopt fewer steps, and measure those together",
        )
        for gate in gates
        if gate.outcome != "pass"
    ]
    beside = [s.title for s in steps if s.decision == "reject"]
    if beside:
        findings.append(
            Finding(
                code="CL447",
                severity="warning",
                message=f"the total of all steps together holds {', '.join(beside)}, "
                f"which {'is' if len(beside) == 1 else 'are'} rejected, with saving and effort",
                mend=f"measure the others together without {', '.join(beside)}",
            )
        )
    return tuple(findings)


def is_incomplete(effect: Effect | None) -> bool:
    """Return whether a ratio speaks of a part of the energy only."""
    return effect is not None and effect.ratio.state == "unbounded"


def _code(verdict: Verdict, gates: Sequence[GateResult]) -> str:
    if verdict in ("worse", "same"):
        return verdict
    if any(g.outcome == "fail" for g in gates):
        return "gate"
    if verdict == "better" and any(g.outcome == "undetermined" for g in gates):
        return "gate_undetermined"
    return verdict


def _of_effect(effect: Effect | None, unit: str, margin: float) -> str:
    if effect is None or effect.ratio.value is None:
        return "no ratio of energies can be made, so there is no verdict"
    change = _percent(effect.ratio.value - 1)
    against = f"energy per {unit} against {effect.reference}: {change}{_interval(effect)}"
    if is_incomplete(effect):
        return f"{against} in the part that was measured; a part is unknown, so there is no verdict"
    if effect.n_rounds == 0 and effect.ratio.value == 0:
        return f"{against}; it used exactly nothing, of which no interval can be made, so there is no verdict"
    if effect.is_disturbed:
        return f"{against}, but no round was measured on a quiet, unchanged machine, so there is no verdict"
    if effect.n_rounds < ROUNDS_NEEDED:
        # Runs without numbers of rounds are rounds too, in their order.
        done = f"{counted(effect.n_rounds, 'complete round')} (a run of each)"
        return f"{against}; {done}, and a verdict needs {ROUNDS_NEEDED}"
    if effect.verdict == "same":
        # The interval printed is wider than the tests' own, and may reach beyond the margin.
        return f"{against}; two one-sided tests put it within the margin of {_plain(margin)}"
    if effect.verdict == "inconclusive":
        least = effect.minimum_detectable
        found = "" if least is None else f"; these rounds would detect a saving of {_plain(least)}"
        return f"{against}, which may be no change{found}"
    return against


def _interval(effect: Effect) -> str:
    low, high = effect.ratio.low, effect.ratio.high
    if is_incomplete(effect):
        return ""
    if low is None or high is None:
        return " (no interval)"
    return f" (95 % interval {_percent(low - 1)} to {_percent(high - 1)})"


def of_gate(gate: GateResult) -> str:
    """Return what a gate that does not pass says, in a sentence with its figures.

    Args:
        gate: Its outcome.
    """
    words = {
        "max_loss": "loss",
        "min_retention": f"share kept of {gate.metric}",
        "max_ratio": f"ratio of {gate.metric}",
    }
    what = words.get(gate.kind, gate.metric)
    if gate.observed.value is None:
        return f"gate {gate.name} is undetermined: {gate.reason or 'not measured'}"
    ends = ""
    if gate.observed.low is not None and gate.observed.high is not None:
        ends = f" ({gate.observed.low:.3g} to {gate.observed.high:.3g})"
    figures = f"{what} {gate.observed.value:.3g}{ends}, limit {gate.limit:.3g}"
    if gate.outcome == "fail":
        return f"gate {gate.name} fails: {figures}"
    return f"gate {gate.name} is undetermined: {figures}{f'; {gate.reason}' if gate.reason else ''}"


def _percent(change: float) -> str:
    """Return a signed change with two or three significant digits."""
    shown = _digits(abs(change) * 100)
    if float(shown) == 0:
        return "0 %"
    return f"{'+' if change > 0 else '−'}{shown} %"


def _plain(share: float) -> str:
    return f"{_digits(share * 100)} %"


def _digits(percent: float) -> str:
    if percent >= 100:
        return f"{percent:.0f}"
    return f"{percent:.1f}" if percent >= 10 else f"{percent:.2f}"
