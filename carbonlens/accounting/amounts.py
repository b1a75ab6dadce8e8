"""From energy and core hours to emissions, embodied emissions and cost.

What is unknown stays unknown and is said in a Finding; a figure that lacks a
part is a lower bound (state ``unbounded``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from carbonlens.accounting import boundaries, formulas
from carbonlens.accounting.boundaries import Overheads
from carbonlens.accounting.propagation import stated, through
from carbonlens.domain.comparison import Amounts
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.factor import Embodied, Factor, Price, Vector
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.units import Boundary
from carbonlens.errors import IncomparableError

NO_CURRENCY = "XXX"
"""ISO 4217 code for "no currency": the unit of a cost that nobody priced."""


def account(
    energy: Estimate,
    boundary: Boundary | None,
    core_hours: Estimate | None,
    vector: Vector,
) -> tuple[Amounts, tuple[Finding, ...]]:
    """Return what an energy and its core hours amount to under one vector.

    Args:
        energy: Energy in joules, at ``boundary``.
        boundary: What the joules include; ``None`` when the source does not say.
        core_hours: Core hours used; ``None`` when unknown.
        vector: The declared factors and prices.

    Returns:
        The amounts, and one Finding per part that is unknown or a lower bound.

    Raises:
        IncomparableError: If the vector's prices are in two currencies.
    """
    facility, findings = facility_energy(energy, boundary, vector)
    location, of_location = _emissions(facility, vector.location, "location")
    market, of_market = _emissions(facility, vector.market, "market")
    embodied, of_embodied = _embodied(core_hours, vector.embodied)
    cost, of_cost = _cost(facility, core_hours, vector)
    amounts = Amounts(
        energy_j=energy,
        emissions_location_kg=location,
        emissions_market_kg=market,
        embodied_kg=embodied,
        cost=cost,
    )
    return amounts, (*findings, *of_location, *of_market, *of_embodied, *of_cost)


def facility_energy(
    energy: Estimate, boundary: Boundary | None, vector: Vector
) -> tuple[Estimate, tuple[Finding, ...]]:
    """Return facility energy in kWh; a lower bound where a part of it is unknown.

    Device energy lacks the host (power supply, fans, board), so without a stated
    host overhead its facility figure is "at least device x PUE".

    Args:
        energy: Energy in joules, at ``boundary``.
        boundary: What the joules include.
        vector: Supplies PUE and host overhead.
    """
    pue = None if vector.pue is None else _exact_or(vector.pue, vector.pue_u_relative, "pue", "1")
    host = None
    if vector.host_overhead is not None:
        host = stated(vector.host_overhead, vector.host_overhead_u_relative, "host_overhead", "1")
    return boundaries.facility_energy(energy, boundary, Overheads(pue=pue, host=host))


def _emissions(
    facility: Estimate, factor: Factor | None, method: str
) -> tuple[Estimate, tuple[Finding, ...]]:
    if factor is None:
        code = "CL305" if method == "location" else "CL306"
        return unknown("kg"), (
            _finding(
                code,
                f"no {method}-based emission factor: {method}-based emissions are unknown",
                f"state a {method}-based factor with its zone, period and source",
            ),
        )
    rate = _exact_or(factor.value_kg_per_kwh, factor.u_relative, factor.factor_id, "kg/kWh")
    return _priced(formulas.emissions_kg, facility, rate, "kg"), ()


def _embodied(core_hours: Estimate | None, embodied: Embodied | None) -> tuple[Estimate, tuple[Finding, ...]]:
    if embodied is None:
        return unknown("kg"), (
            _finding(
                "CL307",
                "no embodied figure of the hardware: embodied emissions are unknown",
                "state embodied kg per core hour with its source",
                severity="info",
            ),
        )
    rate = _exact_or(embodied.value_kg_per_core_hour, embodied.u_relative, embodied.factor_id, "kg/core_hour")
    if rate.value == 0:
        return _nothing("kg"), ()
    if core_hours is None or core_hours.value is None:
        return unknown("kg"), (
            _finding(
                "CL308",
                "core hours are unknown, and with them embodied emissions",
                "record CPU time with the runs",
            ),
        )
    return through(formulas.embodied_kg, core_hours, rate, unit="kg"), ()


def _cost(
    facility: Estimate, core_hours: Estimate | None, vector: Vector
) -> tuple[Estimate, tuple[Finding, ...]]:
    currency = vector.currency
    if currency is None:
        return unknown(NO_CURRENCY), (
            _finding(
                "CL309",
                "no price of electricity or of machine hours: cost is unknown",
                "state prices with their currency, period and source",
            ),
        )
    for price in (vector.electricity, vector.machine):
        if price is not None and price.currency != currency:
            raise IncomparableError(
                f"the price vector mixes {currency} and {price.currency}",
                where=price.price_id,
                mend="state both prices in one currency; rates are never guessed",
            )
    electricity, of_electricity = _electricity(facility, vector.electricity, currency)
    machine, of_machine = _machine(core_hours, vector.machine, currency)
    return add((electricity, machine), currency), (*of_electricity, *of_machine)


def _electricity(
    facility: Estimate, price: Price | None, currency: str
) -> tuple[Estimate, tuple[Finding, ...]]:
    if price is None:
        return unknown(currency), (
            _finding(
                "CL310",
                "no price of electricity: cost holds machine hours only and is a lower bound",
                "state a price per kWh; 0 where the machine price includes it",
            ),
        )
    rate = _exact_or(float(price.amount), price.u_relative, price.price_id, f"{currency}/kWh")
    return _priced(formulas.electricity_cost, facility, rate, currency), ()


def _machine(
    core_hours: Estimate | None, price: Price | None, currency: str
) -> tuple[Estimate, tuple[Finding, ...]]:
    if price is None:
        return unknown(currency), (
            _finding(
                "CL311",
                "no price of machine hours: cost holds electricity only and is a lower bound",
                "state a price per core hour; 0 where the machine costs nothing more",
            ),
        )
    rate = _exact_or(float(price.amount), price.u_relative, price.price_id, f"{currency}/core_hour")
    if rate.value == 0:
        return _nothing(currency), ()
    if core_hours is None or core_hours.value is None:
        return unknown(currency), (
            _finding(
                "CL312",
                "core hours are unknown: cost holds electricity only and is a lower bound",
                "record CPU time with the runs",
            ),
        )
    return through(formulas.machine_cost, core_hours, rate, unit=currency), ()


def _priced(formula: Callable[[Any, Any], Any], quantity: Estimate, rate: Estimate, unit: str) -> Estimate:
    """Return a quantity at a rate; at a rate of zero any quantity amounts to nothing, known or not."""
    return _nothing(unit) if rate.value == 0 else through(formula, quantity, rate, unit=unit)


def _nothing(unit: str) -> Estimate:
    return Estimate(value=0.0, unit=unit, bounds=(0.0, 0.0))


def _exact_or(value: float, u_relative: float, source: str, unit: str) -> Estimate:
    """Return a factor as an estimate whose one error source is named after it."""
    sources = {source: value * u_relative} if u_relative else {}
    return Estimate(value=value, unit=unit, u_by_source=sources)


def _finding(code: str, message: str, mend: str, *, severity: Severity = "warning") -> Finding:
    return Finding(code=code, severity=severity, message=message, mend=mend)
