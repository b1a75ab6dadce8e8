"""From energy and core hours to emissions, embodied emissions and cost.

What is unknown stays unknown and is said in a Finding; a figure that lacks a
part is a lower bound (state ``unbounded``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from carbonlens.accounting import formulas
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

    Device energy lacks the host (power supply, fans, board), so its facility
    figure is "at least device x PUE".

    Args:
        energy: Energy in joules, at ``boundary``.
        boundary: What the joules include.
        vector: Supplies the PUE.
    """
    if energy.value is None:
        return unknown("kWh"), (
            _finding(
                "CL301",
                "energy is unknown, and with it emissions and the cost of electricity",
                "measure it with a sensor, or import a measured figure",
            ),
        )
    kwh = energy.scale(formulas.energy_kwh(1.0), "kWh")
    if boundary == "facility":
        return kwh, ()
    if boundary is None:
        return _lower_bound(kwh), (
            _finding(
                "CL302",
                "the energy's boundary is not stated: no PUE is applied, and figures made "
                "from it are lower bounds",
                "state device, it or facility with the runs",
            ),
        )
    findings: list[Finding] = []
    if boundary == "device":
        kwh = _lower_bound(kwh)
        findings.append(
            _finding(
                "CL303",
                "device energy does not hold the host (power supply, fans, board): figures "
                "made from it are lower bounds",
                "add a wall or BMC reading, or a sourced host overhead",
            )
        )
    if vector.pue is None:
        findings.append(
            _finding(
                "CL304",
                "the site's PUE is unknown: building overhead is left out, and figures are lower bounds",
                "state pue with its source; 1.0 where there is no building overhead",
            )
        )
        return _lower_bound(kwh), tuple(findings)
    pue = _exact_or(vector.pue, vector.pue_u_relative, "pue", "1")
    return propagate(formulas.facility_kwh, kwh, pue, "kWh"), tuple(findings)


def propagate(formula: Callable[[Any, Any], Any], a: Estimate, b: Estimate, unit: str) -> Estimate:
    """Apply a formula that is a product of its two arguments to estimates.

    A product of two arguments is their product times what the formula makes of
    two ones, so its errors are those of the product (JCGM 100:2008, 5.1.2,
    first order) and the formula need not be written again. An input without an
    interval leaves the result without one.

    Args:
        formula: Bilinear in its arguments, for example ``facility_kwh``.
        a: First argument.
        b: Second argument; a source it shares with ``a`` is one error.
        unit: Unit of the result.
    """
    product = a.times(b, unit).scale(float(formula(1.0, 1.0)), unit)
    if a.value is None or b.value is None:
        return product
    return replace(product, value=float(formula(a.value, b.value)))


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
    return propagate(formulas.embodied_kg, core_hours, rate, "kg"), ()


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
    return propagate(formulas.machine_cost, core_hours, rate, currency), ()


def _priced(formula: Callable[[Any, Any], Any], quantity: Estimate, rate: Estimate, unit: str) -> Estimate:
    """Return a quantity at a rate; at a rate of zero any quantity amounts to nothing, known or not."""
    return _nothing(unit) if rate.value == 0 else propagate(formula, quantity, rate, unit)


def _nothing(unit: str) -> Estimate:
    return Estimate(value=0.0, unit=unit, bounds=(0.0, 0.0))


def _exact_or(value: float, u_relative: float, source: str, unit: str) -> Estimate:
    """Return a factor as an estimate whose one error source is named after it."""
    sources = {source: value * u_relative} if u_relative else {}
    return Estimate(value=value, unit=unit, u_by_source=sources)


def _lower_bound(estimate: Estimate) -> Estimate:
    return replace(estimate, state="unbounded")


def _finding(code: str, message: str, mend: str, *, severity: Severity = "warning") -> Finding:
    return Finding(code=code, severity=severity, message=message, mend=mend)
