"""Message: the finding of a comparison as one honest sentence."""

from __future__ import annotations

from carbonlens.reporting.content import Phrase, phrase, quoted
from carbonlens.reporting.facts import MODELLED, Facts
from carbonlens.reporting.metrics import metric_words
from carbonlens.reporting.number_words import in_words, join_words


def headline(facts: Facts) -> Phrase:
    """Return the message of the report.

    It claims a saving only where the accepted path's interval excludes none.
    """
    if not facts.has_baseline:
        return phrase("The baseline has no energy figure, so no saving can be stated")
    steps = facts.path_steps
    if not facts.has_path:
        return phrase(_nothing_taken(facts), _outcomes(facts))
    saved = facts.reduction()
    estimate = saved.printed.figure.estimate
    if estimate.value is None:
        return phrase(_who(facts), ": the saving of the whole is unknown")
    if estimate.low is None or estimate.low <= 0:
        be = " is" if len(steps) == 1 else " are"
        return phrase(_who(facts), be, " not shown to save energy", _outcomes(facts))
    verb = " cuts" if len(steps) == 1 else " cut"
    return phrase(
        _who(facts), verb, " energy per ", quoted(facts.unit), " by ", saved.text, _quality_clause(facts)
    )  # fmt: skip


def none_saves(facts: Facts) -> bool:
    """Return whether no step is shown to save energy, on the step it was measured on or on the baseline."""
    effects = (e for s in facts.comparison.steps for e in (s.vs_previous, s.vs_baseline) if e is not None)
    return not any(e.verdict == "better" for e in effects)


def _nothing_taken(facts: Facts) -> str:
    """Return what is so where no step is accepted: a table beside it may show savings."""
    if none_saves(facts):
        return "No step is shown to save energy"
    better = sum(
        s.vs_previous is not None and s.vs_previous.verdict == "better" for s in facts.comparison.steps
    )
    if better:
        be = "is" if better == 1 else "are"
        return f"No step is accepted, though {in_words(better)} {be} shown to save energy"
    return "No step is shown to save energy against the step it was measured on"


def _who(facts: Facts) -> Phrase:
    steps = facts.path_steps
    if len(steps) == 1:
        return phrase(quoted(facts.name(steps[0].step)))
    count = in_words(len(steps)).capitalize()
    return phrase(f"{count} steps" if facts.is_ladder else f"{count} optimizations together")


def _outcomes(facts: Facts) -> str:
    counts = {
        "rejected": len(facts.with_status("rejected")),
        "undetermined": len(facts.with_status("undetermined")),
        "failed to run": len(facts.with_status("failed")),
    }
    said = [f"{in_words(n)} {words}" for words, n in counts.items() if n]
    return f": {join_words(said)}" if said else ""


def _quality_clause(facts: Facts) -> Phrase:
    final = facts.final
    if final is None:
        return phrase(f"; {in_words(len(facts.adopted))} of them accepted")
    gates = final.gates
    if not gates:
        return phrase("; quality was not gated")
    if all(g.outcome == "pass" for g in gates):
        if len(gates) == 1:
            return phrase(" within the ", quoted(metric_words(gates[0].metric)), " limit")
        return phrase(" within all limits")
    return phrase("; not every limit is met")


def evidence(facts: Facts) -> Phrase:
    """Return what the absolute figures rest on, in one or two sentences."""
    if not facts.has_baseline:
        return phrase("Measure the baseline again, with the same work and meter as the steps.")
    if facts.grade in MODELLED:
        return phrase(
            "No sensor measured these joules: they are modelled (evidence grade ",
            f"{facts.grade}",
            "), so absolute figures are wide; percentages compare like with like, because the model’s "
            "error cancels.",
        )
    if facts.grade is None:
        return phrase("The source of these joules does not say how they were obtained.")
    how = {"A": "an external meter", "B": "a device energy counter", "C": "integrated power readings"}
    return phrase(f"Joules come from {how[facts.grade]} (evidence grade {facts.grade}).")
