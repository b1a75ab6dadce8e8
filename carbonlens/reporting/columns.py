"""Columns: figures that sum, printed in one unit and to one place so that the print adds up too.

The total is rounded; its parts are rounded down and what is left goes to those that lost most
(largest remainder), or where that would take one out of its interval, to others.
Every later print of one of the figures takes the same number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.reporting.format import Printed, Quantity, Scale, apportion, fixed
from carbonlens.reporting.rounding_within import within

_MORE_PLACES: Final = 2
"""Places beyond those of the total that are printed for the sake of a small part."""

_SAME: Final = 1e-9
"""Relative difference up to which parts sum to their total."""

_ROUGH: Final = 0.25
"""Share of a part by which rounding for the sum may move it: beyond, the print misleads."""

Quantum = tuple[str, ...]
"""What tells one quantity from another: its unit, its value and its interval, to nine digits."""


MOST_APART: Final = 2
"""Decimals by which figures of a row or of two columns may differ and still be printed with as many."""

_TWO_DIGITS: Final = 10


def quantum(estimate: Estimate) -> Quantum:
    """Return what tells a quantity from others; sums of the same parts in another order are the same.

    Args:
        estimate: In the unit in which it is printed.
    """
    ends = (estimate.value, estimate.low, estimate.high)
    return (estimate.unit, estimate.state, *("" if e is None else f"{e:.8e}" for e in ends))


def alike(quantity: Quantity, estimate: Estimate, own: Printed | None) -> Printed:
    """Return a print in the unit and with the decimals of another one of its row.

    By its own where these would leave it less than two digits, or more than two that say nothing.

    Args:
        quantity: Of both.
        estimate: In the unit of its quantity.
        own: The other print; ``None`` where there is none.
    """
    printed = quantity(estimate)
    if own is None or own.scale is None or printed.scale is None or estimate.value is None:
        return printed
    value, wanted = estimate.value * own.scale.factor, quantity.places(estimate, own.scale)
    if abs(value) < _TWO_DIGITS * 10.0**-own.places or own.places - wanted > MOST_APART:
        return printed
    return quantity(estimate, own.scale, at=(round(value, own.places), own.places))


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity of several figures.

    Attributes:
        scale: Unit of all; ``None`` where the total is unknown and each has its own.
        places: Decimals of all.
        numbers: What is printed of each figure that adds up, in the unit, by its name.
        said: The same by what is printed: a part that comes again takes the number that it has.
    """

    show: Quantity
    scale: Scale | None = None
    places: int = 0
    numbers: Mapping[str, float] = {}
    said: Mapping[Quantum, float] = {}

    def printed(self, name: str, estimate: Estimate) -> Printed:
        """Return the print of a figure; one that is in no sum has the unit and places that suit it.

        Args:
            name: Under which it is in the column.
            estimate: The figure.
        """
        if name not in self.numbers or self.scale is None:
            return self.show(estimate)
        number = self.numbers[name]
        if number == 0 and estimate.value and estimate.state == "known":
            return self._next_to_nothing(estimate.value < 0)
        return self.show(estimate, self.scale, at=(number, self.places))

    def _next_to_nothing(self, is_negative: bool) -> Printed:
        """Return the print of a part that rounds to nothing, and is not nothing."""
        unit = self.scale or Scale("", 1.0)
        grain = 10.0**-self.places
        number = f"> {fixed(-grain, self.places)}" if is_negative else f"< {fixed(grain, self.places)}"
        text = self.show.pattern.format(number=number, unit=unit.unit, suffix=unit.suffix).strip()
        return Printed(text=text.replace(" ", "\N{NO-BREAK SPACE}"), number=number)

    def is_rough(self, name: str, estimate: Estimate) -> bool:
        """Tell whether a part is printed far from what it is, for the sake of the sum.

        Args:
            name: Under which it is in the column.
            estimate: The figure.
        """
        number = self.numbers.get(name)
        if not number or self.scale is None or estimate.value is None:
            return False
        value = estimate.value * self.scale.factor
        return abs(number - value) > _ROUGH * abs(value)

    def is_outside(self, name: str, estimate: Estimate) -> bool:
        """Tell whether a part is printed out of its interval, by more than half a place.

        Args:
            name: Under which it is in the column.
            estimate: The figure.
        """
        number = self.numbers.get(name)
        if not number or self.scale is None or estimate.low == estimate.high:
            return False
        half = (0.5 + _SAME) * 10.0**-self.places
        low, high = (None if e is None else e * self.scale.factor for e in (estimate.low, estimate.high))
        return (low is not None and number < low - half) or (high is not None and number > high + half)

    def with_parts(self, whole: float, parts: Mapping[str, Estimate]) -> Column:
        """Return the column with parts rounded so that they sum to a printed number.

        A part that stands in the column already, under another name, takes the same number again,
        where the others can be rounded beside it.

        Args:
            whole: What they sum to, in the unit, as it is printed.
            parts: By name; one that is unknown counts as nothing.
        """
        if self.scale is None or not parts:
            return self
        held = {n: p for n, p in parts.items() if p.value is not None}
        again = {n: self.said[key] for n, p in held.items() if (key := quantum(p)) in self.said}
        numbers = self._beside(whole, held, again) if again else None
        if numbers is None:
            numbers = self._apportioned(whole, held)
        said = {quantum(p): numbers[n] for n, p in held.items()}
        return msgspec.structs.replace(self, numbers={**self.numbers, **numbers}, said={**said, **self.said})

    def _beside(
        self, whole: float, parts: Mapping[str, Estimate], again: Mapping[str, float]
    ) -> dict[str, float] | None:
        """Return the numbers of parts of which some are given; ``None`` where the others do not fit."""
        grain = 10.0**-self.places
        left = whole - math.fsum(again.values())
        free = {n: p for n, p in parts.items() if n not in again}
        rounded = self._apportioned(left, free)
        moved = [abs(rounded[n] - self._in_unit(p)) for n, p in free.items()] or [abs(left)]
        is_fit = max(moved) < grain if free else moved[0] < grain / 2
        return {**rounded, **again} if is_fit else None

    def _apportioned(self, whole: float, parts: Mapping[str, Estimate]) -> dict[str, float]:
        """Return the numbers of known parts, inside their intervals where such numbers sum to the whole."""
        values = [self._in_unit(p) for p in parts.values()]
        made = dict(zip(parts, apportion(values, self.places, total=whole), strict=True))
        bare = Column(show=self.show, scale=self.scale, places=self.places, numbers=made)
        if not any(bare.is_outside(n, p) for n, p in parts.items()):
            return made
        ends = [self._ends(p) for p in parts.values()]
        inside = within(values, ends, self.places, whole)
        return made if inside is None else dict(zip(parts, inside, strict=True))

    def _in_unit(self, part: Estimate) -> float:
        return (part.value or 0.0) * (1.0 if self.scale is None else self.scale.factor)

    def _ends(self, part: Estimate) -> tuple[float | None, float | None]:
        """Return the interval that is printed with a part, in the unit; without one where it is exact."""
        if self.scale is None or part.low == part.high:
            return None, None
        low, high = (None if e is None else e * self.scale.factor for e in (part.low, part.high))
        return low, high


