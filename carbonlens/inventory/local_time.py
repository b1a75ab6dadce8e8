"""Local times of meters as UTC microseconds; an hour that the clocks repeat or skip has none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal

from carbonlens.inventory.values import FIRST_YEAR, LAST_YEAR

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # as a clock without a zone shows it
_MICROSECOND: Final = timedelta(microseconds=1)

Unclear = Literal["skipped", "repeated", "unzoned"]
"""Why a local time names no instant, or two; ``unzoned``: no time zone is stated."""


def parsed(text: str) -> datetime | None:
    """Return an ISO 8601 time, with or without offset; ``None`` for other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if FIRST_YEAR <= moment.year <= LAST_YEAR else None


def instant_us(moment: datetime, zone: tzinfo | None, *, is_end: bool = False) -> int | Unclear:
    """Return UTC microseconds, or why there are none.

    Args:
        moment: As stated; its offset counts if it has one.
        zone: Of times without an offset; ``None`` if nobody states one.
        is_end: Whether a span ends there. A span may end at the first instant that is
            skipped: all of it lies before.
    """
    if moment.tzinfo is not None:
        return (moment - _EPOCH) // _MICROSECOND
    if zone is None:
        return "unzoned"
    # Both readings of a clock differ where it is set forward or back (PEP 495).
    before, after = zone.utcoffset(moment), zone.utcoffset(moment.replace(fold=1))
    if before is None or after is None:
        return "unzoned"
    if before != after:
        if before > after:
            return "repeated"
        last = moment - _MICROSECOND
        if not is_end or zone.utcoffset(last) != zone.utcoffset(last.replace(fold=1)):
            return "skipped"
    return (moment - _CLOCK_EPOCH - before) // _MICROSECOND
