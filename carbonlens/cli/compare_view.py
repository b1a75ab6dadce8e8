"""How a comparison is printed: JSON, or a table that fits 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import msgspec

from carbonlens.cli import output
from carbonlens.domain.comparison import Amounts, BreakEven, Comparison, Effect, StepResult
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Factor
from carbonlens.reporting import format as fmt
from carbonlens.reporting import names
from carbonlens.reporting.comparison_json import comparison_json

_STEP_WIDTH = 20
_LEAST_STEP_WIDTH = 8
_PLACE_WIDTH = 30
_MEASURES = {"energy": "energy", "carbon_location": "carbon", "cost": "cost"}
_METHODS = {
    "shapley": "Shapley values",
    "shapley_estimate": "Shapley values estimated from drawn orders",
    "order_mean": "means over the measured orders, no Shapley values",
}


def print_as_json(comparison: Comparison) -> None:
    """Print the shape that outside scripts rely on."""
    output.print_json(comparison_json(comparison))


def print_as_text(comparison: Comparison, *, details: bool = False) -> None:
    """Print the steps, the total of the accepted path, and what to look at.

    Args:
        comparison: The result.
        details: Print parts, gates, front and break-even of each step too.
    """
    study = comparison.study
    output.say(output.clip(f"{study.name}: {comparison.mode}, energy per {study.unit}", output.WIDTH))
    for line in _table(comparison):
        output.say(line)
    for step in comparison.steps:
        for reason in _why_not(comparison, step):
            output.note(reason)
    for line in (*_total(comparison), *_together(comparison), *_break_even(comparison)):
        output.say(line)
    if details:
        from carbonlens.cli.compare_details import details_of

        for line in details_of(comparison):
            output.say(line)
    output.print_findings(comparison.findings)


def _why_not(comparison: Comparison, step: StepResult) -> list[str]:
    """Return on a step that is not adopted why, and what it would have saved."""
    name = output.clip(step.step, _STEP_WIDTH)
    if step.error is not None:
        return [output.clip(f"{name} failed: {step.error}", output.WIDTH)]
    if step.decision == "adopt" or not step.reasons:
        return []
    text = f"{name}: {step.reasons[0]}"
    would = step.would_have.energy_j if step.would_have else None
    if step.decision == "reject" and would is not None and would.value is not None and would.state == "known":
        said = f"would have saved {_amount(would)}"
        if would.value < 0:
            said = f"would have used {_amount(would.scale(-1.0, would.unit))} more"
        text += f"; it {said}{per(comparison)}"
    return _wrapped(text)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(output.clean(text), output.WIDTH, subsequent_indent="  ")


def _table(comparison: Comparison) -> list[str]:
    """Return the table, its names clipped as far as 80 columns ask for it."""
    header = ["step", "energy", "vs", "change [95 %]", "gates", "decision"]
    rows = _rows(comparison)
    lines = output.table(header, rows)
    surplus = max(map(len, lines)) - output.WIDTH
    if surplus <= 0:
        return lines
    room = max(_LEAST_STEP_WIDTH, max(len(row[0]) for row in rows) - surplus)
    return output.table(header, [[output.clip(row[0], room), *row[1:]] for row in rows])


def _rows(comparison: Comparison) -> list[list[str]]:
    baseline = comparison.baseline_metrics
    energies = [m.energy_per_unit_j for m in (baseline, *(s.metrics for s in comparison.steps)) if m]
    largest = max((e.value for e in energies if e.value is not None), default=None)
    scale = fmt.energy_scale(largest)
    rows = [
        [
            output.clip(comparison.study.baseline, _STEP_WIDTH),
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
    for index, row in enumerate(rows):
        row[0] = f"{index} {row[0]}"
    return rows


def _row(step: StepResult, scale: fmt.Scale, numbers: dict[str, str]) -> list[str]:
    energy = fmt.energy(step.metrics.energy_per_unit_j, scale).text if step.metrics else fmt.UNKNOWN
    gates = ", ".join(dict.fromkeys(g.outcome for g in step.gates))
    return [
        output.clip(step.step, _STEP_WIDTH),
        energy,
        numbers.get(step.measured_on, "?"),
        change_of(step.vs_previous),
        gates or "none",
        "failed" if step.status == "failed" else step.decision,
    ]


def change_of(effect: Effect | None) -> str:
    """Return a relative change with its interval."""
    # The ratio of two energies that each lack a part is no change of the whole.
    if effect is None or effect.ratio.value is None or effect.ratio.state != "known":
        return fmt.UNKNOWN
    printed = fmt.percent(_less_one(effect.ratio), plus=True)
    return f"{printed.text} {printed.interval}"


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
    path, what, between = (
        (comparison.path[1:], "all together", " + ") if is_lattice else (comparison.path, "accepted", " > ")
    )
    return [
        output.clip(f"{what}: {between.join(output.clip(p, _STEP_WIDTH) for p in path)}", output.WIDTH),
        f"energy {change_of(comparison.total_effect)}: saves {_amount(total.energy_j)}{per(comparison)}",
        *_wrapped(_carbon(comparison, total)),
        *([] if total.cost.value is None else [f"cost saved{_cost(comparison, total.cost)}"]),
    ]


def _carbon(comparison: Comparison, total: Amounts) -> str:
    """Return what is saved in carbon, with place and factor beside it."""
    vector = comparison.vector
    no_price = "" if total.cost.value is not None else ", and no price, so no cost"
    if vector.location is None:
        return f"place unknown, so no carbon figure{no_price} (state it with --assumptions)"
    example = ", example" if vector.example else ""
    place = output.clip(vector.place or vector.location.zone, _PLACE_WIDTH)
    figures = f"{_mass(total.emissions_location_kg)} location-based"
    if total.emissions_market_kg.value is not None:
        figures += f", {_mass(total.emissions_market_kg)} market-based"
    text = f"carbon saved{per(comparison)}: {figures} ({place}: {_factor(vector.location)}{example})"
    return text + ("; no price, so no cost" if no_price else "")


def _together(comparison: Comparison) -> list[str]:
    """Return how a lattice's optimizations act on each other, and how its saving is divided."""
    lines: list[str] = []
    shared = comparison.interaction_j
    if shared is not None and shared.value is not None:
        what = "less" if shared.value > 0 else "more"
        size = shared if shared.value > 0 else shared.scale(-1.0, shared.unit)
        lines.append(f"together they save {_amount(size)} {what}{per(comparison)} than the sum of each alone")
    method = _METHODS.get(comparison.attribution_method or "")
    parts = [s.attribution.energy_j for s in comparison.steps if s.attribution is not None]
    if method and parts:
        scale = fmt.energy_scale(max(abs(p.value or 0.0) for p in parts))
        shown = ", ".join(
            f"{output.clip(s.step, _STEP_WIDTH)} {fmt.energy(s.attribution.energy_j, scale).text}"
            for s in comparison.steps
            if s.attribution is not None
        )
        orders = comparison.orders
        if comparison.attribution_method == "order_mean" and orders is not None:
            method = f"{method}; {orders.measured} of {orders.possible}"
        lines += _wrapped(f"parts of it: {shown} ({method})")
    return lines


