"""Tiles: the four headline figures of the business case."""

from __future__ import annotations

import msgspec

from carbonlens.domain.comparison import GateResult, StepResult
from carbonlens.reporting.content import Mark, Phrase, Tile, phrase, quoted
from carbonlens.reporting.facts import AmountEntries, Facts
from carbonlens.reporting.figures import Entry
from carbonlens.reporting.message import none_saves
from carbonlens.reporting.metrics import metric_words
from carbonlens.reporting.names import clip
from carbonlens.reporting.number_words import in_words

_MEASURE = "measure the energy of the baseline and of the steps"


def tiles(facts: Facts) -> tuple[Tile, ...]:
    """Return cost, energy, carbon and quality, each with its interval."""
    c = facts.comparison
    before = facts.amounts("baseline", c.baseline_amounts, "of the baseline")
    after = facts.amounts("final", c.final_amounts, "at the end of the accepted path")
    saved = facts.amounts("total.savings", c.total, "saved by the accepted path")
    return (
        _cost(facts, before, after, saved),
        _energy(facts, before, after, saved),
        _carbon(facts, before, after, saved),
        _quality(facts),
    )


def _cost(facts: Facts, before: AmountEntries, after: AmountEntries, saved: AmountEntries) -> Tile:
    share = facts.cost_reduction()
    priced = facts.comparison.vector.currency is not None
    mend = _MEASURE if priced else "state a price of electricity and of the machine"
    return _amount_tile("Cost", facts, share, (before.cost, after.cost, saved.cost), mend)


def _energy(facts: Facts, before: AmountEntries, after: AmountEntries, saved: AmountEntries) -> Tile:
    return _amount_tile(
        "Energy", facts, facts.reduction(), (before.energy, after.energy, saved.energy), _MEASURE
    )


def _carbon(facts: Facts, before: AmountEntries, after: AmountEntries, saved: AmountEntries) -> Tile:
    placed = facts.comparison.vector.location is not None
    mend = _MEASURE if placed else "state a place and its grid factors"
    if not facts.has_path:
        tile = _now(facts, "CO₂e", before.location, mend)
        market = phrase("market-based ", before.market.full)
        return msgspec.structs.replace(tile, lines=(phrase("location-based"), market, *tile.lines))
    lines = [
        phrase(name, line)
        for name, old, new, less in (
            ("location-based ", before.location, after.location, saved.location),
            ("market-based ", before.market, after.market, saved.market),
        )
        for name, line in ((name, _from_to(old, new)), ("saves ", less.full if less.known else ()))
        if line
    ]
    if not before.location.known:
        lines.append(phrase(mend))
    return _headed("CO₂e", facts.carbon_reduction(), tuple(lines))


def _amount_tile(
    name: str, facts: Facts, share: Entry, amounts: tuple[Entry, Entry, Entry], mend: str
) -> Tile:
    before, after, saved = amounts
    if not facts.has_path:
        return _now(facts, name, before, mend)
    if not before.known:
        return _headed(name, share, (phrase(mend),))
    lines = [_from_to(before, after)]
    if saved.known:
        lines.append(phrase("saves ", saved.full))
    return _headed(name, share, tuple(lines))


def _now(facts: Facts, name: str, before: Entry, mend: str) -> Tile:
    nothing = "no saving is shown" if none_saves(facts) else "no step is accepted"
    return Tile(
        label=f"{name} now",
        value=phrase(before.text),
        interval=phrase(before.interval),
        lines=(phrase(nothing if before.known else mend),),
        mark="open",
    )


def _headed(name: str, share: Entry, lines: tuple[Phrase, ...]) -> Tile:
    if not share.known:
        return Tile(label=f"{name} saved", value=phrase(share.text), lines=lines, mark="open")
    low = share.printed.figure.estimate.low
    sure = low is not None and low > 0
    return Tile(
        label=f"{name} saved",
        value=phrase("▼ " if sure else "", share.text),
        interval=phrase(share.interval),
        lines=lines,
        mark="good" if sure else "open",
    )


def _from_to(before: Entry, after: Entry) -> Phrase:
    if not before.known and not after.known:
        return phrase(before.text)
    states = {e.printed.figure.estimate.state for e in (before, after)}
    if states != {"known"}:
        return phrase(before.text, " → ", after.text)
    # Both are printed in one unit, which stands once: a currency first, a unit last.
    if before.printed.text.endswith(before.printed.number):
        return phrase(before.text, " → ", after.number)
    return phrase(before.number, " → ", after.text)


# Quality -------------------------------------------------------------------


def _quality(facts: Facts) -> Tile:
    final = facts.final
    if not facts.has_path:
        return _baseline_quality(facts)
    if final is None:
        line = phrase("each optimization was judged on its own; see the engineering report")
        return Tile(label="Quality", value=phrase("not measured"), lines=(line,), mark="open")
    lines: list[Phrase] = []
    value, interval = phrase("not measured"), phrase()
    name = next(iter(final.metrics.quality), None) if final.metrics else None
    if name is not None and final.metrics is not None:
        entry = facts.quality(final.step, name, final.metrics.quality[name])
        value, interval = phrase(entry.text), phrase(entry.interval)
        lines.append(phrase(quoted(clip(name, 24)), " at the end of the path"))
    lines.extend(_gate_lines(facts, final))
    return Tile(
        label="Quality", value=value, interval=interval, lines=tuple(lines), mark=_gates_mark(final.gates)
    )


def _baseline_quality(facts: Facts) -> Tile:
    base = facts.comparison.baseline_metrics
    name = next(iter(base.quality), None) if base else None
    if base is None or name is None:
        return Tile(label="Quality now", value=phrase("not measured"), mark="open")
    entry = facts.quality(facts.comparison.study.baseline, name, base.quality[name])
    return Tile(
        label="Quality now",
        value=phrase(entry.text),
        interval=phrase(entry.interval),
        lines=(phrase(quoted(clip(name, 24)), " of the baseline"),),
    )


def _gate_lines(facts: Facts, final: StepResult) -> list[Phrase]:
    if not final.gates:
        return [phrase("no quality limit was declared")]
    lines = [gate_phrase(facts, final.step, n, g) for n, g in enumerate(final.gates, start=1)]
    if len(lines) > 2:
        lines = [*lines[:2], phrase(f"and {in_words(len(final.gates) - 2)} more, see the engineering report")]
    return lines


def gate_phrase(facts: Facts, step: str, number: int, gate: GateResult, *, named: bool = False) -> Phrase:
    """Return what a gate saw, its limit and its outcome: ``loss 0.1 points [...]; limit 1 point: pass``.

    Args:
        facts: The comparison.
        step: Step the gate was held against.
        number: Number of the gate, from 1.
        gate: The gate's result.
        named: The gate's name stands before, so that the metric need not be named.
    """
    observed, limit = facts.gate(step, number, gate)
    what = "loss " if gate.kind == "max_loss" else "" if named else f"{metric_words(gate.metric)} "
    kind = "at least " if gate.kind == "min_value" else "limit "
    sign = {"pass": "✓ pass", "fail": "✗ fail"}.get(gate.outcome, "? undetermined")
    why: Phrase = ()
    if not observed.known and gate.reason:
        why = phrase(" (", quoted(clip(gate.reason, 80)), ")")
    return phrase(quoted(what), observed.full, "; ", kind, limit.text, ": ", sign, why)


def _gates_mark(gates: tuple[GateResult, ...]) -> Mark:
    if any(g.outcome == "fail" for g in gates):
        return "bad"
    return "good" if gates and all(g.outcome == "pass" for g in gates) else "open"
