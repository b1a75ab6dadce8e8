"""Names of work in two periods: what is new, what is gone, what goes under another name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from carbonlens.compare.drivers_bridge import Cell, Side, nothing
from carbonlens.domain.drivers import NO_UNIT, Change, Kind
from carbonlens.domain.estimate import Estimate, add

Key = tuple[str, str]
"""Unit and class of work."""

Marks = Mapping[Key, frozenset[str]]
"""What tells a class of work beside its name: ``model llama-8b``."""


def joined(
    before: Mapping[tuple[str, str, str], Side],
    after: Mapping[tuple[str, str, str], Side],
    same: Mapping[str, str] = {},
) -> tuple[Cell, ...]:
    """Return the rows of both periods side by side.

    Args:
        before: By unit, class and site.
        after: Likewise.
        same: Names after of work that goes under another one, by the names before.
    """
    renamed: dict[tuple[str, str, str], list[Side]] = {}
    for (unit, name, site), side in before.items():
        renamed.setdefault((unit, same.get(name, name), site), []).append(side)
    earlier = {key: together(held) for key, held in renamed.items()}
    keys = sorted({*earlier, *after})
    return tuple(
        Cell(unit=k[0], name=k[1], site=k[2], before=earlier.get(k), after=after.get(k)) for k in keys
    )


def with_other_kind(cells: Iterable[Cell], others: Iterable[Cell]) -> tuple[Cell, ...]:
    """Return rows of true figures or of lower bounds, each beside what it is in the other period.

    Work that is a true figure in one period and a lower bound in the other did not begin or end:
    the row says so, and is not compared.

    Args:
        cells: Of the one kind.
        others: Of the other.
    """
    held = {(c.unit, c.name, c.site): c for c in others}
    found = []
    for cell in cells:
        other = held.get((cell.unit, cell.name, cell.site), cell)
        found.append(replace(cell, before=cell.before or other.before, after=cell.after or other.after))
    return tuple(found)


def together(sides: Sequence[Side]) -> Side:
    """Return work of several rows as that of one.

    Args:
        sides: Of one period; at least one.
    """
    if len(sides) == 1:
        return sides[0]
    units = [s.units for s in sides if s.units is not None]
    return Side(
        units=sum(units) if units else None,
        it_kwh=add((s.it_kwh for s in sides), "kWh"),
        facility_kwh=add((s.facility_kwh for s in sides), "kWh"),
        amount=add((s.amount for s in sides), sides[0].amount.unit),
    )


def changes(cells: Iterable[Cell], same: Mapping[str, str] = {}) -> tuple[Change, ...]:
    """Return what of the work stands in one period only, and what was renamed.

    Args:
        cells: All rows of both periods.
        same: Names after by the names before, as they were stated.
    """
    held: dict[Key, list[Cell]] = {}
    for cell in cells:
        held.setdefault((cell.unit, cell.name), []).append(cell)
    return tuple(_found(held, same))


def _found(held: Mapping[Key, Sequence[Cell]], same: Mapping[str, str]) -> Iterator[Change]:
    there = {key: (_is_in(own, "before"), _is_in(own, "after")) for key, own in held.items()}
    old_names = {new: old for old, new in same.items()}
    for (unit, name), own in held.items():
        kind = _kind((unit, name), there)
        if kind is not None:
            before, after = (_amount(own, n) for n in ("before", "after"))
            yield Change(kind=kind, unit=unit, name=name, before=before, after=after)
        elif name in old_names and there[unit, name] == (True, True):
            before, after = (_amount(own, n) for n in ("before", "after"))
            old = old_names[name]
            yield Change(
                kind="retagged", unit=unit, name=old, to=name, evidence="stated", before=before, after=after
            )


def _kind(key: Key, there: Mapping[Key, tuple[bool, bool]]) -> Kind | None:
    """Return in which way a class stands in one period only.

    Where its runs count work in one period and none in the other, that is told once, of the unit.
    """
    unit, name = key
    before, after = there[key]
    if before == after:
        return None
    others = {u: held for (u, n), held in there.items() if n == name and u != unit}
    elsewhere = [held for u, held in others.items() if held == (after, before)]
    if NO_UNIT in others and others[NO_UNIT] == (after, before) and unit != NO_UNIT:
        return "counting_began" if after else "counting_ended"
    if unit == NO_UNIT and elsewhere:
        return None
    return "new" if after else "vanished"


def _is_in(cells: Sequence[Cell], side: str) -> bool:
    return any(getattr(c, side) is not None for c in cells)


def _amount(cells: Sequence[Cell], side: str) -> Estimate:
    sides: list[Side] = [s for s in (getattr(c, side) for c in cells) if s is not None]
    unit = next(s.amount.unit for c in cells for s in c.sides)
    return add((s.amount for s in sides), unit) if sides else nothing(unit)


def alike(found: Iterable[Change], before: Marks, after: Marks) -> tuple[Change, ...]:
    """Return pairs of gone and new work that may be one under another name: told, never joined.

    They are of one unit, state the same marks, and no other gone or new work states these.

    Args:
        found: Changes of the work's names.
        before: Marks of the earlier period's work.
        after: Of the later one's.
    """
    gone: dict[tuple[str, frozenset[str]], list[Change]] = {}
    new: dict[tuple[str, frozenset[str]], list[Change]] = {}
    for change in found:
        held, marks = (gone, before) if change.kind == "vanished" else (new, after)
        own = marks.get((change.unit, change.name), frozenset())
        if change.kind in ("vanished", "new") and own:
            held.setdefault((change.unit, own), []).append(change)
    pairs = ((gone[key], new[key], key[1]) for key in gone if key in new)
    return tuple(
        replace(a[0], kind="retagged", to=b[0].name, evidence=", ".join(sorted(marks)), after=b[0].after)
        for a, b, marks in pairs
        if len(a) == len(b) == 1
    )
