"""A table of Jetson rails: columns such as ``POM_5V_IN (mW)``, as scripts around tegrastats write.

A table has no time unless a column says so; no such column was seen in the wild.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.domain.jetson_rails import MODULES
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Named, Options, Tally
from carbonlens.importers.device_samples import DeviceSamples
from carbonlens.importers.jetson_channels import channels_of
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table, exact

_COLUMN: Final = re.compile(r"^(\w+)\s*[(\[](mw|w|uw)[)\]]$")
_SIZES: Final = {"w": 1.0, "mw": 1e-3, "uw": 1e-6}
_KNOWN: Final = {rail.name.lower(): rail.name for module in MODULES for rail in module.rails}


class JetsonTableImporter:
    """Importer of tables of Jetson rails."""

    name = "jetson-rails"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Table of Jetson rails, made of tegrastats",
        reads="CSV of columns such as 'POM_5V_IN (mW)', each a rail that is known",
        units="as each column's name states: mW, W or uW",
        grade="C: power, integrated",
        traps=(
            "the input rail holds all others: it alone counts, the others stand beside",
            "no column bears a time: --interval gives the energy",
        ),
        tested_on=("one real table of 114 samples (Jetson Nano)",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources whose every column is a known rail with its unit."""
        return each(sources, lambda s: bool(_rails(first_names(s))))

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # no option changes it
        """Yield the samples of each rail.

        Raises:
            InputFileError: If no cell holds a power.
        """
        source = group.main
        table = Table(source)
        rails = _rails(first_names(source))
        layout, channels, said = channels_of([_KNOWN[r] for r, _ in rails.values()], "tegrastats", source)
        yield from said
        yield Named(hardware=layout.title)
        samples = DeviceSamples(has_times=False)
        rows = rejected = 0
        for line, cells in table.dicts():
            rows += 1
            try:
                watts = _watts(cells, rails, table.delimiter)
            except ValueError as error:
                rejected += 1
                text = f"line {line} {error}; the row is left out"
                yield finding("CL202", "error", text, source, line=line, mend="mend the row")
                continue
            for name, value in watts.items():
                if name in channels:
                    samples.add(channels[name], None, value, line)
            if samples.is_full:
                yield from samples.hand_on()
        if not samples.is_known:
            raise InputFileError("has no power in any row", where=source.shown, mend="let the log run longer")
        yield from samples.hand_on()
        yield Tally(rows=rows, rejected=rejected)


IMPORTER: Final = JetsonTableImporter()


def _rails(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return rail and unit by column; nothing unless every column is one."""
    found = {}
    for name in names:
        told = _COLUMN.match(name)
        if told is None or told[1] not in _KNOWN:
            return {}
        found[name] = (told[1], told[2])
    return found


def _watts(
    cells: dict[str, str] | list[str], rails: dict[str, tuple[str, str]], delimiter: str
) -> dict[str, float]:
    if not isinstance(cells, dict):
        raise ValueError("has not as many cells as there are columns")
    found = {}
    for column, (rail, unit) in rails.items():
        value = exact(cells[column], delimiter=delimiter)
        if value is not None and value < 0:
            raise ValueError(f"has {column} {cells[column]}, below zero")
        found[_KNOWN[rail]] = float("nan") if value is None else float(value) * _SIZES[unit]
    return found
