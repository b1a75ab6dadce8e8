"""Cloud hours: time of instances and devices that no bill covers, at the price of each day.

Runs that share an instance or a device at one time use its hour once. A price that the user agreed
comes before a list price, and each line says which kind it is. Such a price holds the electricity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Final, Literal, NamedTuple

import msgspec

from carbonlens.accounting.cost import UNIT_OF, CostLine, priced
from carbonlens.accounting.money_years import weighted
from carbonlens.accounting.price_choice import PriceChoice, Wanted, choose_paid
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.pricing import PriceRow
from carbonlens.domain.units import US_PER_HOUR

_HOURS_OF_DAY: Final = 24
_US_PER_DAY: Final = _HOURS_OF_DAY * US_PER_HOUR


class InstanceUse(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Time in which a run used an instance, or one device.

    Attributes:
        site_id: Cloud site.
        subject: ``aws:p5.48xlarge`` or ``gpu:H100``, as prices name it; ``None`` where the run does
            not say.
        region: Of the site.
        instance: What tells instances of one type, or devices, apart.
        start_us: When it began.
        end_us: When it ended; ``None`` where nobody knows.
        may_be_billed: Whether a line of a bill may hold it, and nobody can tell.
        per: Unit of its price: hours of an instance, or of a device.
        is_least: Whether the run may have used more devices than this one, and does not say.
    """

    site_id: str
    subject: str | None
    region: str | None
    instance: str
    start_us: int
    end_us: int | None
    may_be_billed: bool = False
    per: Literal["hour", "device_hour"] = "hour"
    is_least: bool = False


class _Priced(NamedTuple):
    """What one line of cost is of."""

    site_id: str
    subject: str
    per: Literal["hour", "device_hour"]
    row: PriceRow | None
    is_least: bool


def cloud_hours(
    uses: Iterable[InstanceUse], own: Sequence[PriceRow], bundled: Sequence[PriceRow]
) -> tuple[CostLine, ...]:
    """Return what instances cost by their hours, a line a price; unknown where there is none.

    Args:
        uses: Of runs that no bill covers.
        own: The user's prices.
        bundled: Those that come with carbonlens.
    """
    every = list(uses)
    held = [u for u in every if not u.may_be_billed]
    named = [u for u in held if u.subject is not None and u.end_us is not None]
    hours: dict[_Priced, float] = {}
    of_years: dict[_Priced, list[tuple[int, float]]] = {}
    missing: dict[str, Finding] = {}
    choices: dict[tuple[str, str | None, int], PriceChoice] = {}
    for use in _instances(named):
        subject = use.subject or ""
        for day, part in _days(use):
            where = (subject, use.region, day)
            if where not in choices:
                choices[where] = _price_of(use, day, own, bundled)
            choice = choices[where]
            if choice.row is None:
                missing.setdefault(subject, choice.findings[0])
            key = _Priced(use.site_id, subject, use.per, choice.row, use.is_least)
            hours[key] = hours.get(key, 0.0) + part
            of_years.setdefault(key, []).append((_date(day).year, part))
    lines = [
        msgspec.structs.replace(_line(key, h, missing), by_year=weighted(of_years[key]))
        for key, h in hours.items()
    ]
    unnamed = [u for u in held if u.subject is None or u.end_us is None]
    return (*lines, *_untold(unnamed), *_perhaps_billed([u for u in every if u.may_be_billed]))


def _line(of: _Priced, hours: float, missing: Mapping[str, Finding]) -> CostLine:
    kind = "no" if of.row is None else of.row.cost_kind
    quantity = Estimate(value=hours, unit=UNIT_OF[of.per], state="unbounded" if of.is_least else "known")
    label = f"{of.subject} at {of.site_id}, {kind} price"
    line = priced("cloud_hours", label, quantity, of.row)
    findings = () if of.row is not None else (missing[of.subject],)
    if of.row is not None:
        line = msgspec.structs.replace(line, formula=f"{hours:.6g} {line.formula}")
    if of.is_least:
        line = msgspec.structs.replace(line, label=f"{label}, one device a run at least")
        findings = (*findings, _uncounted(of, hours))
    return msgspec.structs.replace(line, site_id=of.site_id, findings=findings)


