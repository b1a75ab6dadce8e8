"""``deliveries.toml``: data that teams are expected to send, by month."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from carbonlens.domain.initiative import Delivery
from carbonlens.inventory.records import Kind, Problem
from carbonlens.inventory.values import a_month

_RANGE: Final = ".."
_MEND: Final = 'write months as "2026-01", or the first and the last: "2026-01..2026-12"'
_MOST_MONTHS: Final = 240


def _shape(values: dict[str, Any]) -> Iterator[Problem]:
    """Write out ranges of months."""
    stated = values.get("months")
    if not isinstance(stated, list):
        return
    months: list[Any] = []
    for item in stated:
        found = _months(item)
        if found is None:
            yield "months", f"months holds {item!r}", _MEND
        else:
            months += found
    values["months"] = sorted(set(months))


def _months(item: Any) -> list[str] | None:  # noqa: ANN401  # what TOML holds
    if not isinstance(item, str):
        return None
    first, dots, last = (part.strip() for part in item.partition(_RANGE))
    if a_month(first) or (dots and a_month(last)):
        return None
    begin, end = _index(first), _index(last or first)
    if not 0 <= end - begin < _MOST_MONTHS:
        return None
    return [f"{i // 12:04}-{i % 12 + 1:02}" for i in range(begin, end + 1)]


def _index(month: str) -> int:
    return int(month[:4]) * 12 + int(month[5:]) - 1


def _check(delivery: Delivery) -> Iterator[Problem]:
    if not delivery.months:
        yield "months", "months is empty", _MEND
    if delivery.what == "runs" and delivery.site is not None:
        yield "site", "site is stated of runs", "name the site of meter readings or bills only"
    if delivery.what != "runs" and delivery.site is None:
        yield "what", f"what is {delivery.what!r} and no site is stated", "add site: it is a site's data"


KIND: Final = Kind(
    name="deliveries",
    table="delivery",
    type=Delivery,
    shape=_shape,
    check=_check,
)
"""How an expected delivery stands in its file."""
