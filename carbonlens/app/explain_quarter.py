"""Use case part: figures that only a quarter's report has: changes, sums to date, intensities, counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from carbonlens.accounting.periods_compared import EVERY_SCOPE, compared
from carbonlens.app.drivers import Source
from carbonlens.app.statement import Made
from carbonlens.app.sustainability import CLASSES, gather
from carbonlens.app.sustainability_scores import intensities_of, works_of
from carbonlens.domain.figure import Figure
from carbonlens.errors import SelectionError
from carbonlens.reporting.sustainability import build_sustainability

_QUARTER: Final = r"(\d{4}Q[1-4])"
_CHANGE: Final = re.compile(rf"change\.{_QUARTER}\.{_QUARTER}\..+")
_TO_DATE: Final = re.compile(rf"to_date\.{_QUARTER}\..+")
_EVERY_SCOPE: Final = re.compile(rf"statement\.{_QUARTER}\.{EVERY_SCOPE}\..+")
_INTENSITY: Final = re.compile(rf"intensity\.{_QUARTER}\..+")
_OF_PAGES: Final = re.compile(rf"(?:statement|rate)\.{_QUARTER}\..+")
_OF_ANY: Final = re.compile(r"(?:factor|restated|prior)\.\d+\..+|(?:close|left_out|others|least)\..+")
"""Ids that name no quarter: those of the report that is asked for, else of the last one."""

Statements = Callable[[str], Made | None]
"""Returns the statement of a quarter; ``None`` where the ledger holds nothing of it."""


class QuarterFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a quarter's report, and the statements that they lead to.

    Attributes:
        counted: Ids of those that its pages count or choose, which rest on no other figure.
    """

    figures: Mapping[str, Figure] = {}
    statements: tuple[Made, ...] = ()
    counted: frozenset[str] = frozenset()


def is_of_quarter(name: str) -> bool:
    """Tell whether an id is that of a quarter's report and of nothing else.

    Args:
        name: The id.
    """
    own = (_CHANGE, _TO_DATE, _EVERY_SCOPE, _INTENSITY, _OF_ANY)
    return name.startswith("rate.") or any(p.fullmatch(name) for p in own)


def is_on_pages(name: str) -> bool:
    """Tell whether an id may be of a figure that only the pages of a quarter's report have.

    Args:
        name: The id, of which no statement tells.
    """
    return _OF_PAGES.fullmatch(name) is not None or is_of_quarter(name)


def quarter_of(name: str) -> str | None:
    """Return the quarter that an id of a report names; ``None`` where it names none.

    Args:
        name: The id.
    """
    patterns = (_CHANGE, _TO_DATE, _INTENSITY, _OF_PAGES)
    return next((m[1] for p in patterns if (m := p.fullmatch(name)) is not None), None)


def compared_figures(name: str, statement: Statements) -> QuarterFigures:
    """Return the figures that several statements come to, those of an id among them.

    Args:
        name: Of a change, of a sum to date, or of a sum over the scopes; nothing comes back for others.
        statement: Returns the statement of a quarter.

    Raises:
        SelectionError: If the ledger holds nothing of the quarter.
    """
    match = next((m for p in (_CHANGE, _TO_DATE, _EVERY_SCOPE) if (m := p.fullmatch(name))), None)
    if match is None:
        return QuarterFigures()
    period = str(match[1])
    against = (str(match[2]),) if match.re is _CHANGE else ()
    # A fiscal year is as long as its quarters so far: the number of this one.
    to_date = tuple(f"{period[:4]}Q{n}" for n in range(1, int(period[5]) + 1)) if match.re is _TO_DATE else ()
    wanted = dict.fromkeys((*to_date, *against, period))
    held = {n: statement(n) for n in wanted}
    if held[period] is None:
        raise SelectionError(
            f"no runs in {period}", where=name, mend="carbonlens runs list says what there is"
        )
    made = {n: None if m is None else m.statement for n, m in held.items()}
    known = tuple(n for n in against if made[n] is not None)
    found = compared(made, period, known, to_date or (period,))
    # Without all quarters of the year, a sum to date is one of another year.
    kept = (f for f in found.figures if to_date or not f.figure_id.startswith("to_date."))
    figures = {f.figure_id: f for f in kept}
    return QuarterFigures(figures=figures, statements=tuple(m for m in held.values() if m is not None))


def intensity_figures(period: str, source: Source) -> Mapping[str, Figure]:
    """Return the intensities of a quarter's work, of every unit that its runs count.

    Args:
        period: The quarter.
        source: Ledger, inventory and factors, with its statement.
    """
    work = works_of((period,), source, CLASSES)[period]
    return {f.figure_id: f for f in intensities_of(period, work)}


def page_figures(period: str | None, source: Source) -> QuarterFigures:
    """Return every figure that the report of a quarter prints.

    Args:
        period: The quarter; the last one with runs when ``None``.
        source: Ledger, inventory and factors.

    Raises:
        SelectionError: If the ledger holds nothing of it.
        UsageError: If the period is no quarter.
    """
    gathered = gather(
        period,
        inventory=source.inventory,
        factors=source.factors,
        ledger=source.ledger,
        now_us=source.now_us,
    )
    view = build_sustainability(gathered.given)
    figures = {n: _of_report(f.figure, gathered.given.period) for n, f in view.figures.items()}
    return QuarterFigures(figures=figures, counted=frozenset(n for n, f in figures.items() if not f.inputs))


def _of_report(figure: Figure, period: str) -> Figure:
    """Return a figure whose label says of which report it is, where its id does not."""
    if period in figure.figure_id:
        return figure
    return msgspec.structs.replace(figure, label=f"{figure.label}, report of {period}")
