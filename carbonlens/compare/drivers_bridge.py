"""Bridge between two periods: the change of a figure by volume, mix, place, energy, PUE, grid and price.

Each row is the work of one class at one site, within one functional unit:
``quantity = volume * mix * place * energy_kwh per unit * pue * factor``, where the volume is that of
the unit, mix the class's share in it, place the site's share in the class. Volumes of different
units are never added; effects are, and energies that are lower bounds have a bridge of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from carbonlens.compare.drivers_errors import FactorError, Moved, moved
from carbonlens.domain.drivers import NO_UNIT, Bridge, Change, Driver, Effect, Measure, Part
from carbonlens.domain.estimate import Estimate, add, combined_grade
from carbonlens.domain.units import State

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

REMAINDER: Final = 1e-9
"""Share of the larger total that rounding may leave of a change."""

_CHAIN: Final[tuple[Driver, ...]] = ("volume", "mix", "place", "energy", "pue")
_ENERGY, _PUE, _LAST = 3, 4, 5
_UNCOUNTED: Final = "uncounted"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one row in one period.

    Attributes:
        units: Work done; ``None`` where none is counted.
        it_kwh: Its IT energy, or what is nearest to it where that is unknown.
        facility_kwh: Its facility energy.
        amount: The quantity that is explained.
    """

    units: float | None
    it_kwh: Estimate
    facility_kwh: Estimate
    amount: Estimate

    @property
    def is_least(self) -> bool:
        """Whether its energy is known as a lower bound only."""
        return self.facility_kwh.state != "known"

    @property
    def is_known(self) -> bool:
        """Whether all of its quantity is known, or all that a lower bound holds."""
        amount = self.amount
        energies = self.facility_kwh.value is not None and self.it_kwh.value is not None
        return energies and amount.value is not None and (self.is_least or amount.state == "known")


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One row: the work of a class at a site, in both periods; ``None`` where there is none."""

    unit: str
    name: str
    site: str
    before: Side | None
    after: Side | None

    @property
    def sides(self) -> tuple[Side, ...]:
        """Those that there are."""
        return tuple(s for s in (self.before, self.after) if s is not None)


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """A part of both totals that no driver explains."""

    name: str
    before: Estimate
    after: Estimate


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What a bridge leads from and to, with what of them no row holds."""

    before: Estimate
    after: Estimate
    beside: tuple[Beside, ...] = ()


class _Rows(NamedTuple):
    """Rows as arrays: factors before and after, classes as groups, and names."""

    cells: Sequence[Cell]
    effects: Moved
    classes: Sequence[tuple[str, str]]
    sources: Sequence[str]


def names_of(measure: Measure) -> tuple[Driver, ...]:
    """Return the drivers of a measure, in order."""
    if measure == "energy":
        return _CHAIN
    return (*_CHAIN, "price" if measure == "cost" else "grid")


def is_comparable(cell: Cell, *, is_least: bool) -> bool:
    """Tell whether a row is known alike in both periods: it is a row of this bridge then."""
    return all(s.is_known and s.is_least == is_least for s in cell.sides)


def bridge(
    cells: Iterable[Cell],
    totals: Totals,
    measure: Measure,
    *,
    is_least: bool = False,
    changes: Sequence[Change] = (),
) -> Bridge:
    """Return the bridge from one period's total to the other's.

    Args:
        cells: All rows; those of the other kind of energy are left out.
        totals: As the statements of both periods have them.
        measure: What is explained.
        is_least: Whether the energies are those known as lower bounds.
        changes: Of the work's names, to be told beside.
    """
    every = list(cells)
    rows = _rows([c for c in every if is_comparable(c, is_least=is_least)], measure)
    unit, drivers = totals.before.unit, names_of(measure)
    state: State = "unbounded" if is_least else "known"
    ends = (totals.before, totals.after)
    grade = combined_grade((e.grade, e.value or 0.0) for e in ends)
    parts, classes = _parts(rows, drivers, unit, state)
    counted = [i for i, (u, _) in enumerate(rows.classes) if u != NO_UNIT]
    effects = []
    for k, name in enumerate(drivers):
        groups = counted if name == "energy" else range(len(rows.classes))
        effects.append(
            Effect(
                name=name,
                change=rows.effects.estimate(k, list(groups), rows.sources, unit, grade=grade, state=state),
            )
        )
    if len(counted) < len(rows.classes):
        others = [i for i in range(len(rows.classes)) if i not in set(counted)]
        change = rows.effects.estimate(_ENERGY, others, rows.sources, unit, grade=grade, state=state)
        effects.append(Effect(name=_UNCOUNTED, change=change))
    effects += [Effect(name=b.name, change=_change(b.before, b.after)) for b in totals.beside]
    apart = _basis(every, unit, is_least=is_least)
    effects += [apart] if apart is not None else []
    change = _change(*ends)
    left = math.fsum((change.value or 0.0, *(-(e.change.value or 0.0) for e in effects)))
    return Bridge(
        measure=measure,
        unit=unit,
        is_least=is_least,
        method=rows.effects.method,
        before=totals.before,
        after=totals.after,
        change=change,
        effects=tuple(effects),
        remainder=left,
        parts=tuple(parts),
        classes=tuple(classes),
        changes=tuple(changes),
    )


