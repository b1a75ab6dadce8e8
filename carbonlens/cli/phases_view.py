"""How a run's phases are printed: a table, its last line what lies in none of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from carbonlens.cli import output
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.run import Run
from carbonlens.reporting import format as fmt
from carbonlens.reporting import names
from carbonlens.reporting.run_phases import PhaseLine, phase_lines

_REST: Final = "(the rest)"
_SHORTEST_NAME: Final = 10
_LONGEST_UNIT: Final = 12
_NONE: Final = "-"


def print_phases(run: Run) -> None:
    """Print a run's phases, at most ``output.WIDTH`` wide; nothing for a run without any."""
    lines = phase_lines(run)
    if not lines:
        return
    unit = output.clip(names.plural(run.unit or "unit"), _LONGEST_UNIT)
    header = ["phase", "entered", "time", "energy", "95 %", "share", unit]
    rows = [_row(line) for line in lines]
    if all(line.units is None for line in lines):
        header, rows = header[:-1], [row[:-1] for row in rows]
    rest = sum(max(len(row[i]) for row in (header, *rows)) for i in range(1, len(header)))
    room = max(output.WIDTH - rest - 2 * (len(header) - 1), _SHORTEST_NAME)
    rows = [[output.clip(row[0], room), *row[1:]] for row in rows]
    output.say("")
    for text in output.table(header, rows):
        output.say(text)
    if any(line.name is not None and line.energy.value is None for line in lines):
        output.say("the energy of a phase that is not known is in that of the rest")


def _row(line: PhaseLine) -> list[str]:
    printed = fmt.energy(line.energy)
    known = line.energy.value is not None
    return [
        line.name or _REST,
        _NONE if line.entries is None else str(line.entries),
        fmt.duration(Estimate(value=line.duration_s, unit="s")).text,
        printed.text,
        (printed.interval or "unknown") if known else _NONE,
        _NONE if line.share is None else f"{line.share:.1f} %",
        _units(line.units),
    ]


def _units(units: Decimal | None) -> str:
    return _NONE if units is None else f"{units:f}"
