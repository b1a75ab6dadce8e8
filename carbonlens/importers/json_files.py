"""JSON files of other tools: decoded whole into typed records, refused with a reason where they are not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TypeVar

import msgspec

from carbonlens.domain.decoding import decode_json
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.identity import sha256_hex
from carbonlens.errors import InputFileError
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

T = TypeVar("T")


def decoded(source: Source, kind: type[T], what: str) -> T:
    """Return the content of a JSON file.

    Args:
        source: The file.
        kind: What it holds; members that it does not name are passed over.
        what: Name of the format, for the message.

    Raises:
        InputFileError: If it cannot be read, or is none.
    """
    try:
        return decode_json(source.text(), kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputFileError(
            f"is no whole {what} ({error})", where=source.shown, mend="copy or export the file again"
        ) from error


def quantity(value: float | None, name: str) -> Decimal | None:
    """Return a figure exactly; ``None`` where it is unknown.

    Raises:
        ValueError: If it is below zero or no finite number; it names the figure.
    """
    if value is None or math.isnan(value):
        return None
    if value < 0 or math.isinf(value):
        raise ValueError(f"has {name} {value:g}, which is below zero or no number")
    return Decimal(repr(float(value)))


def id_of(prefix: str, content: Mapping[str, object]) -> str:
    """Return an id for a run that its source gives none, made of what it says."""
    text = "\x1f".join(f"{name}={value!r}" for name, value in sorted(content.items()))
    return f"{prefix}-{sha256_hex(text.encode())[:24]}"


class Notes:
    """Findings about a file whose records have no lines: each is said once.

    Args:
        source: The file.
    """

    def __init__(self, source: Source) -> None:
        """Start with nothing."""
        self._source = source
        self._found: dict[str, Finding] = {}

    def say(self, code: str, severity: Severity, text: str, mend: str | None = None) -> None:
        """Note something, unless it was noted before."""
        self._found.setdefault(text, finding(code, severity, text, self._source, mend=mend))

    def findings(self) -> Iterator[Finding]:
        """Yield what was noted."""
        yield from self._found.values()
