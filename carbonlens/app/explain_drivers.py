"""Use case part: the bridge between two periods that an id belongs to, made again as it was asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, get_args

import msgspec

from carbonlens.app.drivers import Source, explained, refuse_unknown_names
from carbonlens.app.drivers_reading import Work, runs_id
from carbonlens.app.drivers_savings import register_of
from carbonlens.app.statement import Made
from carbonlens.domain.drivers import Measure
from carbonlens.domain.drivers_savings import Adjustment
from carbonlens.domain.figure import Figure

_PERIOD: Final = r"\d{4}(?:Q[1-4]|-\d{2}(?:-\d{2})?)?"
_MEASURES: Final = "|".join(get_args(Measure))
OF_DRIVERS: Final = re.compile(
    rf"drivers\.(?P<period>{_PERIOD})\.(?P<against>{_PERIOD})\.(?P<by>.+?)\.(?P<measure>{_MEASURES})\..+"
)
"""Ids of drivers; a label may hold full stops."""

OF_INITIATIVES: Final = re.compile(
    rf"initiatives\.(?P<period>{_PERIOD})\.(?P<against>{_PERIOD}|none)\.(?P<by>.+?)"
    r"\.(?P<name>[^~]+?)(?:~(?P<kwh>-?[0-9.e+-]+?))?"
    r"\.(?:adjustment_\d+_kwh|adjusted_kwh|measured_kwh|claimed\.\w+|saving\.\w+)"
)
"""Ids of a register; behind ~ stands what was adjusted."""


Works = dict[tuple[str, str, str], tuple[Work, Work]]
"""Works of two periods, by these and by what tells their classes apart."""


class Asked(NamedTuple):
    """What was asked for by an id."""

    period: str
    against: str
    by: str
    measure: Measure
    same: Mapping[str, str]


class DriversFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of drivers, the runs they name, and the statements they lead from and to."""

    figures: tuple[Figure, ...]
    runs_of: Mapping[str, tuple[str, ...]]
    statements: tuple[Made, ...]


def question_of(name: str) -> Asked | None:
    """Return what was asked for by the id of a figure; ``None`` for another id.

    Args:
        name: Such as ``drivers.2026Q3.2026Q2.workload+a=b.energy.volume``.
    """
    match = OF_DRIVERS.fullmatch(name)
    if match is None:
        return None
    by, *pairs = match["by"].split("+")
    measure: Measure = next(m for m in get_args(Measure) if m == match["measure"])
    same = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return Asked(match["period"], match["against"], by, measure, same)


def periods_of(name: str) -> tuple[str, ...]:
    """Return the periods of whose statements the drivers or the register of an id are made.

    Args:
        name: The id.
    """
    match = OF_DRIVERS.fullmatch(name) or OF_INITIATIVES.fullmatch(name)
    return () if match is None else tuple(n for n in (match["period"], match["against"]) if n != "none")


def drivers_of(name: str, source: Source, works: Works) -> DriversFigures | None:
    """Return the drivers, or the register, that an id belongs to; ``None`` for another id.

    Args:
        name: The id.
        source: Ledger, inventory and factors, with statements that were made already.
        works: Works that were read already; those that are read here are added.

    Raises:
        SelectionError: If a period holds no runs.
    """
    match = OF_INITIATIVES.fullmatch(name)
    if match is not None:
        return _of_register(match, source)
    asked = question_of(name)
    if asked is None:
        return None
    key = (asked.period, asked.against, asked.by)
    if key not in works:
        works[key] = source.works(*key, listed=True)
    refuse_unknown_names(works[key], asked.same)
    made = explained(works[key], asked.by, (asked.measure,), same=asked.same, now_us=source.now_us)
    return DriversFigures(
        figures=made.drivers.figures,
        runs_of={name: held for work in made.works for name, held in _runs_of(work).items()},
        statements=(made.before, made.after),
    )


def _of_register(match: re.Match[str], source: Source) -> DriversFigures:
    """Return the register that an id names, with its adjustment as one."""
    stated = []
    if match["kwh"] is not None:
        why = "adjusted as the id says"
        stated.append(Adjustment(initiative_id=match["name"], kwh=float(match["kwh"]), why=why))
    # Without a baseline none was found: it is looked for as before.
    against = None if match["against"] == "none" else match["against"]
    made = register_of(source, match["period"], against, by=match["by"], adjustments=stated)
    return DriversFigures(figures=made.register.figures, runs_of=made.runs_of, statements=(made.made,))


def _runs_of(work: Work) -> dict[str, tuple[str, ...]]:
    return {runs_id(work, unit, name): held for (unit, name), held in work.runs.items()}
