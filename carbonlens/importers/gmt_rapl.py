"""Green Metrics Tool's RAPL provider logs: microjoules of each interval, by package or memory.

Logs of its other providers look the same and tell neither their unit nor what they are of; only
those that name a RAPL domain on each line are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

_LINE: Final = re.compile(r"^\s*(\d{16}) (-?\d{1,18}) ((Package|DRAM)_\d{1,3})\s*$")
_COMPONENTS: Final = {"Package": "cpu", "DRAM": "ram"}
_BATCH: Final = 65_536
_J_PER_UJ: Final = 1e-6


class GmtRaplImporter:
    """Importer of RAPL provider logs of the Green Metrics Tool."""

    name = "gmt-rapl"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Green Metrics Tool RAPL provider log",
        reads="cpu_energy_rapl_msr_component and memory_energy_rapl_msr_component: time, value, domain",
        units="microseconds since 1970; microjoules since the line before",
        grade="B (RAPL counter)",
        traps=(
            "values are energies of an interval, not power and not a counter",
            "of a single line the energy is known; duration and power are not",
            "logs of other providers have the same look: without a RAPL domain they are not read",
            "a log that was joined to itself counts once",
        ),
        tested_on=("two logs of its repository", "samples typed here"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim logs whose first lines are a time, a value and a RAPL domain."""
        return each(
            sources,
            lambda s: bool(s.first_lines) and all(map(_LINE.match, s.first_lines[:3][:-1] or s.first_lines)),
        )

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # lines say all
        """Yield the energies by domain."""
        yield from _Reading(group.main).items()


IMPORTER: Final = GmtRaplImporter()


class _Domain:
    """One domain's samples that wait, and the spans of time that it told of."""

    def __init__(self, name: str, kind: str) -> None:
        self.channel = Channel(
            name=name,
            component=_COMPONENTS[kind],
            device=name,
            kind="delta",
            method="RAPL MSR, Green Metrics Tool",
            unit="uJ",
        )
        self.line = 0
        self.rows: list[tuple[float, float]] = []
        self._spans: list[list[int]] = []

    def takes(self, us: int) -> str:
        """Note a time: ``next``, ``back`` where the clock was set back, ``told`` where it was before."""
        if self._spans and us > self._spans[-1][1] and not self._is_told(us, self._spans[:-1]):
            self._spans[-1][1] = us
            return "next"
        if self._is_told(us, self._spans):
            return "told"
        self._spans.append([us, us])
        return "back" if len(self._spans) > 1 else "next"

    def _is_told(self, us: int, spans: list[list[int]]) -> bool:
        return any(first <= us <= last for first, last in spans)


class _Reading:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._domains: dict[str, _Domain] = {}
        self._once = Once(source)
        self._rows = self._rejected = self._repeated = 0

    def items(self) -> Iterator[Item]:
        """Yield channels, samples, Findings and a tally."""
        for line, text in self._source.lines():
            if not text.strip():
                continue
            self._rows += 1
            found = _LINE.match(text)
            if found is None:
                self._rejected += 1
                why = f"line {line} is no time, value and RAPL domain; it is left out"
                yield finding("CL202", "error", why, self._source, line=line, mend="copy the log again")
                continue
            name = found[3]
            if name not in self._domains:
                self._domains[name] = _Domain(name, found[4])
                yield self._domains[name].channel
            yield from self._take(self._domains[name], line, int(found[1]), int(found[2]))
        for domain in self._domains.values():
            yield from _flushed(domain)
        yield from self._said()
        yield Tally(rows=self._rows, rejected=self._rejected, repeated=self._repeated)

    def _take(self, domain: _Domain, line: int, us: int, value: int) -> Iterator[Item]:
        taken = domain.takes(us)
        if taken == "told":
            self._repeated += 1
            return
        if taken == "back":
            text = "the clock goes back; both parts are added up"
            self._once.say("CL243", "warning", text, line, "check that no file was joined to itself")
            yield from _flushed(domain)
        if value < 0:
            text = "an energy is below zero: it failed, and is unknown"
            self._once.say("CL202", "warning", text, line, "update the tool")
        domain.line = domain.line or line
        domain.rows.append((float(us), value * _J_PER_UJ if value >= 0 else math.nan))
        if len(domain.rows) >= _BATCH:
            yield from _flushed(domain)

    def _said(self) -> Iterator[Item]:
        yield from self._once.findings()
        if self._repeated:
            told = counted(self._repeated, "line is of a time", "lines are of times")
            text = f"{told} that earlier lines told of; counted once"
            yield finding("CL201", "warning", text, self._source)


def _flushed(domain: _Domain) -> Iterator[Item]:
    import numpy as np

    if domain.rows:
        made = np.array(domain.rows)
        yield Chunk(channel=domain.channel, t_us=made[:, 0], values=made[:, 1], line=domain.line)
    domain.rows, domain.line = [], 0
