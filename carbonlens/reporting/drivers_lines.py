"""Bridge lines: the rows of a bridge as they are printed, which add up as they stand."""

from __future__ import annotations

from typing import Final

import msgspec

from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.compare.drivers_figures import words
from carbonlens.domain.drivers import Bridge
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.format import Printed, Quantity, Scale

_NOTHING: Final = 1e-12
"""Share of the larger total below which an effect is rounding, and none."""
_NONE: Final = "0"


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


def rows(made: Bridge, names: tuple[str, str], at: str) -> tuple[Row, ...]:
    """Return the rows of a bridge: the first total, each effect, the remainder, the last total.

    Rounded by largest remainder, so that the first total and the effects sum to the last as printed.

    Args:
        made: The bridge.
        names: Of the earlier and the later period.
        at: Prefix of its figures.
    """
    quantity, scale = quantity_of(made), scale_of(made)
    largest = max(abs(made.before.value or 0.0), abs(made.after.value or 0.0))
    effects = [e for e in made.effects if abs(e.change.value or 0.0) > _NOTHING * largest]
    values = [shown(e).value or 0.0 for e in (made.before, *(e.change for e in effects))]
    places = _places(made, quantity, scale)
    rounded = fmt.apportion([v * scale.factor for v in values], places)
    total = round(sum(rounded), max(places, 0))
    first = quantity(shown(made.before), scale, at=(rounded[0], places))
    found = [_end(names[0], f"{at}.before", first, made.before)]
    level = made.before.value or 0.0
    for effect, value in zip(effects, rounded[1:], strict=True):
        printed = quantity(shown(effect.change), scale, plus=True, at=(value, places))
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
    rest = _NONE if abs(made.remainder) <= _NOTHING * largest else f"{made.remainder:.1e} {made.unit}"
    found.append(Row(kind="remainder", name="remainder (rounding)", figure_id=f"{at}.remainder", number=rest))
    last = quantity(shown(made.after), scale, at=(total, places))
    return (*found, _end(names[1], f"{at}.after", last, made.after))


def change_text(made: Bridge) -> str:
    """Return the whole change with its interval and its share of the earlier total."""
    printed = quantity_of(made)(shown(made.change), scale_of(made), plus=True)
    share = ""
    if made.before.value and made.change.value is not None and made.before.value > 0:
        part = Estimate(value=made.change.value / made.before.value, unit="1", signed=True)
        share = f", {fmt.percent(part, plus=True).text}"
    return f"{printed.text}{' ' + printed.interval if printed.interval else ''}{share}"


def _places(made: Bridge, quantity: Quantity, scale: Scale) -> int:
    """Return the decimals of all rows: as the change's interval and the largest effect need."""
    return max(
        quantity.places(shown(made.change), scale),
        max((quantity.places(shown(e.change), scale) for e in made.effects[:1]), default=0),
    )


def _end(name: str, figure_id: str, printed: Printed, estimate: Estimate) -> Row:
    return Row(
        kind="end",
        name=name,
        figure_id=figure_id,
        number=printed.text,
        interval=printed.interval,
        end=estimate.value or 0.0,
    )
