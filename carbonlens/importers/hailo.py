"""hailortcli's power measurement: mean, extremes and number of samples over some seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import Run
from carbonlens.errors import InputFileError
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import (
    USUAL,
    Facts,
    Group,
    Item,
    Kind,
    Measured,
    Options,
    RunRecord,
    Tally,
)
from carbonlens.importers.records import finding, origin_of, reading
from carbonlens.importers.sources import Source

_LENGTH: Final = re.compile(r"^Measuring power consumption over (\d+) seconds:$")
_FIGURE: Final = re.compile(
    r"^(Total samples|Max value|Min value|Average value|Average time per sample)(?: \((\w+)\))?: (\S+)$"
)
_SINGLE: Final = re.compile(r"^Current power consumption \((\w+)\): (\S+)$")
_SIZES: Final = {"W": 1.0, "mW": 1e-3}
_LONGEST_S: Final = 31_536_000.0


class HailoImporter:
    """Importer of what ``hailortcli measure-power`` prints."""

    name = "hailo"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="Hailo power measurement (hailortcli)",
        reads="measurements over some seconds, several in one file; single readings",
        units="watts as the line states; amperes and volts are no power",
        grade="C: mean power of the board's own sensor, times the length of the measurement",
        traps=(
            "no time of day: the energy is in no hour",
            "the unit stands in the line: A, V and mV measurements have no energy and are left out",
            "a single reading is a power, and no energy",
            "a measurement that failed prints an error and no figures: nothing is made of it",
        ),
        tested_on=("samples written after the documentation and the tool's source code",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources with the tool's lines."""
        return each(sources, lambda s: any(_LENGTH.match(t) or _SINGLE.match(t) for t in s.first_lines))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield a run a measurement.

        Raises:
            InputFileError: If none tells a mean power.
        """
        source = group.main
        rows = rejected = kept = 0
        for line, length_s, figures in _measurements(source):
            rows += 1
            try:
                record = _record(source, line, length_s, figures, options)
            except ValueError as error:
                rejected += 1
                text = f"the measurement of line {line} {error}; it is left out"
                yield finding("CL202", "error", text, source, line=line, mend="measure power, to the end")
                continue
            kept += 1
            yield record
            mean_w = record.measured.mean_power_w if record.measured else None
            yield from unit_checks.of_trace("npu", mean_w, "W", source)
        singles = [(line, m) for line, text in source.lines() if (m := _SINGLE.match(text.strip()))]
        for line, single in singles:
            rows += 1
            text = f"one reading of {single[2]} {single[1]}: no energy comes of it"
            yield finding("CL274", "warning", text, source, line=line, mend="measure with --duration")
        if not kept and not singles:
            raise InputFileError(
                "tells no mean power: energy cannot be computed",
                where=source.shown,
                mend="measure power (W) over some seconds",
            )
        if kept:
            text = "measurements have no time of day: the energy is in no hour"
            yield finding("CL245", "warning", text, source, mend="keep when it was measured")
        yield Tally(rows=rows, rejected=rejected)


IMPORTER: Final = HailoImporter()

_Figures = dict[str, tuple[str, str]]


def _measurements(source: Source) -> Iterator[tuple[int, float, _Figures]]:
    """Yield line, seconds and figures of each measurement."""
    said = len(source.repairs)
    at, length_s, figures = 0, 0.0, _Figures()
    for line, text in source.lines():
        begin, figure = _LENGTH.match(text.strip()), _FIGURE.match(text.strip())
        if begin is not None:
            if at:
                yield at, length_s, figures
            at, length_s, figures = line, float(begin[1]), {}
        elif figure is not None:
            figures.setdefault(figure[1], (figure[2] or "", figure[3]))
    if at:
        yield at, length_s, figures
    del source.repairs[said:]  # the reading of single lines says them


def _record(source: Source, line: int, length_s: float, figures: _Figures, options: Options) -> RunRecord:
    unit, cell = figures.get("Average value", ("", ""))
    if not cell:
        raise ValueError("has no average: it failed, or is cut off")
    if unit not in _SIZES:
        raise ValueError(f"is in {unit or 'no unit'}, which is no power")
    mean_w = _number(cell) * _SIZES[unit]
    samples = _number(figures.get("Total samples", ("", ""))[1])
    if samples < 1:
        raise ValueError("took no sample")
    if not 0 < length_s < _LONGEST_S:
        raise ValueError(f"lasts {length_s:g} s")
    told = reading(
        "npu",
        mean_w * length_s,
        method="hailortcli mean power x length",
        grade="C",
        meter=source.name,
        boundary=options.boundary or "device",
        covered_s=length_s,
    )
    content = f"{line}\x1f{length_s}\x1f{sorted(figures.items())}"
    run = Run(
        run_id=f"hailo-{sha256_hex(content.encode())[:24]}",
        duration_s=length_s,
        energy=(told,),
        origin=origin_of(IMPORTER, source, line),
    )
    return RunRecord(
        run=run, line=line, measured=Measured(samples=int(samples), mean_power_w=mean_w, covered_s=length_s)
    )


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"holds {cell!r}, which is no number") from None
    if not 0 <= value < math.inf:
        raise ValueError(f"holds {cell!r}, which cannot be")
    return value
