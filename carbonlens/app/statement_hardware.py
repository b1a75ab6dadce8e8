"""Use case part: hours of use of the inventory's hardware, and what they carry of its making."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.accounting.amortisation import Amortised, amortised
from carbonlens.accounting.asset_hours import AssetHours, Occupied, asset_hours
from carbonlens.accounting.embodied import piece_by
from carbonlens.accounting.embodied_range import sources_of
from carbonlens.domain.asset import Asset
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import unknown
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError
from carbonlens.factors.store import FactorSet
from carbonlens.ledger.calendar import Period

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View
    from carbonlens.ledger.occupancy import Stay


_Key = tuple[str | None, str | None]
"""Hardware and site, as runs state them."""

_SAME: Final = 1e-9
"""Hours that differ by less are the same."""

_DAY_US: Final = 24 * US_PER_HOUR


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Hours of use of one asset in a period.

    Attributes:
        hours: Piece hours; ``None`` where no run is on it.
        before: Piece hours before the period; ``None`` where they cannot be told.
    """

    asset: Asset
    hours: float | None
    before: float | None = None
    findings: tuple[Finding, ...] = ()


def uses(view: View, inventory: Inventory, hours: Period | None = None) -> tuple[Use, ...]:
    """Return the hours for which runs used each asset in the period, and before it where that matters.

    Args:
        view: Of the period.
        inventory: With the assets.
        hours: Where they begin, if the view is of no period.
    """
    assets = inventory.assets
    if not assets:
        return ()
    found = _hours(view, assets)
    aging = [a for a in assets if a.used_hours is not None]
    before = _before(view, assets, hours or view.period) if aging else {}
    return tuple(
        Use(asset=a, hours=one.hours, before=before.get(a.asset_id), findings=one.findings)
        for a, one in zip(assets, found, strict=True)
    )


def hardware_in_use(
    held: tuple[Use, ...], factors: FactorSet, start: str, end: str, source: str | None = None
) -> tuple[tuple[Amortised, ...], tuple[Finding, ...]]:
    """Return the amortised embodied emissions of hardware that is in use in a period.

    Args:
        held: Hours of use.
        factors: With the embodied figures.
        start: First date of the period.
        end: Date after its last.
        source: Of embodied figures, where one is chosen for all (``embodied.piece_by``).

    Raises:
        SelectionError: If no asset has a figure of that source.
    """
    if source is not None:
        _check_source(source, [u.asset for u in held], factors)
    made: list[Amortised] = []
    findings: list[Finding] = []
    for use in held:
        asset = use.asset
        if asset.purchased >= end or (asset.retired is not None and asset.retired < start):
            findings += [_not_there(asset, use.hours)] if use.hours else []
            continue
        each = piece_by(asset, factors.rows, source)
        one = amortised(
            asset, each, start=start, end=end, used_hours=use.hours or 0.0, used_before=use.before
        )
        findings += use.findings
        if use.hours is None:
            findings.append(_unused(asset))
            if asset.used_hours is not None:
                one = msgspec.structs.replace(one, used_kg=unknown("kg"))
        made.append(one)
    return tuple(made), tuple(findings)


def hours_on_nothing(view: View, inventory: Inventory) -> dict[str, float]:
    """Return hours of runs that are on no asset, by the hardware that they state.

    Args:
        view: Of the period.
        inventory: With the assets.
    """
    from carbonlens.ledger import occupancy

    asking = [a for a in inventory.assets if a.devices or a.devices_each is not None]
    plain = {(a.hardware, a.site) for a in inventory.assets if a not in asking}
    left = {key: hours for key, hours in occupancy.hours_by_hardware(view).items() if key not in plain}
    if left and asking:
        left = {}
        hosts = {d for a in asking for d in a.devices}
        for stay in occupancy.stays(view, hosts, {""}):
            one = _occupied(stay)
            key = (stay.hardware, stay.site)
            if key not in plain and all(asset_hours(a, (one,)).hours is None for a in asking):
                left[key] = left.get(key, 0.0) + (stay.end_us - stay.start_us) / US_PER_HOUR
    found: dict[str, float] = {}
    for (hardware, _), hours in left.items():
        name = hardware or "hardware that no run states"
        found[name] = found.get(name, 0.0) + hours
    return found


def _hours(view: View, assets: tuple[Asset, ...]) -> list[AssetHours]:
    """Return the hours of each asset: by what runs say of hosts and devices, where it asks for them."""
    from carbonlens.ledger import occupancy

    asking = [a for a in assets if a.devices or a.devices_each is not None]
    times: tuple[Occupied, ...] = ()
    if asking:
        hosts = {d for a in asking for d in a.devices}
        times = tuple(_occupied(s) for s in occupancy.stays(view, hosts, {a.site or "" for a in asking}))
    plain = occupancy.hours_by_hardware(view) if len(asking) < len(assets) else {}
    alike: dict[_Key, list[Asset]] = {}
    for asset in assets:
        if asset not in asking:
            alike.setdefault((asset.hardware, asset.site), []).append(asset)
    shared = {
        a.asset_id: one
        for key, held in alike.items()
        if key in plain
        for a, one in zip(held, _of_alike(view, key, plain[key], held), strict=True)
    }
    return [
        asset_hours(a, times) if a in asking else shared.get(a.asset_id, AssetHours(hours=None))
        for a in assets
    ]


