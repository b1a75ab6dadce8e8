"""EnergiBridge's CSV: RAPL's counters or the machine's power, some times a second.

``Time`` is when a sample was begun, ``Delta`` the milliseconds until it was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.columns import NumberTable
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.sources import Source, first_names

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array, SampleKind

_US_PER_MS: Final = 1e3
_EARLIEST_MS: Final = 31_536_000_000.0
_LATEST_MS: Final = 7_258_118_400_000.0


class _Column(msgspec.Struct, frozen=True):
    component: str
    kind: SampleKind
    within: tuple[str, ...] = ()


_COLUMNS: Final = {
    "package_energy (j)": _Column("cpu", "counter"),
    "cpu_energy (j)": _Column("cpu", "counter", ("package_energy (j)",)),
    "dram_energy (j)": _Column("ram", "counter"),
    "pp0_energy (j)": _Column("cpu", "counter", ("package_energy (j)", "cpu_energy (j)")),
    "pp1_energy (j)": _Column("cpu", "counter", ("package_energy (j)", "cpu_energy (j)")),
    "cpu_power (watts)": _Column(
        "cpu", "instant", ("package_energy (j)", "cpu_energy (j)", "system_power (watts)")
    ),
    "system_power (watts)": _Column("total", "instant"),
}
"""Columns, and which others hold each already."""


class EnergiBridgeImporter:
    """Importer of EnergiBridge's CSV files."""

    name = "energibridge"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="EnergiBridge (CSV)",
        reads="RAPL's PACKAGE, DRAM, PP0 and PP1, AMD's CPU_ENERGY, CPU_POWER, macOS' SYSTEM_POWER",
        units="joules so far, or watts; milliseconds since 1970, and since the sample before",
        grade="B: RAPL's counters; C: power, integrated",
        traps=(
            "energies are counters: a difference of last and first is wrong where one wrapped or was reset",
            "Time is when a sample was begun: it was read Delta milliseconds later",
            "PACKAGE holds PP0 and PP1, and SYSTEM_POWER holds CPU_POWER: those are not read then",
            "columns of GPUs are not read: import the GPU's own log",
        ),
        tested_on=("samples written after the documentation and printed examples",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the tables that begin as EnergiBridge's do."""
        return each(sources, lambda s: first_names(s)[:2] == ("delta", "time"))

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # it states all
        """Yield the samples of each counter and power.

        Raises:
            InputFileError: If no column tells an energy or a power.
        """
        source = group.main
        names = set(first_names(source)) & set(_COLUMNS)
        if not names:
            raise InputFileError(
                "has no energy and no power column: energy cannot be computed",
                where=source.shown,
                mend="run EnergiBridge with access to the CPU's counters",
            )
        wholes = [name for name in sorted(names) if not names & set(_COLUMNS[name].within)]
        channels = {name: _channel(name) for name in wholes}
        yield from channels.values()
        table = NumberTable(source, ("delta", "time", *channels))
        for block in table.blocks():
            began_ms = block.columns["time"]
            waited_ms = block.columns["delta"]
            t_us = _when(began_ms, waited_ms, source, block.line)
            for name, channel in channels.items():
                yield Chunk(channel=channel, t_us=t_us, values=block.columns[name], line=block.line)
        yield from table.findings()
        yield Tally(rows=table.rows, rejected=table.rejected)


IMPORTER: Final = EnergiBridgeImporter()


def _channel(name: str) -> Channel:
    column = _COLUMNS[name]
    plain = name.partition(" ")[0].upper()
    return Channel(
        name=plain,
        component=column.component,
        kind=column.kind,
        method=f"EnergiBridge {plain}",
        unit="J" if column.kind == "counter" else "W",
    )


def _when(began_ms: Array, waited_ms: Array, source: Source, line: int) -> Array:
    import numpy as np

    t_ms = began_ms + waited_ms
    told = t_ms[np.isfinite(t_ms)]
    if len(told) and not (told.min() >= _EARLIEST_MS and told.max() <= _LATEST_MS):
        raise InputFileError(
            "has times that are no milliseconds since 1970",
            where=f"{source.shown}:{line}",
            mend="give the file as EnergiBridge wrote it",
        )
    return t_ms * _US_PER_MS
