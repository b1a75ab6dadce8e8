"""Calendar: UTC hours as local dates, months, fiscal quarters and years.

Queries join on the integer ``hour_utc`` and never compute with time stamps, so
that a session's time zone cannot change a figure. An hour belongs to the local
date its first instant falls on; where the zone is off by half an hour, that is
the rule that decides.
"""

from __future__ import annotations

import re
from calendar import month_name
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from carbonlens.domain.units import S_PER_HOUR
from carbonlens.errors import ConfigError, UsageError

COLUMNS: Final = {
    "hour_utc": "BIGINT",
    "date": "INTEGER",
    "month": "INTEGER",
    "fiscal_quarter": "VARCHAR",
    "fiscal_year": "INTEGER",
}
"""Column to DuckDB type: ``20261128``, ``202611``, ``2026Q4``, ``2026``."""

_HOURS_A_YEAR: Final = 365 * 24

FIRST_HOUR: Final = -17_259_888 + _HOURS_A_YEAR
LAST_HOUR: Final = 70_389_527 - _HOURS_A_YEAR
"""UTC hours of the years 2 to 9998: in every zone they have a date, and a fiscal year with four digits."""

_QUARTER_MONTHS: Final = 3
_MONTHS: Final = 12
_MONTH: Final = "-"
"""Stands in months and days, which no fiscal year moves."""

_PERIOD: Final = re.compile(r"(\d{4})(?:Q([1-4])|-(\d{2})(?:-(\d{2}))?)?")


class Period(msgspec.Struct, frozen=True):
    """A span of whole UTC hours, end exclusive, and how it was asked for."""

    first_hour: int
    end_hour: int
    text: str = ""


class CalendarRow(NamedTuple):
    """One UTC hour in local terms; fields as in ``COLUMNS``."""

    hour_utc: int
    date: int
    month: int
    fiscal_quarter: str
    fiscal_year: int


