"""Identities of a bill: what its four costs sum to, commitments counted once (FOCUS 1.2).

A purchase that covers later charges is billed when it is bought and spread over its use as
effective cost. Its list cost is that of the use it covers, so it is left out of the sum of
list costs, which would count it twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import localcontext
from typing import Final

import msgspec

from carbonlens.accounting.formulas import Quantity
from carbonlens.domain.charge import Charge
from carbonlens.domain.money import Money
from carbonlens.errors import IncomparableError

_DIGITS: Final = 60
"""More digits than any sum of amounts has, so that none is rounded."""


class CostIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the charges of one bill, in one currency; ``None`` where no line states the cost.

    Attributes:
        billed: All lines: what the invoices ask for.
        effective: All lines; a covering purchase has none.
        list_cost, contracted: All lines but covering purchases.
        covering_billed: Of covering purchases.
        covering_list: What of list cost is left out with them.
        effective_of_use: Of lines that are no covering purchase and bill nothing: use,
            and unused parts, of commitments.
        missing: How many lines lack each cost, by its name: a sum over them is too small.
    """

    billed: Money | None
    effective: Money | None
    list_cost: Money | None
    contracted: Money | None
    covering_billed: Money | None
    covering_list: Money | None
    effective_of_use: Money | None
    missing: dict[str, int]

    def complete(self, cost: str) -> Money | None:
        """Return the sum of a cost; ``None`` where a line does not state it.

        Args:
            cost: ``billed``, ``effective``, ``list_cost`` or ``contracted``.
        """
        held: Money | None = getattr(self, cost)
        return None if self.missing.get(cost) else held

    @property
    def savings(self) -> Money | None:
        """List cost less effective cost; ``None`` where either is not known of every line."""
        at_list, effective = self.complete("list_cost"), self.complete("effective")
        if at_list is None or effective is None:
            return None
        return Money(savings(at_list.amount, effective.amount), at_list.currency)


def savings(at_list: Quantity, effective: Quantity) -> Quantity:
    """Return what was saved against public prices: list less effective cost."""
    return at_list - effective


def is_covering(charge: Charge) -> bool:
    """Return whether a line is a purchase that covers later charges: billed, and never effective."""
    if charge.category != "purchase" or charge.effective is None:
        return False
    return charge.effective.amount == 0 and charge.billed is not None and charge.billed.amount != 0


def cost_identity(charges: Iterable[Charge]) -> CostIdentity:
    """Return the sums of a bill's costs.

    Args:
        charges: Lines of one billing period.

    Raises:
        IncomparableError: If they are in several currencies.
    """
    lines = list(charges)
    covering = [c for c in lines if is_covering(c)]
    others = [c for c in lines if not is_covering(c)]
    of_use = [c for c in others if c.billed is not None and c.billed.amount == 0]
    return CostIdentity(
        billed=summed(c.billed for c in lines),
        effective=summed(c.effective for c in lines),
        list_cost=summed(c.list_cost for c in others),
        contracted=summed(c.contracted for c in others),
        covering_billed=summed(c.billed for c in covering),
        covering_list=summed(c.list_cost for c in covering),
        effective_of_use=summed(c.effective for c in of_use),
        missing={
            name: count
            for name, held in (
                *(("billed", lines), ("effective", lines)),
                *(("list_cost", others), ("contracted", others)),
            )
            if (count := sum(1 for c in held if getattr(c, name) is None))
        },
    )


def summed(amounts: Iterable[Money | None]) -> Money | None:
    """Return the exact sum of what is known; ``None`` if nothing is.

    Raises:
        IncomparableError: If amounts are in several currencies.
    """
    total: Money | None = None
    with localcontext(prec=_DIGITS):
        for amount in amounts:
            if amount is None:
                continue
            if total is not None and amount.currency != total.currency:
                raise IncomparableError(
                    f"the bill mixes {total.currency} and {amount.currency}",
                    mend="take the lines of one currency at a time; rates are never guessed",
                )
            total = amount if total is None else total + amount
    return total
