"""Nordic Power Profiler Kit 2: microamperes at up to 100 kHz, exported as CSV or saved as ``.ppk2``.

Neither form holds the voltage: who measured knows it. Export leaves samples out that were
lost, so times jump there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.importers import ppk2_session
from carbonlens.importers.claiming import each
from carbonlens.importers.columns import NumberTable
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.sources import Source, first_names

_TIME: Final = "timestamp(ms)"
_CURRENT: Final = "current(ua)"
_PINS: Final = frozenset({"bits", "d0-d7", *(f"d{i}" for i in range(8))})
_US_PER_MS: Final = 1e3
_A_PER_UA: Final = 1e-6


class PPK2Importer:
    """Importer of the Power Profiler's exports and sessions."""

    name = "ppk2"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Nordic Power Profiler Kit 2 (CSV, .ppk2)",
        reads="CSV exports with any set of columns; .ppk2 sessions of format 2 (ZIP of 6-byte samples)",
        units="microamperes; milliseconds from the begin of the session",
        grade="A: an external meter; its width is not in the file and stays unknown",
        traps=(
            "no voltage in the file: --voltage, else it is refused",
            "a CSV export without the time column: --interval gives the energy (0.00001 at 100 kHz)",
            "a CSV export tells no day: --start; a session bears when it began",
            "lost samples are left out of an export, and NaN in a session: uncovered seconds, not 0",
            "logic pins are not read: cut the export to the part that counts",
        ),
        tested_on=("samples written after the documentation and the source code of the application",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return exports, each by itself, and the members of each session together."""
        return [*ppk2_session.groups(sources), *each(sources, _is_mine)]

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples.

        Raises:
            InputFileError: If nobody states the voltage, or it is a session of an unknown format.
        """
        if options.voltage_v is None:
            raise InputFileError(
                "tells current alone: without the voltage there is no energy",
                where=group.main.shown,
                mend="give --voltage with the volts of the supply",
            )
        channel = Channel(
            name="supply",
            component="total",
            grade="A",
            method=f"PPK2 current at {options.voltage_v:g} V, as given",
            unit="W",
        )
        yield channel
        if len(group.sources) > 1:
            yield from ppk2_session.samples(group, channel, options.voltage_v)
        else:
            yield from _table(group.main, channel, options.voltage_v)


IMPORTER: Final = PPK2Importer()


def _is_mine(source: Source) -> bool:
    names = set(first_names(source)) - {""}
    return _CURRENT in names and names <= {_TIME, _CURRENT} | _PINS


def _table(source: Source, channel: Channel, volts: float) -> Iterator[Item]:
    table = NumberTable(source, (_TIME, _CURRENT))
    for block in table.blocks():
        t_ms = block.columns.get(_TIME)
        yield Chunk(
            channel=channel,
            t_us=None if t_ms is None else t_ms * _US_PER_MS,
            values=block.columns[_CURRENT] * (_A_PER_UA * volts),
            line=block.line,
            relative=t_ms is not None,
        )
    yield from table.findings()
    yield Tally(rows=table.rows, rejected=table.rejected)
