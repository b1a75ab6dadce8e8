"""Use case part: intensities of each quarter's work by functional unit, and SCI of the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.accounting.unit_energy import per_unit
from carbonlens.app.drivers import Source
from carbonlens.app.drivers_reading import Given, Work, read_work, sides
from carbonlens.app.sci import make_sci
from carbonlens.compare.drivers_names import together
from carbonlens.domain.drivers import NO_UNIT, Measure
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.errors import SelectionError, UsageError
from carbonlens.ledger.opening import open_ledger
from carbonlens.reporting.sustainability_input import Score

MOST_UNITS: Final = 3
"""Functional units that a report shows: those with the most energy in the quarter."""

_SCORED: Final = 2
"""Units of which SCI is made, for the quarter alone: it reads the runs once more for each."""

_AMOUNTS: Final[tuple[tuple[str, Measure, str], ...]] = (
    ("energy", "energy", "facility energy"),
    ("location", "carbon-location", "location-based emissions of electricity"),
    ("market", "carbon-market", "market-based emissions of electricity"),
)


def works_of(names: Sequence[str], source: Source, by: str) -> dict[str, Work]:
    """Return the work of each quarter that has a statement, read once.

    Args:
        names: Of the quarters, oldest first.
        source: Ledger, inventory and factors, with the statements.
        by: What classes of work are told apart by.
    """
    with open_ledger(source.ledger) as store:
        given = Given(
            store=store,
            inventory=source.kept.inventory,
            factors=source.factors,
            calendar=source.calendar,
        )
        return {n: read_work(source.held[n], given, by) for n in names if n in source.held}


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """Intensities by unit and quarter, and what making SCI found."""

    scores: tuple[Score, ...]
    findings: tuple[Finding, ...] = ()


def scores_of(works: Mapping[str, Work], source: Source) -> Scores:
    """Return the intensities of all quarters, by unit and quarter, with SCI where it is made.

    Args:
        works: By quarter, oldest first.
        source: Ledger, inventory and factors.
    """
    units = _units(works)
    sci = {(u, n): _sci(u, n, source) for n in tuple(works)[-1:] for u in units[:_SCORED]}
    scores = tuple(
        Score(
            period=name,
            unit=unit,
            figures={
                **dict(_intensities(unit, name, work)),
                **(sci[unit, name][0] if (unit, name) in sci else {}),
            },
        )
        for unit in units
        for name, work in works.items()
    )
    said = dict.fromkeys(f for _, findings in sci.values() for f in findings)
    return Scores(scores=scores, findings=tuple(said))


def intensities_of(name: str, work: Work) -> Iterator[Figure]:
    """Yield the intensities of a quarter by every functional unit that its runs count.

    Args:
        name: Of the quarter.
        work: Of it.
    """
    for unit in dict.fromkeys(u for u, _, _ in work.shares if u != NO_UNIT):
        for _, figure in _intensities(unit, name, work):
            yield figure


def _units(works: Mapping[str, Work]) -> list[str]:
    """Return the units of the last quarter's work, the one with the most energy first."""
    if not works:
        return []
    held: dict[str, float] = {}
    for (unit, _, _), side in sides(tuple(works.values())[-1], "energy").items():
        if unit != NO_UNIT:
            held[unit] = held.get(unit, 0.0) + (side.facility_kwh.value or 0.0)
    return sorted(held, key=lambda u: (-held[u], u))[:MOST_UNITS]


def _intensities(unit: str, name: str, work: Work) -> Iterator[tuple[str, Figure]]:
    prefix = f"intensity.{name}.{unit}"
    known = sides(work, "energy").keys()
    is_in_part = any(k[0] == unit and (k not in known or k in work.least_units) for k in work.shares)
    for key, measure, words in _AMOUNTS:
        own = [s for (u, _, _), s in sides(work, measure).items() if u == unit]
        if not own:
            continue
        whole = together(own)
        if is_in_part:
            # The rest of the work is no sample of all of it.
            whole = msgspec.structs.replace(whole, units=None)
        if key == "energy":
            count = Figure(
                figure_id=f"{prefix}.count",
                estimate=Estimate(value=whole.units, unit="1"),
                label=f"units of work: {unit}",
                formula="sum over the runs of the units that they count",
            )
            yield "count", count
        yield (
            key,
            Figure(
                figure_id=f"{prefix}.{key}",
                estimate=per_unit(whole.amount, whole.units),
                label=f"{words} per {unit}, {name}",
                formula="amount of the runs that count this unit / units",
                inputs=(f"statement.{name}.total.{_OF[key]}", f"{prefix}.count"),
            ),
        )


_OF: Final = {"energy": "facility_kwh", "location": "location_kg", "market": "market_kg"}


def _sci(unit: str, name: str, source: Source) -> tuple[dict[str, Figure], tuple[Finding, ...]]:
    """Return the score of a unit and quarter with its lower bound, and what was found on the way.

    Where there is none, a Finding says why.
    """
    try:
        made = make_sci(
            unit,
            period=name,
            inventory=source.inventory,
            factors=source.factors,
            ledger=source.ledger,
            listed=False,
        )
    except (SelectionError, UsageError) as error:
        why = Finding(
            code="CL300",
            severity="error",
            message=f"no SCI score per {unit} of {name}: {error.what}",
            mend=error.mend,
        )
        return {}, (why,)
    held = {f.figure_id.removeprefix(f"{made.prefix}."): f for f in made.figures}
    figures = {f"sci_{key}": held[key] for key in ("score", "at_least") if key in held}
    return figures, made.findings
