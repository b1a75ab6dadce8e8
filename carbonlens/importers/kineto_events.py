"""Decodes a Kineto trace event by event: blocks of text in, single JSON objects out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from carbonlens.importers.sources import Source

MOST_PENDING: Final = 16 * 1024**2
"""An object longer than this is given up: none that the profiler writes is near it."""

_EVENTS: Final = re.compile(r'"traceEvents"\s*:\s*\[')
_DEVICES: Final = re.compile(r'"deviceProperties"\s*:\s*(?=\[)')
_NEXT: Final = re.compile(r'\{\s*"(?:ph|name|cat)"\s*:')
_BETWEEN: Final = re.compile(r"[\s,]*")
_BACKSLASH: Final = re.compile(r'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\')
_CUT_AT: Final = 2
"""An error this near to the end of what was read so far may be mended by what comes next."""


class Decoded(msgspec.Struct, frozen=True):
    """One thing that was found.

    Attributes:
        what: An event, a torn one, the list of devices, or the end of the events.
        line: About where.
        value: Of an event or of the devices.
    """

    what: Literal["event", "torn", "devices", "closed"]
    line: int
    value: Any = None


def decoded(source: Source) -> Iterator[Decoded]:
    """Yield what a trace holds, in bounded memory.

    Raises:
        InputFileError: If it cannot be read, or is no text.
    """
    scanner = _Scanner()
    for line, block in source.blocks():
        yield from scanner.feed(block.decode("utf-8", "replace"), line, is_last=False)
    yield from scanner.feed("", scanner.line, is_last=True)


class _Scanner:
    """Keeps what has been read and not been decoded yet."""

    def __init__(self) -> None:
        self.line = 1
        self._text = ""
        self._at = 0
        self._is_in_events = self._is_over = False
        self._decoder = json.JSONDecoder(parse_constant=lambda _: None)

    def feed(self, text: str, line: int, *, is_last: bool) -> Iterator[Decoded]:
        """Take more text and yield what is whole by now."""
        if self._is_over:
            return
        self._text = self._text[self._at :] + text
        self._at, self.line = 0, line
        if not self._is_in_events:
            yield from self._head()
        while self._is_in_events and not self._is_over:
            found = self._next(is_last=is_last)
            if found is None:
                return
            yield found

    def _head(self) -> Iterator[Decoded]:
        """Look for the begin of the events, and for devices before it."""
        begin = _EVENTS.search(self._text)
        if begin is None:
            if len(self._text) > MOST_PENDING:
                self._at = len(self._text) - MOST_PENDING // 2
            return
        devices = _DEVICES.search(self._text, 0, begin.start())
        if devices is not None:
            try:
                value, _ = self._decoder.raw_decode(self._text, devices.end())
            except (ValueError, RecursionError):
                value = None
            yield Decoded("devices", self.line, value)
        self._at, self._is_in_events = begin.end(), True

    def _next(self, *, is_last: bool) -> Decoded | None:
        """Return the next thing; ``None`` where more text is needed."""
        text = self._text
        gap = _BETWEEN.match(text, self._at)
        self._at = gap.end() if gap else self._at
        if self._at >= len(text):
            return None
        if text[self._at] == "]":
            self._is_over = True
            return Decoded("closed", self.line)
        try:
            value, end = self._decoder.raw_decode(text, self._at)
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) - _CUT_AT and len(text) - self._at < MOST_PENDING:
                return self._torn(len(text)) if is_last else None
            return self._mended(is_last=is_last)
        except (ValueError, RecursionError):  # a number of thousands of digits, or nesting as deep
            return self._torn(self._begin_of_next())
        return self._told(value, end)

    def _mended(self, *, is_last: bool) -> Decoded | None:
        """Decode an event anew with its lone backslashes taken literally; else it is torn."""
        end = self._begin_of_next()
        if end == len(self._text) and not is_last and end - self._at < MOST_PENDING:
            return None  # its end may come with the next block
        try:
            value, _ = self._decoder.raw_decode(_BACKSLASH.sub(_escaped, self._text[self._at : end]))
        except (ValueError, RecursionError):
            return self._torn(end)
        return self._told(value, end)

    def _told(self, value: object, end: int) -> Decoded:
        """Return an event; of anything else, what follows up to the next event is torn with it."""
        if not isinstance(value, dict):
            return self._torn(self._begin_of_next())
        self._at = end
        return Decoded("event", self.line, value)

    def _begin_of_next(self) -> int:
        following = _NEXT.search(self._text, self._at + 1)
        return following.start() if following else len(self._text)

    def _torn(self, end: int) -> Decoded:
        self._at = end
        return Decoded("torn", self.line)


def _escaped(found: re.Match[str]) -> str:
    """Return an escape as it is, and a lone backslash escaped."""
    return found[1] or "\\\\"
