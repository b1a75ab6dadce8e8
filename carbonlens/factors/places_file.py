"""The bundled tables of grid zones and cloud regions."""

from __future__ import annotations

import csv
import io
from functools import cache
from importlib import resources

from carbonlens.accounting.gazetteer import CloudRegion, Gazetteer, Zone
from carbonlens.domain import decoding

ZONE_TABLES = ("zones.csv", "zones_electricity_maps.csv")
"""Of two tables with one zone the first counts; the second is ODbL and stands by itself."""

REGION_TABLE = "cloud_regions.csv"


@cache
def bundled_places() -> Gazetteer:
    """Return the places that come with carbonlens."""
    zones = [_zone(row) for name in ZONE_TABLES for row in _rows(name)]
    return Gazetteer(zones, decoding.convert(_rows(REGION_TABLE), tuple[CloudRegion, ...]))


def _zone(row: dict[str, str]) -> Zone:
    aliases = tuple(text for text in row["aliases"].split(";") if text)
    return decoding.convert({**row, "parent": row["parent"] or None, "aliases": aliases}, Zone)


def _rows(name: str) -> list[dict[str, str]]:
    file = resources.files("carbonlens.factors") / "data" / "places" / name
    return list(csv.DictReader(io.StringIO(file.read_text("utf-8"), newline="")))
