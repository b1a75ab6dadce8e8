"""How a bench is shown."""

from __future__ import annotations

from typing import Final

from carbonlens.app.bench import BenchOutcome, in_one_process
from carbonlens.cli import compare_view, output
from carbonlens.instrument.bench import BenchResult
from carbonlens.reporting.comparison_json import comparison_json

_MOST_LINES: Final = 10


def _kept_processes(result: BenchResult) -> list[str]:
    """Return in a line whose rounds shared a process, which a comparison has as a note only."""
    if not result.in_one_process:
        return []
    which = output.clean(in_one_process(result))
    return [output.clip(f"CL188 info: one process for {which}", output.width())]


def print_outcome(outcome: BenchOutcome, *, json: bool) -> None:
    """Print the comparison, where its runs and reports lie, and how the series ended."""
    files = {name: str(path) for name, path in outcome.files.items()}
    result = outcome.result
    if json:
        output.print_json(
            {
                "schema": "carbonlens/bench/1",
                "study": outcome.study,
                "ledger": str(outcome.ledger),
                "files": files,
                "rounds": result.rounds,
                "ended": result.ended,
                "half_width": result.half_width,
                "rounds_needed": result.needed,
                "failed": dict(result.failed),
                "in_one_process": list(result.in_one_process),
                "comparison": comparison_json(outcome.comparison),
            }
        )
        return
    kept = _kept_processes(result)
    compare_view.print_as_text(
        outcome.comparison,
        within=_MOST_LINES - len(kept) - 1,
        # This command with --json would measure again.
        listed_by=f"carbonlens compare --study {outcome.study} --json",
    )
    for line in kept:
        output.say(line)
    if files:
        output.say(f"saved {' and '.join(files.values())}")
    else:
        output.say(f"saved study {outcome.study} in {outcome.ledger}")
