"""Asset: hardware the entity bought, with what making it emitted and what it cost."""

from __future__ import annotations

import msgspec

from carbonlens.domain.money import Money


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """One purchase of one kind of hardware.

    Attributes:
        asset_id: Name of the purchase.
        hardware: What it is; a subject of the ``embodied`` factors, or free words.
        count: How many.
        site: Site it stands at.
        purchased: Date, ``2025-03-14``.
        retired: Date it was taken out of use; ``None`` while in use.
        life_years: Expected life.
        embodied_kg, embodied_low_kg, embodied_high_kg: Of one piece, with a 95 % range;
            ``None`` takes the factor of ``hardware``.
        embodied_source: Where they come from.
        used_hours: Hours of use expected over the life. With them the amortised rate is per
            used hour and holds the idle time; without, it is per calendar hour and idle
            time is a line of its own.
        hours_before: Piece hours of use before the ledger began; ``None`` for none, if it was
            bought since, else unknown.
        devices: Ids of hosts and devices, as runs name them; the begin of a device's id is enough.
        devices_each: How many devices (GPUs) one piece has, 1 if it is one itself: a run on two
            of eight uses a quarter of the piece.
        embodied_from: Name of the one source of the ``embodied`` factors to take for it; all of
            them as a range when ``None``.
        cost: Price paid for one piece.
    """

    asset_id: str
    hardware: str
    count: int = 1
    site: str | None = None
    purchased: str
    retired: str | None = None
    life_years: float | None = None
    embodied_kg: float | None = None
    embodied_low_kg: float | None = None
    embodied_high_kg: float | None = None
    embodied_source: str | None = None
    used_hours: float | None = None
    hours_before: float | None = None
    devices: tuple[str, ...] = ()
    devices_each: int | None = None
    embodied_from: str | None = None
    cost: Money | None = None