def _of_alike(view: View, key: _Key, recorded: float, held: Sequence[Asset]) -> Iterator[AssetHours]:
    """Yield the hours of each of the assets of one hardware at one site that name no host.

    Args:
        view: Of the period.
        key: Hardware and site.
        recorded: Hours of runs, an hour of a run each.
        held: The assets; they share the hours by their pieces and the time they were there.
    """
    from carbonlens.ledger import occupancy

    weights = [a.count * _days_there(a, view.period) for a in held]
    there = [a for a, weight in zip(held, weights, strict=True) if weight] or list(held)
    pieces = sum(a.count for a in there)
    busy = occupancy.busy_hours(view, *key, pieces)
    over = recorded - busy
    whole = sum(weights)
    for asset, weight in zip(held, weights, strict=True):
        part = weight / whole if whole else asset.count / pieces
        said = (_shared(asset, over, pieces),) if over > _SAME and part else ()
        yield AssetHours(hours=busy * part, findings=said)


def _days_there(asset: Asset, period: Period | None) -> float:
    """Return for how many days of a period an asset was there; without one any time counts."""
    if period is None:
        return 1.0
    first, last = (hour * US_PER_HOUR for hour in (period.first_hour, period.end_hour))
    begin = max(first, _day_us(asset.purchased))
    end = last if asset.retired is None else min(last, _day_us(asset.retired))
    return max(end - begin, 0) / _DAY_US


def _before(view: View, assets: tuple[Asset, ...], hours: Period | None) -> dict[str, float | None]:
    """Return piece hours of each asset before the period, as the ledger and the assets state them."""
    from carbonlens.ledger import occupancy
    from carbonlens.ledger.frames import View as Opened

    if hours is None:
        return {}
    with Opened(view.ledger, Period(0, hours.first_hour, "before the period")) as earlier:
        found = _hours(earlier, assets)
        begin = occupancy.first_start_us(earlier)
    begin_us = hours.first_hour * US_PER_HOUR if begin is None else begin
    return {a.asset_id: _sum_before(a, one.hours, begin_us) for a, one in zip(assets, found, strict=True)}


def _sum_before(asset: Asset, recorded: float | None, begin_us: int) -> float | None:
    """Return hours before a period; unknown for hardware that is older than the ledger and tells none."""
    stated = asset.hours_before
    if stated is None and _day_us(asset.purchased) >= begin_us // _DAY_US * _DAY_US:
        stated = 0.0
    return None if stated is None else stated + (recorded or 0.0)


def _day_us(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000_000


def _occupied(stay: Stay) -> Occupied:
    return Occupied(
        run="/".join(stay.run),
        hosts=tuple(h for h in (stay.host_id, stay.machine_id) if h is not None),
        hardware=stay.hardware,
        site=stay.site,
        devices=stay.devices,
        start_us=stay.start_us,
        end_us=stay.end_us,
    )


def _check_source(source: str, assets: list[Asset], factors: FactorSet) -> None:
    known = sorted({s for a in assets for s in sources_of(factors.rows, a.hardware)})
    if source not in known:
        named = f"choose one of {', '.join(known)}" if known else "no factor of any asset's hardware is known"
        raise SelectionError(f"no source {source!r} of the assets' embodied emissions", mend=named)


def _not_there(asset: Asset, hours: float) -> Finding:
    when = f"was bought on {asset.purchased}"
    when += "" if asset.retired is None else f" and retired on {asset.retired}"
    return Finding(
        code="CL382",
        severity="warning",
        message=f"{hours:g} h of use of asset {asset.asset_id} lie outside its time: it {when}; what they "
        "carry of embodied emissions is unknown",
        mend="correct its dates in assets.csv, or state the hardware that the runs were on",
        subject=asset.asset_id,
    )


def _shared(asset: Asset, hours: float, pieces: int) -> Finding:
    return Finding(
        code="CL382",
        severity="info",
        message=f"runs on {asset.hardware} at {asset.site or 'no site'} overlap by {hours:.4g} h more than "
        f"{counted(pieces, 'piece')} could work: runs at once share a piece, and its hour counts once",
        mend="correct the count of the assets, or name their hosts and devices",
        subject=asset.asset_id,
    )


def _unused(asset: Asset) -> Finding:
    unknown_use = asset.used_hours is not None
    rest = "its amortised emissions are unknown" if unknown_use else "all its hours stand as idle"
    return Finding(
        code="CL485",
        severity="warning" if unknown_use else "info",
        message=f"no run of the period names a host, a device or the hardware of asset {asset.asset_id}: "
        f"{rest}",
        mend="state in assets.csv the hosts or devices, as runs name them",
        subject=asset.asset_id,
    )