def closes(made: Bridge) -> bool:
    """Tell whether a bridge's remainder is within rounding."""
    largest = max(abs(made.before.value or 0.0), abs(made.after.value or 0.0))
    return abs(made.remainder) <= REMAINDER * largest


def nothing(unit: str) -> Estimate:
    """Return the quantity of work that is not there: exactly none."""
    return Estimate(value=0.0, unit=unit)


def _change(before: Estimate, after: Estimate) -> Estimate:
    """Return a difference; of lower bounds it is one of known parts, and reads so."""
    change = after.minus(before)
    if change.value is not None and change.state == "unknown":
        return replace(change, state="unbounded")
    return change


def _basis(cells: Iterable[Cell], unit: str, *, is_least: bool) -> Effect | None:
    """Return what a total gains and loses by rows that are known in another way in the other period."""
    apart = [c for c in cells if not is_comparable(c, is_least=is_least)]
    sums = []
    for sides in ([c.before for c in apart], [c.after for c in apart]):
        held = [s.amount for s in sides if s is not None and s.is_least == is_least]
        known = [a for a in held if a.value is not None]
        sums.append(add(known, unit) if known else nothing(unit))
    if not any(s.value for s in sums):
        return None
    return Effect(name="basis", change=_change(*sums))


def _parts(rows: _Rows, drivers: Sequence[Driver], unit: str, state: State) -> tuple[list[Part], list[Part]]:
    units = list(dict.fromkeys(u for u, _ in rows.classes))
    by_class: dict[tuple[str, str | None], list[Cell]] = {}
    by_unit: dict[tuple[str, str | None], list[Cell]] = {}
    for cell in rows.cells:
        by_class.setdefault((cell.unit, cell.name), []).append(cell)
        by_unit.setdefault((cell.unit, None), []).append(cell)
    numbers = {key: [i] for i, key in enumerate(rows.classes)}
    of_units = {u: [i for i, (name, _) in enumerate(rows.classes) if name == u] for u in units}

    def part(key: tuple[str, str | None], held: Sequence[Cell], groups: Sequence[int]) -> Part:
        before, after = (_sum([getattr(c, n) for c in held], unit, state) for n in ("before", "after"))
        grade = combined_grade((e.grade, e.value or 0.0) for e in (before, after))
        found = []
        for k, name in enumerate(drivers):
            told = _UNCOUNTED if key[0] == NO_UNIT and name == "energy" else name
            if key[0] == NO_UNIT and name in _CHAIN[:_ENERGY]:
                continue
            effect = rows.effects.estimate(k, groups, rows.sources, unit, grade=grade, state=state)
            found.append(Effect(name=told, change=effect))
        return Part(
            unit=key[0],
            name=key[1],
            volumes=(_volume([c.before for c in held]), _volume([c.after for c in held])),
            before=before,
            after=after,
            effects=tuple(found),
        )

    parts = [part(key, held, of_units[key[0]]) for key, held in by_unit.items()]
    classes = [part(key, held, numbers[key[0], str(key[1])]) for key, held in by_class.items()]
    return parts, classes


def _sum(sides: Sequence[Side | None], unit: str, state: State) -> Estimate:
    held = [s.amount for s in sides if s is not None]
    return add(held, unit) if held else replace(nothing(unit), state=state)


