"""Use case part: records by their ids: rows of tables, what an inventory declares, runs, bills, readings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.app.explain_declared import Declared
from carbonlens.app.explain_items import (
    blended_factor_item,
    certificate_item,
    charge_item,
    factor_item,
    price_item,
    reading_item,
    run_makers,
)
from carbonlens.app.inventory import Kept
from carbonlens.domain.charge import Charge
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.identity import is_hidden_as
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.factors.store import FactorSet
from carbonlens.reporting.explanation import Item

_JOINT: Final = " + "
"""Between the ids of a factor that is made of several."""


class Records:
    """All records of a ledger, an inventory and factor tables, each read when it is first asked for."""

    def __init__(
        self,
        *,
        ledger: str | Path | None = None,
        inventory: str | Path | None = None,
        factors: str | Path | FactorSet | None = None,
    ) -> None:
        """Look nowhere yet.

        Args:
            ledger: The ledger's folder; found as the command line finds it when ``None``.
            inventory: The inventory folder, found likewise.
            factors: The user's own factors, found likewise, or a whole set.
        """
        self._ledger = ledger
        self._inventory = inventory
        self._given = factors

    @cached_property
    def factors(self) -> FactorSet:
        """The rows in force."""
        from carbonlens.factors.store import open_factors

        return self._given if isinstance(self._given, FactorSet) else open_factors(self._given)

    @cached_property
    def kept(self) -> Kept:
        """The inventory."""
        from carbonlens.app.inventory import load_inventory

        return load_inventory(self._inventory)

    def ids(self) -> Iterator[str]:
        """Yield the ids of all records but rows of factors, bills and readings."""
        yield from (f"run:{r}" for r in self._run_items)
        yield from (*(p.price_id for p in self.kept.inventory.prices), *self._bundled_prices)
        yield from self._declared.ids()
        yield from (c.certificate_id for c in self.kept.inventory.certificates)

    def find(self, name: str, *, of_ledger: bool = True) -> Item | None:
        """Return a record by its id.

        Args:
            name: The id.
            of_ledger: Whether the ledger is looked into too.
        """
        found = self._row(name) or self._declared.item(name)
        if found is not None and found.kind == "meter" and of_ledger:
            counted = (r for r in self._rows[1].values() if f"meter:{r.meter_id}" == name)
            ids = tuple(f"reading:{r.reading_id}" for r in counted)
            return msgspec.structs.replace(found, formula="all readings of the meter", inputs=ids)
        if found is not None or not of_ledger:
            return found
        if name.startswith("study:"):
            return Item(item_id=name, kind="study", title=f"study {name.removeprefix('study:')}")
        if name.startswith("run:"):
            asked, makers = name.removeprefix("run:"), self._run_items
            # Tables that leave the house have a pseudonym where an id ends with the name of a host.
            make = makers.get(asked) or next((m for r, m in makers.items() if is_hidden_as(r, asked)), None)
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
        for certificate in self.kept.inventory.certificates:
            if certificate.certificate_id == name:
                return certificate_item(certificate, self._declared.place("certificates", name))
        for price in self.kept.inventory.prices:
            if price.price_id == name:
                return price_item(price, self._declared.place("prices", name))
        return self._bundled_prices.get(name)

    @cached_property
    def _places(self) -> Mapping[str, str]:
        """File and line of each factor row, by its id."""
        from carbonlens.factors.store import bundled_tables

        bundled = {
            row.factor_id: f"bundled {_short(place)}" for t in bundled_tables() for place, row in t.placed()
        }
        return bundled | {o.row.factor_id: _short(o.place) for o in self.factors.overrides}

    @cached_property
    def _declared(self) -> Declared:
        return Declared(self.kept)

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

        with open_ledger(self._ledger) as store:
            runs = current(store.view().runs)[0] if store.exists else ()
        return run_makers(runs)

    @cached_property
    def _rows(self) -> tuple[Mapping[str, Charge], Mapping[str, MeterReading]]:
        """Lines of bills and readings of meters by id; the ledger is read once."""
        from carbonlens.app.statement_meters import meters_and_readings
        from carbonlens.ledger.activity import CHARGES
        from carbonlens.ledger.opening import open_ledger

        with open_ledger(self._ledger) as store:
            if not store.exists:
                return {}, {r.reading_id: r for r in self.kept.inventory.readings}
            charges = store.rows(CHARGES)[0]
            readings = meters_and_readings(store, self.kept.inventory, charges)[1]
        return {row.charge_id: row for row in charges}, {r.reading_id: r for r in readings}

    @cached_property
    def _rows_of_factors(self) -> Mapping[str, FactorRow]:
        return {row.factor_id: row for row in reversed(self.factors.rows)}


def _short(place: str) -> str:
    return place.rpartition("/")[2]
