"""Ids of the amounts of a comparison: kilograms, joules and money, as its JSON holds them.

A report enters the figures that it prints; the JSON holds more of them. A report states amounts
for a count of units at which they are readable (per million images), the JSON for one: the same
id stands for one number, so that the amounts of one unit are ``<id>.per_unit`` where both differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from carbonlens.domain.comparison import Amounts, BreakEven, Comparison
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.reporting.comparison_json import comparison_json
from carbonlens.reporting.content import plain_text
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.figures import FigureBook, exact
from carbonlens.reporting.names import slugs
from carbonlens.reporting.view import build_view

_AMOUNTS: Final = ("energy_j", "emissions_location_kg", "emissions_market_kg", "embodied_kg", "cost")
PER_UNIT: Final = ".per_unit"
"""End of the id of an amount of one unit, where the report states it for more."""

COUNT: Final = "basis.units"
"""Id of the count of units that the amounts of a report are for."""

_PARTS: Final = {
    "j": "energy_j",
    "location_kg": "emissions_location_kg",
    "market_kg": "emissions_market_kg",
    "embodied_kg": "embodied_kg",
    "cost": "cost",
}
"""End of a name of an attribution to the amount that it is a part of."""

_WORDS: Final = {
    "energy_j": "energy",
    "emissions_location_kg": "location-based emissions",
    "emissions_market_kg": "market-based emissions",
    "embodied_kg": "embodied emissions",
    "cost": "cost",
}


def name_of(amount: str) -> str:
    """Return what an amount is called in ids: without its unit."""
    return amount.removesuffix("_j").removesuffix("_kg")


class _Basis:
    """For how many units a report states the amounts of a comparison, and what is earned back."""

    def __init__(self, comparison: Comparison) -> None:
        facts = Facts(comparison, FigureBook())
        self.amounts = facts.basis.multiplier
        self.savings = facts.unit_basis.multiplier
        self.words = f", {plain_text(facts.unit_basis.words)}"
        self.unit_words = f", per {facts.unit}"

    def end(self, count: float) -> str:
        """Return the end of the ids of amounts of one unit."""
        return "" if count == 1 else PER_UNIT


def amount_figures(comparison: Comparison) -> tuple[Figure, ...]:
    """Return all amounts of a comparison as figures, without formula and inputs (``derivations``).

    Args:
        comparison: Of a study.
    """
    basis = _Basis(comparison)
    figures: list[Figure] = []
    if basis.savings != 1:
        label = "count of units that amounts are stated for"
        figures.append(Figure(figure_id=COUNT, estimate=exact(basis.savings), label=label))
    for prefix, words, amounts in _groups(comparison):
        count = 1.0 if _is_effort(prefix) else basis.amounts
        for n in _AMOUNTS if amounts is not None else ():
            estimate, label = getattr(amounts, n), f"{_WORDS[n]}{words}"
            figures += _both(f"{prefix}.{name_of(n)}", estimate, label, count, basis)
    for prefix, words, found in _earned(comparison):
        for one in found:
            at = f"{prefix}break_even.{one.measure}"
            figures.append(Figure(figure_id=f"{at}.effort", estimate=one.effort, label=f"effort{words}"))
            label = f"saving of one unit{words}" if basis.savings == 1 else f"saving{words}"
            figures += _both(f"{at}.saving", one.saving_per_unit, label, basis.savings, basis)
    return tuple(figures)


def every_figure(comparison: Comparison) -> dict[str, Figure]:
    """Return the figures that a report prints and those of the JSON, by id.

    Args:
        comparison: Of a study.
    """
    amounts = {f.figure_id: f for f in amount_figures(comparison)}
    every = dict(amounts)
    for name, printed in build_view(comparison).figures.items():
        # The label of an amount names the count of units that it is for, as a table's head does.
        label = amounts[name].label if name in amounts else printed.figure.label
        every[name] = replace(printed.figure, label=label)
    return every


def _is_effort(prefix: str) -> bool:
    return prefix.startswith("effort.") or prefix.endswith(".effort")


def _both(figure_id: str, one: Estimate, label: str, count: float, basis: _Basis) -> list[Figure]:
    """Return an amount as the report states it, and that of one unit where it is another."""
    if count == 1:
        return [Figure(figure_id=figure_id, estimate=one, label=label)]
    return [
        Figure(figure_id=figure_id, estimate=one.scale(count, one.unit), label=f"{label}{basis.words}"),
        Figure(figure_id=f"{figure_id}{PER_UNIT}", estimate=one, label=f"{label}{basis.unit_words}"),
    ]


def identified_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON whose amounts hold the ids that ``explain`` takes.

    Args:
        comparison: Of a study.
    """
    shape = comparison_json(comparison)
    basis = _Basis(comparison)
    of_amounts, of_savings = basis.end(basis.amounts), basis.end(basis.savings)
    ids = slugs([comparison.study.baseline, *(s.step for s in comparison.steps)])
    _mark(shape["baseline_amounts"], "baseline", of_amounts)
    _mark(shape["final_amounts"], "final", of_amounts)
    _mark(shape["total"]["savings"], "total.savings", of_amounts)
    for whose, amounts in shape["effort"].items():
        _mark(amounts, f"effort.{whose}")
    _mark_earned(shape["break_even"], "", of_savings)
    for step in shape["steps"]:
        at = f"step.{ids[step['step']]}"
        _mark(step["amounts"], at, of_amounts)
        for kind in ("savings", "would_have"):
            _mark(step[kind], f"{at}.{kind}", of_amounts)
        _mark(step["effort"], f"{at}.effort")
        _mark_earned(step["break_even"], f"{at}.", of_savings)
        method = comparison.attribution_method
        for end, amount in _PARTS.items():
            part = step["attribution"].get(f"{method}_{end}")
            _set(part, f"{at}.attribution.{name_of(amount)}{of_amounts}")
    return shape


