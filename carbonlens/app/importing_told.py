"""What the user says of a source, as texts by option: kept with its runs, and added to by the next import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from carbonlens.app.importing_placing import Placing
from carbonlens.domain.import_map import TableRule
from carbonlens.domain.units import Boundary
from carbonlens.importers.contract import Options

ZONE: Final = "tz"
_ZONE_OF: Final = "tz of "
"""Before the pattern of a project, in zones by project."""


def said_of(placing: Placing, path: str) -> dict[str, str]:
    """Return what the user says now of how a source is read.

    Args:
        placing: The options and the map.
        path: Of the source.
    """
    rule = placing.map.place_of(path, None)
    told = {
        ZONE: rule.tz or placing.tz,
        "boundary": rule.boundary or placing.boundary,
        "voltage": None if placing.voltage_v is None else repr(placing.voltage_v),
        "interval": None if placing.interval_s is None else repr(placing.interval_s),
        "start": None if placing.start_us is None else str(placing.start_us),
        "columns": None if placing.columns is None else ",".join(placing.columns),
    }
    zones = {f"{_ZONE_OF}{pattern}": zone for pattern, zone in placing.map.zones_by_project(path).items()}
    return {**{option: text for option, text in told.items() if text is not None}, **zones}


def options_of(told: Mapping[str, str], table: TableRule | None) -> Options:
    """Return the options for an importer.

    Args:
        told: What was said now, and before.
        table: How the columns of a table of no known format are read.
    """
    volts, seconds, start = told.get("voltage"), told.get("interval"), told.get("start")
    columns = told.get("columns")
    return Options(
        tz=told.get(ZONE),
        tz_by_project={k.removeprefix(_ZONE_OF): v for k, v in told.items() if k.startswith(_ZONE_OF)},
        boundary=cast("Boundary | None", told.get("boundary")),
        voltage_v=None if volts is None else float(volts),
        interval_s=None if seconds is None else float(seconds),
        start_us=None if start is None else int(start),
        columns=None if columns is None else tuple(columns.split(",")),
        table=table,
    )


def zones_in(told: Mapping[str, str]) -> dict[str, str]:
    """Return the zones among what was told."""
    return {k: v for k, v in told.items() if k == ZONE or k.startswith(_ZONE_OF)}
