"""Use case part: hold a quarter's report that carries no records against itself, as far as that goes.

Sums, changes and shares follow from figures beside them, rates from rows of factors. The rest
follows from the ledger's records, and what is left is named with its reason: never passed over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from carbonlens.app.said_figures import SaidFigure, said_figure
from carbonlens.app.sustainability_enclosed import Basis
from carbonlens.app.sustainability_printed import print_of
from carbonlens.app.verified import Left
from carbonlens.app.verify_data import Mismatch
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.figure import Figure
from carbonlens.errors import VerificationError
from carbonlens.factors.store import FactorSet
from carbonlens.reporting.content import PrintedFigure

_RELATIVE: Final = 1e-9
"""Sums of floats may differ in their last digits between machines."""

_ROW: Final = re.compile(r"factor\.\d+\.(?:low|high)|rate\..+")

_NO_RECORDS: Final = "they follow from the ledger's records, which this file does not carry"
_NOT_PRINTED: Final = "they follow from figures that the report does not print"
_COUNTED: Final = "they were counted or divided while the report was made"
_BY_NOTHING: Final = "they divide by a figure that is nothing"
_NOT_KNOWN: Final = "the report calls them unknown"

_OF_A_QUOTIENT: Final = 2

_Rule = Callable[[Sequence[float]], float]


def _total(parts: Sequence[float]) -> float:
    return math.fsum(parts)


def _difference(parts: Sequence[float]) -> float:
    return parts[0] - math.fsum(parts[1:])


def _quotient(parts: Sequence[float]) -> float:
    return parts[0] / parts[1]


_RULES: Final[Mapping[str, _Rule]] = {
    "sum of the lines": _total,
    "sum of its true lines": _total,
    "sum of the scopes and categories": _total,
    "sum of the periods of the fiscal year": _total,
    "sum over the functional units": _total,
    "of its statement": _total,
    "this period less the other; what both rest on cancels": _difference,
    "metered less recorded": _difference,
    "metered_kwh - recorded_kwh": _difference,
    "change / other": _quotient,
}
"""How the value of a figure follows from those of its inputs, by its formula."""


class Recounted(msgspec.Struct, frozen=True, kw_only=True):
    """What came of holding a report against itself.

    Attributes:
        figures: How many were computed again.
        mismatches: Those that do not follow, and numbers on the page that are none of theirs.
        left: Those that could not be computed.
        unread: How many print a number whose unit is not told, so that nothing was held against it.
    """

    figures: int
    mismatches: tuple[Mismatch, ...]
    left: tuple[Left, ...]
    unread: int = 0


class _Printed(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    figures: Mapping[str, PrintedFigure]


def recounted(shape: Mapping[str, Any], basis: Basis, factors: FactorSet, where: str) -> Recounted:
    """Return what of a report's figures follows from others that it states.

    Args:
        shape: Its data.
        basis: What they say that it was computed from.
        factors: The rows in force here, with those that the report carries.
        where: The report, for errors.

    Raises:
        InputFileError: If a figure cannot be read.
    """
    said = shape.get("figures")
    figures = {n: said_figure(n, f, where) for n, f in (said if isinstance(said, dict) else {}).items()}
    rows = _rows(basis, factors)
    found: list[Mismatch] = []
    left: dict[str, list[str]] = {}
    for name, figure in figures.items():
        value = _follows(name, figure, figures, rows)
        if isinstance(value, str):
            left.setdefault(value, []).append(name)
        elif not value.is_near(figure.value):
            computed = f"{value.value} {figure.unit}"
            found.append(Mismatch(figure_id=name, said=f"{figure.value} {figure.unit}", computed=computed))
    prints = {name: print_of(figure) for name, figure in figures.items()}
    found += [_misprint(name, figures[name]) for name, held in prints.items() if held == "differs"]
    return Recounted(
        figures=len(figures) - sum(map(len, left.values())),
        mismatches=tuple(found),
        left=tuple(Left(reason=reason, figure_ids=tuple(ids)) for reason, ids in left.items()),
        unread=sum(held == "unread" for held in prints.values()),
    )


def _misprint(name: str, figure: SaidFigure) -> Mismatch:
    said = f"{figure.printed} (number: {figure.printed_number})"
    return Mismatch(figure_id=name, said=said[:120], computed=f"its value is {figure.value} {figure.unit}")


def misprinted(page: str, shape: Mapping[str, Any], where: str) -> Iterator[Mismatch]:
    """Yield the first number of a page that is none of its data's figures.

    Args:
        page: The HTML.
        shape: The data in it.
        where: The report, for errors.
    """
    from carbonlens.render.check import check_printed

    said = shape.get("figures")
    given = said if isinstance(said, dict) else {}
    figures = {n: _printed(n, said_figure(n, f, where)) for n, f in given.items()}
    try:
        check_printed(page, _Printed(title=str(shape.get("title")), figures=figures))
    except VerificationError as error:
        yield Mismatch(figure_id=error.where or "page", said=error.what, computed="see the figure")


def _printed(name: str, said: SaidFigure) -> PrintedFigure:
    figure = Figure(figure_id=name, estimate=said.estimate, label=said.label)
    return PrintedFigure(
        figure=figure, text=said.printed, number=said.printed_number, interval=said.printed_interval
    )


def _rows(basis: Basis, factors: FactorSet) -> Mapping[str, FactorRow]:
    """Return the rows that the report rests on for certain: all in force, or the ones that it carries."""
    own = basis.factors if factors.sha256 != basis.factors_sha256 else factors.rows
    return {row.factor_id: row for row in reversed(own)}


class _Value(msgspec.Struct, frozen=True):
    """What follows, and the size of the numbers that it follows from."""

    value: float
    size: float

    def is_near(self, stated: float | None) -> bool:
        """Tell whether a figure states it: what cancels keeps the last digits of what it is made of."""
        if stated is None:
            return False
        return math.isclose(self.value, stated, rel_tol=_RELATIVE, abs_tol=1e-12 * max(1.0, self.size))


def _follows(
    name: str, figure: SaidFigure, figures: Mapping[str, SaidFigure], rows: Mapping[str, FactorRow]
) -> _Value | str:
    """Return the value that follows, else the reason why none does."""
    if _ROW.fullmatch(name) and len(figure.inputs) == 1 and figure.inputs[0] in rows:
        return _Value(float(rows[figure.inputs[0]].value), 0.0)
    if figure.value is None:
        return _NOT_KNOWN
    if figure.formula in ("", "counted"):
        return _COUNTED
    rule = _RULES.get(figure.formula)
    if rule is None or not figure.inputs:
        return _NO_RECORDS
    inputs = [figures.get(i) for i in figure.inputs]
    values = [i.value for i in inputs if i is not None and i.value is not None]
    if len(values) < len(inputs):
        return _NOT_PRINTED
    if rule is _quotient and len(values) != _OF_A_QUOTIENT:
        return _NOT_PRINTED
    if rule is _quotient and not values[1]:
        return _BY_NOTHING
    try:
        return _Value(rule(values), max(map(abs, values)))
    except OverflowError:
        return _Value(math.inf, math.inf)
