"""Figures: the book in which every printed number is entered once, by its id."""

from __future__ import annotations

import math
from collections.abc import Mapping

from carbonlens.domain.estimate import Estimate, unknown, worst_grade
from carbonlens.domain.figure import Figure
from carbonlens.reporting.content import Part, Phrase, PrintedFigure, phrase
from carbonlens.reporting.format import Printed


class FigureBook:
    """Collects figures while a view is built, and hands out the parts that print them.

    An id stands for one number printed in one way: entering it again with
    another text is a fault in the view, and refused.
    """

    def __init__(self) -> None:
        """Start an empty book."""
        self._entries: dict[str, PrintedFigure] = {}

    def enter(
        self,
        figure_id: str,
        label: str,
        estimate: Estimate,
        printed: Printed,
        *,
        formula: str = "",
        inputs: tuple[str, ...] = (),
    ) -> Entry:
        """Enter a figure and return how to print it.

        Args:
            figure_id: Stable dotted id.
            label: What it is, in words.
            estimate: The number.
            printed: The number as printed.
            formula: How it was made from the inputs.
            inputs: Ids of figures, factors or prices it rests on.

        Raises:
            ValueError: If the id was entered before with another text.
        """
        figure = Figure(figure_id=figure_id, estimate=estimate, label=label, formula=formula, inputs=inputs)
        entry = PrintedFigure(
            figure=figure, text=printed.text, number=printed.number, interval=printed.interval
        )
        known = self._entries.setdefault(figure_id, entry)
        if (known.text, known.number, known.interval) != (entry.text, entry.number, entry.interval):
            raise ValueError(f"figure {figure_id} is printed as {known.text!r} and as {entry.text!r}")
        return Entry(known)

    @property
    def figures(self) -> Mapping[str, PrintedFigure]:
        """All figures entered so far, in order."""
        return dict(self._entries)


class Entry:
    """An entered figure, ready to be put into a phrase."""

    def __init__(self, printed: PrintedFigure) -> None:
        """Keep the printed figure."""
        self.printed = printed
        self.figure_id = printed.figure.figure_id

    @property
    def known(self) -> bool:
        """Whether there is a number at all."""
        estimate = self.printed.figure.estimate
        return estimate.value is not None and estimate.state in ("known", "unbounded")

    @property
    def text(self) -> Part:
        """Number and unit."""
        return Part(text=self.printed.text, figure_id=self.figure_id, aspect="text")

    @property
    def number(self) -> Part:
        """The number, for a column whose head names the unit."""
        return Part(text=self.printed.number, figure_id=self.figure_id, aspect="number")

    @property
    def interval(self) -> Part:
        """The interval; an empty part where there is none."""
        return Part(text=self.printed.interval, figure_id=self.figure_id, aspect="interval")

    @property
    def full(self) -> Phrase:
        """Number, unit and interval in one line."""
        return phrase(self.text, " " if self.printed.interval else "", self.interval)

    @property
    def cell(self) -> tuple[Phrase, ...]:
        """Two lines of a table cell: number over interval."""
        return tuple(line for line in (phrase(self.number), phrase(self.interval)) if line)


def exact(value: float | None, unit: str = "1") -> Estimate:
    """Return a number without uncertainty: a count, a limit, a stated setting."""
    return unknown(unit) if value is None else Estimate(value=float(value), unit=unit, signed=True)


def stated(value: float, u_relative: float, unit: str) -> Estimate:
    """Return a factor or price with its stated relative uncertainty."""
    return Estimate(value=value, unit=unit, u_random=abs(value) * u_relative)


def reduction(ratio: Estimate) -> Estimate:
    """Return ``1 - ratio`` as a fraction, with the ratio's interval turned round.

    Args:
        ratio: Step over reference; below 1 where less is used.
    """
    return _affine(ratio, -1.0, 1.0)


def change(ratio: Estimate) -> Estimate:
    """Return ``ratio - 1``: the relative change, negative where less is used."""
    return _affine(ratio, 1.0, -1.0)


def _affine(ratio: Estimate, slope: float, offset: float) -> Estimate:
    if ratio.value is None or ratio.state == "unknown":
        return unknown("1", signed=True)
    low, high = ratio.low, ratio.high
    ends = [None if end is None else slope * end + offset for end in (low, high)]
    bounds = (ends[0], ends[1]) if slope > 0 else (ends[1], ends[0])
    return Estimate(
        value=slope * ratio.value + offset, unit="1", grade=ratio.grade, signed=True, bounds=bounds
    )


def recentred(estimate: Estimate, value: float) -> Estimate:
    """Return the value with the ends of an estimate as far from it as from the estimate's own."""
    ends: tuple[float | None, float | None] = (None, None)
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        ends = (value + estimate.low - estimate.value, value + estimate.high - estimate.value)
    return Estimate(value=value, unit="1", grade=estimate.grade, signed=True, bounds=ends)


def quotient(part: Estimate, whole: Estimate) -> Estimate:
    """Return ``part / whole`` to first order (JCGM 100:2008, 5.1.2).

    A source that moves both alike cancels; random parts count as independent.
    Unknown or a mere lower bound on either side gives unknown. Where an
    interval was stated rather than derived, no narrower one can be made: the
    result has none.

    Args:
        part: Numerator.
        whole: Denominator, in the same unit.
    """
    if part.value is None or not whole.value or (part.state, whole.state) != ("known", "known"):
        return unknown("1", signed=True)
    ratio = part.value / whole.value
    names = {**part.u_by_source, **whole.u_by_source}
    sources = {
        name: (part.u_by_source.get(name, 0.0) - ratio * whole.u_by_source.get(name, 0.0)) / whole.value
        for name in names
    }
    stated = any(e.bounds is not None and e.u_total == 0 for e in (part, whole))
    return Estimate(
        value=ratio,
        unit="1",
        grade=worst_grade([part.grade, whole.grade]),
        u_random=math.hypot(part.u_random, ratio * whole.u_random) / abs(whole.value),
        u_by_source=sources,
        signed=True,
        bounds=(None, None) if stated else None,
    )
