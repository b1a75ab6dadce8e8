"""How a comparison is printed: JSON, or a table that fits 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from carbonlens.cli import output
from carbonlens.cli.compare_amounts import (
    METHODS,
    NAME_WIDTH,
    adding_up,
    earned_back_text,
    names_apart,
    per,
    saved_per,
)
from carbonlens.cli.compare_carbon import carbon_text, cost_text
from carbonlens.cli.compare_details import details_of
from carbonlens.cli.compare_findings import OF_CARBON, OF_COST, worth_showing
from carbonlens.domain.comparison import Comparison, Effect, StepResult
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.reporting import format as fmt
from carbonlens.reporting import names
from carbonlens.reporting.comparison_figures import identified_json

_STEP_WIDTH = NAME_WIDTH
_LEAST_STEP_WIDTH = 8
_UNIT_WIDTH = 10
_MOST_REASONS = 5
_MOST_LINES = 8
_LEAST_LINES = 3
_COLUMNS = ("vs", "change [95 %]", "gates", "decision")


def print_as_json(comparison: Comparison) -> None:
    """Print the shape that outside scripts rely on."""
    output.print_json(identified_json(comparison))


def print_as_text(
    comparison: Comparison,
    *,
    details: bool = False,
    within: int | None = None,
    listed_by: str = "--json lists all",
) -> None:
    """Print the steps, the total of the accepted path, and what to look at.

    Args:
        comparison: The result.
        details: Print parts, gates, front and break-even of each step too.
        within: Lines for all of it: findings get those that are left, one in any case.
        listed_by: What lists the findings that are not printed.
    """
    table = _table(comparison)
    for line in table:
        output.say(line)
    most = None if details else _MOST_REASONS
    disagreeing = _first(_disagreeing(comparison), most)
    for line in disagreeing:
        output.say(line)
    shown = names_apart(comparison)
    reasons = _first([_why_not(comparison, step, shown[step.step]) for step in comparison.steps], most)
    for line in reasons:
        output.note(line)
    totals = [*_total(comparison), *_together(comparison), *_break_even(comparison)]
    for line in totals:
        output.say(line)
    if details:
        for line in details_of(comparison):
            output.say(line)
    filled_in = [line for f in comparison.findings if f.code == "CL352" for line in _wrapped(f.message)]
    for line in filled_in:
        output.note(line)
    used = len(disagreeing) + len(reasons) + len(totals) + len(filled_in)
    room = max(_MOST_LINES - used, _LEAST_LINES)
    if within is not None:
        room = max(min(room, within - len(table) - used - 1), 1)  # a line says how many more there are
    output.print_findings(
        _worth_showing(comparison), most_lines=room, cut=within is not None, listed_by=listed_by
    )


def _first(said: Sequence[Sequence[str]], most: int | None) -> list[str]:
    """Return what is said on the first steps, at least on one, and on how many more there is something."""
    texts = [lines for lines in said if lines]
    kept: list[str] = []
    for number, lines in enumerate(texts):
        if kept and most is not None and len(kept) + len(lines) > most:
            rest = len(texts) - number
            return [
                *kept,
                f"... and {rest} more {'step' if rest == 1 else 'steps'} (--details says why of each)",
            ]
        kept += lines
    return kept


def _worth_showing(comparison: Comparison) -> list[Finding]:
    """Return the findings for the terminal.

    What the lines above say already is left out: where verdict and joules disagree,
    and, without place and price, each factor that is missing.
    """
    vector = comparison.vector
    told = {"CL444"}
    if vector.location is None:
        told |= OF_CARBON
    if vector.currency is None:
        told |= OF_COST
    return worth_showing(comparison.findings, told=frozenset(told))


def _disagreeing(comparison: Comparison) -> list[list[str]]:
    """Explain in a line each step whose verdict and joules point to opposite sides."""
    lines: list[list[str]] = []
    shown = names_apart(comparison)
    for step in comparison.steps:
        part = step.attribution or step.would_have
        if step.joules_say is None or part is None:
            continue
        saved = part.energy_j
        size = saved if (saved.value or 0.0) > 0 else saved.scale(-1.0, saved.unit)
        where = "saves where little is used, costs where much is"
        if step.verdict == "worse":
            where = "costs where little is used, saves where much is"
        name = shown[step.step]
        said = f"* {name}: {step.verdict} as a mean of ratios, but {step.joules_say} {_amount(size)}"
        lines.append(_wrapped(f"{said}{per(comparison)} in joules: it {where}"))
    return lines


def _why_not(comparison: Comparison, step: StepResult, name: str) -> list[str]:
    """Return on a step that is not adopted why, and what it would have saved."""
    if step.error is not None:
        return [output.clip(f"{name} failed: {step.error}", output.width())]
    if step.decision == "adopt" or not step.reasons:
        return []
    # What decided: a gate where there is one, else the change of energy.
    by_gate = step.reason in ("gate", "gate_undetermined")
    decided = [r for r in step.reasons if r.startswith("gate ")] if by_gate else []
    text = f"{name}: {(decided or step.reasons)[0]}"
    would = step.would_have.energy_j if step.would_have else None
    if step.decision == "reject" and would is not None and would.value is not None and would.state == "known":
        said = f"would have saved {_amount(would)}"
        if would.value < 0:
            said = f"would have used {_amount(would.scale(-1.0, would.unit))} more"
        text += f"; it {said}{per(comparison)}"
    elif would is not None and would.value is not None and would.state == "known" and _has_no_ratio(step):
        size = _amount(would if would.value >= 0 else would.scale(-1.0, would.unit))
        text += f"; it uses {size} {'less' if would.value >= 0 else 'more'}{per(comparison)}"
    return _wrapped(text)


def _has_no_ratio(step: StepResult) -> bool:
    """Return whether only the difference can be told, as against a baseline of zero."""
    return step.vs_previous is None or step.vs_previous.ratio.value is None


def _wrapped(text: str) -> list[str]:
    return output.wrap(text, output.width())


def _table(comparison: Comparison) -> list[str]:
    """Return the table, its names clipped as far as 80 columns ask for it.

    Where that does not fit, as on a narrower terminal, each row is a sentence: figures are not cut.
    """
    study = comparison.study
    name = output.clip(study.name, _STEP_WIDTH)
    header = [name, f"energy/{output.clip(study.unit, _UNIT_WIDTH)}", *_COLUMNS]
    rows = _rows(comparison)
    steps = [study.baseline, *(s.step for s in comparison.steps)]
    lines = output.table(header, _named(rows, steps, _STEP_WIDTH))
    if _surplus(lines) > 0:
        # Of several outcomes of gates the worst, before names are cut.
        rows = [[*row[:4], _worst(row[4]), row[5]] for row in rows]
        lines = output.table(header, _named(rows, steps, _STEP_WIDTH))
    surplus = _surplus(lines)
    if surplus > 0:
        widest = max(output.columns(row[0]) for row in (header, *_named(rows, steps, _STEP_WIDTH)))
        room = max(_LEAST_STEP_WIDTH, widest - surplus)
        number = len(str(len(steps) - 1)) + 1
        cut = _named(rows, steps, room - number)
        titles = [output.clip(header[0], room), *header[1:]]
        lines = output.table(titles, cut)
        if _surplus(lines) > 0:
            titles[1] = output.clip(header[1], max(_LEAST_STEP_WIDTH, *(len(row[1]) for row in rows)))
            lines = output.table(titles, cut)
    if _surplus(lines) <= 0:
        return lines
    words = ("", header[1], "against", "change", "gates", "")
    return [
        line
        for row in _named(rows, steps, _STEP_WIDTH)
        for line in _wrapped(", ".join(f"{t} {c}".strip() for t, c in zip(words, row, strict=True) if c))
    ]


def _named(rows: Sequence[Sequence[str]], steps: Sequence[str], width: int) -> list[list[str]]:
    """Return the rows with number and name of their steps before them."""
    shown = output.clip_apart(steps, width)
    return [[f"{index} {name}", *row[1:]] for index, (name, row) in enumerate(zip(shown, rows, strict=True))]


def _surplus(lines: Sequence[str]) -> int:
    return max(map(output.columns, lines)) - output.width()


def _worst(gates: str) -> str:
    return next((one for one in ("fail", "undetermined") if one in gates), gates)


def _rows(comparison: Comparison) -> list[list[str]]:
    baseline = comparison.baseline_metrics
    energies = [m.energy_per_unit_j for m in (baseline, *(s.metrics for s in comparison.steps)) if m]
    largest = max((e.value for e in energies if e.value is not None), default=None)
    scale = fmt.energy_scale(largest)
    rows = [
        [
            comparison.study.baseline,
            fmt.energy(baseline.energy_per_unit_j, scale).text if baseline else fmt.UNKNOWN,
            "",
            "",
            "",
            "baseline",
        ]
    ]
    numbers = {comparison.study.baseline: "0", **{s.step: str(i) for i, s in enumerate(comparison.steps, 1)}}
    rows += [_row(s, scale, numbers) for s in comparison.steps]
    if comparison.mode == "lattice":
        # An optimization's change is over all pairs of sets with and without it.
        rows[1:] = [[*row[:2], "off", *row[3:]] for row in rows[1:]]
    return rows


def _row(step: StepResult, scale: fmt.Scale, numbers: dict[str, str]) -> list[str]:
    energy = fmt.energy(step.metrics.energy_per_unit_j, scale).text if step.metrics else fmt.UNKNOWN
    gates = ", ".join(dict.fromkeys(g.outcome for g in step.gates))
    return [
        step.step,
        energy,
        numbers.get(step.measured_on, "?"),
        change_of(step.vs_previous),
        gates or "none",
        "failed" if step.status == "failed" else f"{step.decision}{' *' if step.joules_say else ''}",
    ]


def change_of(effect: Effect | None) -> str:
    """Return a relative change with its interval."""
    # The ratio of two energies that each lack a part is no change of the whole.
    if effect is None or effect.ratio.value is None or effect.ratio.state != "known":
        return fmt.UNKNOWN
    printed = fmt.percent(_less_one(effect.ratio), plus=True)
    return f"{printed.text} {printed.interval}".strip()


def _less_one(ratio: Estimate) -> Estimate:
    """Return the relative change that a ratio means, with its interval."""
    value = None if ratio.value is None else ratio.value - 1
    low = None if ratio.low is None else ratio.low - 1
    high = None if ratio.high is None else ratio.high - 1
    return msgspec.structs.replace(ratio, value=value, signed=True, bounds=(low, high))


def _total(comparison: Comparison) -> list[str]:
    total = comparison.total
    is_lattice = comparison.mode == "lattice"
    if is_lattice and total is None:
        return ["all together were not measured or failed, so nothing is claimed as saved"]
    if len(comparison.path) < 2 or total is None:
        return ["no step is accepted, so nothing is claimed as saved"]
    # The total of a lattice is that of its full set, whatever is decided on each optimization.
    what = "all together" if is_lattice else "adopted"
    words, units = saved_per(comparison)
    saved = total.energy_j.scale(units, total.energy_j.unit)
    return [
        *_wrapped(f"{what}: energy {change_of(comparison.total_effect)}, saves {_amount(saved)}{words}"),
        *_wrapped(carbon_text(comparison, total)),
        *_wrapped(cost_text(comparison, total)),
    ]


def _together(comparison: Comparison) -> list[str]:
    """Return how a lattice's optimizations act on each other, and how its saving is divided."""
    lines: list[str] = []
    shared = comparison.interaction_j
    if shared is not None and shared.value is not None:
        what = "less" if shared.value > 0 else "more"
        words, units = saved_per(comparison)
        size = shared.scale(units if shared.value > 0 else -units, shared.unit)
        ends = (shared.low, shared.high)
        is_sure = None not in ends and (ends[0] or 0.0) * (ends[1] or 0.0) > 0
        doubt = "" if is_sure else ", which may be no difference"
        said = f"together they save {_amount(size)} {what}{words} than the sum of each alone"
        lines += _wrapped(said + doubt)
    method, total = METHODS.get(comparison.attribution_method or ""), comparison.total
    if comparison.attribution_method == "ladder":
        return lines
    named = [(s.step, s.attribution.energy_j) for s in comparison.steps if s.attribution is not None]
    if method and named and total is not None:
        units = saved_per(comparison)[1]
        parts = [part.scale(units, part.unit) for _, part in named]
        texts = adding_up(parts, total.energy_j.scale(units, total.energy_j.unit), fmt.energy)
        apart = names_apart(comparison)
        shown = ", ".join(f"{apart[name]} {text}" for (name, _), text in zip(named, texts, strict=True))
        orders = comparison.orders
        if comparison.attribution_method == "order_mean" and orders is not None:
            method = f"{method}; {orders.measured} of {orders.possible}"
        lines += _wrapped(f"parts of it: {shown} ({method})")
    return lines


def _amount(energy: Estimate) -> str:
    printed = fmt.energy(energy)
    return f"{printed.text} {printed.interval}".strip()


def _break_even(comparison: Comparison) -> list[str]:
    said = earned_back_text(comparison.break_even, names.plural(comparison.study.unit))
    return _wrapped(f"earned back after: {said}") if said else []
