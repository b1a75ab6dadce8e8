"""Use case part: instances and devices that runs rent in a period, where no bill covers them.

At a cloud site every run is on something that is paid by the hour. Elsewhere only what the
inventory declares tells so: at a place of no site of its, a price per device hour of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.billed_time import BilledTime, without
from carbonlens.accounting.cloud_hours import InstanceUse
from carbonlens.accounting.device_prices import device_count, device_subject, is_whole
from carbonlens.app.charges import RESOURCE_TAGS
from carbonlens.app.prices import held_prices
from carbonlens.app.statement_bills import run_key
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.pricing import PriceRow
from carbonlens.domain.site import Site
from carbonlens.ledger.schema import tags_of

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View

TYPE_TAG: Final = "instance_type"
"""Tag of a run that names what it ran on as prices do: ``p5.48xlarge``, or ``aws:p5.48xlarge``."""

DEVICE_TAG: Final = "device_type"
"""Tag of a run that names its devices: ``H100``. Without it the hardware that it states does."""

COUNT_TAG: Final = "devices"
"""Tag of a run that says on how many devices it was."""

_COLUMNS: Final = ("run_id", "study", "site", "zone", "host_id", "hardware", "tags", "start_us", "end_us")


class Rented(msgspec.Struct, frozen=True, kw_only=True):
    """What runs of a period rent.

    Attributes:
        uses: Instances and devices.
        places: Undeclared places where runs rent: what they pay holds their electricity.
    """

    uses: tuple[InstanceUse, ...] = ()
    places: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs are asked for.

    Attributes:
        clouds: Sites that are one.
        hourly: Subjects of prices per hour.
        devices: Subjects of prices per device hour.
        own: Those of the inventory.
        period: Its instants, the end exclusive.
    """

    clouds: Mapping[str, Site]
    hourly: frozenset[str]
    devices: frozenset[str]
    own: frozenset[str]
    period: tuple[int, int]


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A run with the place where it was, and its devices where they have a price."""

    row: Mapping[str, Any]
    tags: Mapping[str, str]
    place: str
    device: str | None


def rented(
    view: View,
    inventory: Inventory,
    period: tuple[int, int],
    billed: Mapping[str, BilledTime],
    names: Mapping[tuple[str, str], str],
) -> Rented:
    """Return the time of instances and devices that no bill covers, or of which nobody can tell.

    Args:
        view: Of the period.
        inventory: With sites and prices.
        period: Its instants, the end exclusive.
        billed: By the keys of runs, for which time bills hold what they ran on.
        names: Places by the site and zone that runs state.
    """
    asked = _asked(inventory, period)
    declared = {s.site_id for s in inventory.sites}
    if not asked.clouds and not asked.own:
        return Rented()
    found = list(_found(view, asked, names))
    unclear = {f.place for f in found if f.device in asked.own and f.place not in declared}
    paid = [f for f in found if f.place in asked.clouds or f.place in unclear]
    uuids = _devices_of(view, paid, asked)
    uses = ((f, use) for f in paid for use in _uses(f, asked, uuids))
    parts = (part for f, use in uses for part in _not_billed(use, billed.get(run_key(f.row)) or BilledTime()))
    return Rented(
        uses=tuple(parts),
        places=frozenset(unclear),
        findings=_unused(found, asked, declared - set(asked.clouds), inventory),
    )


def _asked(inventory: Inventory, period: tuple[int, int]) -> _Asked:
    prices = held_prices(inventory.prices).rows
    return _Asked(
        clouds={s.site_id: s for s in inventory.sites if s.kind == "cloud"},
        hourly=_subjects(prices, "hour"),
        devices=_subjects(prices, "device_hour"),
        own=_subjects(inventory.prices, "device_hour"),
        period=period,
    )


def _subjects(prices: Iterable[PriceRow], per: str) -> frozenset[str]:
    return frozenset(row.subject for row in prices if row.per == per)


def _found(view: View, asked: _Asked, names: Mapping[tuple[str, str], str]) -> Iterator[_Found]:
    """Yield the runs that may rent: those of clouds, and where devices have own prices those of any place."""
    import narwhals as nw

    from carbonlens.ledger import queries

    parts = queries.roots(view.parts, view.orphans)
    if not asked.own:
        parts = parts.filter(nw.col("site").is_in(sorted(asked.clouds)))
    subjects: dict[str | None, str | None] = {}
    for row in view.rows(parts.select(*_COLUMNS).unique().sort("start_us", "run_id")):
        tags = tags_of(row["tags"])
        text = tags.get(DEVICE_TAG) or row["hardware"]
        if text not in subjects:
            subjects[text] = device_subject(text, asked.devices)
        place = names.get((row["site"] or "", row["zone"] or ""), row["site"] or "")
        yield _Found(row=row, tags=tags, place=place, device=subjects[text])


def _devices_of(view: View, found: Sequence[_Found], asked: _Asked) -> dict[str, tuple[str, ...]]:
    """Return the devices of the runs that are priced by them, by the keys of the runs."""
    wanted = {f.row["run_id"] for f in found if _instance(f, asked) not in asked.hourly and f.device}
    if not wanted:
        return {}
    records = (stored.run for stored in view.records(wanted))
    return {run_key({"study": r.study, "run_id": r.run_id}): r.device_uuids for r in records}


def _uses(found: _Found, asked: _Asked, uuids: Mapping[str, tuple[str, ...]]) -> Iterator[InstanceUse]:
    """Yield the instance of a run where it has a price by the hour, else each of its devices."""
    row, key = found.row, run_key(found.row)
    site = asked.clouds.get(found.place)
    resource = next((found.tags[name] for name in RESOURCE_TAGS if name in found.tags), None)
    start, end = row["start_us"], row["end_us"]
    use = InstanceUse(
        site_id=found.place,
        subject=_instance(found, asked),
        region=site.region if site is not None else None,
        instance=resource or row["host_id"] or key,
        start_us=asked.period[0] if start is None else max(start, asked.period[0]),
        end_us=None if start is None or end is None else min(end, asked.period[1]),
    )
    devices = uuids.get(key, ())
    if found.device is None or use.subject in asked.hourly or not all(map(is_whole, devices)):
        yield use
        return
    use = replace(use, subject=found.device, per="device_hour")
    if devices:
        yield from (replace(use, instance=name) for name in devices)
        return
    # Nobody can tell whether devices without names are those of another run.
    count = _count(found)
    names = (f"{key}#{number}" for number in range(count or 1))
    yield from (replace(use, instance=name, is_least=count is None) for name in names)


def _count(found: _Found) -> int | None:
    stated = found.tags.get(COUNT_TAG, "")
    if stated.isdecimal() and 0 < int(stated) <= 10_000:
        return int(stated)
    return device_count(found.row["hardware"], found.device or "")


def _not_billed(use: InstanceUse, time: BilledTime) -> Iterator[InstanceUse]:
    """Yield the parts of a use that no bill covers, those of which nobody can tell marked."""
    if use.end_us is None:
        yield use
        return
    rest = without([(use.start_us, use.end_us)], time.covered)
    sure = without(rest, time.untold)
    for spans, may_be in ((sure, False), (without(rest, sure), True)):
        for start, end in spans:
            yield replace(use, start_us=start, end_us=end, may_be_billed=may_be)


def _instance(found: _Found, asked: _Asked) -> str | None:
    """Return what prices call the instance of a run; ``None`` where its type or provider is unknown."""
    site = asked.clouds.get(found.place)
    named = found.tags.get(TYPE_TAG)
    if named is None or ":" in named:
        return named
    return None if site is None or site.provider is None else f"{site.provider}:{named}"


def _unused(
    found: Iterable[_Found], asked: _Asked, sites: set[str], inventory: Inventory
) -> tuple[Finding, ...]:
    """Return a word on prices of devices at sites whose hardware is the entity's own or is not paid."""
    held = {(a.hardware, a.site) for a in inventory.assets}
    runs: dict[tuple[str, str], int] = {}
    for one in found:
        is_asset = (one.row["hardware"], one.place) in held
        if one.place in sites and one.device in asked.own and not is_asset:
            key = (one.place, one.device)
            runs[key] = runs.get(key, 0) + 1
    return tuple(
        Finding(
            code="CL468",
            severity="info",
            message=f"the price per device hour of {device} is not used for {counted(count, 'run')} at "
            f"{place}: at a site that is no cloud the price of the asset and the electricity are the cost",
            mend="declare the hardware in assets.csv, or the site as cloud where it is rented by the hour",
            subject=place,
        )
        for (place, device), count in runs.items()
    )
