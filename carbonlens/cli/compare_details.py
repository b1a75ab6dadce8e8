"""What ``compare --details`` adds: parts, gates, the front, and each step's break-even."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from carbonlens.cli import output
from carbonlens.cli.compare_amounts import METHODS, adding_up, earned_back_text, names_apart, per
from carbonlens.domain.comparison import Amounts, ArmMetrics, Comparison, GateResult
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting import names
from carbonlens.reporting.metrics import gate_format, is_fraction, metric_words

_WIDTH = 18
_ABOVE_IDLE = "above idle"
_AMOUNTS = {
    "energy_j": fmt.energy,
    "emissions_location_kg": fmt.mass,
    "emissions_market_kg": fmt.mass,
    "cost": fmt.money,
}


def details_of(comparison: Comparison) -> list[str]:
    """Return the lines, each table under its title.

    Args:
        comparison: The result.
    """
    return [
        *_parts(comparison),
        *_beside(comparison),
        *_alone_and_last(comparison),
        *_gates(comparison),
        *_front(comparison),
        *_marginal(comparison),
    ]


def _parts(comparison: Comparison) -> list[str]:
    total, method = comparison.total, comparison.attribution_method
    apart = names_apart(comparison, _WIDTH)
    named = [(apart[s.step], s.attribution) for s in comparison.steps if s.attribution is not None]
    if not named or total is None or method is None:
        return []
    columns = [
        [
            *adding_up([getattr(part, field) for _, part in named], getattr(total, field), show),
            show(getattr(total, field)).text,
        ]
        for field, show in _AMOUNTS.items()
    ]
    heads = [*(name for name, _ in named), "total"]
    rows = [[head, *(column[i] for column in columns)] for i, head in enumerate(heads)]
    header = ["part", "energy", "CO2e location", "CO2e market", "cost"]
    return ["", f"saved{per(comparison)}, {METHODS[method]}:", *output.table(header, rows)]


def _beside(comparison: Comparison) -> list[str]:
    """Return power, memory and throughput, and the energy above idle, where an arm tells them."""
    named = [(comparison.study.baseline, comparison.baseline_metrics)]
    named += [(s.step, s.metrics) for s in comparison.steps]
    arms = [(name, metrics) for name, metrics in named if metrics is not None]
    scale = fmt.energy_scale(max((m.energy_per_unit_j.value or 0.0 for _, m in arms), default=None))
    shown: list[tuple[str, Callable[[ArmMetrics], str]]] = [
        ("power", lambda m: _text(m.power_w, lambda e: fmt.plain(e, "W"))),
        ("peak memory", lambda m: _text(m.peak_memory_bytes, fmt.size)),
        (f"{names.plural(comparison.study.unit)}/s", lambda m: _text(m.throughput_per_s, fmt.plain)),
        (_ABOVE_IDLE, lambda m: _text(m.dynamic_per_unit_j, lambda e: fmt.energy(e, scale))),
    ]
    told = [(title, show) for title, show in shown if any(show(m) != fmt.UNKNOWN for _, m in arms)]
    if not told:
        return []
    apart = names_apart(comparison, _WIDTH)
    rows = [[apart[name], *(show(m) for _, show in told)] for name, m in arms]
    has_dynamic = any(title == _ABOVE_IDLE for title, _ in told)
    of_dynamic = f", energy above idle power per {comparison.study.unit}" if has_dynamic else ""
    title = f"beside the energy that is compared{of_dynamic}:"
    return ["", *_clipped([title, *output.table(["measured", *(t for t, _ in told)], rows)])]


def _text(estimate: Estimate | None, show: Callable[[Estimate], fmt.Printed]) -> str:
    return fmt.UNKNOWN if estimate is None or estimate.value is None else show(estimate).text


def _alone_and_last(comparison: Comparison) -> list[str]:
    """Return what each optimization saves when it is switched on first, and when last."""
    if comparison.mode != "lattice":
        return []
    apart = names_apart(comparison, _WIDTH)
    rows = [
        [
            apart[s.step],
            _energy(s.savings),
            _energy(s.leave_one_out),
            fmt.UNKNOWN if s.order_range is None else _between(s.order_range.low_j, s.order_range.high_j),
        ]
        for s in comparison.steps
    ]
    title = f"energy saved{per(comparison)} by switching it on first (leave-one-in) or last:"
    return ["", *_clipped([title, *output.table(["step", "first", "last", "over orders"], rows)])]


def _gates(comparison: Comparison) -> list[str]:
    apart = names_apart(comparison, _WIDTH)
    rows = [
        [apart[s.step], output.clip(g.name, _WIDTH), _observed(g), _limit(g), g.outcome]
        for s in comparison.steps
        for g in s.gates
    ]
    return (
        ["", *_clipped(output.table(["gates of", "gate", "observed", "limit", "outcome"], rows))]
        if rows
        else []
    )


def _front(comparison: Comparison) -> list[str]:
    if not comparison.pareto:
        return []
    measures = list(comparison.pareto[0].values)
    apart = names_apart(comparison, _WIDTH)
    rows = [
        [
            apart.get(p.step, p.step),
            *(_value(m, p.values[m], [q.values[m] for q in comparison.pareto]) for m in measures),
            "on the front" if p.on_front else f"beaten by {apart.get(p.dominated_by or '', '')}",
        ]
        for p in comparison.pareto
    ]
    header = ["Pareto front", *(metric_words(m) for m in measures), "by best values"]
    return ["", *_clipped(output.table(header, rows))]


def _marginal(comparison: Comparison) -> list[str]:
    unit = names.plural(comparison.study.unit)
    apart = names_apart(comparison, _WIDTH)
    lines = []
    for step in comparison.steps:
        said = earned_back_text(step.break_even, unit)
        if said:
            lines += output.wrap(f"{apart[step.step]}: {said}", output.width())
    return ["", "each step's own work is earned back after:", *lines] if lines else []


def _energy(amounts: Amounts | None) -> str:
    if amounts is None:
        return fmt.UNKNOWN
    printed = fmt.energy(amounts.energy_j)
    return f"{printed.text} {printed.interval}".strip()


def _between(low: float, high: float) -> str:
    scale = fmt.energy_scale(max(abs(low), abs(high)))
    ends = (fmt.energy(Estimate(value=x, unit="J", signed=True), scale).text for x in (low, high))
    return " to ".join(ends)


def _observed(gate: GateResult) -> str:
    printed = gate_format(gate)(gate.observed)
    return f"{printed.text} {printed.interval}".strip()


def _limit(gate: GateResult) -> str:
    return gate_format(gate)(Estimate(value=gate.limit, unit=gate.observed.unit)).text


def _value(measure: str, value: float, column: Sequence[float]) -> str:
    if measure == "energy_j":
        return fmt.energy(Estimate(value=value, unit="J")).text
    if measure.startswith("latency_"):
        return fmt.plain(Estimate(value=value, unit="ms"), "ms").text
    return (fmt.percent if is_fraction(measure, column) else fmt.plain)(Estimate(value=value, unit="1")).text


def _clipped(lines: Sequence[str]) -> list[str]:
    return [output.clip(line, output.WIDTH) for line in lines]
