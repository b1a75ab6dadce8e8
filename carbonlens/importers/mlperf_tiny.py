"""MLPerf Tiny energy results: the runner's log with microjoules of each measured window.

A window is a run of some inferences between two marks of the device under test; what lies
outside of windows is not measured, and not counted.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from carbonlens.domain.run import Run
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.json_files import id_of
from carbonlens.importers.once import Once
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.sources import Source

_HEAD: Final = re.compile(r"\bulp-\w+: (.*)$")
_OPENS: Final = re.compile(r"Energy data for window (\d+) at time ([\d.]+) for ([\d.]+) sec")
_PERFORMANCE: Final = re.compile(r"Performance results for window (\d+)\s*:")
_FIGURE: Final = re.compile(r"\s*([#\w/. ]+?)\s*:\s+(-?[\d.]+(?:[eE][+-]?\d+)?)\s*(\S*)\s*$")
_MEDIAN: Final = re.compile(r"Median energy cost is\s+(-?[\d.]+)\s*(\S+)/inf")
_NOT_MET: Final = re.compile(r"[Rr]untime requirements? (?:have|has|were|was) not been met|ERROR", re.ASCII)
_JOULES: Final = {
    "nJ": Decimal("1e-9"),
    "uJ": Decimal("1e-6"),
    "\u00b5J": Decimal("1e-6"),
    "mJ": Decimal("1e-3"),
    "J": Decimal(1),
}
_WATTS: Final = {name.replace("J", "W"): size for name, size in _JOULES.items()}
_SAME: Final = 0.002
_LEAST_W: Final = 1e-7


@dataclass(slots=True)
class _Window:
    number: str
    line: int
    at_s: str
    duration_s: Decimal
    unit: str = "uJ"
    energy_j: Decimal | None = None
    power_w: Decimal | None = None
    each_j: Decimal | None = None
    inferences: Decimal | None = None
    runtime_s: Decimal | None = None


class MlperfTinyImporter:
    """Importer of MLPerf Tiny energy results."""

    name = "mlperf-tiny"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="MLPerf Tiny energy results (results.txt of the EnergyRunner)",
        reads="results of rounds 0.5 to 1.1, energy mode: one run a window",
        units="uJ and uW as each line states; seconds; inferences",
        grade="A (external energy monitor); its width is not told",
        traps=(
            "only windows are measured: the time between them is no part of the energy",
            "the official figure is the median over windows an inference; a sum of windows is not",
            "energy is checked against the power and the energy of one inference beside it",
            "times count from the start of the log: the energy is in no hour",
        ),
        tested_on=("three results of MLPerf Tiny 1.1 (keyword spotting, images)", "a sample typed here"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim logs in which the runner tells of a window's energy."""
        return each(
            sources,
            lambda s: any(
                (found := _HEAD.search(line)) and _OPENS.match(found[1]) for line in s.head_lines()
            ),
        )

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield a run a window."""
        yield from _Reading(group.main, options).items()


IMPORTER: Final = MlperfTinyImporter()


class _Reading:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._boundary = options.boundary or "device"
        self._windows: list[_Window] = []
        self._repeated = 0
        self._median_j: Decimal | None = None
        self._at: _Window | None = None
        self._is_performance = False
        self._once = Once(source)

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        for line, text in self._source.lines():
            found = _HEAD.search(text)
            if found is not None:
                self._take(found[1], line)
        rejected = 0
        for place, window in enumerate(self._windows):
            if window.energy_j is None or window.energy_j < 0 or not window.duration_s:
                rejected += 1
                text = f"window {window.number} states no energy; it is left out"
                yield finding(
                    "CL202", "error", text, self._source, line=window.line, mend="copy the log again"
                )
                continue
            yield from self._checks(window)
            yield self._record(place, window)
        if len(self._windows) > rejected:
            text = "when the windows ran is not told: the energy is in no hour"
            yield finding("CL245", "warning", text, self._source)
        yield from self._median()
        yield from self._once.findings()
        rows = len(self._windows) + self._repeated
        yield Tally(rows=rows, rejected=rejected, repeated=self._repeated)

    def _take(self, text: str, line: int) -> None:
        opens, performance = _OPENS.match(text), _PERFORMANCE.match(text)
        if opens:
            self._open(opens, line)
        elif performance:
            told = [w for w in self._windows if w.number == performance[1]]
            self._at, self._is_performance = (told[-1] if told else None), True
        elif median := _MEDIAN.match(text):
            self._at = None
            self._median_j = _scaled(median[1], median[2], _JOULES)
        elif _NOT_MET.search(text):
            mend = "run for as long as the rules ask"
            self._once.say("CL280", "warning", "the runner says that its rules were not met", line, mend)
        elif self._at is not None and (figure := _FIGURE.match(text)):
            self._figure(self._at, figure[1], figure[2], figure[3])

    def _open(self, opens: re.Match[str], line: int) -> None:
        duration_s = _number(opens[3]) or Decimal(0)
        made = _Window(number=opens[1], line=line, at_s=opens[2], duration_s=duration_s)
        same = next((w for w in self._windows if _place(w) == _place(made)), None)
        self._is_performance = False
        if same is None:
            self._windows.append(made)
            self._at = made
            return
        # The log, or a part of it, stands in the file twice.
        self._at = same if same.energy_j is None else None
        self._repeated += 1
        self._once.say("CL201", "info", "a window stands in the log twice; counted once", line)

    def _figure(self, window: _Window, name: str, number: str, unit: str) -> None:
        if self._is_performance:
            if name == "# Inferences":
                window.inferences = _number(number)
            elif name == "Runtime":
                window.runtime_s = _number(number)
        elif name == "Energy":
            window.energy_j, window.unit = _scaled(number, unit, _JOULES), unit
        elif name == "Power":
            window.power_w = _scaled(number, unit, _WATTS)
        elif name == "Energy/Inf.":
            window.each_j = _scaled(number, unit.partition("/")[0], _JOULES)

    def _record(self, place: int, window: _Window) -> RunRecord:
        units = window.inferences
        if units is None and window.each_j and window.energy_j:
            units = (window.energy_j / window.each_j).quantize(Decimal(1))
        told = {name: str(getattr(window, name)) for name in ("number", "at_s", "duration_s", "energy_j")}
        measured = reading(
            "total",
            window.energy_j,
            method="MLPerf Tiny energy monitor",
            grade="A",
            meter=self._source.name,
            boundary=self._boundary,
            covered_s=float(window.duration_s),
        )
        run = Run(
            run_id=id_of("mlperf-tiny", told | {"units": str(units)}),
            repeat=place,
            duration_s=float(window.duration_s),
            energy=(measured,),
            units=units or None,
            unit="inference" if units else None,
            tags={"window": window.number},
            origin=origin_of(IMPORTER, self._source, window.line),
        )
        return RunRecord(run=run, line=window.line, stated_j=exact_j(window.energy_j))

    def _checks(self, window: _Window) -> Iterator[Item]:
        joules, seconds = float(window.energy_j or 0), float(window.duration_s)
        stated = unit_checks.Stated(
            energy_j=joules, energy_unit="J", duration_s=seconds, least_w=_LEAST_W, most_w=100.0
        )
        yield from unit_checks.of_run(stated, self._source, window.line)
        watts = None if window.power_w is None else float(window.power_w)
        told = unit_checks.Power(part="window", energy_j=joules, stated_w=watts, duration_s=seconds)
        yield from unit_checks.of_power(told, self._source, window.line)
        runtime_s = None if window.runtime_s is None else float(window.runtime_s)
        yield from unit_checks.of_length(seconds, runtime_s, self._source, window.line)
        if window.inferences and window.each_j:
            sum_j = float(window.each_j * window.inferences)
            if abs(sum_j - joules) > _SAME * joules:
                text = f"window {window.number}: its energy is not that of one inference times their number"
                yield self._disagrees(text, window.line)

    def _median(self) -> Iterator[Item]:
        each_j = [float(w.each_j) for w in self._windows if w.each_j is not None and w.energy_j is not None]
        if self._median_j is None or not each_j:
            return
        if abs(statistics.median(each_j) - float(self._median_j)) > _SAME * float(self._median_j):
            yield self._disagrees("the median printed is not that of the windows in the log", None)

    def _disagrees(self, text: str, line: int | None) -> Item:
        mend = "copy the whole log again; the energies of the windows are kept"
        return finding("CL282", "warning", text, self._source, line=line, mend=mend)


def _place(window: _Window) -> tuple[str, str, Decimal]:
    return window.number, window.at_s, window.duration_s


def _number(text: str) -> Decimal | None:
    """Return a figure; ``None`` for text that is none, or none of this world."""
    try:
        value = Decimal(text)
    except ArithmeticError:
        return None
    return value if value.is_finite() and value.adjusted() < 20 else None


def _scaled(text: str, unit: str, sizes: dict[str, Decimal]) -> Decimal | None:
    value, size = _number(text), sizes.get(unit)
    return None if value is None or size is None else value * size
