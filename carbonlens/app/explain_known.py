"""Use case part: all that an explanation can look up, each read when it is first asked for."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.app.explain_business import OF_BUSINESS, business_case_figures
from carbonlens.app.explain_drivers import OF_DRIVERS, OF_INITIATIVES
from carbonlens.app.explain_items import counted_item
from carbonlens.app.explain_periods import Found, Periods
from carbonlens.app.explain_records import Records
from carbonlens.app.explain_sci import OF_SCI, score_of
from carbonlens.app.statement import Made, make_statement
from carbonlens.domain.figure import Figure
from carbonlens.errors import CarbonlensError, MissingExtraError
from carbonlens.reporting.explanation import Item, item_of

if TYPE_CHECKING:
    from carbonlens.app.drivers import Source

_PERIOD: Final = r"(\d{4}(?:Q[1-4]|-\d{2}(?:-\d{2})?)?)"
_OF_PERIOD: Final = re.compile(rf"(?:statement|energy|runs)\.{_PERIOD}\.(.+)")
_OF_MARKET: Final = re.compile(rf"market:.+:{_PERIOD}")
_OF_ALLOCATION: Final = re.compile(rf"allocation\.{_PERIOD}\..+")
_OF_CHARGES: Final = re.compile(rf"charges\.(?:all|{_PERIOD})\.([a-z]+)\.(time|energy)\..+")
_BY: Final = re.compile(r"by\.((?:tag:)?[^.]+)\.")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look; each as the command line takes it.

    Attributes:
        assumptions: File with the factors and prices of a comparison.
        volume: Its expected units, ``2e9 a year``.
        embodied_source: The one source of embodied figures, as ``account`` and ``sci`` were asked with.
        business: File of a business case, as ``compare`` was asked with.
        now_us: The present, UTC microseconds; by the clock when ``None``.
    """

    study: str | None = None
    period: str | None = None
    ledger: str | Path | None = None
    inventory: str | Path | None = None
    factors: str | Path | None = None
    baseline: str | None = None
    steps: tuple[str, ...] = ()
    assumptions: Path | None = None
    volume: str | None = None
    embodied_source: str | None = None
    business: Path | None = None
    now_us: int | None = None

    @property
    def of_comparison(self) -> bool:
        """Whether a comparison is asked about."""
        return any((self.study, self.baseline, self.steps))


