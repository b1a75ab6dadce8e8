"""Charge: one line of a bill, with the four costs that FOCUS tells apart; Invoice: what it is on.

Names follow the FinOps Open Cost and Usage Specification (FOCUS 1.2): list cost
is at public prices, contracted cost at negotiated ones, billed cost is what the
invoice asks for, effective cost spreads prepaid commitments over their use.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.money import Money
from carbonlens.domain.run import Origin

ChargeCategory = Literal["usage", "purchase", "tax", "credit", "adjustment"]
CommitmentStatus = Literal["used", "unused"]


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """One charge; times are integer UTC microseconds.

    Attributes:
        charge_id: The source's own line id, or one made from the content by the
            importer: the same line met twice counts once.
        start_us, end_us: The charge period, end exclusive.
        billing_start_us, billing_end_us: The billing period, end exclusive; ``None`` when not stated.
        billed, effective, list_cost, contracted: The costs, ``None`` where the
            source does not state one: none is derived from another.
        category: What kind of charge; credits and refunds are negative amounts.
        correction: True where the line corrects an earlier invoice.
        provider: Who provides the service.
        invoice_id: The invoice the line is on.
        billing_account: Account that is billed.
        sub_account: Part of it that the resource belongs to.
        service, sku: What was bought, as the source names it.
        region: Region as the source names it; the grid zone is resolved later.
        site: Site of the inventory; ``None`` when not stated.
        meter_id: Meter of an energy bill.
        resource_id: The resource charged, which runs may name in their tags.
        quantity, unit: Consumed quantity in the source's unit.
        list_unit_price, contracted_unit_price: Per priced unit, in the currency of the costs.
        pricing_quantity, pricing_unit: What the unit prices are multiplied by.
        commitment_id: The commitment (reservation, savings plan) a line buys or uses.
        commitment_status: Whether it is use of the commitment, or a part nobody used.
        energy_j: The quantity in joules, where it is an energy.
        tags: The source's tags.
        supersedes: ``charge_id`` that this one corrects.
        origin: File, hash and line it was read from.
    """

    charge_id: str
    start_us: int
    end_us: int
    billed: Money | None = None
    effective: Money | None = None
    list_cost: Money | None = None
    contracted: Money | None = None
    category: ChargeCategory | None = None
    correction: bool = False
    provider: str | None = None
    invoice_id: str | None = None
    billing_account: str | None = None
    service: str | None = None
    sku: str | None = None
    region: str | None = None
    site: str | None = None
    meter_id: str | None = None
    resource_id: str | None = None
    quantity: Decimal | None = None
    unit: str | None = None
    energy_j: Decimal | None = None
    billing_start_us: int | None = None
    billing_end_us: int | None = None
    sub_account: str | None = None
    list_unit_price: Decimal | None = None
    contracted_unit_price: Decimal | None = None
    pricing_quantity: Decimal | None = None
    pricing_unit: str | None = None
    commitment_id: str | None = None
    commitment_status: CommitmentStatus | None = None
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)
    schema_version: int = 1
    supersedes: str | None = None
    origin: Origin | None = None
    findings: tuple[Finding, ...] = ()


class Invoice(msgspec.Struct, frozen=True, kw_only=True):
    """What an invoice asks for, as its paper says; its lines must sum to it."""

    invoice_id: str
    amount: Money
    source: str
