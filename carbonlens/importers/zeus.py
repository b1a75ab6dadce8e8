"""Zeus: the windows that its monitor logs, joules a GPU each.

Windows may lie in one another: one that lies in another is a part of it, and its energy is
counted with it alone. They are logged as they end, so that the file is gone through twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_S
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding, origin_of, reading
from carbonlens.importers.run_rows import content_id, left_out, number_in, whole_row
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table

_GPU: Final = re.compile(r"^gpu(\d+)_energy$")
_FIRST_EPOCH_S: Final = 31_536_000 * 10
"""Times above this are seconds since 1970; smaller ones count from when the machine started."""

_LEAST_W: Final = 0.5
"""Of one GPU: the smallest draws more when idle."""


class ZeusImporter:
    """Importer of the CSV file of Zeus' monitor."""

    name = "zeus"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="Zeus monitor, log of windows (CSV)",
        reads="start_time, window_name, elapsed_time and any number of gpuN_energy columns",
        units="seconds; joules a GPU and window, GPUs alone",
        grade="B: the driver's counter; on GPUs before Volta, Zeus polls power, and the file does not say so",
        traps=(
            "a window within another is a part of it: its run has that one as parent, and counts once",
            "windows that overlap in part hold the same joules twice: said",
            "an energy of 0 is a window shorter than the counter's step: unknown, not zero",
            "start_time may count from the machine's start: then the energy is in no hour",
            "CPUs, memory and the rest of the host are not in it",
        ),
        tested_on=("a file of four GPUs and nine windows from Zeus' repository", "files typed here"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables with Zeus' columns and a GPU at least."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the windows.

        Raises:
            InputFileError: If it cannot be read.
        """
        yield from _Reading(group.main, options).items()


IMPORTER: Final = ZeusImporter()


def _is_mine(source: Source) -> bool:
    names = first_names(source)
    return {"start_time", "window_name", "elapsed_time"} <= set(names) and any(map(_GPU.match, names))


class _Window(msgspec.Struct, frozen=True):
    """Where a window lies, in seconds, and the id of its run."""

    start_s: float
    end_s: float
    run_id: str
    line: int


class _Reading:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._boundary = options.boundary or "device"
        self._once = Once(source)
        self._table = Table(source)

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        parents, said = self._parents()
        yield from said
        rows = rejected = repeated = 0
        seen: set[str] = set()
        for line, cells in self._table.dicts():
            rows += 1
            try:
                run = self._run(line, whole_row(cells))
            except ValueError as error:
                rejected += 1
                yield left_out(error, self._source, line)
                continue
            if run.run_id in seen:
                repeated += 1
                self._once.say("CL201", "info", "repeats an earlier row exactly; counted once", line)
                continue
            seen.add(run.run_id)
            yield from self._checks(run, line)
            yield RunRecord(
                run=msgspec.structs.replace(run, parent_run_id=parents.get(run.run_id)), line=line
            )
        yield from self._once.findings()
        yield Tally(rows=rows, rejected=rejected, repeated=repeated)

    def _parents(self) -> tuple[dict[str, str], list[Item]]:
        """Return the window that each lies in, by their runs' ids, and what is wrong with their times."""
        table = Table(self._source)
        windows = {}
        for line, cells in table.dicts():
            try:
                row = whole_row(cells)
                start_s = number_in(row, "start_time", table.delimiter)
                length_s = number_in(row, "elapsed_time", table.delimiter)
            except ValueError:
                continue
            if start_s is not None and length_s is not None:
                run_id = content_id("zeus", row)
                windows[run_id] = _Window(float(start_s), float(start_s + length_s), run_id, line)
        return self._nested(sorted(windows.values(), key=lambda w: (w.start_s, -w.end_s)))

    def _nested(self, windows: Sequence[_Window]) -> tuple[dict[str, str], list[Item]]:
        parents: dict[str, str] = {}
        crossed: list[_Window] = []
        around: list[_Window] = []
        for window in windows:
            while around and around[-1].end_s <= window.start_s:
                around.pop()
            holders = [w for w in around if w.end_s >= window.end_s]
            if holders:
                parents[window.run_id] = holders[-1].run_id
            elif around:
                crossed.append(window)
            around.append(window)
            around.sort(key=lambda w: -w.end_s)
        said: list[Item] = []
        if parents:
            count = counted(len(parents), "window lies in another and is", "windows lie in others and are")
            said.append(finding("CL262", "info", f"{count} counted with it", self._source))
        if crossed:
            text = f"{counted(len(crossed), 'window')} overlap others in part: the same joules are in both"
            mend = "let windows end before the next begins, or lie in one another"
            said.append(finding("CL262", "warning", text, self._source, line=crossed[0].line, mend=mend))
        return parents, said

    def _run(self, line: int, row: Mapping[str, str]) -> Run:
        delimiter = self._table.delimiter
        start_s = number_in(row, "start_time", delimiter)
        length_s = number_in(row, "elapsed_time", delimiter)
        start_us = None
        if start_s is not None and start_s > _FIRST_EPOCH_S:
            start_us = round(start_s * US_PER_S)
        else:
            self._once.say("CL245", "warning", "start_time is no time of day: the energy is in no hour", line)
        has_end = start_us is not None and length_s is not None
        name = row.get("window_name") or None
        return Run(
            run_id=content_id("zeus", row),
            start_us=start_us,
            end_us=(start_us or 0) + round((length_s or 0) * US_PER_S) if has_end else None,
            duration_s=None if length_s is None else float(length_s),
            energy=tuple(self._readings(line, row)),
            tags={"window": name} if name else {},
            origin=origin_of(IMPORTER, self._source, line),
        )

    def _readings(self, line: int, row: Mapping[str, str]) -> Iterator[Reading]:
        for column in row:
            found = _GPU.match(column)
            if found is None:
                continue
            joules = number_in(row, column, self._table.delimiter)
            gpu = f"GPU {found[1]}"
            if not joules:
                text = f"{gpu} not measured: its energy is {'0' if joules == 0 else 'not told'}"
                mend = "let windows last a second at least" if joules == 0 else None
                self._once.say("CL253", "warning", f"{text}; it counts as unknown", line, mend)
            yield reading(
                "gpu",
                joules or None,
                method="zeus, the driver's energy counter",
                grade="B",
                meter=f"{self._source.name} {gpu}",
                boundary=self._boundary,
                devices=(gpu,),
            )

    def _checks(self, run: Run, line: int) -> Iterator[Item]:
        known = [float(r.energy_j) for r in run.energy if r.energy_j is not None]
        stated = unit_checks.Stated(
            energy_j=sum(known),
            energy_unit="J",
            duration_s=run.duration_s,
            least_w=_LEAST_W * len(known),
            most_w=unit_checks.MOST_W["gpu"] * len(known),
        )
        yield from unit_checks.of_run(stated, self._source, line)
