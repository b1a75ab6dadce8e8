"""What ``carbonlens run`` says after the command has ended."""

from __future__ import annotations

from carbonlens.app.command import CommandResult
from carbonlens.cli import output
from carbonlens.reporting import format as fmt
from carbonlens.reporting.run_json import run_json


def print_result(result: CommandResult, *, json: bool) -> None:
    """Print the run: JSON on stdout, or one line on stderr, since stdout is the command's."""
    run = result.run
    if run is None:
        return
    if json:
        output.print_json({"schema": "carbonlens/run/1", "run": run_json(run)})
        return
    total = run.total_energy
    printed = fmt.energy(total)
    grade = f", grade {total.grade}" if total.grade else ""
    output.note(f"carbonlens: {printed.text} {printed.interval}{grade}; saved run {run.run_id}")
