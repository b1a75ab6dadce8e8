"""Reasons: why a step was decided as it was, in words without figures.

The figures stand beside the words, each once and under its id.
"""

from __future__ import annotations

from carbonlens.compare.arms import ROUNDS_NEEDED
from carbonlens.domain.comparison import Effect, StepResult
from carbonlens.reporting.content import Phrase, phrase, quoted
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.names import clip

_WORDS = {
    "better": "saves energy and meets every gate",
    "worse": "uses more energy than what it was measured on",
    "same": "changes energy by no more than the margin",
    "gate": "a gate fails",
    "gate_undetermined": "saves energy, but a gate is undetermined",
    "inconclusive": "the interval holds both a saving and a loss",
    "incomplete_energy": "a part of its energy is not measured",
    "failed": "failed to run",
}
_UNGATED = "saves energy; quality was not gated"


def why(facts: Facts, step: StepResult) -> Phrase:
    """Return why a step was decided as it was.

    A record without a reason code (an older one) is quoted instead.

    Args:
        facts: The comparison.
        step: The step.
    """
    if step.reason == "rests_on":
        return phrase("measured on ", quoted(facts.name(step.measured_on)), ", which is not accepted")
    if step.reason == "inconclusive":
        said = _no_verdict(step.vs_previous)
        if said:
            return phrase(said)
    if step.reason in _WORDS:
        said = _UNGATED if step.reason == "better" and not step.gates else _WORDS[step.reason]
        # The sentence that explains it stands below the parts of the saving.
        return phrase(f"{said}; its joules {step.joules_say}" if step.joules_say else said)
    if step.reasons:
        return phrase(quoted(clip("; ".join(step.reasons), 90)))
    return phrase("no reason recorded")


def _no_verdict(effect: Effect | None) -> str:
    """Return why an inconclusive change got no verdict at all; empty where its interval tells."""
    if effect is None or effect.ratio.value is None:
        return "no ratio of energies can be made"
    if effect.n_rounds == 0 and effect.ratio.value == 0:
        return "used exactly nothing, of which no interval can be made"
    if effect.is_disturbed:
        return "no round was measured on a quiet, unchanged machine"
    return "too few complete rounds for a verdict" if effect.n_rounds < ROUNDS_NEEDED else ""
