"""Reasons: why a step was decided as it was, in words without figures.

The figures stand beside the words, each once and under its id.
"""

from __future__ import annotations

from carbonlens.domain.comparison import StepResult
from carbonlens.reporting.content import Phrase, phrase, quoted
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.names import clip

_ROUNDS_NEEDED = 5
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


def why(facts: Facts, step: StepResult) -> Phrase:
    """Return why a step was decided as it was.

    A record without a reason code (an older one) is quoted instead.

    Args:
        facts: The comparison.
        step: The step.
    """
    if step.reason == "rests_on":
        return phrase("measured on ", quoted(facts.name(step.measured_on)), ", which is not accepted")
    if step.reason == "inconclusive" and (
        step.vs_previous is None or step.vs_previous.n_rounds < _ROUNDS_NEEDED
    ):
        return phrase("too few complete rounds for a verdict")
    if step.reason in _WORDS:
        return phrase(_WORDS[step.reason])
    if step.reasons:
        return phrase(quoted(clip("; ".join(step.reasons), 90)))
    return phrase("no reason recorded")
