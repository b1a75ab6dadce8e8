"""Findings that many lines of a source would give: said once, with the first line and their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding, Severity
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source


class Once:
    """Gathers what lines have in common.

    Args:
        source: The source they stand in.
    """

    def __init__(self, source: Source) -> None:
        """Start with nothing."""
        self._source = source
        self._found: dict[tuple[str, Severity, str, str | None], list[int]] = {}

    def say(self, code: str, severity: Severity, text: str, line: int, mend: str | None = None) -> None:
        """Note that a line has it.

        Args:
            code: Of the Finding.
            severity: Of the Finding.
            text: Without figures of the line, so that lines are alike.
            line: The line.
            mend: What would settle it.
        """
        place = self._found.setdefault((code, severity, text, mend), [line, 0])
        place[1] += 1

    def counts(self) -> Mapping[object, int]:
        """Return how many lines have each thing so far."""
        return {key: count for key, (_, count) in self._found.items()}

    def repeat(self, since: Mapping[object, int], times: int) -> None:
        """Count what was noted since, again for each of so many further lines that are like it."""
        for key, place in self._found.items():
            place[1] += (place[1] - since.get(key, 0)) * times

    def findings(self) -> Iterator[Finding]:
        """Yield one Finding a kind."""
        for (code, severity, text, mend), (line, count) in self._found.items():
            also = f" ({counted(count, 'line')}, the first is {line})" if count > 1 else ""
            yield finding(code, severity, text + also, self._source, line=line, mend=mend)
