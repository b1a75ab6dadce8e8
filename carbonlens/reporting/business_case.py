"""Business case: the page a manager decides on, as a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from carbonlens.domain.comparison import BreakEven, StepResult
from carbonlens.reporting import format as fmt
from carbonlens.reporting.assumptions import assumption_table
from carbonlens.reporting.content import BusinessCase, Phrase, Waterfall, label, phrase, quoted
from carbonlens.reporting.facts import MODELLED, Facts
from carbonlens.reporting.figures import exact
from carbonlens.reporting.message import evidence, headline
from carbonlens.reporting.metrics import metric_words
from carbonlens.reporting.names import clip
from carbonlens.reporting.number_words import in_words
from carbonlens.reporting.reasons import why
from carbonlens.reporting.room import paper_note
from carbonlens.reporting.tiles import gate_phrase, tiles
from carbonlens.reporting.waterfall import MOST_BARS, waterfall

_MOST_LISTED = 3
_TEXT_WIDTH = 150
_BUSY_LOAD = 2.0
_MEASURES = {
    "energy": "Energy",
    "carbon_location": "CO₂e, location-based",
    "carbon_market": "CO₂e, market-based",
    "cost": "Money",
}


def build_business_case(facts: Facts) -> BusinessCase:
    """Return the content of the business case.

    Args:
        facts: The comparison with its names and scales.
    """
    drawn = waterfall(facts)
    return BusinessCase(
        title=headline(facts),
        lead=_lead(facts),
        basis=phrase(
            "Amounts are ",
            facts.basis.words,
            ", each rounded by its own interval; brackets are ",
            label("95 %"),
            " intervals.",
        ),
        tiles=tiles(facts),
        waterfall=drawn,
        waterfall_note=_waterfall_note(facts, drawn),
        break_even=_break_even(facts),
        decision=_decision(facts),
        risks=_risks(facts),
        not_counted=_not_counted(facts),
        assumptions=assumption_table(facts),
    )


def _lead(facts: Facts) -> Phrase:
    base = facts.comparison.baseline_metrics
    if base is None or base.energy_per_unit_j.value is None:
        return evidence(facts)
    unit = quoted(facts.unit)
    before = facts.energy_per_unit(facts.comparison.study.baseline, base.energy_per_unit_j)
    final = facts.final
    if final is None or final.metrics is None:
        return phrase("The baseline uses ", before.full, " per ", unit, ". ", evidence(facts))
    after = facts.energy_per_unit(final.step, final.metrics.energy_per_unit_j)
    return phrase("From ", before.full, " to ", after.full, " per ", unit, ". ", evidence(facts))


def _waterfall_note(facts: Facts, drawn: Waterfall | None) -> Phrase:
    shown: list[str] = []
    if drawn and any(b.start is not None and b.kind in ("rejected", "undetermined") for b in drawn.bars):
        shown.append(
            "Outlined, dashed bars were measured but not accepted: they start at the step they were "
            "measured on and do not enter the running total."
        )
    if len(facts.comparison.steps) > MOST_BARS:
        shown.append("All steps stand one by one in the engineering report.")
    shown.extend(part.text for part in paper_note(b.name for b in (drawn.bars if drawn else ())))
    return phrase(" ".join(shown))


# Break-even --------------------------------------------------------------


def _break_even(facts: Facts) -> tuple[Phrase, ...]:
    rows = facts.comparison.break_even
    if not rows:
        none = "No step was accepted, so no work has to be earned back."
        return (
            phrase(none if not facts.has_path else "The break-even is unknown: the work was not recorded."),
        )
    effort = facts.effort(
        "effort.accepted", facts.comparison.accepted_effort, "of the work on the accepted steps"
    )
    if not effort.energy.known:
        return (phrase("The work on the steps was not recorded, so the break-even is unknown."),)
    carbon = [
        phrase(e.text, f" ({name})")
        for e, name in ((effort.location, "location-based"), (effort.market, "market-based"))
        if e.known
    ]
    parts = [effort.energy.full, *carbon, *([phrase(effort.cost.text)] if effort.cost.known else [])]
    took = phrase("Making the accepted steps took ", _listed(parts), ".")
    return (took, *(_earned_back(facts, row) for row in rows))


def _earned_back(facts: Facts, row: BreakEven) -> Phrase:
    units = facts.break_even_units(row)
    amount = phrase(units.text, " ", quoted(facts.units), " ", units.interval)
    if row.outcome == "reached":
        said = phrase("after ", amount)
    elif row.outcome == "may_never":
        best = phrase("; if at all, after ", amount) if units.known else ()
        said = phrase("may never be earned back", best)
    else:
        said = phrase("never earned back" if row.outcome == "never" else fmt.UNKNOWN)
    return phrase(_MEASURES.get(row.measure, row.measure), ": ", said, ".")


def _listed(parts: list[Phrase]) -> Phrase:
    """Return ``a, b and c`` of phrases."""
    if len(parts) < 2:
        return parts[0] if parts else ()
    head: list[str | Phrase] = []
    for number, part in enumerate(parts[:-1]):
        head.extend((", " if number else "", part))
    return phrase(*head, " and ", parts[-1])


# Decision ------------------------------------------------------------------


def _decision(facts: Facts) -> tuple[Phrase, ...]:
    lines: list[Phrase] = []
    adopted = facts.adopted
    if not facts.has_baseline:
        return (phrase("Adopt nothing now; measure the baseline."),)
    if adopted:
        in_order = len(adopted) > 1 and facts.is_ladder
        adopt = "Adopt, in this order: " if in_order else "Adopt "
        lines.append(phrase(adopt, _names(facts, adopted, " → " if in_order else "; "), "."))
    else:
        lines.append(phrase("Adopt nothing now; keep the baseline."))
    if facts.alternatives:
        also = "Accepted as an alternative, not summed with these: "
        lines.append(phrase(also, _names(facts, facts.alternatives, "; "), "."))
    lines.extend(_each(facts.with_status("rejected"), lambda s: _refusal(facts, s), "rejected"))
    lines.extend(_each(facts.with_status("undetermined"), lambda s: _open_step(facts, s), "undetermined"))
    failed = facts.with_status("failed")
    if failed:
        lines.append(phrase("Mend and measure again: ", _names(facts, failed, "; "), " (failed)."))
    return tuple(lines)


def _each(steps: list[StepResult], say: Callable[[StepResult], Phrase], status: str) -> Iterable[Phrase]:
    yield from (say(s) for s in steps[: _MOST_LISTED - 1])
    more = len(steps) - (_MOST_LISTED - 1)
    if more > 0:
        yield phrase(f"{in_words(more).capitalize()} more {status}; see the engineering report.")


def _names(facts: Facts, steps: list[StepResult], between: str) -> Phrase:
    """Return the names of the first steps; names hold commas, so that another sign stands between."""
    most = 6
    parts: list[str | Phrase] = []
    for number, step in enumerate(steps[:most]):
        parts.extend((between if number else "", phrase(quoted(facts.name(step.step)))))
    if len(steps) > most:
        parts.append(f" and {in_words(len(steps) - most)} more")
    return phrase(*parts)


def _refusal(facts: Facts, step: StepResult) -> Phrase:
    name, on = quoted(facts.name(step.step)), quoted(facts.reference(step))
    effect = facts.effect(step, "previous", step.vs_previous)
    said = phrase("it changes energy by ", effect.full, " against ", on) if effect.known else why(facts, step)
    failed = [(n, g) for n, g in enumerate(step.gates, start=1) if g.outcome == "fail"]
    gates = phrase("; ", gate_phrase(facts, step.step, *failed[0])) if failed else ()
    return phrase("Do not adopt ", name, ": ", said, gates, ".")


def _open_step(facts: Facts, step: StepResult) -> Phrase:
    name = quoted(facts.name(step.step))
    detectable = facts.minimum_detectable(step)
    more = phrase("; this design finds changes from ", detectable.text, " up") if detectable.known else ()
    return phrase("Decide nothing yet on ", name, ": ", why(facts, step), more, ".")


# Risks and limits ----------------------------------------------------------


def _risks(facts: Facts) -> tuple[Phrase, ...]:
    lines: list[Phrase] = []
    if facts.grade in MODELLED:
        lines.append(
            phrase("Energy is modelled, not read from a sensor; confirm with a meter before absolute claims.")
        )
    final = facts.final
    if final is not None:
        lines.extend(
            phrase(
                "Limit on ",
                quoted(metric_words(g.metric)),
                ": ",
                gate_phrase(facts, final.step, n, g, named=True),
                ".",
            )
            for n, g in list(enumerate(final.gates, start=1))[:1]
        )
    if facts.comparison.vector.example:
        lines.append(
            phrase("Factors and prices are example assumptions: carbon and money stand for no real site.")
        )
    lines.extend(_busy(facts))
    lines.append(
        phrase("Measured on one set-up; another machine, batch size or load may rank the steps differently.")
    )
    warnings = [f for f in facts.comparison.findings if f.severity != "info"]
    if warnings:
        words = f"{in_words(len(warnings)).capitalize()} warning{'s' if len(warnings) > 1 else ''}, first: "
        lines.append(phrase(words, quoted(clip(warnings[0].message, _TEXT_WIDTH))))
    return tuple(lines)


def _busy(facts: Facts) -> Iterable[Phrase]:
    c = facts.comparison
    arms = [c.baseline_metrics, *(s.metrics for s in c.steps)]
    loads = [a.load_1m_max for a in arms if a is not None and a.load_1m_max is not None]
    if loads and max(loads) >= _BUSY_LOAD:
        worst = exact(max(loads))
        entry = facts.book.enter("conditions.load_max", "highest load average", worst, fmt.plain(worst))
        yield phrase("The machine was shared while measuring: load average up to ", entry.text, ".")


def _not_counted(facts: Facts) -> tuple[Phrase, ...]:
    c = facts.comparison
    before = facts.amounts("baseline", c.baseline_amounts, "of the baseline")
    after = facts.amounts("final", c.final_amounts, "at the end of the accepted path")
    lines: list[Phrase] = []
    if before.embodied.known and after.embodied.known and facts.has_path:
        change = phrase(before.embodied.number, " → ", after.embodied.text)
        lines.append(phrase("Embodied CO₂e of the hardware: ", change, "."))
    elif before.embodied.known:
        lines.append(phrase("Embodied CO₂e of the hardware: ", before.embodied.text, "."))
    else:
        lines.append(phrase("Embodied CO₂e of the hardware (unknown)."))
    lines.append(_boundary_limit(facts))
    rejected = facts.effort("effort.rejected", c.rejected_effort, "of the work on steps not accepted")
    if rejected.energy.known:
        lines.append(phrase("Work on steps not accepted: ", rejected.energy.full, "."))
    made = facts.effort("effort.baseline", c.baseline_effort, "of making the baseline")
    if made.energy.known:
        lines.append(phrase("Making the baseline, needed in any case: ", made.energy.full, "."))
    lines.append(phrase("People’s time; changes of region, grid or price."))
    return tuple(lines)


def _boundary_limit(facts: Facts) -> Phrase:
    base = facts.comparison.baseline_metrics
    boundary = base.boundary if base else None
    return phrase(
        {
            "device": "Power supply, fans and board: the joules are those of the device alone.",
            "it": "Network and storage outside the server.",
            "facility": "Network and users’ devices.",
        }.get(boundary or "", "The boundary of the joules is not stated, so nothing beyond them is counted.")
    )