class Known:
    """All that can be looked up."""

    def __init__(self, options: Options) -> None:
        """Look nowhere yet.

        Args:
            options: Where to look.
        """
        self._options = options
        self._records = Records(ledger=options.ledger, inventory=options.inventory, factors=options.factors)
        self._made: dict[tuple[str | None, str | None], Made] = {}
        self._figures: dict[str, Figure] = {}
        self._runs_of: Mapping[str, tuple[str, ...]] = {}

    def find(self, name: str) -> Item | None:
        """Return the item of an id that a user gave; reads what it belongs to."""
        if self._belongs(name):
            return self.resolve(name) or self._on_pages(name)
        if name.startswith("meter:"):
            # What it counted is of a period; without a statement it is all of its readings.
            self._figures |= self.of_statement(self._options.period)
            if name in self._figures:
                return self.resolve(name)
        direct = self._records.find(name) or self._records.find(f"run:{name}")
        if direct is not None:
            return direct
        if self._options.period is not None or not self._options.of_comparison:
            self._figures |= self.of_statement(self._options.period)
        if name not in self._figures:
            self._figures |= self.of_study
        return self.resolve(name)

    def _belongs(self, name: str) -> bool:
        """Read the statement, allocation or sharing of bills that an id names; tell whether it names one."""
        for pattern in (_OF_PERIOD, _OF_MARKET):
            match = pattern.fullmatch(name)
            if match is not None:
                by = _BY.match(match[2]) if pattern is _OF_PERIOD else None
                self._take(self.statement(match[1], by[1] if by else None))
                if name not in self._figures:
                    self._is_of_quarter(name)
                return True
        if OF_SCI.fullmatch(name) is not None:
            return self._is_of_score(name)
        if name.startswith(OF_BUSINESS):
            self._figures |= self.of_business()
            return True
        if OF_DRIVERS.fullmatch(name) is not None or OF_INITIATIVES.fullmatch(name) is not None:
            return self._is_of_drivers(name)
        if self._is_of_quarter(name):
            return True
        allocation, charges = _OF_ALLOCATION.fullmatch(name), _OF_CHARGES.fullmatch(name)
        if allocation is not None:
            self._figures |= self._of_allocation(allocation[1])
        if charges is not None:
            self._figures |= self._of_charges(charges[1], charges[2], charges[3])
        return allocation is not None or charges is not None

    def resolve(self, name: str) -> Item | None:
        """Return the item of an id that another figure names."""
        if name in self._figures:
            return self._as_item(self._figures[name])
        if name in self._runs_of:
            runs = self._runs_of[name]
            words = f"recorded runs of {name.removeprefix('runs.')}: {len(runs)}"
            return Item(item_id=name, kind="runs", title=words, inputs=tuple(f"run:{r}" for r in runs))
        return self._records.find(name)

    def ids(self, like: str) -> list[str]:
        """Return ids among which a mistyped one may be meant."""
        found = [*self._figures, *(row.factor_id for row in self._records.factors.rows)]
        if not self._figures and not like.startswith(
            ("statement.", "allocation.", "charges.", "sci.", "drivers.", "initiatives.")
        ):
            found += self.of_statement(self._options.period)
            found += self.of_study
        return [*found, *self._records.ids()]

    def statement(self, period: str | None, by: str | None = None) -> Made:
        """Return a statement, made once."""
        if (period, by) not in self._made:
            o = self._options
            self._made[period, by] = make_statement(
                period,
                by=by,
                inventory=o.inventory,
                factors=self._records.factors,
                ledger=o.ledger,
                embodied_source=o.embodied_source,
                listed=True,
                now_us=o.now_us,
            )
        return self._made[period, by]

    def of_statement(self, period: str | None) -> dict[str, Figure]:
        """Return the figures of a period's statement; none where there is no such statement."""
        try:
            made = self.statement(period)
        except MissingExtraError:
            raise
        except CarbonlensError:
            if period is not None:
                raise
            return {}
        self._runs_of = {**self._runs_of, **made.runs_of}
        return self._led(made)

    @cached_property
    def of_study(self) -> dict[str, Figure]:
        """Figures of the study that is named, or the only one; empty where there is none."""
        from carbonlens.app.explain_study import study_figures

        o = self._options
        try:
            found = study_figures(
                o.study,
                ledger=o.ledger,
                baseline=o.baseline,
                steps=o.steps,
                assumptions=o.assumptions,
                volume=o.volume,
            )
        except MissingExtraError:
            raise
        except CarbonlensError:
            # Nobody asked for a comparison: that arms cannot be compared is no answer to another id.
            if o.of_comparison:
                raise
            return {}
        return {f.figure_id: f for f in found}

    def _is_of_score(self, name: str) -> bool:
        """Read the score that an id names; one score holds all ids of its begin."""
        if name in self._figures or name in self._runs_of:
            return True
        o = self._options
        found = score_of(
            name,
            ledger=o.ledger,
            inventory=o.inventory,
            factors=o.factors,
            embodied_source=o.embodied_source,
        )
        if found is not None:
            self._figures |= {f.figure_id: f for f in found.figures}
            self._runs_of = {**self._runs_of, **found.runs_of}
        return found is not None

    def _is_of_drivers(self, name: str) -> bool:
        """Read the bridge that an id names, and the statements of both its periods."""
        if name not in self._figures:
            found = self._periods.of_drivers(name)
            if found is None:
                return False
            self._take_all(found)
        return True

    def _is_of_quarter(self, name: str) -> bool:
        """Read what statements of several quarters come to, where an id is of that; tell whether it is."""
        from carbonlens.app.explain_quarter import is_of_quarter

        if not is_of_quarter(name):
            return False
        if name not in self._figures:
            self._take_all(self._periods.of_quarter(name))
        return True

    def _on_pages(self, name: str) -> Item | None:
        """Return a figure that the report of a quarter makes of its statements, and only its pages have."""
        from carbonlens.app.explain_quarter import is_on_pages

        if not is_on_pages(name):
            return None
        asked = self._options.period
        pages = self._periods.of_pages(name, asked if asked is not None and "Q" in asked else None)
        figure = pages.figures.get(name)
        if figure is None:
            # Near ones are looked for among these.
            self._figures = {**pages.figures, **self._figures}
            return None
        for led in figure.inputs:
            self._belongs(led)
        return counted_item(figure) if name in pages.counted else item_of(figure)

    def _take_all(self, found: Found) -> None:
        for made in found.statements:
            self._take(self.statement(made.period.text))
        self._figures |= found.figures
        self._runs_of = {**self._runs_of, **found.runs_of}

    @cached_property
    def _periods(self) -> Periods:
        return Periods(self.statement, self._source)

    def _source(self) -> Source:
        from carbonlens.app.drivers import Source

        o = self._options
        return Source(
            kept=self._records.kept,
            factors=self._records.factors,
            ledger=o.ledger,
            inventory=o.inventory,
            now_us=time.time_ns() // 1000 if o.now_us is None else o.now_us,
        )

    def of_business(self) -> dict[str, Figure]:
        """Return the figures of the business case that is named, and of the comparison beneath."""
        return self.of_study | business_case_figures(self._options, known=self.of_study)

    def _of_allocation(self, period: str) -> dict[str, Figure]:
        from carbonlens.app.explain_allocation import allocation_figures

        o = self._options
        found = allocation_figures(period, kept=self._records.kept, ledger=o.ledger)
        self._runs_of = {**self._runs_of, **found.runs_of}
        return {f.figure_id: f for f in found.figures}

    def _of_charges(self, period: str | None, kind: str, weights: str) -> dict[str, Figure]:
        from carbonlens.app.charges import charges_of_runs
        from carbonlens.app.explain_charges import charge_figures

        o = self._options
        found = charges_of_runs(
            ledger=o.ledger,
            inventory=o.inventory,
            period=period,
            kind=kind,
            weights="energy" if weights == "energy" else "time",
        )
        return {f.figure_id: f for f in charge_figures(found)}

    def _take(self, made: Made) -> None:
        self._figures |= self._led(made)
        self._runs_of = {**self._runs_of, **made.runs_of}

    def _led(self, made: Made) -> dict[str, Figure]:
        from carbonlens.app.explain_leads import led

        return led(made, self._records.kept.inventory.assets)

    def _as_item(self, figure: Figure) -> Item:
        """Return a figure as an item; a leaf that stands for a record is told as that record."""
        direct = self._records.find(figure.figure_id, of_ledger=False)
        if direct is not None and direct.kind == "meter":
            return msgspec.structs.replace(
                direct, estimate=figure.estimate, formula=figure.formula, inputs=figure.inputs
            )
        if direct is not None and not figure.inputs:
            return msgspec.structs.replace(direct, estimate=figure.estimate)
        if figure.inputs:
            return item_of(figure)
        is_known = figure.estimate.value is not None
        return msgspec.structs.replace(
            item_of(figure, "assumption" if is_known else "unstated"),
            details=("stated as an assumption; it rests on no other figure",)
            if is_known
            else ("nobody states it: it counts as unknown, never as 0",),
        )