def _volume(sides: Sequence[Side | None]) -> float | None:
    held = [s.units for s in sides if s is not None and s.units is not None]
    return math.fsum(held) if held else None


def _rows(cells: Sequence[Cell], measure: Measure) -> _Rows:
    """Return rows as arrays with their effects by class."""
    import numpy as np

    factors = len(names_of(measure))
    before, after = (_factors(cells, n, factors) for n in ("before", "after"))
    classes = list(dict.fromkeys((c.unit, c.name) for c in cells))
    number = {key: i for i, key in enumerate(classes)}
    group = np.array([number[c.unit, c.name] for c in cells], dtype=np.intp)
    sources: dict[str, int] = {}
    errors = {
        (j, t): _error([getattr(c, n) for c in cells], j, sources)
        for t, n in enumerate(("before", "after"))
        for j in range(_ENERGY, factors)
    }
    effects = moved(before, after, errors, group, (len(classes), len(sources)))
    return _Rows(cells, effects, classes, list(sources))


def _factors(cells: Sequence[Cell], side: str, factors: int) -> Array:
    """Return factors by rows; NaN where a factor does not exist."""
    import numpy as np

    held: list[Side | None] = [getattr(c, side) for c in cells]
    units: dict[str, float] = {}
    classes: dict[tuple[str, str], float] = {}
    for cell, one in zip(cells, held, strict=True):
        work = 0.0 if one is None else one.units or 0.0
        units[cell.unit] = units.get(cell.unit, 0.0) + work
        classes[cell.unit, cell.name] = classes.get((cell.unit, cell.name), 0.0) + work
    table = np.full((factors, len(cells)), np.nan)
    for i, (cell, one) in enumerate(zip(cells, held, strict=True)):
        q = 0.0 if one is None else one.units or 0.0
        it, facility, amount = (
            (0.0, 0.0, 0.0)
            if one is None
            else (one.it_kwh.value or 0.0, one.facility_kwh.value or 0.0, one.amount.value or 0.0)
        )
        if cell.unit == NO_UNIT:
            table[:4, i] = 1.0, 1.0, 1.0, it
        else:
            table[0, i] = units[cell.unit]
            table[1, i] = _ratio(classes[cell.unit, cell.name], units[cell.unit])
            table[2, i] = _ratio(q, classes[cell.unit, cell.name])
            table[_ENERGY, i] = _ratio(it, q)
        table[_PUE, i] = _ratio(facility, it)
        if factors > _LAST:
            table[_LAST, i] = _ratio(amount, facility)
    return table


def _ratio(a: float, b: float) -> float:
    return a / b if b else math.nan


def _error(sides: Sequence[Side | None], j: int, sources: dict[str, int]) -> FactorError:
    """Return the relative errors of a factor: those of its numerator that its denominator has not."""
    import numpy as np

    random, wide = np.zeros(len(sides)), np.zeros(len(sides), dtype=bool)
    rows: list[int] = []
    numbers: list[int] = []
    relative: list[float] = []
    for i, side in enumerate(sides):
        if side is None:
            continue
        chain = (None, side.it_kwh, side.facility_kwh, side.amount)
        above, below = chain[j - _ENERGY + 1], chain[j - _ENERGY]
        if above is None or not above.value:
            continue
        of_below = _relative(below)
        own = _relative(above)
        for name in {**own, **of_below}:
            u = own.get(name, 0.0) - of_below.get(name, 0.0)
            if u:
                rows.append(i)
                numbers.append(sources.setdefault(name, len(sources)))
                relative.append(u)
        rest = (above.u_random / above.value) ** 2
        if below is not None and below.value:
            rest -= (below.u_random / below.value) ** 2
        random[i] = math.sqrt(max(rest, 0.0))
        wide[i] = above.has_unknown_width and not (below is not None and below.has_unknown_width)
    return FactorError(random, np.array(rows, np.intp), np.array(numbers, np.intp), np.array(relative), wide)


def _relative(estimate: Estimate | None) -> Mapping[str, float]:
    if estimate is None or not estimate.value:
        return {}
    return {name: u / estimate.value for name, u in estimate.u_by_source.items()}
