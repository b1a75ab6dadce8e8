"""Bridge lines: the rows of a bridge as they are printed, which add up as they stand."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.compare.drivers_figures import words
from carbonlens.domain.drivers import Bridge, Effect
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import MOST_APART, alike
from carbonlens.reporting.format import Printed, Quantity, Scale

_NOTHING: Final = 1e-12
"""Share of the larger total below which an effect is rounding, and none."""
_NONE: Final = "0"
_MOST_DIGITS: Final = 15
"""What a double holds."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row.

    Attributes:
        kind: ``end`` for both totals, ``effect``, ``remainder``.
        figure_id: Of its number.
        number: With its unit.
        interval: Empty where there is none.
        start, end: Where its bar begins and ends, in the bridge's unit.
    """

    kind: str
    name: str
    figure_id: str
    number: str
    interval: str = ""
    start: float = 0.0
    end: float = 0.0


def quantity_of(made: Bridge) -> Quantity:
    """Return how a bridge's quantity is printed."""
    if made.measure == "energy":
        return fmt.energy
    return fmt.money if made.measure == "cost" else fmt.mass


def shown(estimate: Estimate) -> Estimate:
    """Return an estimate as its quantity is printed: energies in joules."""
    return estimate.scale(float(kwh_to_j(1)), "J") if estimate.unit == "kWh" else estimate


def scale_of(made: Bridge) -> Scale:
    """Return the one unit of all rows: that of the largest effect or, without any, of the totals."""
    sizes = [abs(shown(e.change).value or 0.0) for e in made.effects]
    ends = max(abs(shown(e).value or 0.0) for e in (made.before, made.after))
    return quantity_of(made).choose(
        msgspec.structs.replace(shown(made.before), value=max(sizes, default=0.0) or ends)
    )


class _Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """What is printed of a bridge, in its unit: the totals, and parts that sum to their difference."""

    places: int
    before: float
    after: float
    effects: tuple[float, ...]
    remainder: float | None

    @property
    def change(self) -> float:
        """Difference of both totals as they are printed."""
        return round(self.after - self.before, max(self.places, 0))


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """Both totals as the rest of a report prints them, in one unit."""

    before: Printed
    after: Printed
    scale: Scale

    @property
    def places(self) -> int:
        """Decimals of what leads from one to the other."""
        return max(self.before.places, self.after.places)


def ends_of(made: Bridge, before: Printed | None, after: Printed | None) -> Ends | None:
    """Return both totals of a bridge as they are printed elsewhere, one that is not as the other is.

    ``None`` where nothing could add up to them: they are unknown, in two units, or one of them is
    printed with a digit though its interval leaves it none.

    Args:
        made: The bridge.
        before: How the earlier total is printed elsewhere; ``None`` where it is nowhere.
        after: The later one.
    """
    own = after or before
    if own is None or own.scale is None or made.before.value is None or made.after.value is None:
        return None
    quantity = quantity_of(made)
    held = [p or alike(quantity, shown(e), own) for p, e in ((before, made.before), (after, made.after))]
    for printed, whole in zip(held, (made.before, made.after), strict=True):
        value = (shown(whole).value or 0.0) * own.scale.factor
        if printed.scale != own.scale or (value and not round(value, printed.places)):
            return None
    return Ends(before=held[0], after=held[1], scale=own.scale)


def least_places(made: Bridge, total: Estimate) -> int:
    """Return the decimals of a total with which the largest effect that led to it has two digits.

    Those of the total itself at least, and not many more: an effect of next to nothing is printed so.

    Args:
        made: The bridge.
        total: In which it ends, in any unit of its quantity.
    """
    quantity, whole = quantity_of(made), shown(total)
    scale = quantity.choose(whole)
    own = quantity.places(whole, scale)
    largest = max((abs(shown(e.change).value or 0.0) for e in made.effects), default=0.0) * scale.factor
    if not largest:
        return own
    places = max(own, min(1 - math.floor(math.log10(largest)), own + MOST_APART))
    # No amount is printed to a tenth, and cents of what is not sure say nothing.
    return max(own, 0) if made.measure == "cost" and places > 0 else places