def _cost(comparison: Comparison, cost: Estimate) -> str:
    if comparison.basis != "per_unit":
        printed = fmt.money(cost)
        return f"{per(comparison)}: {printed.text} {printed.interval}"
    # A cent fraction an image is unreadable; a million of them is an amount.
    printed = fmt.money(cost.scale(1e6, cost.unit))
    return f" per million {names.plural(comparison.study.unit)}: {printed.text} {printed.interval}"


def per(comparison: Comparison) -> str:
    """Return what amounts stand for: one unit, or the volume."""
    if comparison.basis == "per_unit":
        return f" per {comparison.study.unit}"
    return f" for the volume{' ' + comparison.study.volume_period if comparison.study.volume_period else ''}"


def _amount(energy: Estimate) -> str:
    printed = fmt.energy(energy)
    return f"{printed.text} {printed.interval}".strip()


def _mass(mass: Estimate) -> str:
    printed = fmt.mass(mass)
    return f"{printed.text} {printed.interval}".strip()


def _break_even(comparison: Comparison) -> list[str]:
    said = earned_back_text(comparison.break_even, names.plural(comparison.study.unit))
    return _wrapped(f"earned back after: {said}") if said else []


def earned_back_text(items: Sequence[BreakEven], unit: str) -> str:
    """Return after how many units and what time work is earned back, in plain words.

    Measures that say the same share their words.

    Args:
        items: Break-even, one entry a measure.
        unit: Functional unit, in the plural.
    """
    by_words: dict[str, list[str]] = {}
    for item in items:
        words = _earned_back(item, unit) if item.measure in _MEASURES else ""
        if words:
            by_words.setdefault(words, []).append(_MEASURES[item.measure])
    return "; ".join(f"{names.join_words(labels)} {words}" for words, labels in by_words.items())


def _earned_back(item: BreakEven, unit: str) -> str:
    if item.outcome == "unknown":
        return ""
    if item.outcome == "never":
        return "never"
    may_never = item.outcome == "may_never"
    least = item.units.low if may_never and item.units.low is not None else item.units.value
    if least is None:
        return "perhaps never"
    time = ""
    if item.days is not None and item.days.value is not None and item.units.value:
        days = least * item.days.value / item.units.value
        time = f" ({fmt.span(Estimate(value=days * fmt.S_PER_DAY, unit='s')).text})"
    count = f"{fmt.count(Estimate(value=least, unit='1')).text} {unit}{time}"
    return f"at least {count}, may never" if may_never else count


def _factor(factor: Factor) -> str:
    grams = fmt.plain(Estimate(value=factor.value_kg_per_kwh * 1000, unit="g/kWh"), "g/kWh").text
    return f"{grams}, {factor.period}"
