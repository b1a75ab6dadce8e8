"""Sustainability prints: each figure of the report entered once, with the one way it is printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import Column
from carbonlens.reporting.content import Phrase, phrase
from carbonlens.reporting.figures import Entry, FigureBook, exact
from carbonlens.reporting.format import Printed, Quantity, Scale

J_PER_KWH = float(kwh_to_j(1))
_KG_PER_G = 1e-3
NONE = "–"
"""Stands where a period has no such line: neither zero nor unknown."""

_LITRES = ((1.0, "L", 1.0), (1e3, "m³", 1e-3))
volume = Quantity(choose=lambda e: _litre_scale(e.value))
"""Litres, printed as L or m³."""


def _litre_scale(litres: float | None) -> Scale:
    size = abs(litres) if litres else 1.0
    chosen = [step for step in _LITRES if step[0] <= size * 1.0005] or [_LITRES[0]]
    return Scale(chosen[-1][1], chosen[-1][2])


def shown(estimate: Estimate) -> Estimate:
    """Return an estimate in the unit of its quantity: energies in joules, grams in kilograms."""
    if estimate.unit == "kWh":
        return estimate.scale(J_PER_KWH, "J")
    return estimate.scale(_KG_PER_G, "kg") if _is_grams(estimate.unit) else estimate


def _is_grams(unit: str) -> bool:
    """Tell whether a unit is of grams, as that of an intensity or a score: ``g per token``."""
    return unit == "g" or unit.startswith("g per ")


def quantity_of(unit: str) -> Quantity:
    """Return how an estimate of that unit is printed."""
    if unit in ("kWh", "J"):
        return fmt.energy
    if unit == "kg" or _is_grams(unit):
        return fmt.mass
    if unit == "L":
        return volume
    if unit == "1":
        return fmt.percent
    return fmt.money if len(unit) == 3 and unit.isupper() else Quantity(choose=lambda _: Scale(unit, 1.0))


def axis_of(estimates: Iterable[Estimate]) -> tuple[Scale, float]:
    """Return the unit that suits the largest of some estimates, and the factor from their own to it."""
    held = [e for e in estimates if e.value is not None]
    if not held:
        return Scale("", 1.0), 1.0
    largest = max(held, key=lambda e: abs(e.value or 0.0))
    scale = quantity_of(largest.unit).choose(shown(largest))
    one = shown(Estimate(value=1.0, unit=largest.unit)).value
    return scale, scale.factor * (one or 1.0)


class Prints:
    """The book of the report: what was printed once is printed alike everywhere."""

    def __init__(self) -> None:
        """Start an empty book."""
        self.book = FigureBook()
        self._held: dict[str, Entry] = {}

    def of(self, figure: Figure, *, plus: bool = False, scale: Scale | None = None) -> Entry:
        """Return a figure's entry, printed in the way it was first.

        Args:
            figure: Of a room below.
            plus: Show the sign of a positive change.
            scale: Unit to use instead of the one that suits it.
        """
        quantity = quantity_of(figure.estimate.unit)
        return self.entered(figure, quantity(shown(figure.estimate), scale, plus=plus))

    def entered(self, figure: Figure, printed: Printed) -> Entry:
        """Return a figure's entry; the print counts only where it is the first."""
        held = self._held.get(figure.figure_id)
        if held is None:
            held = self._held[figure.figure_id] = self.book.enter(
                figure.figure_id,
                figure.label,
                figure.estimate,
                printed,
                formula=figure.formula,
                inputs=figure.inputs,
            )
        return held

    def in_column(self, figure: Figure, column: Column, name: str) -> Entry:
        """Return a figure's entry with the number that makes its column add up."""
        return self.entered(figure, column.printed(name, shown(figure.estimate)))

    def count(self, figure_id: str, words: str, number: float) -> Entry:
        """Return the entry of a number of things."""
        made = exact(number)
        figure = Figure(figure_id=figure_id, estimate=made, label=words, formula="counted")
        return self.entered(figure, fmt.count(made))

    def share(self, figure_id: str, words: str, value: float, *, plus: bool = False) -> Entry:
        """Return the entry of a share without uncertainty; of a change with its sign."""
        made = exact(value)
        figure = Figure(figure_id=figure_id, estimate=made, label=words)
        return self.entered(figure, fmt.percent(made, plus=plus))


def cell(entry: Entry | None) -> tuple[Phrase, ...]:
    """Return a cell: number and unit, its interval below."""
    if entry is None:
        return (phrase(NONE),)
    return tuple(line for line in (phrase(entry.text), phrase(entry.interval)) if line)


def flat(entry: Entry | None) -> tuple[Phrase, ...]:
    """Return a cell of one line: number and unit alone."""
    return (phrase(NONE),) if entry is None else (phrase(entry.text),)


def by_id(figures: Iterable[Figure]) -> Mapping[str, Figure]:
    """Return figures by their ids; the first of each stands."""
    held: dict[str, Figure] = {}
    for figure in figures:
        held.setdefault(figure.figure_id, figure)
    return held
