"""Ids of the amounts of a comparison: kilograms, joules and money, as its JSON holds them.

A report enters the figures that it prints; the JSON holds more of them, under the same ids
where both do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from carbonlens.domain.comparison import Amounts, BreakEven, Comparison
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.reporting.comparison_json import comparison_json
from carbonlens.reporting.names import slugs

_AMOUNTS: Final = ("energy_j", "emissions_location_kg", "emissions_market_kg", "embodied_kg", "cost")
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


def amount_figures(comparison: Comparison) -> tuple[Figure, ...]:
    """Return all amounts of a comparison as figures, without formula and inputs (``derivations``).

    Args:
        comparison: Of a study.
    """
    figures: list[Figure] = []
    for prefix, words, amounts in _groups(comparison):
        if amounts is not None:
            figures += [
                _figure(f"{prefix}.{name_of(n)}", getattr(amounts, n), f"{_WORDS[n]}{words}")
                for n in _AMOUNTS
            ]
    for prefix, words, found in _earned(comparison):
        for one in found:
            at = f"{prefix}break_even.{one.measure}"
            figures.append(_figure(f"{at}.effort", one.effort, f"effort{words}"))
            figures.append(_figure(f"{at}.saving", one.saving_per_unit, f"saving of one unit{words}"))
    return tuple(figures)


def identified_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON whose amounts hold the ids that ``explain`` takes.

    Args:
        comparison: Of a study.
    """
    shape = comparison_json(comparison)
    ids = slugs([comparison.study.baseline, *(s.step for s in comparison.steps)])
    _mark(shape["baseline_amounts"], "baseline")
    _mark(shape["final_amounts"], "final")
    _mark(shape["total"]["savings"], "total.savings")
    for whose, amounts in shape["effort"].items():
        _mark(amounts, f"effort.{whose}")
    _mark_earned(shape["break_even"], "")
    for step in shape["steps"]:
        at = f"step.{ids[step['step']]}"
        _mark(step["amounts"], at)
        for kind in ("savings", "would_have", "effort"):
            _mark(step[kind], f"{at}.{kind}")
        _mark_earned(step["break_even"], f"{at}.")
        method = comparison.attribution_method
        for end, amount in _PARTS.items():
            _set(step["attribution"].get(f"{method}_{end}"), f"{at}.attribution.{name_of(amount)}")
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


def _figure(figure_id: str, estimate: Estimate, label: str) -> Figure:
    return Figure(figure_id=figure_id, estimate=estimate, label=label)


def _mark(amounts: dict[str, Any], prefix: str) -> None:
    for name in _AMOUNTS:
        _set(amounts.get(name), f"{prefix}.{name_of(name)}")


def _mark_earned(found: list[dict[str, Any]], prefix: str) -> None:
    for one in found:
        at = f"{prefix}break_even.{one['measure']}"
        _set(one["effort"], f"{at}.effort")
        _set(one["saving_per_unit"], f"{at}.saving")


def _set(estimate: dict[str, Any] | None, figure_id: str) -> None:
    if estimate is not None:
        estimate["id"] = figure_id
