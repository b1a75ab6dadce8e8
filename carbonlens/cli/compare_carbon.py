"""How what a comparison saves in carbon and money is put into words, and why it is unknown."""

from __future__ import annotations

from typing import NamedTuple

from carbonlens.cli import output
from carbonlens.cli.compare_amounts import per, saved_per
from carbonlens.domain.comparison import Amounts, Comparison
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Factor
from carbonlens.reporting import format as fmt

_PLACE_WIDTH = 30


def carbon_text(comparison: Comparison, total: Amounts) -> str:
    """Return what is saved in carbon, with place and factor beside it.

    Args:
        comparison: The result.
        total: What the accepted path saves.
    """
    vector = comparison.vector
    no_price = "" if total.cost.value is not None else ", and no price, so no cost"
    if vector.location is None:
        missing = "place unknown" if vector.place is None and vector.market is None else "no location factor"
        return f"{missing}, so no carbon figure{no_price} (--assumptions)"
    example = ", example" if vector.example else ""
    place = output.clip(vector.place or vector.location.zone, _PLACE_WIDTH)
    where = f"({place}: {_factor(vector.location)}{example})"
    end = "; no price, so no cost" if no_price else ""
    words, units = saved_per(comparison)
    if _is_open(total.emissions_location_kg):
        text = f"carbon saved{words}: unknown, as {_why_no_carbon(comparison)}"
        return f"{text}{_before_and_after(comparison)} {where}{end}"
    figures = f"{_mass(total.emissions_location_kg, units)} location-based"
    if total.emissions_market_kg.value is not None:
        figures += f", {_mass(total.emissions_market_kg, units)} market-based"
    return f"carbon saved{words}: {figures} {where}{end}"


def cost_text(comparison: Comparison, total: Amounts) -> str:
    """Return what is saved in money; empty where nobody prices it."""
    cost = total.cost
    if cost.value is None:
        return ""
    if _is_open(cost):
        return f"cost saved{per(comparison)}: unknown, as {_why_no_cost(comparison)}"
    words, units = saved_per(comparison)
    printed = fmt.money(cost.scale(units, cost.unit))
    return f"cost saved{words}: {printed.text} {printed.interval}".rstrip()


def _is_open(amount: Estimate) -> bool:
    return amount.value is None or amount.state == "unknown"


def _why_no_carbon(comparison: Comparison) -> str:
    """Return why carbon saved is unknown: the difference of lower bounds bounds nothing."""
    return " and ".join(_around_the_meter(comparison)) or "carbon of some runs is a lower bound"


def _why_no_cost(comparison: Comparison) -> str:
    """Return why money saved is unknown: the same, or a price or what it holds for."""
    vector = comparison.vector
    reasons = []
    if vector.electricity is None:
        reasons.append("no price of electricity is stated ([electricity])")
    elif vector.electricity.amount:
        reasons += _around_the_meter(comparison)
    if vector.machine is None:
        reasons.append("no price of machine hours is stated ([machine]; amount 0 where they cost nothing)")
    elif vector.machine.amount and any(a.cpu is None for a in _arms(comparison)):
        reasons.append("the runs do not tell the CPU time that machine hours are made of")
    return " and ".join(reasons) or "the cost of some runs is a lower bound"


class _Arm(NamedTuple):
    """What stands around the energy of an arm of the saving."""

    energy_j: Estimate
    boundary: str | None
    cpu: float | None


def _arms(comparison: Comparison) -> list[_Arm]:
    """Return both ends of the path: what is saved is their difference, and effort is no part of it."""
    end = comparison.path[-1] if comparison.path else None
    ends = [comparison.baseline_metrics, *(s.metrics for s in comparison.steps if s.step == end)]
    known = [m for m in ends if m is not None]
    return [_Arm(m.energy_per_unit_j, m.boundary, m.cpu_s_per_unit.value) for m in known]


def _around_the_meter(comparison: Comparison) -> list[str]:
    """Return what is missing between the energy of the arms and that of the facility."""
    vector, arms = comparison.vector, _arms(comparison)
    reasons = []
    if any(_is_open(a.energy_j) or a.energy_j.state == "unbounded" for a in arms):
        reasons.append("a part of the energy of a run is unknown")
    if any(a.boundary is None for a in arms):
        reasons.append("the runs do not state the boundary of their energy")
    if any(a.boundary == "device" for a in arms) and vector.host_overhead is None:
        reasons.append("energy of devices leaves out the host around them ([facility] host_overhead)")
    if any(a.boundary in ("device", "it") for a in arms) and vector.pue is None:
        reasons.append("the PUE of the place is unknown ([facility] pue)")
    return reasons


def _before_and_after(comparison: Comparison) -> str:
    """Return the lower bounds of both ends, which are known."""
    ends = (comparison.baseline_amounts, comparison.final_amounts)
    kept = [e.emissions_location_kg for e in ends if e is not None]
    if len(kept) < 2 or any(e.value is None or e.state != "unbounded" for e in kept):
        return ""
    before, after = (_mass(e, saved_per(comparison)[1]) for e in kept)
    return f"; {before} before, {after} after"


def _mass(mass: Estimate, units: float) -> str:
    printed = fmt.mass(mass.scale(units, mass.unit))
    return f"{printed.text} {printed.interval}".strip()


def _factor(factor: Factor) -> str:
    grams = fmt.plain(Estimate(value=factor.value_kg_per_kwh * 1000, unit="g/kWh"), "g/kWh").text
    return f"{grams}, {factor.period}"
