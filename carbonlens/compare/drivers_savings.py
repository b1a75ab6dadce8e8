"""Measurement of a saving that is claimed: adjusted baseline minus measured, and how sure that is.

``saving = energy of the baseline at the period's conditions - measured energy +- non-routine
adjustments`` (IPMVP, EVO 10000). Both sides take the period's PUE, factors and prices. How far energy
per unit tells a day's energy is the model's own error: fractional savings uncertainty of ASHRAE
Guideline 14, annex B (code witness: openeemeter/eemeter, opendsm/common/metrics.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from carbonlens.compare.drivers_bridge import Side
from carbonlens.compare.drivers_rates import rate_of
from carbonlens.compare.statistics import t_quantile
from carbonlens.domain.drivers_savings import SavingVerdict, Scatter
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.units import Z_95

K_HOURLY: Final = 1.26
"""Of data by the hour, and of any that is independent of the calendar."""
ACCEPTED: Final = 0.5
"""Share of a saving that its uncertainty may be, at 68 % confidence (ASHRAE Guideline 14)."""
ACCEPTED_AT: Final = 0.68
_DAILY: Final = (-0.00024, 0.03535, 1.00286)
_Z_68: Final = 0.994457883209753
"""Two-sided 68 % quantile of the standard normal distribution."""
_UPPER_95: Final = 0.975

Quantity = Any
"""A float, or an array."""


def adjusted_baseline(fixed: Quantity, per_unit: Quantity, units: Quantity) -> Quantity:
    """Return the energy that the baseline would have needed at other conditions (IPMVP).

    Args:
        fixed: Energy of no work.
        per_unit: Energy of a unit of work.
        units: Work of the reporting period.
    """
    return fixed + per_unit * units


def avoided(adjusted: Quantity, measured: Quantity, non_routine: Quantity = 0.0) -> Quantity:
    """Return a saving: adjusted baseline less measured, with non-routine adjustments (IPMVP)."""
    return adjusted - measured + non_routine


def daily_k(months: float) -> float:
    """Return ASHRAE Guideline 14's constant for data by the day, of so many reporting months."""
    a, b, c = _DAILY
    return a * months * months + b * months + c


def independent_points(points: float, autocorrelation: float) -> float:
    """Return how many independent points as many correlated ones are worth; never more than there are."""
    rho = max(autocorrelation, 0.0)
    return points * (1 - rho) / (1 + rho)


def model_sigma(scatter: Scatter, k: float) -> float | None:
    """Return one sigma of an adjusted baseline as a share of it; ``None`` where too few days tell it.

    Args:
        scatter: Of the baseline.
        k: ``K_HOURLY``, or ``daily_k``.
    """
    n_prime = independent_points(scatter.days, scatter.autocorrelation)
    if n_prime <= 0 or scatter.reporting_days <= 0 or scatter.days <= scatter.classes:
        return None
    within = scatter.days / n_prime * (1 + 2 / n_prime) / scatter.reporting_days
    return k * scatter.cv * math.sqrt(within)


def interval_sigma(scatter: Scatter, k: float) -> float | None:
    """Return the sigma of which 1.96 make the 95 % interval of an adjusted baseline, as a share of it.

    That of few days is Student's, with ``n - p`` degrees of freedom: ``model_sigma * t / 1.96``.

    Args:
        scatter: Of the baseline.
        k: ``K_HOURLY``, or ``daily_k``.
    """
    sigma = model_sigma(scatter, k)
    if sigma is None:
        return None
    return sigma * t_quantile(_UPPER_95, scatter.days - scatter.classes) / Z_95


def fractional_savings_uncertainty(
    scatter: Scatter, saved: float, confidence: float, k: float = K_HOURLY
) -> float | None:
    """Return the uncertainty of a saving as a share of it (ASHRAE Guideline 14, annex B).

    ``k t / F * CV(RMSE) * sqrt(n / n' (1 + 2 / n') / m)``, t two-tailed with ``n - p`` degrees of freedom.

    Args:
        scatter: Of the baseline.
        saved: The saving as a share of the adjusted baseline.
        confidence: Such as 0.68.
        k: ``K_HOURLY``, or ``daily_k``.
    """
    sigma = model_sigma(scatter, k)
    if sigma is None or saved == 0:
        return None
    t = t_quantile((1 + confidence) / 2, scatter.days - scatter.classes)
    return t * sigma / abs(saved)


class Pair(NamedTuple):
    """Work of the reporting period with the baseline's of the same class."""

    baseline: Side
    reporting: Side


class Avoided(NamedTuple):
    """A saving with both sides of it, at the facility."""

    adjusted_kwh: Estimate
    measured_kwh: Estimate
    saving_kwh: Estimate