def _groups(comparison: Comparison) -> Iterator[tuple[str, str, Amounts | None]]:
    """Yield the begin of ids, words and amounts of each group."""
    c = comparison
    yield "baseline", " of the baseline", c.baseline_amounts
    yield "final", " of the accepted path", c.final_amounts
    yield "total.savings", " that the accepted path saves", c.total
    yield "effort.baseline", " of making the baseline", c.baseline_effort
    yield "effort.accepted", " of making the accepted steps", c.accepted_effort
    yield "effort.rejected", " of making the steps that were not accepted", c.rejected_effort
    ids = slugs([c.study.baseline, *(s.step for s in c.steps)])
    for step in c.steps:
        at = f"step.{ids[step.step]}"
        yield at, f" of {step.step}", step.amounts
        yield f"{at}.savings", f" that {step.step} saves against the baseline", step.savings
        yield f"{at}.would_have", f" that {step.step} saves where it was measured", step.would_have
        yield f"{at}.effort", f" of making {step.step}", step.effort
        yield f"{at}.attribution", f" that {step.step} takes of the saving", step.attribution


def _earned(comparison: Comparison) -> Iterator[tuple[str, str, tuple[BreakEven, ...]]]:
    yield "", " of the accepted path", comparison.break_even
    ids = slugs([comparison.study.baseline, *(s.step for s in comparison.steps)])
    for step in comparison.steps:
        yield f"step.{ids[step.step]}.", f" of {step.step}", step.break_even


def _mark(amounts: dict[str, Any], prefix: str, end: str = "") -> None:
    for name in _AMOUNTS:
        _set(amounts.get(name), f"{prefix}.{name_of(name)}{end}")


def _mark_earned(found: list[dict[str, Any]], prefix: str, end: str) -> None:
    for one in found:
        at = f"{prefix}break_even.{one['measure']}"
        _set(one["effort"], f"{at}.effort")
        _set(one["saving_per_unit"], f"{at}.saving{end}")


def _set(estimate: dict[str, Any] | None, figure_id: str) -> None:
    if estimate is not None:
        estimate["id"] = figure_id
