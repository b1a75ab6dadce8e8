"""Figures of a register of initiatives: adjusted baseline, measured, saving and claim, each with an id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from carbonlens.domain.drivers_savings import SavingFound
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure

_SAVED: Mapping[str, str] = {
    "energy_kwh": "adjusted baseline less measured, by class of work and site, at the period's PUE",
    "emissions_location_kg": "saving * location_kg / facility_kwh of the period",
    "emissions_market_kg": "saving * market_kg / facility_kwh of the period",
    "money": "saving * cost of electricity / facility_kwh of the period",
}


def prefix_of(found: SavingFound, by: str) -> str:
    """Return what the ids of an initiative's figures begin with.

    What was adjusted stands in it: the same initiative without that has other figures.

    Args:
        found: Of one initiative.
        by: What classes of work are told apart by.
    """
    kwh = sum(a.kwh for a in found.adjustments)
    adjusted = f"~{kwh!r}" if found.adjustments else ""
    name = found.initiative.initiative_id
    return f"initiatives.{found.period}.{found.baseline or 'none'}.{by}.{name}{adjusted}"


def register_figures(
    register: Iterable[SavingFound], by: str, runs: Mapping[str, tuple[str, str]] = {}
) -> tuple[Figure, ...]:
    """Return all numbers of a register.

    Args:
        register: What was found.
        by: What classes of work are told apart by.
        runs: Ids of the lists of runs of baseline and period, by initiative.
    """
    return tuple(f for one in register for f in _of_one(one, by, runs))


def _of_one(one: SavingFound, by: str, runs: Mapping[str, tuple[str, str]]) -> Iterator[Figure]:
    at, title = prefix_of(one, by), one.initiative.title
    for name, estimate in one.claimed.items():
        days = f"{one.days[0]} of 365 days of what is claimed a year"
        yield _figure(f"{at}.claimed.{name}", estimate, f"{title}: claimed of the period", days)
    if not one.savings:
        return
    base, own = runs.get(one.initiative.initiative_id, ("", ""))
    adjusted = tuple(f"{at}.adjustment_{n}_kwh" for n in range(1, len(one.adjustments) + 1))
    for name, stated in zip(adjusted, one.adjustments, strict=True):
        kwh = Estimate(value=stated.kwh, unit="kWh", signed=True, bounds=(None, None))
        yield _figure(name, kwh, f"{title}: not routine, {stated.why}", "")
    yield _figure(
        f"{at}.adjusted_kwh",
        one.adjusted_kwh,
        f"{title}: baseline at the volume, mix, place and PUE of {one.period}",
        "sum over classes of work of energy per unit in the baseline * units * PUE, and adjustments",
        (*filter(None, (base, own)), *adjusted),
    )
    inputs = tuple(filter(None, (own,)))
    measured = f"{title}: measured in {one.period}"
    yield _figure(
        f"{at}.measured_kwh", one.measured_kwh, measured, "energy of its runs, and overheads", inputs
    )
    for name, estimate in one.savings.items():
        inputs = (f"{at}.adjusted_kwh", f"{at}.measured_kwh")
        if name != "energy_kwh":
            inputs = (f"{at}.saving.energy_kwh",)
        yield _figure(
            f"{at}.saving.{name}", estimate, f"{title}: saving of {one.period}", _SAVED[name], inputs
        )


def _figure(
    figure_id: str, estimate: Estimate, label: str, formula: str, inputs: tuple[str, ...] = ()
) -> Figure:
    return Figure(figure_id=figure_id, estimate=estimate, label=label, formula=formula, inputs=inputs)
