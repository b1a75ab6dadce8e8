"""Service: shared serving or hardware whose energy, emissions and cost several consumers carry."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

import msgspec

Basis = Literal["measured", "activity", "requests", "tokens", "request_or_usage"]
"""What divides a service: measured use (kWh, device hours), shares of activity (MIG devices),
counts, or the larger of what was reserved and what was used."""

IdleRule = Literal["own line", "shared"]


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """What one consumer used of a service in one month.

    Attributes:
        month: ``2026-03``, local to the reporting time zone.
        consumer: Team, tenant, namespace or product.
        count: In the unit of the service's basis; ``None`` when unknown.
        request: What it reserved, for ``request_or_usage``.
        u_relative: One relative sigma of the count; ``None`` for an exact one.
    """

    month: str
    consumer: str
    count: Decimal | None = None
    request: Decimal | None = None
    u_relative: float | None = None


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """One shared service.

    Attributes:
        service_id: Name of the service.
        site: Where its runs are; ``None`` for all sites.
        tags: Runs with all these tags hold its energy; those of role ``idle`` its headroom's.
        meter: Meter that holds its energy whole; what its runs do not explain is headroom too.
        basis: What divides it.
        capacity: What could be used in a month, in the unit of the counts; idle is the rest.
        idle: Whether idle is a line of its own or is shared by use.
        uses: By month and consumer.
        source: Where the counts were read.
    """

    service_id: str
    site: str | None = None
    tags: Mapping[str, str] = {}  # a frozen record's default is never mutated
    meter: str | None = None
    basis: Basis
    capacity: Decimal | None = None
    idle: IdleRule = "own line"
    uses: tuple[Use, ...] = ()
    source: str | None = None
