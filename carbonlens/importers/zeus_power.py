"""Zeus' power log of its older monitor: milliwatts of one GPU at local times with nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table
from carbonlens.importers.times import Clock
from carbonlens.importers.unit_checks import LEAST_DEVICE_W

_BATCH: Final = 65_536
_ROW: Final = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9}[,;]\d+$")
"""Nine decimals of a second and whole milliwatts: what tells it from other logs of the same header."""

_WHOLE_MW: Final = re.compile(r"^\d+$")
_MW_PER_W: Final = 1000.0


class ZeusPowerImporter:
    """Importer of Zeus' power logs."""

    name = "zeus-power"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Zeus power log of a training (CSV)",
        reads="Time and Power, as zeus_monitor wrote them until 2023",
        units="milliwatts, under a header without a unit; local times with nanoseconds",
        grade="C: polled GPU power",
        traps=(
            "Power is in milliwatts: Zeus' own reader divides by 1000",
            "the last line may be cut off when the monitor is stopped: it is left out, and said",
            "local times without a zone: --tz, else UTC, and said",
        ),
        tested_on=("samples written after the documentation and the reader in Zeus' repository",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables of Time and Power whose first row is as Zeus writes it."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples.

        Raises:
            InputFileError: If it cannot be read.
        """
        import numpy as np

        source = group.main
        clock = Clock(options.tz, source)
        channel = Channel(
            name="GPU",
            component="gpu",
            method="zeus_monitor, polled GPU power",
            unit="mW",
            boundary=options.boundary or "device",
            least_w=LEAST_DEVICE_W,
        )
        yield channel
        rows = rejected = first = 0
        times: list[float] = []
        watts: list[float] = []
        for line, cells in Table(source).rows():
            rows += 1
            first = first if times else line
            try:
                us, power_w = _sample(cells, clock, line)
            except ValueError as error:
                rejected += 1
                text = f"line {line} {error}; the sample is left out"
                yield finding("CL202", "warning", text, source, line=line, mend="mend the line")
                continue
            times.append(us)
            watts.append(power_w)
            if len(times) == _BATCH:
                yield Chunk(channel=channel, t_us=np.array(times), values=np.array(watts), line=first)
                times, watts = [], []
        if times:
            yield Chunk(channel=channel, t_us=np.array(times), values=np.array(watts), line=first)
        yield from clock.findings
        yield Tally(rows=rows, rejected=rejected)


IMPORTER: Final = ZeusPowerImporter()


def _is_mine(source: Source) -> bool:
    lines = source.first_lines
    return len(lines) > 1 and first_names(source) == ("time", "power") and bool(_ROW.match(lines[1].strip()))


def _sample(cells: Sequence[str], clock: Clock, line: int) -> tuple[float, float]:
    if len(cells) != 2 or not _WHOLE_MW.match(cells[1]):
        raise ValueError("is no time with whole milliwatts")
    try:
        moment = datetime.fromisoformat(cells[0])
    except ValueError:
        raise ValueError(f"has {cells[0]!r}, which is no time") from None
    return float(clock.us(moment, line)), int(cells[1]) / _MW_PER_W
