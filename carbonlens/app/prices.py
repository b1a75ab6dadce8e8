"""Use case: look at the prices in force, and compare tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec

from carbonlens.app.inventory import load_inventory
from carbonlens.domain.pricing import PriceRow
from carbonlens.errors import InputFileError, SelectionError, UsageError
from carbonlens.factors.prices_file import bundled_prices, read_prices


class HeldPrices(msgspec.Struct, frozen=True, kw_only=True):
    """The prices in force: the user's, and the bundled ones whose id none of them has.

    Attributes:
        own: Of the inventory.
        bundled: Of carbonlens.
        replaced: Bundled rows that one of the user's with the same id stands for.
    """

    own: tuple[PriceRow, ...]
    bundled: tuple[PriceRow, ...]
    replaced: tuple[PriceRow, ...] = ()

    @property
    def rows(self) -> tuple[PriceRow, ...]:
        """All, the user's first."""
        return *self.own, *self.bundled


class ListedPrices(msgspec.Struct, frozen=True, kw_only=True):
    """Prices that were asked for, by subject and day; ``of`` is how many there are in all."""

    rows: tuple[PriceRow, ...]
    of: int
    own: frozenset[str]


class ShownPrice(msgspec.Struct, frozen=True, kw_only=True):
    """One price, and the bundled one of its id that it stands for."""

    row: PriceRow
    is_own: bool
    replaces: PriceRow | None = None


class PriceChange(msgspec.Struct, frozen=True, kw_only=True):
    """A price that two tables have, with another amount or currency."""

    old: PriceRow
    new: PriceRow

    @property
    def ratio(self) -> float | None:
        """New over old; ``None`` across currencies, and for an old price of zero."""
        if self.old.amount.currency != self.new.amount.currency or not self.old.amount.amount:
            return None
        return float(self.new.amount.amount / self.old.amount.amount)


class PriceDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two tables, named as they were given."""

    old: str
    new: str
    changed: tuple[PriceChange, ...]
    same: int
    only_old: tuple[PriceRow, ...]
    only_new: tuple[PriceRow, ...]


def open_prices(inventory: str | Path | None = None) -> HeldPrices:
    """Return the prices in force here.

    Args:
        inventory: The inventory folder; found as the command line finds it when ``None``.

    Raises:
        InputFileError, ConfigError: If the inventory cannot be read or is malformed.
    """
    return held_prices(load_inventory(inventory).inventory.prices)


def held_prices(own: Sequence[PriceRow]) -> HeldPrices:
    """Return the prices in force beside those of an inventory.

    Args:
        own: The inventory's.
    """
    names = {row.price_id for row in own}
    bundled = bundled_prices()
    return HeldPrices(
        own=tuple(own),
        bundled=tuple(row for row in bundled if row.price_id not in names),
        replaced=tuple(row for row in bundled if row.price_id in names),
    )


def list_prices(
    *,
    subject: str | None = None,
    region: str | None = None,
    on: str | None = None,
    inventory: str | Path | None = None,
) -> ListedPrices:
    """Return prices.

    Args:
        subject: What is bought, or a part of its name.
        region: Where; prices that hold everywhere are listed too.
        on: Day on which they hold, ``2026-03-14``.
        inventory: As for ``open_prices``.

    Raises:
        UsageError: If the day is none.
        InputFileError, ConfigError: As ``open_prices``.
    """
    if on is not None and not _is_day(on):
        raise UsageError(f"{on!r} is no day", where="--on", mend="write 2026-03-14")
    held = open_prices(inventory)
    rows = [
        row
        for row in held.rows
        if (subject is None or subject.lower() in row.subject.lower())
        and (region is None or row.region in {None, region})
        and (on is None or (row.valid_from <= on and (row.valid_to is None or on < row.valid_to)))
    ]
    own = frozenset(row.price_id for row in held.own)
    rows.sort(key=lambda row: (row.subject, row.price_id not in own, row.valid_from, row.price_id))
    return ListedPrices(rows=tuple(rows), of=len(held.rows), own=own)


def show_price(price_id: str, *, inventory: str | Path | None = None) -> ShownPrice:
    """Return one price whole.

    Args:
        price_id: Its id.
        inventory: As for ``open_prices``.

    Raises:
        SelectionError: If there is none of that id; near ones are named.
        InputFileError, ConfigError: As ``open_prices``.
    """
    held = open_prices(inventory)
    replaced = next((row for row in held.replaced if row.price_id == price_id), None)
    for row in held.rows:
        if row.price_id == price_id:
            return ShownPrice(row=row, is_own=row in held.own, replaces=replaced)
    near = get_close_matches(price_id, [row.price_id for row in held.rows], n=3)
    raise SelectionError(
        f"there is no price {price_id!r}",
        where="ID",
        mend=f"meant: {', '.join(near)}" if near else "carbonlens prices list names them",
    )


def diff_prices(old: str, new: str | None = None) -> PriceDifference:
    """Return what differs between two tables.

    Args:
        old: A table.
        new: Likewise; without it ``old`` is held against the bundled prices.

    Raises:
        InputFileError, ConfigError: If one cannot be read.
    """
    if new is None:
        return difference("bundled", bundled_prices(), old, _table(old))
    return difference(old, _table(old), new, _table(new))


def difference(old: str, before: Iterable[PriceRow], new: str, after: Iterable[PriceRow]) -> PriceDifference:
    """Return what differs; rows of one id are one price, else those of one thing, place and day.

    Args:
        old: Name of the table that was.
        before: Its prices.
        new: Name of the table that is.
        after: Its prices.
    """
    was = list(before)
    by_id = {row.price_id: row for row in was}
    by_key = {_key(row): row for row in was}
    changed, only_new, met, same = [], [], set(), 0
    for row in after:
        peer = by_id.get(row.price_id) or by_key.get(_key(row))
        if peer is None:
            only_new.append(row)
            continue
        met.add(peer.price_id)
        if peer.amount == row.amount:
            same += 1
        else:
            changed.append(PriceChange(old=peer, new=row))
    changed.sort(key=lambda c: (-abs((c.ratio or 0.0) - 1), c.new.price_id))
    return PriceDifference(
        old=old,
        new=new,
        changed=tuple(changed),
        same=same,
        only_old=tuple(row for row in was if row.price_id not in met),
        only_new=tuple(only_new),
    )


def _key(row: PriceRow) -> tuple[str | None, ...]:
    return row.subject, row.region, row.per, row.cost_kind, row.terms, row.valid_from


def _table(name: str) -> tuple[PriceRow, ...]:
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=name, mend="give a price table (CSV)"
        ) from error
    return read_prices(content, where=name).rows


def _is_day(text: str) -> bool:
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
