"""Times as tools write them: local or UTC, without a zone, ahead of or behind a change of clocks."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import UsageError
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

FIRST_YEAR: Final = 1971
LAST_YEAR: Final = 2200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_EPOCH: Final = _EPOCH.replace(tzinfo=None)
_US: Final = timedelta(microseconds=1)
_QUARTER_US: Final = 900 * US_PER_S
"""Clocks change at quarters of an hour."""


class Clock:
    """Turns the local times of one source into UTC microseconds.

    An hour that clocks run through twice is told apart by the order of the lines; one that
    they leave out is taken as if they had not. Each is said once.

    Args:
        tz: IANA zone; ``None`` takes times without a zone as UTC, and says so.
        source: For Findings.
    """

    def __init__(self, tz: str | None, source: Source) -> None:
        """Look the zone up.

        Raises:
            UsageError: If there is no zone of that name.
        """
        self.findings: list[Finding] = []
        self._source = source
        self._zone = zone_of(tz) if tz else None
        self._last_us: int | None = None
        self._said: set[str] = set()
        self._offsets: dict[int, int | None] = {}

    def us(self, moment: datetime, line: int) -> int:
        """Return the UTC microseconds of a time; one with its own offset is believed.

        Raises:
            ValueError: If it is not of this age.
        """
        if not FIRST_YEAR <= moment.year <= LAST_YEAR:
            raise ValueError(f"lies outside the years {FIRST_YEAR} to {LAST_YEAR}")
        if moment.tzinfo is not None:
            return (moment - _EPOCH) // _US
        plain_us = _plain_us(moment)
        us = plain_us - self._offset_us(moment, plain_us, line)
        self._last_us = us
        return us

    def sure_offset_us(self, quarter: datetime) -> int | None:
        """Return the offset of a quarter of an hour; ``None`` where clocks tell it twice, or not at all."""
        return 0 if self._zone is None else self._of_quarter(_plain_us(quarter) // _QUARTER_US)

    def pass_by(self, us: int) -> None:
        """Note the time of the line before, where it was not read here."""
        self._last_us = us

    def _of_quarter(self, number: int) -> int | None:
        """Return the sure offset of a quarter of an hour, counted from 1970 by local time."""
        if number not in self._offsets:
            quarter = _PLAIN_EPOCH + timedelta(microseconds=number * _QUARTER_US)
            self._offsets[number] = self._sure_offset_us(quarter)
        return self._offsets[number]

    def _offset_us(self, moment: datetime, plain_us: int, line: int) -> int:
        if self._zone is None:
            self._say(
                "CL241", "times have no zone and are taken as UTC", line, "give --tz, such as Europe/Paris"
            )
            return 0
        offset_us = self._of_quarter(plain_us // _QUARTER_US)
        return self._unsure_offset_us(moment, line) if offset_us is None else offset_us

    def _both_us(self, moment: datetime) -> tuple[int, int]:
        first, second = (
            moment.replace(tzinfo=self._zone, fold=fold).utcoffset() or timedelta() for fold in (0, 1)
        )
        return first // _US, second // _US

    def _sure_offset_us(self, quarter: datetime) -> int | None:
        first_us, second_us = self._both_us(quarter)
        return first_us if first_us == second_us else None

    def _unsure_offset_us(self, moment: datetime, line: int) -> int:
        first_us, second_us = self._both_us(moment)
        if first_us < second_us:
            text = f"{moment.isoformat(' ')} was left out when clocks went forward; taken as if they had not"
            self._say("CL242", text, line, "check --tz: the host may keep UTC")
            return first_us
        plain_us = _plain_us(moment)
        earlier_us, later_us = plain_us - first_us, plain_us - second_us
        text = f"{moment.isoformat(' ')} happened twice when clocks went back; the order of lines tells which"
        self._say("CL242", text, line, "let the tool write UTC")
        # Lines go forward: what would be before the line before is of the second pass.
        is_second = self._last_us is not None and earlier_us < self._last_us <= later_us
        return second_us if is_second else first_us

    def _say(self, code: str, text: str, line: int, mend: str) -> None:
        key = f"{code} {'twice' in text}"
        if key not in self._said:
            self._said.add(key)
            self.findings.append(finding(code, "warning", text, self._source, line=line, mend=mend))


def _plain_us(moment: datetime) -> int:
    """Return the microseconds since 1970 of a local time, as if it were UTC."""
    since = moment - _PLAIN_EPOCH
    return (since.days * 86_400 + since.seconds) * US_PER_S + since.microseconds


def zone_of(name: str) -> ZoneInfo:
    """Return a zone by its IANA name.

    Raises:
        UsageError: If there is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"no time zone is named {name!r}", where="--tz", mend="give an IANA name, such as Europe/Paris"
        ) from error


def seconds_of(text: str) -> float | None:
    """Return a duration in seconds: ``53``, ``0:00:20``, ``1-02:03:04``; ``None`` for other text."""
    days, dash, clock = text.strip().partition("-")
    if not dash:
        days, clock = "0", days
    try:
        parts = [float(p) for p in clock.split(":")]
        whole_days = int(days)
    except ValueError:
        return None
    if not 1 <= len(parts) <= 3 or not all(0 <= p < math.inf for p in parts):
        return None
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + part
    return whole_days * 86_400 + seconds


def us_of_s(seconds: float) -> int:
    """Return seconds since 1970 as microseconds."""
    return round(seconds * US_PER_S)
