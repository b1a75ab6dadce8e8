"""Which price holds: of the subject, place and day, the user's own before a bundled one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.pricing import CostKind, PricePer, PriceRow


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be priced.

    Attributes:
        subject: What is bought.
        date: Day of use.
        per: Unit of activity.
        region: Where it is bought; ``None`` takes prices that hold everywhere.
        cost_kind: Which of FOCUS's costs.
    """

    subject: str
    date: str
    per: PricePer
    region: str | None = None
    cost_kind: CostKind = "list"

    def is_of(self, row: PriceRow) -> bool:
        """Return whether a price is one of it, whatever its dates."""
        same = (row.subject, row.per, row.cost_kind) == (self.subject, self.per, self.cost_kind)
        return same and row.region in {None, self.region}


class PriceChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A price, and why it or none was taken."""

    row: PriceRow | None
    findings: tuple[Finding, ...] = ()


KINDS: Final[tuple[CostKind, ...]] = ("effective", "billed", "contracted", "list")
"""Kinds of price, those nearest to what is paid first."""


def choose_paid(own: Sequence[PriceRow], bundled: Sequence[PriceRow], wanted: Wanted) -> PriceChoice:
    """Return the price of something on a day that is nearest to what is paid for it.

    Args:
        own: The user's.
        bundled: Those that come with carbonlens.
        wanted: What is to be priced; its kind of cost is not asked for.
    """
    choice = PriceChoice(row=None)
    for kind in KINDS:
        choice = choose_price(own, bundled, msgspec.structs.replace(wanted, cost_kind=kind))
        if choice.row is not None:
            break
    return choice


def choose_price(own: Sequence[PriceRow], bundled: Sequence[PriceRow], wanted: Wanted) -> PriceChoice:
    """Return the price of something on a day.

    A user's price comes before any bundled one; one of the region before one for everywhere;
    one that holds from a later day before an earlier one. Prices that stand alike give the
    largest, which flatters nobody, with a Finding.

    Args:
        own: The user's.
        bundled: Those that come with carbonlens.
        wanted: What is to be priced.
    """
    for rows in (own, bundled):
        alike = [r for r in rows if wanted.is_of(r)]
        valid = [r for r in alike if r.valid_from <= wanted.date and (r.valid_to or "9999") > wanted.date]
        if valid:
            return _best(valid)
    return PriceChoice(row=None, findings=(_none(wanted, [*own, *bundled]),))


def _best(valid: Sequence[PriceRow]) -> PriceChoice:
    rank = max((r.region is not None, r.valid_from) for r in valid)
    equals = [r for r in valid if (r.region is not None, r.valid_from) == rank]
    row = max(equals, key=lambda r: (r.amount.amount, r.price_id))
    if len({(r.amount.amount, r.amount.currency) for r in equals}) == 1:
        return PriceChoice(row=row)
    stated = ", ".join(f"{r.amount.amount:f} {r.amount.currency} ({r.price_id})" for r in equals)
    found = Finding(
        code="CL337",
        severity="warning",
        message=f"{row.subject} has several prices from {row.valid_from}: {stated}; {row.price_id} was taken",
        mend="keep the one that holds, or tell them apart by region and dates",
        subject=row.price_id,
    )
    return PriceChoice(row=row, findings=(found,))


def _none(wanted: Wanted, rows: Iterable[PriceRow]) -> Finding:
    other = sorted({r.price_id for r in rows if r.subject == wanted.subject})
    what = f"{wanted.cost_kind} price of {wanted.subject} per {wanted.per}"
    mend = f"add it to prices.csv of the inventory: subject {wanted.subject}, per {wanted.per}"
    if other:
        mend += f"; of other days, places or units there are {', '.join(other[:3])}"
    return Finding(
        code="CL336",
        severity="warning",
        message=f"no {what} on {wanted.date}: its cost is unknown",
        mend=mend,
        subject=wanted.subject,
    )
