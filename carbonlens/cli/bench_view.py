"""How a bench is shown."""

from __future__ import annotations

from carbonlens.app.bench import BenchOutcome
from carbonlens.cli import compare_view, output
from carbonlens.reporting.comparison_json import comparison_json


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
                "failed": dict(result.failed),
                "comparison": comparison_json(outcome.comparison),
            }
        )
        return
    compare_view.print_as_text(outcome.comparison)
    if files:
        output.say(f"saved {' and '.join(files.values())}")
    else:
        output.say(f"saved study {outcome.study} in {outcome.ledger}")