def _uncounted(of: _Priced, hours: float) -> Finding:
    return Finding(
        code="CL459",
        severity="warning",
        message=f"runs at {of.site_id} do not say on how many devices {of.subject} they were: each of "
        f"their {hours:.4g} h counts one, and the cost is a lower bound",
        mend="tag the runs: --tag devices=8",
        subject=of.site_id,
    )


def _instances(uses: Sequence[InstanceUse]) -> Iterator[InstanceUse]:
    """Yield the time of each instance once, whatever runs share it."""
    key = _key
    for _, group in groupby(sorted(uses, key=lambda u: (*key(u), u.start_us)), key=key):
        current: InstanceUse | None = None
        for use in group:
            if current is not None and use.start_us <= (current.end_us or 0):
                end = max(current.end_us or 0, use.end_us or 0)
                current = msgspec.structs.replace(current, end_us=end)
                continue
            if current is not None:
                yield current
            current = use
        if current is not None:
            yield current


def _key(use: InstanceUse) -> tuple[str, str, str, str, str, bool]:
    return use.site_id, use.subject or "", use.region or "", use.instance, use.per, use.is_least


def _days(use: InstanceUse) -> Iterator[tuple[int, float]]:
    """Yield each UTC day of a use with its hours."""
    at, last = use.start_us, use.end_us or use.start_us
    while at < last:
        day = at // _US_PER_DAY
        end = min(last, (day + 1) * _US_PER_DAY)
        yield day, (end - at) / US_PER_HOUR
        at = end


def _date(day: int) -> date:
    return datetime.fromtimestamp(day * _HOURS_OF_DAY * 3600, tz=UTC).date()


def _price_of(
    use: InstanceUse, day: int, own: Sequence[PriceRow], bundled: Sequence[PriceRow]
) -> PriceChoice:
    on = _date(day).isoformat()
    wanted = Wanted(subject=use.subject or "", date=on, per=use.per, region=use.region)
    return choose_paid(own, bundled, wanted)


def _untold(uses: Sequence[InstanceUse]) -> Iterator[CostLine]:
    """Yield an unknown cost for each site with runs that do not say what they ran on, or how long."""
    for site_id in dict.fromkeys(u.site_id for u in uses):
        runs = sum(u.site_id == site_id for u in uses)
        found = Finding(
            code="CL497",
            severity="warning",
            message=f"{counted(runs, 'run')} at {site_id} {'names' if runs == 1 else 'name'} no "
            "instance type, no device with a price or no end, and no bill covers them: their cost is unknown",
            mend="import the bill, or tag the runs: --tag instance_type=TYPE with a price of PROVIDER:TYPE "
            "per hour, or --tag device_type=H100 with one of gpu:H100 per device_hour",
            subject=site_id,
        )
        line = priced("cloud_hours", f"cloud of {site_id}, no price", Estimate(value=None, unit="h"), None)
        yield msgspec.structs.replace(line, site_id=site_id, findings=(found,))


def _perhaps_billed(uses: Sequence[InstanceUse]) -> Iterator[CostLine]:
    """Yield an unknown cost for each site with time that a bill may hold: it is never priced beside it."""
    for site_id in dict.fromkeys(u.site_id for u in uses):
        hours = sum(
            ((u.end_us or u.start_us) - u.start_us) / US_PER_HOUR for u in uses if u.site_id == site_id
        )
        found = Finding(
            code="CL455",
            severity="warning",
            message=f"bills may hold {hours:.6g} h of instances at {site_id}, by their place alone: that "
            "cannot be told, and the cost is a lower bound",
            mend="tag the runs with the resource of the bill: --tag instance_id=ID",
            subject=site_id,
        )
        label = f"cloud of {site_id}, perhaps in the bills"
        line = priced("cloud_hours", label, Estimate(value=None, unit="h"), None)
        yield msgspec.structs.replace(line, site_id=site_id, findings=(found,))