def adjusted_it_kwh(pair: Pair) -> Estimate:
    """Return IT energy of the reporting period's work at the baseline's energy per unit."""
    units, before = pair.reporting.units or 0.0, pair.baseline.units or 0.0
    return pair.baseline.it_kwh.scale(adjusted_baseline(0.0, 1.0 / before, units), "kWh")


def avoided_kwh(pairs: Sequence[Pair], sigma: float | None, non_routine: float) -> Avoided:
    """Return the saving of some work in facility energy, at the reporting period's PUE.

    Args:
        pairs: One for each class of work at each site.
        sigma: Of the adjusted baseline by its model, as a share of it; nothing is added when ``None``.
        non_routine: Adjustment in kWh.
    """
    adjusted, measured, saved = [], [], []
    for pair in pairs:
        pue = rate_of(pair.reporting.facility_kwh, pair.reporting.it_kwh)
        it = adjusted_it_kwh(pair)
        adjusted.append(it.times(pue, "kWh"))
        measured.append(pair.reporting.facility_kwh)
        saved.append(it.minus(pair.reporting.it_kwh).times(pue, "kWh"))
    whole, rest = add(adjusted, "kWh"), add(saved, "kWh")
    value = (rest.value or 0.0) + non_routine
    spread = (sigma or 0.0) * (whole.value or 0.0)
    return Avoided(
        replace(whole, value=(whole.value or 0.0) + non_routine, u_random=math.hypot(whole.u_random, spread)),
        add(measured, "kWh"),
        replace(rest, value=value, u_random=math.hypot(rest.u_random, spread), signed=True),
    )


def at_rate(saving_kwh: Estimate, amount: Estimate, facility_kwh: Estimate) -> Estimate:
    """Return what a saving of energy comes to in kg or money, at what the period's own energy came to.

    Args:
        saving_kwh: Facility energy.
        amount: Emissions or cost of the period's energy.
        facility_kwh: That energy.
    """
    return saving_kwh.times(rate_of(amount, facility_kwh), amount.unit)


def scatter_of(
    baseline: Mapping[Any, Mapping[Any, tuple[float, float]]], reporting_days: int
) -> Scatter | None:
    """Return how well one energy per unit and class tells the days of a baseline.

    Args:
        baseline: Units and energy by class of work, by day in order.
        reporting_days: Days with work in the reporting period.
    """
    sums: dict[Any, tuple[float, float]] = {}
    for day in baseline.values():
        for name, (units, energy) in day.items():
            held = sums.get(name, (0.0, 0.0))
            sums[name] = (held[0] + units, held[1] + energy)
    rates = {name: energy / units for name, (units, energy) in sums.items() if units > 0}
    left, totals = [], []
    for day in baseline.values():
        known = [(units, energy, rates[name]) for name, (units, energy) in day.items() if name in rates]
        if known:
            left.append(math.fsum(energy - rate * units for units, energy, rate in known))
            totals.append(math.fsum(energy for _, energy, _ in known))
    free, mean = len(left) - len(rates), math.fsum(totals) / len(totals) if totals else 0.0
    if free < 1 or mean <= 0:
        return None
    squares = math.fsum(x * x for x in left)
    shared = math.fsum(a * b for a, b in itertools.pairwise(left))
    return Scatter(
        days=len(left),
        reporting_days=reporting_days,
        classes=len(rates),
        autocorrelation=shared / squares if squares > 0 else 0.0,
        cv=math.sqrt(squares / free) / mean,
    )


def judged(saving: Estimate, claimed: float | None) -> tuple[SavingVerdict, str]:
    """Return whether a claim holds, and why.

    Confirmed: the saving is above 0 with 95 % confidence, its uncertainty is less than half of it with
    68 % (ASHRAE Guideline 14), and the claim is not above its interval. Not confirmed: the claim is
    above the interval, or all of the interval is below 0. Else undetermined.

    Args:
        saving: Of the period.
        claimed: For the same time and in the same unit; ``None`` where nothing is.
    """
    if saving.value is None or saving.state == "unknown":
        return "undetermined", "the saving is not known"
    low, high = saving.low, saving.high
    if low is None or high is None:
        return "undetermined", "nobody knows how wide the saving is"
    if high <= 0:
        return "not confirmed", "more was used than the adjusted baseline says"
    if claimed is not None and claimed > high:
        return "not confirmed", "less is saved than is claimed"
    if low <= 0:
        return "undetermined", "the interval holds no saving too"
    if saving.u_total * _Z_68 >= ACCEPTED * saving.value:
        return "undetermined", "the saving is too uncertain: half of it or more, at 68 %"
    if claimed is None:
        return "confirmed", "a saving is shown; none is claimed in energy"
    return "confirmed", "the claim is not above what is saved"
