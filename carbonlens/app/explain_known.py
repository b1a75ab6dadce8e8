"""Use case part: all that an explanation can look up, each read when it is first asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.app.explain_business import OF_BUSINESS, business_case_figures
from carbonlens.app.explain_declared import Declared
from carbonlens.app.explain_drivers import OF_DRIVERS, OF_INITIATIVES, drivers_of
from carbonlens.app.explain_items import (
    blended_factor_item,
    certificate_item,
    charge_item,
    factor_item,
    price_item,
    reading_item,
    run_makers,
)
from carbonlens.app.explain_sci import OF_SCI, score_of
from carbonlens.app.inventory import Kept
from carbonlens.app.statement import Made, make_statement
from carbonlens.domain.charge import Charge
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.figure import Figure
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.errors import CarbonlensError, MissingExtraError
from carbonlens.factors.store import FactorSet
from carbonlens.reporting.explanation import Item, item_of

_PERIOD: Final = r"(\d{4}(?:Q[1-4]|-\d{2}(?:-\d{2})?)?)"
_OF_PERIOD: Final = re.compile(rf"(?:statement|energy|runs)\.{_PERIOD}\.(.+)")
_OF_MARKET: Final = re.compile(rf"market:.+:{_PERIOD}")
_OF_ALLOCATION: Final = re.compile(rf"allocation\.{_PERIOD}\..+")
_OF_CHARGES: Final = re.compile(rf"charges\.(?:all|{_PERIOD})\.([a-z]+)\.(time|energy)\..+")
_BY: Final = re.compile(r"by\.((?:tag:)?[^.]+)\.")
_JOINT: Final = " + "
"""Between the ids of a factor that is made of several."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look; each as the command line takes it.

    Attributes:
        assumptions: File with the factors and prices of a comparison.
        volume: Its expected units, ``2e9 a year``.
        embodied_source: The one source of embodied figures, as ``account`` and ``sci`` were asked with.
        business: File of a business case, as ``compare`` was asked with.
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
        self._made: dict[tuple[str | None, str | None], Made] = {}
        self._figures: dict[str, Figure] = {}
        self._runs_of: Mapping[str, tuple[str, ...]] = {}

    def find(self, name: str) -> Item | None:
        """Return the item of an id that a user gave; reads what it belongs to."""
        if self._belongs(name):
            return self.resolve(name)
        if name.startswith("meter:"):
            # What it counted is of a period; without a statement it is all of its readings.
            self._figures |= self.of_statement(self._options.period)
            if name in self._figures:
                return self.resolve(name)
        direct = self._lookup(name) or self._lookup(f"run:{name}")
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
                return True
        if OF_SCI.fullmatch(name) is not None:
            return self._is_of_score(name)
        if name.startswith(OF_BUSINESS):
            self._figures |= self.of_business()
            return True
        if OF_DRIVERS.fullmatch(name) is not None or OF_INITIATIVES.fullmatch(name) is not None:
            return self._is_of_drivers(name)
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
        return self._lookup(name)

    def ids(self, like: str) -> list[str]:
        """Return ids among which a mistyped one may be meant."""
        found = [*self._figures, *(row.factor_id for row in self._factors.rows)]
        if not self._figures and not like.startswith(
            ("statement.", "allocation.", "charges.", "sci.", "drivers.", "initiatives.")
        ):
            found += self.of_statement(self._options.period)
            found += self.of_study
        found += (f"run:{r}" for r in self._run_items)
        found += (*(p.price_id for p in self._kept.inventory.prices), *self._bundled_prices)
        found += self._declared.ids()
        return [*found, *(c.certificate_id for c in self._kept.inventory.certificates)]

    def statement(self, period: str | None, by: str | None = None) -> Made:
        """Return a statement, made once."""
        if (period, by) not in self._made:
            o = self._options
            self._made[period, by] = make_statement(
                period,
                by=by,
                inventory=o.inventory,
                factors=self._factors,
                ledger=o.ledger,
                embodied_source=o.embodied_source,
                listed=True,
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
            o = self._options
            found = drivers_of(name, ledger=o.ledger, inventory=o.inventory, factors=self._factors)
            if found is None:
                return False
            for made in found.statements:
                self._take(self.statement(made.period.text))
            self._figures |= {f.figure_id: f for f in found.figures}
            self._runs_of = {**self._runs_of, **found.runs_of}
        return True

    def of_business(self) -> dict[str, Figure]:
        """Return the figures of the business case that is named, and of the comparison beneath."""
        return self.of_study | business_case_figures(self._options, known=self.of_study)

    def _of_allocation(self, period: str) -> dict[str, Figure]:
        from carbonlens.app.explain_allocation import allocation_figures

        o = self._options
        found = allocation_figures(period, kept=self._kept, ledger=o.ledger)
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

    @cached_property
    def _factors(self) -> FactorSet:
        from carbonlens.factors.store import open_factors

        return open_factors(self._options.factors)

    @cached_property
    def _places(self) -> Mapping[str, str]:
        """File and line of each factor row, by its id."""
        from carbonlens.factors.store import bundled_tables

        bundled = {
            row.factor_id: f"bundled {_short(place)}" for t in bundled_tables() for place, row in t.placed()
        }
        return bundled | {o.row.factor_id: _short(o.place) for o in self._factors.overrides}

    @cached_property
    def _kept(self) -> Kept:
        from carbonlens.app.inventory import load_inventory

        return load_inventory(self._options.inventory)

    @cached_property
    def _declared(self) -> Declared:
        return Declared(self._kept)

    @cached_property
    def _bundled_prices(self) -> Mapping[str, Item]:
        from carbonlens.factors.prices_file import bundled_prices

        return {
            row.price_id: price_item(row, f"bundled prices.csv, row {n}")
            for n, row in enumerate(bundled_prices(), 1)
        }

    @cached_property
    def _run_items(self) -> Mapping[str, Callable[[], Item]]:
        """What makes the item of a run, by its id; the ledger is read once."""
        from carbonlens.ledger.opening import open_ledger
        from carbonlens.ledger.records import current

        with open_ledger(self._options.ledger) as store:
            runs = current(store.view().runs)[0] if store.exists else ()
        return run_makers(runs)

    @cached_property
    def _rows(self) -> tuple[Mapping[str, Charge], Mapping[str, MeterReading]]:
        """Lines of bills and readings of meters by id; the ledger is read once."""
        from carbonlens.app.statement_meters import meters_and_readings
        from carbonlens.ledger.activity import CHARGES
        from carbonlens.ledger.opening import open_ledger

        with open_ledger(self._options.ledger) as store:
            if not store.exists:
                return {}, {r.reading_id: r for r in self._kept.inventory.readings}
            charges = store.rows(CHARGES)[0]
            readings = meters_and_readings(store, self._kept.inventory, charges)[1]
        return {row.charge_id: row for row in charges}, {r.reading_id: r for r in readings}

    def _take(self, made: Made) -> None:
        self._figures |= self._led(made)
        self._runs_of = {**self._runs_of, **made.runs_of}

    def _led(self, made: Made) -> dict[str, Figure]:
        from carbonlens.app.explain_leads import led

        return led(made, self._kept.inventory.assets)

    def _as_item(self, figure: Figure) -> Item:
        """Return a figure as an item; a leaf that stands for a record is told as that record."""
        direct = self._lookup(figure.figure_id, runs=False)
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

    def _lookup(self, name: str, *, runs: bool = True) -> Item | None:
        """Return a record by its id; ``runs`` whether the ledger is looked into too."""
        found = self._row(name) or self._declared.item(name)
        if found is not None and found.kind == "meter" and runs:
            counted = (r for r in self._rows[1].values() if f"meter:{r.meter_id}" == name)
            ids = tuple(f"reading:{r.reading_id}" for r in counted)
            return msgspec.structs.replace(found, formula="all readings of the meter", inputs=ids)
        if found is not None or not runs:
            return found
        if name.startswith("study:"):
            return Item(item_id=name, kind="study", title=f"study {name.removeprefix('study:')}")
        if name.startswith("run:"):
            make = self._run_items.get(name.removeprefix("run:"))
            return None if make is None else make()
        charges, readings = self._rows
        if name.startswith("reading:"):
            reading = readings.get(name.removeprefix("reading:"))
            return None if reading is None else reading_item(reading)
        return charge_item(charges[name]) if name in charges else None

    def _row(self, name: str) -> Item | None:
        """Return a row of a factor or price table, or a certificate."""
        row = self._rows_of_factors.get(name)
        if row is not None:
            return factor_item(row, self._places.get(name, "factor set"))
        parts = name.split(_JOINT)
        if len(parts) > 1 and all(p in self._rows_of_factors for p in parts):
            return blended_factor_item(name, tuple(parts))
        for certificate in self._kept.inventory.certificates:
            if certificate.certificate_id == name:
                return certificate_item(certificate, self._declared.place("certificates", name))
        for price in self._kept.inventory.prices:
            if price.price_id == name:
                return price_item(price, self._declared.place("prices", name))
        return self._bundled_prices.get(name)

    @cached_property
    def _rows_of_factors(self) -> Mapping[str, FactorRow]:
        return {row.factor_id: row for row in reversed(self._factors.rows)}


def _short(place: str) -> str:
    return place.rpartition("/")[2]
