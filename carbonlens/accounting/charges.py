"""Bills in sums: the four costs by currency, cash or accrual, and the identities they must keep.

Billed cost is cash: a purchase in advance counts whole when it is billed. Effective cost is
accrual: the purchase counts as it is used. Adding both counts it twice, and no function here
does. The identities are those of the FOCUS 1.2 metric definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, Literal

import msgspec

from carbonlens.accounting.focus_identity import CostIdentity, cost_identity, is_covering, summed
from carbonlens.accounting.formulas import Quantity
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.money import Money
from carbonlens.domain.pricing import CostKind
from carbonlens.domain.units import US_PER_HOUR

Basis = Literal["cash", "accrual"]

FIELDS: Final[Mapping[CostKind, str]] = {
    "billed": "billed",
    "effective": "effective",
    "list": "list_cost",
    "contracted": "contracted",
}
"""Kind of cost to the field of a charge that holds it."""

KIND_OF: Final[Mapping[Basis, CostKind]] = {"cash": "billed", "accrual": "effective"}

_EPOCH: Final = date(1970, 1, 1)
_US_PER_DAY: Final = 24 * US_PER_HOUR
_RELATIVE: Final = Decimal("0.0001")
_ABSOLUTE: Final = Decimal("0.000001")
"""How far a product may be off: unit prices are printed with few decimals."""


def list_cost(unit_price: Quantity, quantity: Quantity) -> Quantity:
    """Return list cost of a unit price and a priced quantity (FOCUS 1.2, List Cost)."""
    return unit_price * quantity


def currency_of(charge: Charge) -> str | None:
    """Return the currency of the first cost a line states; ``None`` if it states none."""
    costs = (charge.billed, charge.effective, charge.list_cost, charge.contracted)
    return next((c.currency for c in costs if c is not None), None)


def by_currency(charges: Iterable[Charge]) -> dict[str, CostIdentity]:
    """Return the sums of the costs of each currency; no rate is guessed between them.

    Args:
        charges: Lines of bills. Lines without any cost have no currency and are left out.

    Raises:
        IncomparableError: If the costs of one line are in several currencies.
    """
    groups: dict[str, list[Charge]] = {}
    for charge in charges:
        currency = currency_of(charge)
        if currency is not None:
            groups.setdefault(currency, []).append(charge)
    return {currency: cost_identity(groups[currency]) for currency in sorted(groups)}


def of_period(
    charges: Iterable[Charge],
    kind: CostKind,
    start_us: int,
    end_us: int,
    dates: tuple[str, str] | None = None,
) -> list[Charge]:
    """Return the lines of a period, each in one of periods that follow each other.

    A line is of the period in which its charge period starts; billed cost (cash) is of that in
    which its billing period does, where it states one. Bills state whole days and months as
    dates, written in UTC: such a line is of the period that holds its date, in any time zone.

    Args:
        charges: Lines of bills.
        kind: Which of the four costs is wanted.
        start_us: When the period starts.
        end_us: When it ends, exclusive.
        dates: The same as local dates, the end exclusive; those of ``start_us`` and ``end_us``
            in UTC when ``None``.
    """
    instants = (start_us, end_us)
    dated = instants if dates is None else (_midnight(dates[0]), _midnight(dates[1]))
    found = []
    for charge in charges:
        first, last = _counted_over(charge, kind)
        begin, end = dated if is_dated(first, last) else instants
        found += [charge] if begin <= first < end else []
    return found


def is_dated(start_us: int, end_us: int) -> bool:
    """Tell whether a span is of whole days in UTC: bills write dates so, of whatever place."""
    return start_us % _US_PER_DAY == 0 and end_us % _US_PER_DAY == 0


def preferred_kind(charges: Iterable[Charge]) -> CostKind:
    """Return effective cost where any line states it, else billed cost."""
    return "effective" if any(c.effective is not None for c in charges) else "billed"


def invoices(charges: Iterable[Charge]) -> dict[tuple[str, str], Money]:
    """Return the sum of billed cost by invoice and currency; lines without an invoice are left out."""
    groups: dict[tuple[str, str], list[Money]] = {}
    for charge in charges:
        if charge.invoice_id is not None and charge.billed is not None:
            groups.setdefault((charge.invoice_id, charge.billed.currency), []).append(charge.billed)
    sums = {key: summed(amounts) for key, amounts in sorted(groups.items())}
    return {key: total for key, total in sums.items() if total is not None}


def check_invoices(charges: Iterable[Charge], stated: Mapping[str, Money]) -> tuple[Finding, ...]:
    """Return a Finding for each invoice whose lines do not sum to what it asks for.

    Args:
        charges: Lines of bills.
        stated: Invoice id to the amount on the invoice.
    """
    sums = invoices(charges)
    findings = []
    for invoice, amount in stated.items():
        found = sums.get((invoice, amount.currency))
        if found is None or found.amount != amount.amount:
            held = "no line" if found is None else f"lines that sum to {_told(found)}"
            text = f"invoice {invoice} asks for {_told(amount)}, and the bills hold {held} of it"
            mend = "import the whole bill, or ask for the lines that differ"
            findings.append(_finding("CL315", text, mend, invoice))
    return tuple(findings)


def check_commitments(charges: Iterable[Charge]) -> tuple[Finding, ...]:
    """Return a Finding for each commitment whose use does not sum to what was paid for it.

    Once its use is there to the end of what was bought, effective cost of used and unused
    parts equals billed cost of the purchases; it may never be more.

    Args:
        charges: Lines of bills, of any time.
    """
    groups: dict[tuple[str, str], list[Charge]] = {}
    for charge in charges:
        currency = currency_of(charge)
        if charge.commitment_id is not None and currency is not None:
            groups.setdefault((charge.commitment_id, currency), []).append(charge)
    found = (_check_commitment(name, lines) for (name, _), lines in sorted(groups.items()))
    return tuple(f for f in found if f is not None)


def check_list_costs(charges: Iterable[Charge]) -> tuple[Finding, ...]:
    """Return a Finding if list costs are not unit price times quantity; corrections need not be.

    Args:
        charges: Lines of bills.
    """
    off: dict[str, list[tuple[Charge, Decimal]]] = {}
    for charge in charges:
        price, quantity, stated = charge.list_unit_price, charge.pricing_quantity, charge.list_cost
        if charge.correction or price is None or quantity is None or stated is None:
            continue
        wanted = list_cost(price, quantity)
        if abs(stated.amount - wanted) > max(abs(wanted) * _RELATIVE, _ABSOLUTE):
            off.setdefault(stated.currency, []).append((charge, stated.amount - wanted))
    return tuple(_off(currency, lines) for currency, lines in sorted(off.items()))


def checked(charges: Sequence[Charge]) -> tuple[Finding, ...]:
    """Return what is wrong with the sums of bills, by themselves."""
    return (*check_list_costs(charges), *check_commitments(charges))


def _check_commitment(name: str, lines: Sequence[Charge]) -> Finding | None:
    bought = [c for c in lines if is_covering(c)]
    used = [c for c in lines if not is_covering(c) and c.category == "usage"]
    paid, effective = summed(c.billed for c in bought), summed(c.effective for c in used)
    if paid is None or effective is None or effective.amount == paid.amount:
        return None
    whole = min(c.start_us for c in used) <= min(c.start_us for c in bought) and max(
        c.end_us for c in used
    ) >= max(c.end_us for c in bought)
    if effective.amount < paid.amount and not whole:
        # Its use goes on after these bills.
        return None
    unused = summed(c.effective for c in used if c.commitment_status == "unused")
    parts = "" if unused is None else f", {_told(unused)} of it unused"
    text = (
        f"commitment {name} was bought for {_told(paid)}, and the effective cost of its use is "
        f"{_told(effective)}{parts}: {_told(Money(effective.amount - paid.amount, paid.currency))} off"
    )
    mend = "import the bills of the whole commitment, each once"
    return _finding("CL313", text, mend, name)


def _off(currency: str, lines: Sequence[tuple[Charge, Decimal]]) -> Finding:
    first = lines[0][0]
    difference = sum((d for _, d in lines), Decimal(0))
    text = (
        f"the list cost of {counted(len(lines), 'line')} is not list unit price times pricing quantity: "
        f"{_told(Money(difference, currency))} off in all"
    )
    found = _finding("CL314", text, "ask the provider, or mark corrections as such", first.charge_id)
    origin = first.origin
    if origin is None:
        return found
    return msgspec.structs.replace(found, file=origin.source_file, line=origin.source_line)


def _counted_over(charge: Charge, kind: CostKind) -> tuple[int, int]:
    """Return the span by which a line is counted; a billing period without an end is its start."""
    if kind == "billed" and charge.billing_start_us is not None:
        end = charge.billing_end_us
        return charge.billing_start_us, charge.billing_start_us if end is None else end
    return charge.start_us, charge.end_us


def _midnight(day: str) -> int:
    """Return the instant at which a date begins in UTC."""
    return (date.fromisoformat(day) - _EPOCH).days * _US_PER_DAY


def _told(money: Money) -> str:
    return f"{money.amount:f} {money.currency}"


def _finding(code: str, message: str, mend: str, subject: str | None = None) -> Finding:
    return Finding(code=code, severity="warning", message=message, mend=mend, subject=subject)
