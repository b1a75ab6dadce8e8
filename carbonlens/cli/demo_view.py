"""How the demo shows its progress and its result."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from carbonlens.cli import compare_view, output
from carbonlens.domain.counting import counted
from carbonlens.instrument.progress import Progress, Silent
from carbonlens.reporting.comparison_json import comparison_json
from carbonlens.studies.demo import DemoResult

if TYPE_CHECKING:
    from rich.progress import Progress as RichBars


class _Bars:
    """One bar a phase, on stderr."""

    def __init__(self, bars: RichBars) -> None:
        self._bars = bars
        self._task: int | None = None

    def start(self, total: int, label: str) -> None:
        """Begin a bar; the one before stays as it ended."""
        self._task = self._bars.add_task(label, total=total)

    def advance(self) -> None:
        """Move the bar on by one part."""
        if self._task is not None:
            from rich.progress import TaskID

            self._bars.advance(TaskID(self._task))

    def note(self, text: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(output.clean(text), markup=False, highlight=False)


class _Lines:
    """One line a phase, where no terminal shows bars."""

    def start(self, total: int, label: str) -> None:  # noqa: ARG002  # the protocol's argument
        """Name the phase."""
        output.note(label)

    def advance(self) -> None:
        """Say nothing: a log wants few lines."""

    def note(self, text: str) -> None:
        """Print a line."""
        output.note(text)


@contextmanager
def progress() -> Iterator[Progress]:
    """Show bars on a terminal's stderr, and a line a phase elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichBars
    except ImportError:
        yield Silent()
        return
    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with RichBars(*columns, console=Console(stderr=True)) as bars:
        yield _Bars(bars)


def print_result(result: DemoResult, *, json: bool) -> None:
    """Print the comparison and where the reports lie."""
    files = {name: str(path) for name, path in result.files.items()}
    if json:
        output.print_json(
            {
                "schema": "carbonlens/demo/1",
                "files": files,
                "study": str(result.study_file),
                "ledger": str(result.ledger),
                "rounds": result.rounds,
                "interrupted": result.interrupted,
                "failed_steps": result.failed_steps,
                "comparison": comparison_json(result.comparison),
            }
        )
        return
    compare_view.print_as_text(result.comparison)
    if result.interrupted:
        output.note(
            f"interrupted: {counted(result.rounds, 'complete round is', 'complete rounds are')} reported on"
        )
    if files:
        output.say(f"saved {' and '.join(files.values())}")
