"""Joulescope's CSV export: amperes and volts of each sample, up to two million a second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.importers.claiming import each
from carbonlens.importers.columns import NumberTable
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.sources import Source, first_names

_TIME: Final = "#time (s)"
_CURRENT: Final = "current (a)"
_VOLTAGE: Final = "voltage (v)"
_US_PER_S: Final = 1e6


class JoulescopeImporter:
    """Importer of Joulescope's CSV exports."""

    name = "joulescope"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Joulescope (CSV export)",
        reads="#time (s), current (A) and voltage (V), as the older desktop application exports them",
        units="amperes, volts, seconds from the begin of the export",
        grade="A: an external meter; its width is not in the file and stays unknown",
        traps=(
            "NaN is a sample that was dropped: uncovered seconds, not 0",
            "an export without its header line is any table of three numbers: map its columns",
            "times have no day: --start",
            ".jls recordings are a format of their own",
        ),
        tested_on=("samples written after the documentation and the application's source code",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the tables with the export's header."""
        return each(sources, lambda s: {_TIME, _CURRENT, _VOLTAGE} <= set(first_names(s)))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples.

        Raises:
            InputFileError: If it cannot be read.
        """
        channel = Channel(
            name="device",
            component="total",
            boundary=options.boundary or "device",
            grade="A",
            method="Joulescope current x voltage",
            unit="W",
        )
        yield channel
        table = NumberTable(group.main, (_TIME, _CURRENT, _VOLTAGE))
        for block in table.blocks():
            yield Chunk(
                channel=channel,
                t_us=block.columns[_TIME] * _US_PER_S,
                values=block.columns[_CURRENT] * block.columns[_VOLTAGE],
                line=block.line,
                relative=True,
            )
        yield from table.findings()
        yield Tally(rows=table.rows, rejected=table.rejected)


IMPORTER: Final = JoulescopeImporter()
