"""pyJoules' CSV: a row for each measured piece of code, with microjoules by domain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_S
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.device_samples import epoch_us
from carbonlens.importers.nesting import Span, nested
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding, origin_of, reading
from carbonlens.importers.run_rows import content_id, left_out, number_in, whole_row
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table, exact

_NAMES: Final = ("timestamp", "tag", "duration")
_DOMAIN: Final = re.compile(r"^(package|core|uncore|dram|nvidia_gpu)_(\d+)$")
_COMPONENT: Final = {"package": "cpu", "core": "cpu", "uncore": "cpu", "dram": "ram", "nvidia_gpu": "gpu"}
_WITHIN: Final = ("core", "uncore")
_J_PER_UJ: Final = Decimal("0.000001")
_SURE_S: Final = 600.0
"""RAPL's register of 65 kJ or 262 kJ wraps in minutes at full power; pyJoules mends one wrap."""


class PyJoulesImporter:
    """Importer of pyJoules' CSV files."""

    name = "pyjoules"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="pyJoules (CSV)",
        reads="timestamp;tag;duration and any set of RAPL and NVIDIA domains",
        units="microjoules by domain, seconds",
        grade="B: counters of RAPL and of the GPU's driver",
        traps=(
            "package holds core and uncore: those stand beside, and are not added",
            "0 of a package, memory or GPU is a window shorter than the counter's update: unknown",
            "below zero: a counter that wrapped more than once or was reset; unknown",
            "windows of over 10 minutes may lack whole turns of RAPL's register, and are said",
            "pieces within a piece count once, with the outer one",
            "one file is appended to by several programs: the header may repeat",
        ),
        tested_on=("samples written after the documentation and the tool's own writer",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the tables with pyJoules' first columns and a domain of it."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield a run a row.

        Raises:
            InputFileError: If it cannot be read.
        """
        yield from _Rows(group.main, options).items()


IMPORTER: Final = PyJoulesImporter()


def _is_mine(source: Source) -> bool:
    names = first_names(source)
    return names[:3] == _NAMES and any(map(_DOMAIN.match, names[3:]))


class _Rows:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._boundary = options.boundary or "device"
        self._once = Once(source)
        self._table = Table(source)

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        parents, crossed = nested(self._spans())
        if parents:
            count = counted(len(parents), "window lies in another and is", "windows lie in others and are")
            yield finding("CL262", "info", f"{count} counted with it", self._source)
        if crossed:
            text = f"{counted(len(crossed), 'window')} overlap others in part: the same joules are in both"
            mend = "let windows end before the next begins, or lie in one another"
            yield finding("CL262", "warning", text, self._source, line=crossed[0].line, mend=mend)
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
            run = msgspec.structs.replace(run, parent_run_id=parents.get(run.run_id))
            yield RunRecord(run=run, line=line)
        yield from self._once.findings()
        yield Tally(rows=rows, rejected=rejected, repeated=repeated)

    def _spans(self) -> list[Span]:
        """Return where the windows lie; the source is read once for it."""
        said = len(self._source.repairs)
        table = Table(self._source)
        found: dict[str, Span] = {}
        for line, cells in table.dicts():
            try:
                row = whole_row(cells)
                start_s, length_s = self._times(row, table.delimiter)
            except ValueError:
                continue
            if start_s is not None and length_s is not None:
                run_id = content_id("pyjoules", row)
                found.setdefault(run_id, Span(start_s, start_s + length_s, run_id, line))
        del self._source.repairs[said:]  # what it had to repair is said by the reading that counts
        return list(found.values())

    def _times(self, row: Mapping[str, str], delimiter: str) -> tuple[float | None, float | None]:
        start_s = number_in(row, "timestamp", delimiter)
        length_s = number_in(row, "duration", delimiter)
        if start_s is not None:
            epoch_us(float(start_s))
        return (
            None if start_s is None else float(start_s),
            None if length_s is None else float(length_s),
        )

    def _run(self, line: int, row: Mapping[str, str]) -> Run:
        start_s, length_s = self._times(row, self._table.delimiter)
        start_us = None if start_s is None else round(start_s * US_PER_S)
        if start_us is None:
            self._once.say("CL245", "warning", "has no start: the energy is in no hour", line)
        has_end = start_us is not None and length_s is not None
        parts = dict(self._readings(line, row))
        counts = {name: r for name, r in parts.items() if not _is_within(name, parts)}
        tag = row.get("tag")
        return Run(
            run_id=content_id("pyjoules", row),
            start_us=start_us,
            end_us=(start_us or 0) + round((length_s or 0) * US_PER_S) if has_end else None,
            duration_s=length_s,
            energy=tuple(counts.values()),
            beside=tuple(r for name, r in parts.items() if name not in counts),
            tags={"tag": tag} if tag else {},
            origin=origin_of(IMPORTER, self._source, line),
        )

    def _readings(self, line: int, row: Mapping[str, str]) -> Iterator[tuple[str, Reading]]:
        for column, cell in row.items():
            found = _DOMAIN.match(column)
            if found is None:
                continue
            try:
                microjoules = exact(cell, delimiter=self._table.delimiter)
            except ValueError as error:
                raise ValueError(f"has {column}: {error}") from None
            may_rest = found[1] in _WITHIN
            if microjoules is None or microjoules < 0 or (not microjoules and not may_rest):
                self._say_unknown(column, microjoules, line)
                microjoules = None
            yield (
                column,
                reading(
                    _COMPONENT[found[1]],
                    None if microjoules is None else microjoules * _J_PER_UJ,
                    method=f"pyJoules, {'the driver' if found[1] == 'nvidia_gpu' else 'RAPL'}'s counter",
                    grade="B",
                    meter=f"{self._source.name} {column}",
                    boundary=self._boundary,
                    devices=(column,),
                ),
            )

    def _say_unknown(self, column: str, microjoules: Decimal | None, line: int) -> None:
        why = "not told" if microjoules is None else "0" if not microjoules else "below zero"
        mend = (
            None
            if microjoules is None
            else "measure a longer piece"
            if not microjoules
            else "measure it again"
        )
        text = f"{column} not measured: its energy is {why}; it counts as unknown"
        self._once.say("CL253", "warning", text, line, mend)

    def _checks(self, run: Run, line: int) -> Iterator[Item]:
        known = [float(r.energy_j) for r in run.energy if r.energy_j is not None]
        stated = unit_checks.Stated(
            energy_j=sum(known),
            energy_unit="uJ",
            duration_s=run.duration_s,
            most_w=unit_checks.MOST_W["cpu"] * max(len(known), 1),
        )
        yield from unit_checks.of_run(stated, self._source, line)
        if (run.duration_s or 0) > _SURE_S and any(r.component in {"cpu", "ram"} for r in run.energy):
            text = "lasts over 10 minutes: RAPL may have wrapped more often than the once that is mended"
            self._once.say("CL273", "warning", text, line, "measure in shorter pieces, and add them up")


def _is_within(name: str, parts: Mapping[str, Reading]) -> bool:
    kind, _, socket = name.rpartition("_")
    return kind in _WITHIN and f"package_{socket}" in parts
