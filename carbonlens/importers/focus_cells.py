"""Cells of a FOCUS bill: costs, times, currencies and tags; the names of its columns by version.

Column names are those of the FinOps Open Cost and Usage Specification 1.0 to 1.4. Version 1.3
replaces ``ProviderName`` by ``ServiceProviderName`` and ``HostProviderName``; 1.4 drops it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from carbonlens.domain.currencies import CURRENCIES
from carbonlens.domain.decoding import decode_json
from carbonlens.domain.money import Money
from carbonlens.domain.units import J_PER_KWH
from carbonlens.importers.cells import Row, RowError

COSTS: Final = {
    "BilledCost": "billed",
    "EffectiveCost": "effective",
    "ListCost": "list_cost",
    "ContractedCost": "contracted",
}
"""Column to field of the charge."""

ESSENTIAL: Final = ("ChargePeriodStart", "ChargePeriodEnd", "BillingCurrency")
"""Columns without which no line can be a charge; at least one cost comes on top."""

MANDATORY: Final = (
    *COSTS,
    *("BillingAccountId", "BillingCurrency", "BillingPeriodStart", "BillingPeriodEnd"),
    *("ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodStart", "ChargePeriodEnd"),
    *("PricingQuantity", "PricingUnit", "ServiceCategory", "ServiceName"),
)
"""Columns that every version from 1.0 to 1.4 asks of every file, but for the names of the parties."""

PARTIES: Final = (
    *("ServiceProviderName", "ProviderName", "HostProviderName"),
    *("PublisherName", "InvoiceIssuerName"),
)
"""Who sells, hosts and bills: named differently by version, and so no part of a line's identity."""

TEXTS: Final = {
    "invoice_id": ("InvoiceId",),
    "billing_account": ("BillingAccountId",),
    "sub_account": ("SubAccountId",),
    "provider": PARTIES[:3],
    "service": ("ServiceName",),
    "sku": ("SkuId", "SkuPriceId"),
    "region": ("RegionId", "RegionName"),
    "resource_id": ("ResourceId",),
    "unit": ("ConsumedUnit",),
    "pricing_unit": ("PricingUnit",),
    "commitment_id": ("CommitmentDiscountId",),
}
"""Field of the charge to the columns that may hold it, the first that does counting."""

NUMBERS: Final = {
    "quantity": "ConsumedQuantity",
    "list_unit_price": "ListUnitPrice",
    "contracted_unit_price": "ContractedUnitPrice",
    "pricing_quantity": "PricingQuantity",
}
ALLOCATED: Final = ("AllocatedMethodId", "AllocatedResourceId", "AllocatedResourceName")
"""Columns of a cost that the provider split (from 1.3 on), kept as tags of their own names."""

KNOWN: Final = (
    *MANDATORY,
    *PARTIES,
    *NUMBERS.values(),
    *(name for names in TEXTS.values() for name in names),
    *ALLOCATED,
    *("AllocatedTags", "Tags", "CommitmentDiscountStatus"),
)
"""Columns that are read, and the mandatory ones."""

LONGEST_TAG: Final = 200
"""Characters of a custom column's cell that is kept; a longer one is no label."""

_KWH_OF: Final = {"wh": Decimal("0.001"), "kwh": Decimal(1), "mwh": Decimal(1000)}
_FIRST_YEAR: Final = 1971
_LAST_YEAR: Final = 2200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MOST_DIGITS: Final = 15
"""Digits before the point of the largest amount that may be one."""


def exact(row: Row, column: str) -> Decimal | None:
    """Return a cell's exact number, however small; ``None`` where it is null.

    Args:
        row: The cells that are not null, here and below.
        column: Its name.

    Raises:
        RowError: If it is no finite number, or beyond any plausible size.
    """
    text = row.get(column)
    if text is None:
        return None
    try:
        value = Decimal(text) if "_" not in text else None
    except InvalidOperation:
        value = None
    if value is None or not value.is_finite():
        raise RowError(f"has {column} {text!r}, which is no number")
    if value and value.adjusted() >= _MOST_DIGITS:
        raise RowError(f"has {column} {text}, beyond any plausible figure")
    return value


def currency_of(row: Row) -> str:
    """Return the currency in which a line is billed.

    Raises:
        RowError: If it states none, or a code that ISO 4217 does not have.
    """
    text = row.get("BillingCurrency")
    if text is None:
        raise RowError("has no BillingCurrency")
    if text.upper() not in CURRENCIES:
        raise RowError(f"has BillingCurrency {text!r}, which is no code of ISO 4217")
    return text.upper()


def costs_of(row: Row, currency: str) -> dict[str, Money | None]:
    """Return the four costs by field; null stays ``None``.

    Raises:
        RowError: If one is no number, or none is stated.
    """
    amounts = {field: exact(row, column) for column, field in COSTS.items()}
    if all(a is None for a in amounts.values()):
        raise RowError("states none of the four costs")
    return {field: None if a is None else Money(a, currency) for field, a in amounts.items()}


def energy_j(quantity: Decimal | None, unit: str) -> Decimal | None:
    """Return a consumed quantity in joules; ``None`` where it is no energy."""
    kwh = _KWH_OF.get(unit.lower())
    return None if quantity is None or kwh is None else quantity * kwh * J_PER_KWH


def instant_us(text: str, column: str) -> int:
    """Return a time in UTC microseconds; one without an offset is UTC, as the format demands.

    Raises:
        RowError: If it is no ISO 8601 time of this age.
    """
    try:
        moment = datetime.fromisoformat(text.removesuffix(" UTC"))
    except ValueError:
        raise RowError(f"has {column} {text!r}, which is no ISO 8601 time") from None
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise RowError(f"has {column} {text!r}, outside the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def tags_of(text: str) -> dict[str, str]:
    """Return the tags of a JSON object, also of one whose braces an export left out.

    Raises:
        RowError: If it is no object of plain values.
    """
    bare = text.strip()
    if not bare:
        return {}
    try:
        found: Mapping[str, Any] = decode_json(
            bare if bare.startswith("{") else f"{{{bare}}}", dict[str, str | int | float | bool | None]
        )
    except msgspec.MsgspecError:
        raise RowError("has tags that are no JSON object of plain values") from None
    return {name: _told(value) for name, value in found.items()}


def _told(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
