"""Redfish: the Power resource of a chassis, one JSON document a reading."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source
from carbonlens.importers.unit_checks import LEAST_SERVER_W

_KEY: Final = "PowerConsumedWatts"
_LIST: Final = "PowerControl"


class RedfishImporter:
    """Importer of Redfish Power resources."""

    name = "redfish-power"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Redfish Power resource (JSON)",
        reads="one document, or several after one another (JSON Lines too)",
        units="watts; no time",
        grade="C: power at the supplies as the controller averages it, integrated",
        traps=(
            "a document has no time: --interval where several were saved one after another",
            "a single document is a power, and no energy",
            "null, 0 and text that is no number: unknown, not zero",
            "the first control with a reading is the chassis: others are parts, and are not added",
            "averages and extremes of PowerMetrics are over the controller's own period: not read",
        ),
        tested_on=("samples written after the schema and printed examples",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources that begin with a document of power controls."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # it is asked for nothing
        """Yield the readings.

        Raises:
            InputFileError: If it is no such JSON, or none tells a power.
        """
        import numpy as np

        source = group.main
        once = Once(source)
        readings = [_watts(document, once, place) for place, document in enumerate(_documents(source), 1)]
        if not any(map(math.isfinite, readings)):
            raise InputFileError(
                "tells no power: the controller does not measure it",
                where=source.shown,
                mend="read the power at the PDU, or with a wall meter",
            )
        channel = Channel(
            name="chassis",
            component="wall",
            boundary="it",
            method="Redfish PowerConsumedWatts",
            least_w=LEAST_SERVER_W,
        )
        yield channel
        yield Chunk(channel=channel, t_us=None, values=np.array(readings, dtype=np.float64), line=1)
        yield from once.findings()
        if len(readings) == 1:
            text = f"one reading of {readings[0]:g} W: no energy comes of it"
            yield finding("CL274", "warning", text, source, mend="log it repeatedly, with times")
        yield Tally(rows=len(readings))


IMPORTER: Final = RedfishImporter()


def _is_mine(source: Source) -> bool:
    start = source.head_lines()
    text = "\n".join(start)
    return text.lstrip().startswith("{") and f'"{_LIST}"' in text and f'"{_KEY}"' in text


def _documents(source: Source) -> Iterator[Mapping[str, Any]]:
    text = source.text().lstrip()
    decoder = json.JSONDecoder()
    place = 0
    while place < len(text):
        try:
            found, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise InputFileError(
                f"is no whole JSON ({error})", where=source.shown, mend="save the answer again"
            ) from None
        if not isinstance(found, dict):
            raise InputFileError(
                "holds what is no Power resource", where=source.shown, mend="save the resource alone"
            )
        yield found
        place += len(text[place:]) - len(text[place:].lstrip())


def _watts(document: Mapping[str, Any], once: Once, place: int) -> float:
    """Return the power of the chassis: of the first control that tells one; NaN where none does."""
    controls = document.get(_LIST)
    told = [c.get(_KEY) for c in controls if isinstance(c, dict)] if isinstance(controls, list) else []
    numbers = [number for number in map(_number, told) if number > 0]
    if not numbers:
        text = "a document tells no power (null, 0 or no number): unknown"
        once.say("CL271", "warning", text, place, "update the controller, or use a wall meter")
        return math.nan
    if len(numbers) > 1:
        text = "holds several power controls: the first with a reading is taken as the chassis"
        once.say("CL273", "info", text, place, "where each is a chassis of its own, save them apart")
    return numbers[0]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan
