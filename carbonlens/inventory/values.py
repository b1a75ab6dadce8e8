"""Rules for single values of the inventory: each tells what a value should have been."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from carbonlens.domain.certificate import CRITERIA
from carbonlens.domain.currencies import CURRENCIES
from carbonlens.domain.initiative import Saving
from carbonlens.domain.money import Money

Rule = Callable[[Any], str | None]
"""Returns ``None`` for a value that may stand, else what to write."""

FIRST_YEAR: Final = 1971
LAST_YEAR: Final = 2200
_LEAST_EXPONENT: Final = -12
_MOST_EXPONENT: Final = 17
"""Powers of ten beyond which no figure of an inventory lies."""

_MONTH: Final = re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII)
_YEAR: Final = re.compile(r"\d{4}", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def plain(value: object) -> str | None:
    """Accept what any value must be: no empty text, no number that is none or beyond all size."""
    if isinstance(value, str):
        if not value.strip():
            return "leave it out where it is not known"
        return None if value.isprintable() else "write it in one line"
    if isinstance(value, float):
        return _sized(Decimal(repr(value)))
    if isinstance(value, Decimal):
        return _sized(value)
    if isinstance(value, Money):
        return _sized(value.amount) or a_currency(value.currency)
    return None


def a_date(value: str) -> str | None:
    """Accept a day."""
    mend = "write a date: 2026-01-15"
    try:
        day = date.fromisoformat(value) if _DATE.fullmatch(value) else None
    except ValueError:
        return mend
    return None if day is not None and FIRST_YEAR <= day.year <= LAST_YEAR else mend


def a_first_of_month(value: str) -> str | None:
    """Accept the first day of a month: figures are taken by whole months of use."""
    if a_date(value) is None and value.endswith("-01"):
        return None
    return "write the first day of a month: 2026-01-01; figures are taken by months of use"


def a_month(value: str) -> str | None:
    """Accept a month."""
    found = _MONTH.fullmatch(value)
    return None if found and a_year(int(found[1])) is None else "write a month: 2026-01"


def a_year_or_month(value: str) -> str | None:
    """Accept a year or a month as text."""
    if _YEAR.fullmatch(value) and a_year(int(value)) is None:
        return None
    return None if a_month(value) is None else 'write a year or a month: "2026" or "2026-03"'


def a_year(value: int) -> str | None:
    """Accept a year."""
    return None if FIRST_YEAR <= value <= LAST_YEAR else "write a year: 2026"


def a_calendar_month(value: int) -> str | None:
    """Accept the number of a month."""
    return None if 1 <= value <= 12 else "write a month from 1 to 12"


def a_currency(value: str) -> str | None:
    """Accept an ISO 4217 code."""
    return None if value in CURRENCIES else "write the ISO 4217 code: EUR"


def a_time_zone(value: str) -> str | None:
    """Accept an IANA name."""
    mend = "write an IANA name such as Europe/Berlin; the package tzdata brings the zones"
    return mend if zone(value) is None else None


def zone(name: str) -> ZoneInfo | None:
    """Return a time zone; ``None`` if there is none of that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def above_0(value: float | Decimal) -> str | None:
    """Accept what is more than nothing."""
    return None if value > 0 else "write a number above 0"


def at_least_0(value: float | Decimal) -> str | None:
    """Accept what is not negative."""
    return None if value >= 0 else "write a number, 0 or more"


def a_sigma(value: float) -> str | None:
    """Accept one relative sigma."""
    return None if 0 <= value <= 2 else "write one relative sigma: 0.05 means 5 %"


def a_share(value: float) -> str | None:
    """Accept a share of one."""
    return None if 0 < value < 1 else "write a share between 0 and 1: 0.05 means 5 %"


def a_cost(value: Money) -> str | None:
    """Accept money that was paid."""
    return at_least_0(value.amount)


def a_saving(value: Saving) -> str | None:
    """Accept a saving whose parts are numbers."""
    for part in (value.energy_kwh, value.emissions_location_kg, value.emissions_market_kg, value.money):
        wrong = plain(part)
        if wrong:
            return wrong
    return None


def criteria(value: dict[str, bool]) -> str | None:
    """Accept answers to the quality criteria."""
    strange = [name for name in value if name not in CRITERIA]
    return f"known criteria are {', '.join(CRITERIA)}" if strange else None


def _sized(value: Decimal) -> str | None:
    if not value.is_finite():
        return "write a finite number"
    if value and not _LEAST_EXPONENT <= value.adjusted() <= _MOST_EXPONENT:
        return "write a number of plausible size"
    return None
