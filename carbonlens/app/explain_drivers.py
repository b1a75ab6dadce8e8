"""Use case part: the bridge between two periods that an id belongs to, made again as it was asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import msgspec

from carbonlens.app.drivers import make_drivers
from carbonlens.app.drivers_reading import Work, runs_id
from carbonlens.app.drivers_savings import make_register
from carbonlens.app.statement import Made
from carbonlens.domain.drivers import Measure
from carbonlens.domain.drivers_savings import Adjustment
from carbonlens.domain.figure import Figure
from carbonlens.factors.store import FactorSet

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


def drivers_of(
    name: str,
    *,
    ledger: str | Path | None,
    inventory: str | Path | None,
    factors: str | Path | FactorSet | None,
) -> DriversFigures | None:
    """Return the drivers, or the register, that an id belongs to; ``None`` for another id.

    Args:
        name: The id.
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        inventory: The inventory folder, found likewise.
        factors: The user's own factors, found likewise, or a whole set.

    Raises:
        SelectionError: If a period holds no runs.
    """
    options: dict[str, Any] = {"ledger": ledger, "inventory": inventory, "factors": factors}
    match = OF_INITIATIVES.fullmatch(name)
    if match is not None:
        return _of_register(match, options)
    asked = question_of(name)
    if asked is None:
        return None
    made = make_drivers(
        asked.period,
        asked.against,
        by=asked.by,
        measures=(asked.measure,),
        same=asked.same,
        listed=True,
        **options,
    )
    return DriversFigures(
        figures=made.drivers.figures,
        runs_of={name: held for work in made.works for name, held in _runs_of(work).items()},
        statements=(made.before, made.after),
    )


def _of_register(match: re.Match[str], options: dict[str, Any]) -> DriversFigures:
    """Return the register that an id names, with its adjustment as one."""
    stated = []
    if match["kwh"] is not None:
        why = "adjusted as the id says"
        stated.append(Adjustment(initiative_id=match["name"], kwh=float(match["kwh"]), why=why))
    # Without a baseline none was found: it is looked for as before.
    against = None if match["against"] == "none" else match["against"]
    by = match["by"]
    made = make_register(match["period"], against, by=by, adjustments=stated, **options)
    return DriversFigures(figures=made.register.figures, runs_of=made.runs_of, statements=(made.made,))


def _runs_of(work: Work) -> dict[str, tuple[str, ...]]:
    return {runs_id(work, unit, name): held for (unit, name), held in work.runs.items()}
