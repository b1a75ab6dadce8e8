"""Rates that two figures of one line imply: kg or money per kWh, with the rate's own errors only."""

from __future__ import annotations

from carbonlens.domain.estimate import Estimate, unknown


def rate_of(amount: Estimate, energy: Estimate) -> Estimate:
    """Return what a kWh comes to, where the amount was made of that energy.

    Errors of the energy are in the amount too, so they cancel by name; the energy's random part is
    the amount's own, and the rate has none.

    Args:
        amount: Emissions or cost of the energy.
        energy: In kWh.
    """
    unit = f"{amount.unit}/kWh"
    if amount.value is None or not energy.value:
        return unknown(unit)
    value = amount.value / energy.value
    names = {**amount.u_by_source, **energy.u_by_source}
    sources = {
        n: (amount.u_by_source.get(n, 0.0) - value * energy.u_by_source.get(n, 0.0)) / energy.value
        for n in names
    }
    wide = amount.has_unknown_width and not energy.has_unknown_width
    return Estimate(
        value=value,
        unit=unit,
        state=amount.state,
        u_by_source={n: u for n, u in sources.items() if u},
        bounds=(None, None) if wide else None,
    )
