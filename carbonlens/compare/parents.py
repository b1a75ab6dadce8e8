"""Parents: which runs lie around a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from carbonlens.domain.run import Run


def around(run: Run, by_id: Mapping[str, Run]) -> Iterator[Run]:
    """Yield the runs around one, the nearest first; a circle of parents ends.

    Args:
        run: The run.
        by_id: The runs among which to look.
    """
    seen = {run.run_id}
    here = by_id.get(run.parent_run_id or "")
    while here is not None and here.run_id not in seen:
        yield here
        seen.add(here.run_id)
        here = by_id.get(here.parent_run_id or "")
