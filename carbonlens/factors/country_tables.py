"""Yearly tables by country: Ember's long and wide files, and the energy table of Our World in Data.

All three give Ember's figures: life-cycle emissions of what a country generates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.domain.factor_row import FactorRow
from carbonlens.factors.foreign import Format, Line, Placed, Reading, kg_per_kwh, zones_by_alpha3

_COUNTRY_TYPES: Final = frozenset({"country", "country or economy"})


class CountryTable(msgspec.Struct, frozen=True, kw_only=True):
    """One layout of such a table.

    Attributes:
        prefix: First part of the ids of its rows.
        code, year, value, name: Columns; the value is in grams per kWh.
        only: Columns, to what they hold in the lines that count.
        source, address, licence: As its rows are to state them.
    """

    prefix: str
    code: str
    year: str
    value: str
    name: str
    source: str
    address: str
    licence: str
    only: Mapping[str, frozenset[str]] = {}

    def claims(self, columns: Sequence[str]) -> bool:
        """Tell from the plain column names whether a file has this layout."""
        return {self.code, self.year, self.value, self.name, *self.only} <= set(columns)

    def rows(self, lines: Sequence[Line], reading: Reading) -> list[Placed]:
        """Return a row a country and year.

        Raises:
            ConfigError: If a value is no number.
        """
        found: list[Placed] = []
        for line in lines:
            reason = self._refusal(line.cells, reading.since)
            if reason is None:
                found.append(Placed(line.number, self._row(line, reading)))
            elif reason:
                reading.left_out[reason] += 1
        return found

    def _refusal(self, cells: Mapping[str, str], since: int) -> str | None:
        """Return why a line is not taken; an empty text where it speaks of something else."""
        if any(cells[name].strip().lower() not in wanted for name, wanted in self.only.items()):
            return ""
        if not cells[self.value].strip():
            return "without a value"
        if cells[self.code].strip() not in zones_by_alpha3():
            return "no country with a code of ours"
        year = cells[self.year].strip()
        return None if year.isdigit() and int(year) >= since else f"before {since}"

    def _row(self, line: Line, reading: Reading) -> FactorRow:
        zone, year = zones_by_alpha3()[line.cells[self.code].strip()], line.cells[self.year].strip()
        return FactorRow(
            factor_id=f"{self.prefix}/{zone}/{year}",
            kind="grid",
            subject=zone,
            name=line.cells[self.name].strip(),
            period=year,
            value=kg_per_kwh(line.cells[self.value], reading.place(line)),
            method="location",
            averaging="average",
            span="life_cycle",
            flow="production",
            source=f"{self.source} {year}",
            address=f"{self.address} ({reading.file.name})",
            licence=self.licence,
            vintage=year,
        )


_EMBER: Final = "https://ember-energy.org/data/yearly-electricity-data/"

_LAYOUTS: Final = {
    "Ember yearly, long": CountryTable(
        prefix="ember-csv",
        code="iso 3 code",
        year="year",
        value="value",
        name="area",
        source="Ember yearly electricity data",
        address=_EMBER,
        licence="CC-BY-4.0",
        only={
            "area type": _COUNTRY_TYPES,
            "category": frozenset({"power sector emissions"}),
            "variable": frozenset({"co2 intensity"}),
            "unit": frozenset({"gco2/kwh", "gco2e/kwh", "gco2 per kwh", "gco2e per kwh"}),
        },
    ),
    "Ember yearly, wide": CountryTable(
        prefix="ember-csv",
        code="iso 3 code",
        year="year",
        value="emissions intensity (gco2e/kwh)",
        name="area",
        source="Ember yearly electricity data",
        address=_EMBER,
        licence="CC-BY-4.0",
        only={"area type": _COUNTRY_TYPES, "electricity source": frozenset({"total generation"})},
    ),
    "OWID energy": CountryTable(
        prefix="owid",
        code="iso_code",
        year="year",
        value="carbon_intensity_elec",
        name="country",
        source="Our World in Data energy table (Ember)",
        address="https://github.com/owid/energy-data",
        licence="CC-BY-4.0",
    ),
}

FORMATS: Final = tuple(Format(name, layout.claims, layout.rows) for name, layout in _LAYOUTS.items())