def rows(made: Bridge, names: tuple[str, str], at: str, ends: Ends | None = None) -> tuple[Row, ...]:
    """Return the rows of a bridge: the first total, each effect, the remainder, the last total.

    Both totals are rounded by themselves, or as they are printed elsewhere; the effects by largest
    remainder, so that they sum to the change from one to the other as it is printed here and, where
    the totals stand alone, by ``change_text``.

    Args:
        made: The bridge.
        names: Of the earlier and the later period.
        at: Prefix of its figures.
        ends: Both totals as the rest of the report prints them.
    """
    quantity, numbers = quantity_of(made), _numbers(made, ends)
    scale = scale_of(made) if ends is None else ends.scale
    first, last = (
        quantity(shown(whole), scale, at=(number, numbers.places))
        for whole, number in ((made.before, numbers.before), (made.after, numbers.after))
    )
    if ends is not None:
        first, last = ends.before, ends.after
    found = [_end(names[0], f"{at}.before", first, made.before)]
    level = made.before.value or 0.0
    for effect, value in zip(_effects(made), numbers.effects, strict=True):
        printed = quantity(shown(effect.change), scale, plus=True, at=(value, numbers.places))
        rise = effect.change.value or 0.0
        found.append(
            Row(
                kind="effect",
                name=words(effect.name),
                figure_id=f"{at}.{effect.name}",
                number=printed.text,
                interval=printed.interval,
                start=level,
                end=level + rise,
            )
        )
        level += rise
    rest = _remainder(made, quantity, scale, numbers)
    found.append(Row(kind="remainder", name="remainder (rounding)", figure_id=f"{at}.remainder", number=rest))
    return (*found, _end(names[1], f"{at}.after", last, made.after))


def change_text(made: Bridge) -> str:
    """Return the whole change with its interval and its share of the earlier total.

    The number is the difference of both totals as ``rows`` prints them.
    """
    numbers = _numbers(made)
    known = made.change.value is not None
    printed = quantity_of(made)(
        shown(made.change), scale_of(made), plus=True, at=(numbers.change, numbers.places) if known else None
    )
    share = ""
    if made.before.value and made.change.value is not None and made.before.value > 0:
        ends = [
            None if end is None else end / made.before.value for end in (made.change.low, made.change.high)
        ]
        part = Estimate(
            value=made.change.value / made.before.value, unit="1", signed=True, bounds=(ends[0], ends[1])
        )
        share = f", {fmt.percent(part, plus=True).text}"
    return f"{printed.text}{' ' + printed.interval if printed.interval else ''}{share}"


def _largest(made: Bridge) -> float:
    return max(abs(made.before.value or 0.0), abs(made.after.value or 0.0))


def _effects(made: Bridge) -> list[Effect]:
    """Return the effects that are more than rounding."""
    least = _NOTHING * _largest(made)
    return [e for e in made.effects if abs(e.change.value or 0.0) > least]


def _numbers(made: Bridge, ends: Ends | None = None) -> _Numbers:
    scale = scale_of(made) if ends is None else ends.scale
    places = _places(made, quantity_of(made), scale) if ends is None else ends.places

    def of(estimate: Estimate) -> float:
        return (shown(estimate).value or 0.0) * scale.factor

    before, after = (round(of(e), places) for e in (made.before, made.after))
    if ends is not None:
        before, after = (round(of(e), p.places) for e, p in _pairs(made, ends))
    parts = [of(e.change) for e in _effects(made)]
    remainder = of(Estimate(value=made.remainder, unit=made.unit, signed=True))
    is_printed = abs(remainder) > 0.5 * 10.0**-places
    rounded = fmt.apportion([*parts, *([remainder] if is_printed else [])], places, total=after - before)
    return _Numbers(
        places=places,
        before=before,
        after=after,
        effects=rounded[: len(parts)],
        remainder=rounded[-1] if is_printed else None,
    )


def _pairs(made: Bridge, ends: Ends) -> tuple[tuple[Estimate, Printed], ...]:
    return (made.before, ends.before), (made.after, ends.after)


def _remainder(made: Bridge, quantity: Quantity, scale: Scale, numbers: _Numbers) -> str:
    """Return the remainder: a part of the column where it counts there, and else its size."""
    if numbers.remainder is not None:
        rest = shown(Estimate(value=made.remainder, unit=made.unit, signed=True))
        return quantity(rest, scale, plus=True, at=(numbers.remainder, numbers.places)).text
    return _NONE if abs(made.remainder) <= _NOTHING * _largest(made) else f"{made.remainder:.1e} {made.unit}"


def _places(made: Bridge, quantity: Quantity, scale: Scale) -> int:
    """Return the decimals of all rows: as the change's interval and the largest effect need.

    No more than the larger total has digits: an interval of next to nothing asks for hundreds.
    """
    largest = sorted(made.effects, key=lambda e: -abs(e.change.value or 0.0))[:1]
    wanted = max(quantity.places(shown(e), scale) for e in (made.change, *(e.change for e in largest)))
    size = _largest(made) * (shown(Estimate(value=1.0, unit=made.unit)).value or 1.0) * scale.factor
    return min(wanted, _MOST_DIGITS - 1 - (math.floor(math.log10(size)) if size else 0))


def _end(name: str, figure_id: str, printed: Printed, estimate: Estimate) -> Row:
    return Row(
        kind="end",
        name=name,
        figure_id=figure_id,
        number=printed.text,
        interval=printed.interval,
        end=estimate.value or 0.0,
    )
