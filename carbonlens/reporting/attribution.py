"""Attribution: which accepted step saved how much, in parts that add up as printed."""

from __future__ import annotations

from carbonlens.domain.comparison import StepResult
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.content import Column, Phrase, Row, Table, phrase, quoted
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.figures import exact
from carbonlens.reporting.step_tables import head


def attribution_table(facts: Facts) -> Table | None:
    """Return the parts of the saving per accepted step with their total; ``None`` without a total."""
    total = facts.comparison.total
    steps = [s for s in facts.path_steps if s.attribution is not None]
    if total is None or not steps:
        return None
    saved = facts.amounts("total.savings", total, "saved by the accepted path")
    fields: tuple[tuple[str, str, fmt.Quantity, fmt.Scale], ...] = (
        ("energy_j", "energy", fmt.energy, facts.energy_amount_scale),
        ("emissions_location_kg", "emissions_location", fmt.mass, facts.mass_scale),
        ("emissions_market_kg", "emissions_market", fmt.mass, facts.mass_scale),
        ("cost", "cost", fmt.money, facts.cost_scale),
    )
    columns = [_column(facts, steps, *field) for field in fields]
    rows = [
        Row(head=head(facts, step.step), cells=tuple(column[i] for column in columns))
        for i, step in enumerate(steps)
    ]
    whole = (saved.energy, saved.location, saved.market, saved.cost)
    rows.append(
        Row(
            head=phrase("Total"),
            cells=tuple((e.full,) for e in whole),
            mark="good",
            total=True,
        )
    )
    return Table(
        caption=phrase(
            "Attribution of the saving to the steps", method_words(facts), ", ", facts.basis.words
        ),
        head="Step",
        columns=tuple(
            Column(name=phrase(n)) for n in ("Energy", "CO₂e location-based", "CO₂e market-based", "Cost")
        ),
        rows=tuple(rows),
        note=phrase(
            "Parts are rounded by largest remainder, so that each printed column adds up to its total.",
            _disagreeing(facts, steps),
        ),
    )


def _disagreeing(facts: Facts, steps: list[StepResult]) -> Phrase:
    """Explain parts whose sign is not that of the verdict; nothing where all agree."""
    named = [quoted(facts.name(s.step)) for s in steps if s.joules_say is not None]
    if not named:
        return ()
    parts: list[str | Phrase] = []
    for number, name in enumerate(named):
        parts += [", " if number else " ", phrase(name)]
    return phrase(
        *parts,
        ": verdict and joules differ, because the verdict is a mean of ratios, in which all combinations "
        "weigh the same, and joules are differences of means, in which those that use most weigh most.",
    )


def method_words(facts: Facts) -> Phrase:
    """Return how a lattice's saving was divided; nothing for a ladder.

    A mean over the orders that happen to be measured keeps its own name.
    """
    orders = facts.comparison.orders
    method = facts.comparison.attribution_method
    if method == "shapley":
        return phrase(" (Shapley values)")
    if method == "shapley_estimate":
        return phrase(" (Shapley values estimated from orders drawn at random)")
    if method != "order_mean" or orders is None:
        return phrase("")
    measured, possible = (
        facts.book.enter(
            f"orders.{name}", f"orders of the optimizations, {name}", exact(n), fmt.count(exact(n))
        )
        for name, n in (("measured", orders.measured), ("possible", orders.possible))
    )
    return phrase(" (mean over the measured orders, ", measured.text, " of ", possible.text, ")")


def _column(
    facts: Facts, steps: list[StepResult], field: str, name: str, show: fmt.Quantity, scale: fmt.Scale
) -> list[tuple[Phrase, ...]]:
    """Return one cell per step, rounded together to the digits of the total."""
    parts = [_part(facts, s, field) for s in steps]
    rounded = _rounded(facts, parts, getattr(facts.comparison.total, field), show, scale)
    cells: list[tuple[Phrase, ...]] = []
    for step, part, at in zip(steps, parts, rounded, strict=True):
        entry = facts.book.enter(
            f"step.{facts.slug(step.step)}.attribution.{name}",
            f"part of {facts.name(step.step)} in the saving: {name.replace('_', ' ')}",
            part,
            show(part, scale, at=at),
        )
        cells.append((entry.full,))
    return cells


def _rounded(
    facts: Facts, parts: list[Estimate], whole: Estimate, show: fmt.Quantity, scale: fmt.Scale
) -> list[tuple[float, int] | None]:
    """Return value and decimals per part, adding up; ``None`` each where the total is unknown."""
    known = [p.value * scale.factor for p in parts if p.value is not None]
    if whole.value is None or whole.state != "known" or len(known) < len(parts):
        return [None] * len(parts)
    scaled = whole.scale(facts.basis.multiplier, whole.unit)
    places = show.places(scaled, scale)
    total = None if scaled.value is None else round(scaled.value * scale.factor, places)
    return [(value, places) for value in fmt.apportion(known, places, total=total)]


def _part(facts: Facts, step: StepResult, field: str) -> Estimate:
    part: Estimate = getattr(step.attribution, field)
    return part.scale(facts.basis.multiplier, part.unit)