class Calendar(msgspec.Struct, frozen=True, kw_only=True):
    """Local dates and fiscal periods.

    Attributes:
        reporting_timezone: IANA name of the zone in which periods are meant.
        fiscal_year_start: Month, 1 to 12, in which the fiscal year begins.
        fiscal_year_named_by: Whether a fiscal year that spans two calendar years
            has the name of the one it ends or starts in.
    """

    reporting_timezone: str = "UTC"
    fiscal_year_start: int = 1
    fiscal_year_named_by: Literal["end", "start"] = "end"

    def __post_init__(self) -> None:
        """Check zone and month.

        Raises:
            ConfigError: If the zone is not known or the month is none.
        """
        self._zone()
        if not 1 <= self.fiscal_year_start <= _MONTHS:
            raise ConfigError(
                f"fiscal_year_start is {self.fiscal_year_start}",
                where="fiscal_year_start",
                mend="give a month from 1 to 12",
            )

    def period(self, text: str) -> Period:
        """Return the hours of a period.

        Args:
            text: ``2026`` a fiscal year, ``2026Q3`` a fiscal quarter,
                ``2026-07`` a month, ``2026-07-15`` a day.

        Raises:
            UsageError: If the text is no period.
        """
        first, after = self._dates(text)
        return Period(self._hour(first), self._hour(after), text)

    def dates(self, text: str) -> tuple[str, str]:
        """Return the first local date of a period and the date after its last.

        Raises:
            UsageError: If the text is no period.
        """
        first, after = self._dates(text)
        return first.isoformat(), after.isoformat()

    def name_of(self, text: str) -> str:
        """Return a period's name with what of this calendar tells it from another's of the same text.

        ``2026Q1``; ``2026Q1~fy04`` where the fiscal year begins in April; ``2026Q1~Europe-Berlin``.
        """
        name = text.strip()
        if self.fiscal_year_start != 1 and _MONTH not in name:
            name += f"~fy{self.fiscal_year_start:02}" + ("" if self.fiscal_year_named_by == "end" else "s")
        zone = self.reporting_timezone
        return name if zone == "UTC" else f"{name}~{zone.replace('/', '-')}"

    @property
    def words(self) -> str:
        """What is said of it: ``Europe/Berlin, fiscal year from April``."""
        return f"{self.reporting_timezone}, fiscal year from {month_name[self.fiscal_year_start]}"

    def rows(self, first_hour: int, end_hour: int) -> list[CalendarRow]:
        """Return the calendar of the hours given, end exclusive."""
        return self.rows_of(range(first_hour, end_hour))

    def rows_of(self, hours: Iterable[int]) -> list[CalendarRow]:
        """Return the calendar of these hours; those outside the years 1 to 9999 have no row."""
        zone = self._zone()
        found = []
        for hour in hours:
            try:
                local = datetime.fromtimestamp(hour * S_PER_HOUR, tz=UTC).astimezone(zone)
            except (ValueError, OverflowError, OSError):
                continue
            year, quarter = self.fiscal(local.year, local.month)
            month = local.year * 100 + local.month
            found.append(CalendarRow(hour, month * 100 + local.day, month, f"{year}Q{quarter}", year))
        return found

    def fiscal(self, year: int, month: int) -> tuple[int, int]:
        """Return fiscal year and quarter of a calendar month."""
        months = (month - self.fiscal_year_start) % _MONTHS
        starts_in = year if month >= self.fiscal_year_start else year - 1
        return starts_in + self._name_shift, months // _QUARTER_MONTHS + 1

    @property
    def _name_shift(self) -> int:
        return int(self.fiscal_year_named_by == "end" and self.fiscal_year_start > 1)

    def _dates(self, text: str) -> tuple[date, date]:
        """Return the first local day of a period and the day after its last."""
        match = _PERIOD.fullmatch(text.strip())
        if match is None:
            raise _no_period(text)
        year, quarter, month, day = (None if g is None else int(g) for g in match.groups())
        try:
            if year is not None and day is not None and month is not None:
                first = date(year, month, day)
                return first, first + timedelta(days=1)
            if year is not None and month is not None:
                return date(year, month, 1), _months_after(year, month, 1)
            starts_in = (year or 0) - self._name_shift
            if quarter is None:
                return self._fiscal_month(starts_in, 0), self._fiscal_month(starts_in, _MONTHS)
            offset = (quarter - 1) * _QUARTER_MONTHS
            return self._fiscal_month(starts_in, offset), self._fiscal_month(
                starts_in, offset + _QUARTER_MONTHS
            )
        except (ValueError, OverflowError) as error:
            raise _no_period(text) from error

    def _fiscal_month(self, starts_in: int, offset: int) -> date:
        return _months_after(starts_in, self.fiscal_year_start, offset)

    def _hour(self, day: date) -> int:
        """Return the first UTC hour that belongs to a local day or a later one."""
        local = datetime(day.year, day.month, day.day, tzinfo=self._zone())
        seconds = local.timestamp()
        return int(-(-seconds // S_PER_HOUR))

    def _zone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.reporting_timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ConfigError(
                f"no time zone {self.reporting_timezone!r}",
                where="reporting_timezone",
                mend="give an IANA name such as Europe/Berlin; the package tzdata brings the zones",
            ) from error


def spoken(name: str) -> str:
    """Return a period's name as its users say it: without what ``Calendar.name_of`` added.

    A close or a statement tells its calendar beside it; files and JSON keep the whole name.
    """
    return name.partition("~")[0]


def _months_after(year: int, month: int, months: int) -> date:
    index = year * _MONTHS + month - 1 + months
    return date(index // _MONTHS, index % _MONTHS + 1, 1)


def _no_period(text: str) -> UsageError:
    return UsageError(f"{text!r} is no period", mend="write 2026, 2026Q3, 2026-07 or 2026-07-15")
