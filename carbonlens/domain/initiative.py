"""Initiative: a measure that claims a saving; Delivery: data that a team is expected to send."""

from __future__ import annotations

from typing import Literal

import msgspec

from carbonlens.domain.money import Money

InitiativeStatus = Literal["planned", "running", "ended"]


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """What is saved a year; ``None`` where nobody states it."""

    energy_kwh: float | None = None
    emissions_location_kg: float | None = None
    emissions_market_kg: float | None = None
    money: Money | None = None


class Initiative(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of the register.

    Attributes:
        initiative_id: Its name.
        title: In words.
        owner: Team that answers for it.
        start: First day of effect, ``2026-01-15``; ``end`` the last, where there is one.
        study, step: The comparison that measured it, where there is one.
        tags: Runs it applies to.
        claimed: What its owner says it saves a year.
        verified: What was found by measurement a year; ``None`` until then.
        verified_by: Who or what verified it, with the date.
    """

    initiative_id: str
    title: str
    owner: str | None = None
    status: InitiativeStatus = "running"
    start: str
    end: str | None = None
    study: str | None = None
    step: str | None = None
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    claimed: Saving | None = None
    verified: Saving | None = None
    verified_by: str | None = None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Data expected from a team for a month.

    Attributes:
        team: As the tag ``team`` of its runs names it.
        months: ``2026-01`` and so on.
        what: Runs, meter readings, or a bill.
        site: Site it is about, for meter readings and bills.
    """

    team: str
    months: tuple[str, ...]
    what: Literal["runs", "meter", "bill"] = "runs"
    site: str | None = None
