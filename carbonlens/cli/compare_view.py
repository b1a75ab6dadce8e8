"""How a comparison is printed: JSON, or a table that fits 80 columns."""

from __future__ import annotations

import msgspec

from carbonlens.cli import output
from carbonlens.domain.comparison import BreakEven, Comparison, Effect, StepResult
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Factor
from carbonlens.reporting import format as fmt
from carbonlens.reporting import names
from carbonlens.reporting.comparison_json import comparison_json

_STEP_WIDTH = 20
_LEAST_STEP_WIDTH = 8
_PLACE_WIDTH = 30
_MEASURES = {"energy": "energy", "carbon_location": "carbon", "cost": "cost"}


def print_as_json(comparison: Comparison) -> None:
    """Print the shape that outside scripts rely on."""
    output.print_json(comparison_json(comparison))


def print_as_text(comparison: Comparison) -> None:
    """Print the steps, the total of the accepted path, and what to look at."""
    study = comparison.study
    output.say(output.clip(f"{study.name}: {comparison.mode}, energy per {study.unit}", output.WIDTH))
    for line in _table(comparison):
        output.say(line)
    for step in comparison.steps:
        for reason in _why_not(step):
            output.note(output.clip(reason, output.WIDTH))
    for line in (*_total(comparison), *_break_even(comparison), _basis(comparison)):
        output.say(line)
    output.print_findings(comparison.findings)


def _why_not(step: StepResult) -> list[str]:
    """Return one line on a step that is not adopted."""
    name = output.clip(step.step, _STEP_WIDTH)
    if step.error is not None:
        return [f"{name} failed: {step.error}"]
    return [] if step.decision == "adopt" or not step.reasons else [f"{name}: {step.reasons[0]}"]


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
        _change(step.vs_previous),
        gates or "none",
        "failed" if step.status == "failed" else step.decision,
    ]


def _change(effect: Effect | None) -> str:
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
    per = _per(comparison)
    # The total of a lattice is that of its full set, whatever is decided on each optimization.
    path, what, between = (
        (comparison.path[1:], "all together", " + ") if is_lattice else (comparison.path, "accepted", " > ")
    )
    return [
        output.clip(f"{what}: {between.join(output.clip(p, _STEP_WIDTH) for p in path)}", output.WIDTH),
        f"energy {_change(comparison.total_effect)}: saves {_amount(total.energy_j)}{per}",
        f"carbon saved{per}, location-based: {_mass(total.emissions_location_kg)}",
        f"carbon saved{per}, market-based: {_mass(total.emissions_market_kg)}",
        f"cost saved{_cost(comparison, total.cost)}",
    ]


def _cost(comparison: Comparison, cost: Estimate) -> str:
    if cost.value is None:
        return f": {fmt.UNKNOWN}"
    if comparison.basis != "per_unit":
        printed = fmt.money(cost)
        return f"{_per(comparison)}: {printed.text} {printed.interval}"
    # A cent fraction an image is unreadable; a million of them is an amount.
    printed = fmt.money(cost.scale(1e6, cost.unit))
    return f" per million {names.plural(comparison.study.unit)}: {printed.text} {printed.interval}"


def _per(comparison: Comparison) -> str:
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
    parts = [_earned_back(b) for b in comparison.break_even if b.measure in _MEASURES]
    known = [p for p in parts if p]
    if not known:
        return []
    return [f"earned back after this many {names.plural(comparison.study.unit)}: {'; '.join(known)}"]


def _earned_back(item: BreakEven) -> str:
    label = _MEASURES[item.measure]
    if item.outcome == "unknown":
        return ""
    if item.outcome == "never":
        return f"{label} never"
    count = fmt.count(item.units).text
    return f"{label} {count} or never" if item.outcome == "may_never" else f"{label} {count}"


def _basis(comparison: Comparison) -> str:
    vector = comparison.vector
    if vector.location is None:
        return "place unknown, so no carbon figure (state it with --assumptions)"
    example = ", example assumptions" if vector.example else ""
    place = output.clip(vector.place or vector.location.zone, _PLACE_WIDTH)
    return f"{place}: {_factor(vector.location)}{example}"


def _factor(factor: Factor) -> str:
    grams = fmt.plain(Estimate(value=factor.value_kg_per_kwh * 1000, unit="g/kWh"), "g/kWh").text
    return f"{grams} {factor.method}-based {factor.period}"
