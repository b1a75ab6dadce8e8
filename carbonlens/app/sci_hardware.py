"""Use case part: what the runs of a score reserved of the inventory's hardware.

Hours of a machine are counted once over all runs of the score, as in an account, and shared over
its parts by the hours that each part alone would have. Hours on hardware that was not there at
the time are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.amortisation import Amortised, life_hours
from carbonlens.accounting.sci import EmbodiedShare
from carbonlens.app.statement_hardware import Use, hardware_in_use, hours_on_nothing, uses
from carbonlens.domain.asset import Asset
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import unknown
from carbonlens.domain.finding import Finding

if TYPE_CHECKING:
    from carbonlens.app.sci_component import Asked
    from carbonlens.ledger.frames import View

_UNUSED: Final = "CL485"
"""An asset that no run is on is no part of a score."""

_TOO_MANY: Final = "CL382"
"""More hours than the asset was there: what the rest of them carries nobody knows."""

_SAME: Final = 1e-9
"""Hours that differ by less are the same."""


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of a component reserved.

    Attributes:
        why: Why a part of it is unknown, carries nothing, or is less than the hours of its runs.
    """

    shares: tuple[EmbodiedShare, ...]
    why: str = ""
    findings: tuple[Finding, ...] = ()


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """An asset in the whole of a score.

    Attributes:
        hours: Piece hours of all runs together, each hour once.
        alone: Sum of the hours of the components, each by itself.
        one: What it carries; ``None`` where it was not there at the time.
    """

    asset: Asset
    hours: float
    alone: float
    one: Amortised | None


def hardware_of(
    asked: Asked, views: Mapping[tuple[str, str], View], whole: View
) -> dict[tuple[str, str], Hardware]:
    """Return what each component reserved; what is on none of the inventory's hardware is unknown.

    Args:
        asked: What holds where and when the runs ran.
        views: Runs of each component, by its part and site.
        whole: Runs of all of them.
    """
    each = {key: _on(asked, view) for key, view in views.items()}
    together = next(iter(each.values())) if len(each) == 1 else _on(asked, whole)
    made, said = hardware_in_use(
        tuple(together.values()), asked.factors, *_dates(asked), asked.embodied_source
    )
    carried = {one.asset.asset_id: one for one in made}
    held = {
        name: _Held(
            asset=use.asset,
            hours=use.hours or 0.0,
            alone=sum(own[name].hours or 0.0 for own in each.values() if name in own),
            one=carried.get(name),
        )
        for name, use in together.items()
    }
    findings = tuple(f for f in (*said, *(f for one in made for f in one.findings)) if f.code != _UNUSED)
    return {
        key: replace(
            _hardware(asked, view, [(held[name], use.hours or 0.0) for name, use in each[key].items()]),
            findings=findings,
        )
        for key, view in views.items()
    }


def _on(asked: Asked, view: View) -> dict[str, Use]:
    """Return the hours of runs on each asset that they are on."""
    held = uses(view, asked.inventory, asked.hours)
    return {u.asset.asset_id: u for u in held if u.hours is not None}


def _hardware(asked: Asked, view: View, own: list[tuple[_Held, float]]) -> Hardware:
    """Return what the runs of one component reserved, with its own hours on each asset."""
    from carbonlens.ledger.selecting import untimed_runs

    shares: list[EmbodiedShare] = []
    why: list[str] = []
    is_open = False
    for held, hours in own:
        part = hours / held.alone if held.alone else 0.0
        lost, reason = _lost(held)
        share = None if held.one is None else _share(held.one, part)
        if share is not None:
            shares.append(share)
            why += _less(held)
        elif held.one is not None:
            why.append(f"asset {held.asset.asset_id} states no life")
            is_open = True
        if lost:
            why.append(f"{lost * part:.4g} h on {held.asset.hardware}: {reason}")
            shares.append(_unknown(lost * part, held.asset.hardware, why[-1]))
    for name, hours in sorted(hours_on_nothing(view, asked.inventory).items()):
        why.append(f"no asset holds {hours:.4g} h on {name}")
        shares.append(_unknown(hours, name, why[-1]))
    untimed = untimed_runs(view)
    if untimed:
        why.append(f"{counted(untimed, 'run states', 'runs state')} no duration")
    if (untimed or is_open) and shares:
        shares.append(_unknown(0.0, "", why[-1]))
    return Hardware(shares=tuple(shares), why="; ".join(why) or ("" if shares else "no run is on an asset"))


def _lost(held: _Held) -> tuple[float, str]:
    """Return hours of runs at which an asset was not there, and why."""
    asset, one = held.asset, held.one
    dates = f"bought on {asset.purchased}"
    dates += "" if asset.retired is None else f", retired on {asset.retired}"
    if one is None:
        return held.hours, f"asset {asset.asset_id} was not there ({dates})"
    if all(f.code != _TOO_MANY for f in one.findings):
        return 0.0, ""
    rest = held.hours - one.used_hours
    return rest, f"more than asset {asset.asset_id} was there ({dates}; {counted(asset.count, 'piece')})"


def _less(held: _Held) -> list[str]:
    """Return why an asset carries less than the hours of the runs on it, each by itself."""
    asset, one, found = held.asset, held.one, []
    if held.hours < held.alone - _SAME:
        found.append(
            f"asset {asset.asset_id} has {held.alone - held.hours:.4g} h that several components share: "
            "they count once"
        )
    over = 0.0 if one is None or _lost(held)[0] else held.hours - one.used_hours
    if over > _SAME:
        found.append(
            f"{over:.4g} h after the end of the expected life of asset {asset.asset_id} carry nothing: "
            "all of it was charged before"
        )
    return found


def _share(one: Amortised, part: float) -> EmbodiedShare | None:
    """Return the share of an asset that a part of its hours of use is; ``None`` where it states no life."""
    asset = one.asset
    life = asset.used_hours
    if life is None:
        if asset.life_years is None:
            return None
        life = float(life_hours(asset.life_years))
    devices = float(asset.devices_each or 1)
    return EmbodiedShare(
        total_kg=one.each_kg,
        # Hours of a piece: of its devices, one is reserved for as many hours as it has devices.
        reserved_h=one.used_hours * part * devices,
        life_h=life,
        reserved=1.0,
        available=devices,
        input_ids=tuple(dict.fromkeys((*one.input_ids, f"asset:{asset.asset_id}"))),
        name=asset.hardware,
        how=one.how,
    )


def _unknown(hours: float, name: str, how: str) -> EmbodiedShare:
    return EmbodiedShare(total_kg=unknown("kg"), reserved_h=hours, life_h=1.0, name=name, how=how)


def _dates(asked: Asked) -> tuple[str, str]:
    """Return the first local date of the hours, and the date after the last."""
    first, last = (
        asked.calendar.rows(hour, hour + 1)[0].date
        for hour in (asked.hours.first_hour, asked.hours.end_hour - 1)
    )
    begin, end = (date(n // 10000, n // 100 % 100, n % 100) for n in (first, last))
    return begin.isoformat(), (end + timedelta(days=1)).isoformat()
