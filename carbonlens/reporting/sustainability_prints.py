"""Sustainability prints: each figure of the report entered once, with the one way it is printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import Column, Quantum, quantum
from carbonlens.reporting.content import Phrase, phrase
from carbonlens.reporting.figures import Entry, FigureBook, exact
from carbonlens.reporting.format import Printed, Scale
from carbonlens.reporting.sustainability_units import quantity_of, shown

NONE = "–"
"""Stands where a period has no such line: neither zero nor unknown."""


class Prints:
    """The book of the report: what was printed once is printed alike everywhere."""

    def __init__(self) -> None:
        """Start an empty book."""
        self.book = FigureBook()
        self._held: dict[str, Entry] = {}
        self._said: dict[Quantum, Printed] = {}

    def of(self, figure: Figure, *, plus: bool = False, scale: Scale | None = None) -> Entry:
        """Return a figure's entry, printed in the way that it, or the same quantity, was first.

        Args:
            figure: Of a room below.
            plus: Show the sign of a positive change.
            scale: Unit to use instead of the one that suits it.
        """
        quantity = quantity_of(figure.estimate.unit)
        said = None if plus or scale is not None else self.said(figure.estimate)
        return self.entered(figure, said or quantity(shown(figure.estimate), scale, plus=plus))

    def said(self, estimate: Estimate) -> Printed | None:
        """Return how a quantity is printed under the id that it first had; ``None`` where it has none.

        Args:
            estimate: In any unit of its quantity. Shares and counts are no such: 46 of one thing are
                not 46 of another.
        """
        return self._said.get(quantum(shown(estimate))) if _is_quantity(estimate) else None

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
            if _is_quantity(figure.estimate) and printed.scale is not None and printed.number[0] != "+":
                self._said.setdefault(quantum(shown(figure.estimate)), printed)
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


def _is_quantity(estimate: Estimate) -> bool:
    return bool(estimate.value) and estimate.unit != "1"


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
