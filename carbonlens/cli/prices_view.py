"""What ``carbonlens prices`` prints."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from carbonlens.app.prices import ListedPrices, PriceChange, PriceDifference, ShownPrice
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.pricing import PriceRow

_MOST: Final = 15
"""Rows that are printed; ``--json`` has all."""


def print_list(listed: ListedPrices, *, json: bool) -> None:
    """Print prices, the user's with a mark."""
    if json:
        output.print_json(
            {
                "schema": "carbonlens/prices/1",
                "of": listed.of,
                "prices": [_json(row, own=row.price_id in listed.own) for row in listed.rows],
            }
        )
        return
    if not listed.rows:
        output.say_words(f"no such price; {listed.of} are in force")
        return
    rows = [_row(row, own=row.price_id in listed.own) for row in listed.rows[:_MOST]]
    for line in output.table(["id", "price", "per", "kind", "from", "to"], rows, left=1):
        output.say(line)
    if len(listed.rows) > _MOST:
        output.say(f"... and {counted(len(listed.rows) - _MOST, 'more price')} (--json lists all)")
    if any(row.price_id in listed.own for row in listed.rows):
        output.say("* yours")


def print_price(shown: ShownPrice, *, json: bool) -> None:
    """Print one price whole."""
    row = shown.row
    if json:
        replaced = None if shown.replaces is None else _json(shown.replaces, own=False)
        output.print_json(
            {
                "schema": "carbonlens/price/1",
                "price": _json(row, own=shown.is_own),
                "replaces": replaced,
            }
        )
        return
    facts = [
        ("id", row.price_id),
        ("price", f"{_amount(row)} per {row.per} ({row.cost_kind})"),
        ("of", row.subject),
        ("region", row.region or "not stated"),
        ("terms", row.terms or "not stated"),
        ("holds", f"from {row.valid_from}" + (f", until {row.valid_to}" if row.valid_to else "")),
        ("one sigma", "not stated" if row.u_relative is None else f"{row.u_relative:.1%}"),
        ("source", row.source),
        ("address", row.address),
        ("read on", row.read_on),
        ("licence", row.licence or "not stated"),
        ("note", row.note),
        ("yours", "yes, of the inventory" if shown.is_own else ""),
        ("replaces", "" if shown.replaces is None else f"bundled {_amount(shown.replaces)}"),
    ]
    for name, text in facts:
        if text:
            output.say_fact(name, text)


def print_difference(found: PriceDifference, *, json: bool) -> None:
    """Print what differs, the largest change first."""
    if json:
        output.print_json(
            {
                "schema": "carbonlens/prices-diff/1",
                "old": found.old,
                "new": found.new,
                "changed": [_change_json(change) for change in found.changed],
                "same": found.same,
                "only_old": [_json(row, own=False) for row in found.only_old],
                "only_new": [_json(row, own=False) for row in found.only_new],
            }
        )
        return
    rows = [
        [
            output.clip(change.new.price_id, 36),
            _amount(change.old),
            _amount(change.new),
            "" if change.ratio is None else f"{change.ratio - 1:+.1%}",
        ]
        for change in found.changed[:_MOST]
    ]
    if rows:
        for line in output.table(["id", "old", "new", "change"], rows, left=1):
            output.say(line)
    if len(found.changed) > _MOST:
        output.say(f"... and {counted(len(found.changed) - _MOST, 'smaller change')} (--json lists all)")
    output.say_words(
        f"{counted(len(found.changed), 'price')} changed, {found.same} alike, "
        f"{len(found.only_old)} only in {found.old}, {len(found.only_new)} only in {found.new}"
    )


def _row(row: PriceRow, *, own: bool) -> list[str]:
    name = output.clip(("* " if own else "") + row.price_id, 32)
    return [name, _amount(row), row.per, row.cost_kind, row.valid_from, row.valid_to or ""]


def _amount(row: PriceRow) -> str:
    return f"{row.amount.amount:f} {row.amount.currency}"


def _json(row: PriceRow, *, own: bool) -> dict[str, Any]:
    return {**msgspec.structs.asdict(row), "own": own}


def _change_json(change: PriceChange) -> dict[str, Any]:
    return {
        "old": _json(change.old, own=False),
        "new": _json(change.new, own=False),
        "ratio": change.ratio,
    }
