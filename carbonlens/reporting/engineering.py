"""Engineering comparison: the tables and charts an engineer checks, as a view."""

from __future__ import annotations

from itertools import starmap

import msgspec

from carbonlens.domain.comparison import Amounts, BreakEven
from carbonlens.domain.finding import Finding
from carbonlens.reporting import format as fmt
from carbonlens.reporting.assumptions import assumption_table
from carbonlens.reporting.attribution import attribution_table
from carbonlens.reporting.content import (
    Column,
    Drift,
    Engineering,
    Forest,
    Latencies,
    Pareto,
    Phrase,
    Row,
    Table,
    phrase,
    quoted,
)
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.message import evidence, headline
from carbonlens.reporting.names import clip
from carbonlens.reporting.number_words import in_words, join_words
from carbonlens.reporting.plots import drift, forest
from carbonlens.reporting.power_traces import power_traces, without_trace
from carbonlens.reporting.room import paper_note, room_note
from carbonlens.reporting.step_tables import effect_table, head, measured_table, used_table
from carbonlens.reporting.trade_offs import latencies, paretos

_MOST_FINDINGS = 30
_MESSAGE_WIDTH = 260
_ERROR_WIDTH = 400
_NOTHING: tuple[Phrase, ...] = (phrase("–"),)
_MEASURES = {
    "energy": "Energy",
    "carbon_location": "CO₂e location-based",
    "carbon_market": "CO₂e market-based",
    "cost": "Money",
}
_OUTCOMES = {
    "reached": "earned back",
    "may_never": "may never be earned back",
    "never": "never earned back",
    "unknown": "unknown",
}


def build_engineering(facts: Facts) -> Engineering:
    """Return the content of the engineering comparison.

    Args:
        facts: The comparison with its names and scales.
    """
    interval_plot, rounds, fronts, spreads = forest(facts), drift(facts), paretos(facts), latencies(facts)
    return Engineering(
        title=headline(facts),
        lead=_lead(facts),
        measured=measured_table(facts),
        used=used_table(facts),
        attribution=attribution_table(facts),
        effects=effect_table(facts),
        forest=interval_plot,
        drift=rounds,
        pareto=fronts,
        latencies=spreads,
        power=power_traces(facts),
        left_out=_left_out(facts, interval_plot, rounds, fronts, spreads),
        effort=_effort_table(facts),
        break_even=_break_even_table(facts),
        failures=_failures(facts),
        findings=_finding_table(facts),
        assumptions=assumption_table(facts),
        environment=tuple(
            (phrase(quoted(clip(name, 30))), phrase(quoted(clip(value, 200))))
            for name, value in facts.comparison.environment[:30]
        ),
    )


def _left_out(
    facts: Facts,
    interval_plot: Forest | None,
    rounds: Drift | None,
    fronts: tuple[Pareto, ...],
    spreads: Latencies | None,
) -> tuple[Phrase, ...]:
    """Say which charts are not there, with what they would need, and which lack room for all steps."""
    needs = (
        (interval_plot, "No interval plot: no step has a change with an interval."),
        (rounds, "No drift plot: no step has two rounds or more."),
        (fronts, "No Pareto chart: that takes two steps with energy and latency or quality for each."),
        (spreads, "No latency distribution: the runs keep no latencies of single calls."),
    )
    said = [phrase(words) for chart, words in needs if not chart]
    shown = (
        *(
            [("The interval plot shows", len(interval_plot.means), interval_plot.hidden)]
            if interval_plot
            else ()
        ),
        *([("The drift plot shows", len(rounds.traces), rounds.hidden)] if rounds else ()),
        *([("The latency distribution shows", len(spreads.spreads), spreads.hidden)] if spreads else ()),
    )
    paper = paper_note(map(facts.name, (facts.comparison.study.baseline, *facts.steps)))
    which = "{} steps, those that none beats first"
    scatter = [room_note("A Pareto chart shows", len(p.marks), p.hidden, which) for p in fronts[:1]]
    return tuple(p for p in (*said, *starmap(room_note, shown), *scatter, without_trace(facts), paper) if p)


def _lead(facts: Facts) -> Phrase:
    counts = {
        "accepted": len(facts.with_status("accepted")),
        "rejected": len(facts.with_status("rejected")),
        "undetermined": len(facts.with_status("undetermined")),
        "failed": len(facts.with_status("failed")),
    }
    said = join_words(f"{in_words(n)} {status}" for status, n in counts.items() if n) or "no steps"
    baseline = quoted(facts.name(facts.comparison.study.baseline))
    return phrase("Baseline: ", baseline, f". Steps: {said}. ", evidence(facts))


# Effort ----------------------------------------------------------------------


