"""Columns: figures that sum, printed in one unit and to one place so that the print adds up too.

The total is rounded; its parts are rounded down and what is left goes to those that lost most
(largest remainder). Every later print of one of the figures takes the same number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.reporting.format import Printed, Quantity, Scale, apportion, fixed

_MORE_PLACES: Final = 2
"""Places beyond those of the total that are printed for the sake of a small part."""

_SAME: Final = 1e-9
"""Relative difference up to which parts sum to their total."""

_ROUGH: Final = 0.25
"""Share of a part by which rounding for the sum may move it: beyond, the print misleads."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity of several figures.

    Attributes:
        scale: Unit of all; ``None`` where the total is unknown and each has its own.
        places: Decimals of all.
        numbers: What is printed of each figure that adds up, in the unit, by its name.
    """

    show: Quantity
    scale: Scale | None = None
    places: int = 0
    numbers: Mapping[str, float] = {}

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

    def with_parts(self, whole: float, parts: Mapping[str, Estimate]) -> Column:
        """Return the column with parts rounded so that they sum to a printed number.

        Args:
            whole: What they sum to, in the unit, as it is printed.
            parts: By name; one that is unknown counts as nothing.
        """
        if self.scale is None or not parts:
            return self
        names = [name for name, part in parts.items() if part.value is not None]
        values = [(parts[name].value or 0.0) * self.scale.factor for name in names]
        rounded = apportion(values, self.places, total=whole)
        return msgspec.structs.replace(
            self, numbers={**self.numbers, **dict(zip(names, rounded, strict=True))}
        )


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
