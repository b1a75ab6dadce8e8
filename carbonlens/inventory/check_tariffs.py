"""Suspicious tariffs: hours of the week in no band or in two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.pricing import Tariff
from carbonlens.inventory.tariffs_file import WEEKDAYS

_Hour = tuple[int, int, int]
"""Month, weekday and hour."""


def check(inventory: Inventory) -> Iterator[Finding]:
    """Yield CL378 for each tariff that leaves hours without a price, or with two."""
    for one, other in combinations(sorted(inventory.tariffs, key=lambda t: t.valid_from), 2):
        if one.site == other.site and (one.valid_to is None or other.valid_from < one.valid_to):
            text = f"holds at {other.site} from {other.valid_from}, while {one.tariff_id} still holds"
            yield _found(other, text, "end the earlier one by valid_to, the first day without it")
    for tariff in inventory.tariffs:
        bands: dict[_Hour, list[str]] = {
            hour: [b.name for b in tariff.bands if b.covers(*hour)]
            for hour in product(range(1, 13), range(7), range(24))
        }
        none = [hour for hour, names in bands.items() if not names]
        several = [hour for hour, names in bands.items() if len(names) > 1]
        if none:
            text = f"has no band for {_told(none)}: what is used then has no price"
            yield _found(tariff, text, "let a band cover these hours")
        if several:
            names = " and ".join(bands[several[0]])
            text = f"prices {_told(several)} in more than one band ({names})"
            yield _found(tariff, text, "let each hour lie in one band")


def _told(hours: list[_Hour]) -> str:
    """Return the hours in words: how many of the week in how many months, and the first."""
    months = {month for month, _, _ in hours}
    first_month = min(months)
    in_week = [(day, hour) for month, day, hour in hours if month == first_month]
    day, hour = in_week[0]
    when = "" if len(months) == 12 else f" in {counted(len(months), 'month')}, first in month {first_month}"
    return f"{counted(len(in_week), 'hour')} of the week{when}, such as {WEEKDAYS[day]} {hour}:00"


def _found(tariff: Tariff, text: str, mend: str) -> Finding:
    return Finding(
        code="CL378",
        severity="error",
        message=f"tariff {tariff.tariff_id} {text}",
        file="tariffs.toml",
        subject=tariff.tariff_id,
        mend=mend,
    )