def _effort_table(facts: Facts) -> Table:
    c = facts.comparison
    rows: list[Row] = []
    for step in c.steps:
        if step.effort is not None:
            prefix = f"step.{facts.slug(step.step)}.effort"
            row = _effort_row(facts, head(facts, step.step, step.status), prefix, step.effort)
            rows.append(row)
    sums = (
        ("Steps of the path", "effort.accepted", c.accepted_effort, "of the work on the accepted steps"),
        ("Steps not accepted", "effort.rejected", c.rejected_effort, "of the work on steps not accepted"),
        ("Making the baseline", "effort.baseline", c.baseline_effort, "of making the baseline"),
    )
    rows.extend(
        msgspec.structs.replace(_effort_row(facts, phrase(words), prefix, a, what), total=True)
        for words, prefix, a, what in sums
    )
    return Table(
        caption=phrase("Work that made the steps: training, fine-tuning, calibration"),
        head="Work",
        columns=tuple(
            Column(name=phrase(n)) for n in ("Energy", "CO₂e location-based", "CO₂e market-based", "Cost")
        ),
        rows=tuple(rows),
        note=phrase(
            "Work on the accepted steps counts against their saving; the baseline is needed in any case."
        ),
    )


def _effort_row(
    facts: Facts, name: Phrase, prefix: str, amounts: Amounts | None, what: str = "of the work on the step"
) -> Row:
    if amounts is None:
        return Row(head=name, cells=((phrase(fmt.UNKNOWN),),) * 4, mark="muted")
    entered = facts.effort(prefix, amounts, what)
    four = (entered.energy, entered.location, entered.market, entered.cost)
    return Row(head=name, cells=tuple((e.full,) for e in four))


def _break_even_table(facts: Facts) -> Table | None:
    rows = facts.comparison.break_even
    if not rows:
        return None
    basis = facts.unit_basis
    return Table(
        caption=phrase("Break-even of the accepted path"),
        head="Measure",
        columns=(
            Column(name=phrase("Work")),
            Column(name=phrase("Saving ", basis.words)),
            Column(name=phrase("Earned back after"), unit=facts.units),
            *((Column(name=phrase("At the volume")),) if rows[0].days is not None else ()),
            Column(name=phrase("Outcome"), numeric=False),
        ),
        rows=tuple(_break_even_row(facts, row) for row in rows),
        note=phrase("Interval by Fieller’s method; “never” where the saving could be nil."),
    )


def _break_even_row(facts: Facts, row: BreakEven) -> Row:
    show = {"energy": fmt.energy, "cost": fmt.money}.get(row.measure, fmt.mass)
    saving = row.saving_per_unit.scale(facts.unit_basis.multiplier, row.saving_per_unit.unit)
    words = _MEASURES.get(row.measure, row.measure)
    prefix = f"break_even.{row.measure}"
    effort = facts.book.enter(f"{prefix}.effort", f"work to earn back: {words}", row.effort, show(row.effort))
    saved = facts.book.enter(f"{prefix}.saving", f"saving afterwards: {words}", saving, show(saving))
    units = facts.break_even_units(row)
    cells = (
        (effort.full,),
        (saved.full,),
        (units.full,),
        *(() if row.days is None else ((facts.break_even_time(row, row.days).full,),)),
        (phrase(_OUTCOMES.get(row.outcome, "unknown")),),
    )
    return Row(head=phrase(words), cells=cells)


# What went wrong -----------------------------------------------------------


def _failures(facts: Facts) -> tuple[tuple[Phrase, Phrase], ...]:
    return tuple(
        (phrase(quoted(facts.name(s.step))), phrase(quoted(clip(s.error or "no error text", _ERROR_WIDTH))))
        for s in facts.with_status("failed")[:10]
    )


def _finding_table(facts: Facts) -> Table | None:
    found = facts.comparison.findings
    if not found:
        return None
    order = {"error": 0, "warning": 1, "info": 2}
    listed = sorted(found, key=lambda f: order[f.severity])[:_MOST_FINDINGS]
    hidden = len(found) - len(listed)
    return Table(
        caption=phrase("Findings"),
        head="Code",
        columns=(
            Column(name=phrase("Weight"), numeric=False),
            Column(name=phrase("What was found"), numeric=False),
            Column(name=phrase("Mend"), numeric=False),
        ),
        rows=tuple(_finding_row(facts, f) for f in listed),
        note=phrase(f"{in_words(hidden).capitalize()} more are left out.") if hidden > 0 else (),
    )


def _finding_row(facts: Facts, finding: Finding) -> Row:
    message = phrase(quoted(clip(finding.message, _MESSAGE_WIDTH)))
    if finding.subject:
        message = phrase(quoted(facts.name(finding.subject)), ": ", message)
    mend = (phrase(quoted(clip(finding.mend, _MESSAGE_WIDTH))),) if finding.mend else _NOTHING
    cells = ((phrase(finding.severity),), (message,), mend)
    return Row(
        head=phrase(quoted(clip(finding.code, 12))),
        cells=cells,
        mark="bad" if finding.severity == "error" else "",
    )
