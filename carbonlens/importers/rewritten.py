"""A source whose lines another importer reads in a form that it knows.

A table of blanks is read as the same tool's CSV, a log without a header with the header it lacks.
The content, its hash and what had to be repaired stay those of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from carbonlens.importers.source_hashes import Hashes
from carbonlens.importers.sources import Source


class Rewritten(Source):
    """A source with other lines.

    Args:
        source: The source; what reading it repairs is noted there.
        header: A line that stands before the others, as line 0.
        rewrite: Yields the other lines with their numbers, each time that it is called.
    """

    def __init__(self, source: Source, header: str, rewrite: Callable[[], Iterator[tuple[int, str]]]) -> None:
        """Point at the source; nothing is read."""
        super().__init__(source.path, source.member)
        self.repairs = source.repairs
        self._source = source
        self._header = header
        self._rewrite = rewrite

    @property
    def hashes(self) -> Hashes:
        """Hashes of the file's content."""
        return self._source.hashes

    @cached_property
    def first_lines(self) -> tuple[str, ...]:
        """The header, by which the other importer knows it."""
        return (self._header,)

    def lines(self, *, keep_nul: bool = False) -> Iterator[tuple[int, str]]:  # noqa: ARG002  # no format here parts lines by zeros
        """Yield the header, and each line with the number it has in the file."""
        yield 0, self._header
        yield from self._rewrite()


class Headed(Rewritten):
    """A source that lacks its header and nothing else: its lines, and blocks of them, are the file's.

    Args:
        source: The source.
        header: A line that stands before the others, as line 0.
    """

    def __init__(self, source: Source, header: str) -> None:
        """Point at the source; nothing is read."""
        super().__init__(source, header, source.lines)