def column(
    show: Quantity, name: str, total: Estimate, parts: Mapping[str, Estimate], *, least: int | None = None
) -> Column:
    """Return a column of a total and its parts; without parts where they do not sum to it.

    Args:
        show: How the quantity is printed.
        name: Of the total.
        total: Their sum.
        parts: By name.
        least: Decimals that it has at least.
    """
    if total.value is None or not math.isfinite(total.value):
        return Column(show=show)
    scale = show.choose(total)
    known = [p.value for p in parts.values() if p.value is not None]
    places = _places(show, scale, total, known)
    places = places if least is None else max(places, least)
    whole = round(total.value * scale.factor, places)
    made = Column(show=show, scale=scale, places=places, numbers={name: whole})
    if not adds_up(total, list(parts.values())):
        return made
    return made.with_parts(whole, parts)


def adds_up(total: Estimate, parts: Sequence[Estimate]) -> bool:
    """Tell whether the known parts sum to a total."""
    known = [p.value for p in parts if p.value is not None]
    size = math.fsum(map(abs, known))
    return total.value is not None and abs(math.fsum(known) - total.value) <= _SAME * size


def _places(show: Quantity, scale: Scale, total: Estimate, parts: Sequence[float]) -> int:
    """Return the decimals that the total needs, or the smallest part, within reason."""
    places = show.places(total, scale)
    least = min((abs(p * scale.factor) for p in parts if p), default=0.0)
    if not least:
        return places
    first = -math.floor(math.log10(least))
    return min(max(places, first), places + _MORE_PLACES)
