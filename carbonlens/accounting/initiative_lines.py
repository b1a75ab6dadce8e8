"""Initiatives of a period: what each claims to save, and what was verified, beside the statement.

What is stated for a year stays an amount a year. The statement holds what was used: a saving is
in it already, and is never subtracted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.domain.initiative import Initiative, Saving

Said = Literal["claimed", "verified"]

SAID: Final[tuple[Said, ...]] = ("claimed", "verified")

_HOW: Final[Mapping[Said, str]] = {
    "claimed": "as its owner states it, a year; in no total",
    "verified": "as it was verified, a year; in no total",
}


def in_effect(initiatives: Iterable[Initiative], start: str, end: str) -> tuple[Initiative, ...]:
    """Return the initiatives that have an effect in a period; planned ones have none.

    Args:
        initiatives: Of the inventory.
        start: First date of the period.
        end: Date after its last.
    """
    return tuple(
        i for i in initiatives if i.status != "planned" and i.start < end and (i.end or "9") >= start
    )


def savings(saving: Saving | None) -> dict[str, Estimate]:
    """Return what is stated of a saving, by name with its unit; what nobody states is left out.

    Args:
        saving: A year's, claimed or verified.
    """
    if saving is None:
        return {}
    money = saving.money
    stated = {
        "energy_kwh": (saving.energy_kwh, "kWh"),
        "emissions_location_kg": (saving.emissions_location_kg, "kg"),
        "emissions_market_kg": (saving.emissions_market_kg, "kg"),
        "money": (None, "") if money is None else (float(money.amount), money.currency),
    }
    return {
        name: Estimate(value=value, unit=unit, signed=True, bounds=(None, None))
        for name, (value, unit) in stated.items()
        if value is not None
    }


def of_initiative(initiative: Initiative) -> dict[Said, dict[str, Estimate]]:
    """Return what an initiative claims and what was verified of it, a year."""
    return {"claimed": savings(initiative.claimed), "verified": savings(initiative.verified)}


def figure_id(prefix: str, initiative: Initiative, said: Said, name: str) -> str:
    """Return the id of the figure of one saving: ``statement.2026Q1.initiative.int8.claimed.energy_kwh``."""
    return f"{prefix}.initiative.{initiative.initiative_id}.{said}.{name}"


def initiative_figures(initiatives: Iterable[Initiative], prefix: str) -> Iterator[Figure]:
    """Yield each saving as a figure that rests on nothing else.

    Args:
        initiatives: Those in effect.
        prefix: ``statement.<period>``.
    """
    for one in initiatives:
        by = f" by {one.verified_by}" if one.verified_by else ""
        for said, held in of_initiative(one).items():
            for name, estimate in held.items():
                yield Figure(
                    figure_id=figure_id(prefix, one, said, name),
                    estimate=estimate,
                    label=f"{one.title}: {said} saving a year{by if said == 'verified' else ''}",
                    formula=_HOW[said],
                )
