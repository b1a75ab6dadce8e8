"""Use case part: what figures over several statements belong to: bridges, registers, quarters' reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from carbonlens.app.explain_drivers import Works, drivers_of, periods_of
from carbonlens.app.statement import Made
from carbonlens.domain.figure import Figure
from carbonlens.errors import SelectionError

if TYPE_CHECKING:
    from carbonlens.app.drivers import Source
    from carbonlens.app.explain_quarter import QuarterFigures


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Figures, the runs that they name, and the statements that they lead to."""

    figures: Mapping[str, Figure] = {}
    runs_of: Mapping[str, tuple[str, ...]] = {}
    statements: tuple[Made, ...] = ()


class Periods:
    """Reads what an id belongs to, over statements that are each made once."""

    def __init__(self, statement: Callable[[str], Made], source: Callable[[], Source]) -> None:
        """Read nothing yet.

        Args:
            statement: Returns the statement of a period, its runs listed.
            source: Returns ledger, inventory and factors.
        """
        self._statement = statement
        self._source = source
        self._works: Works = {}
        self._pages: dict[str | None, QuarterFigures] = {}

    def of_drivers(self, name: str) -> Found | None:
        """Return the bridge or the register that an id belongs to; ``None`` for another id."""
        found = drivers_of(name, self._with(*periods_of(name)), self._works)
        if found is None:
            return None
        figures = {f.figure_id: f for f in found.figures}
        return Found(figures=figures, runs_of=found.runs_of, statements=found.statements)

    def of_quarter(self, name: str) -> Found:
        """Return what statements of quarters come to, where an id is one of it."""
        from carbonlens.app.explain_quarter import compared_figures, intensity_figures, quarter_of

        found = compared_figures(name, self._known)
        figures, period = dict(found.figures), quarter_of(name)
        if name.startswith("intensity.") and period is not None:
            source = self._with(period)
            if period in source.held:
                figures |= intensity_figures(period, source)
                return Found(figures=figures, statements=(source.held[period],))
        return Found(figures=figures, statements=found.statements)

    def of_pages(self, name: str, period: str | None) -> QuarterFigures:
        """Return what the report of a quarter prints.

        Args:
            name: An id of it.
            period: The quarter that was asked for; the last one when ``None``. That of the id goes before it.
        """
        from carbonlens.app.explain_quarter import page_figures, quarter_of

        quarter = quarter_of(name) or period
        if quarter not in self._pages:
            self._pages[quarter] = page_figures(quarter, self._source())
        return self._pages[quarter]

    def _with(self, *periods: str) -> Source:
        """Return the source with the statements of some periods, as far as the ledger holds them."""
        held = {n: made for n in periods if (made := self._known(n)) is not None}
        return msgspec.structs.replace(self._source(), held=held)

    def _known(self, period: str) -> Made | None:
        try:
            return self._statement(period)
        except SelectionError:
            return None
