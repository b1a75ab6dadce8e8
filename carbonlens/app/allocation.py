"""Use case: the energy of shared services in a period, divided over their consumers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.formulas import energy_kwh
from carbonlens.accounting.metered import Metered, metered, not_whole
from carbonlens.accounting.service_shares import (
    NO_ENERGY,
    Load,
    Portion,
    ServiceShares,
    shares_of,
    with_meter,
)
from carbonlens.app.inventory import calendar_of, load_inventory
from carbonlens.app.statement_ledger import month_of
from carbonlens.app.statement_meters import meters_and_readings
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.service import Service
from carbonlens.domain.units import US_PER_HOUR, Boundary
from carbonlens.errors import SelectionError, UsageError
from carbonlens.ledger.opening import open_ledger

if TYPE_CHECKING:
    from carbonlens.ledger.accounts import Total
    from carbonlens.ledger.calendar import Calendar, Period
    from carbonlens.ledger.store import Ledger

_DAY_TEXT: Final = len("2026-07-15")


class Allocated(msgspec.Struct, frozen=True, kw_only=True):
    """What services used in a period, by consumer.

    Attributes:
        period: As it was asked for.
        is_draft: Whether the period is open.
        label: ``DRAFT`` while it is, ``ADJUSTED`` where records came after its close, else empty.
        services: One a service and boundary, in order of name.
    """

    period: str
    is_draft: bool
    ledger: str
    services: tuple[ServiceShares, ...]
    findings: tuple[Finding, ...] = ()
    label: str = ""


def allocate(
    period: str,
    *,
    service: str | None = None,
    inventory: str | Path | None = None,
    ledger: str | Path | None = None,
    now_us: int | None = None,
) -> Allocated:
    """Divide the energy of the inventory's services over their consumers.

    Args:
        period: ``2026Q3``, ``2026-08`` or ``2026``, fiscal.
        service: Only this one.
        inventory: The inventory folder; found as the command line finds it when ``None``.
        ledger: The ledger's folder; found likewise.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If the inventory has no service, or none of that name.
        UsageError: If the period is none, or not of whole months.
        ConfigError, InputFileError: If the inventory cannot be read.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    from carbonlens.app.compare import require_analysis

    require_analysis()
    held = load_inventory(inventory).inventory
    _choose(held.services, service)
    with open_ledger(ledger) as store:
        if not store.exists:
            raise SelectionError("the ledger is not there", where=store.shown, mend="check --ledger")
        return allocation_of(held, store, period, service=service, now_us=now_us or time.time_ns() // 1000)


def allocation_of(
    inventory: Inventory, store: Ledger, period: str, *, service: str | None = None, now_us: int
) -> Allocated:
    """Divide the services of an inventory that is read already; arguments as of ``allocate``."""
    from carbonlens.app.ledger_care import span_of
    from carbonlens.ledger.closing import label_of

    period = period.strip()
    if len(period) >= _DAY_TEXT:
        raise UsageError(
            "uses are stated by month", where=period, mend="give a month, a quarter or a year: 2026-03"
        )
    calendar = calendar_of(inventory.terms)
    span = calendar.period(period)
    totals, findings = _totals(inventory.services, store, period, calendar)
    loads, doubled = _loads(inventory.services, totals)
    chosen = _choose(inventory.services, service)
    counted, of_meters = _metered(chosen, inventory, store, calendar, span, now_us)
    made: list[ServiceShares] = []
    label = label_of(store.path, span_of(period, calendar))
    said = [*findings, *doubled, *of_meters]
    for one in sorted(chosen, key=lambda s: s.service_id):
        found, more = _with_meters(one, loads[one.service_id], counted.get(one.service_id, {}))
        said += more
        made += [shares_of(one, group) for group in _by_boundary(found)]
        if not found:
            said.append(_no_energy(one, period))
    return Allocated(
        period=period,
        is_draft=label == "DRAFT",
        label=label,
        ledger=store.shown,
        services=tuple(made),
        findings=tuple(dict.fromkeys((*said, *(f for s in made for f in s.findings)))),
    )


def _choose(services: Sequence[Service], name: str | None) -> tuple[Service, ...]:
    found = tuple(s for s in services if name is None or s.service_id == name)
    if not services:
        raise SelectionError(
            "the inventory has no service", where="services.toml", mend="see docs/allocation.md"
        )
    if not found:
        known = ", ".join(sorted(s.service_id for s in services))
        raise SelectionError(f"no service {name!r}", where="--service", mend=f"known: {known}")
    return found


def _totals(
    services: Sequence[Service], store: Ledger, period: str, calendar: Calendar
) -> tuple[Sequence[Total], tuple[Finding, ...]]:
    """Return the ledger's energy by month, role, site and every tag that a service names."""
    from carbonlens.ledger.accounts import account

    tags = sorted({key for s in services for key in s.tags})
    by = ["month", "role", "site", *(f"tag:{key}" for key in tags)]
    with store.query(period, calendar) as view:
        found = account(view, by, calendar=calendar)
    return found.totals, found.findings


def _loads(
    services: Sequence[Service], totals: Sequence[Total]
) -> tuple[Mapping[str, list[Load]], list[Finding]]:
    """Return each service's energy by month and boundary; what two services name is nobody's."""
    found: dict[str, dict[tuple[str, Boundary | None], Load]] = {s.service_id: {} for s in services}
    doubled: dict[tuple[str, ...], Portion] = {}
    for total in totals:
        owners = [s for s in services if _holds(s, total)]
        part = Portion(exact=total.energy.exact, estimate=total.energy.estimate)
        if len(owners) > 1:
            names = tuple(sorted(s.service_id for s in owners))
            doubled[names] = doubled.get(names, NO_ENERGY).plus(part)
        elif owners:
            of_service = found[owners[0].service_id]
            key = (_month(total), total.boundary)
            load = of_service.get(key, Load(month=key[0], boundary=key[1], used=NO_ENERGY))
            is_idle = total.group["role"] == "idle"
            of_service[key] = (
                replace(load, headroom=load.headroom.plus(part))
                if is_idle
                else replace(load, used=load.used.plus(part))
            )
    said = [_doubled(names, part) for names, part in doubled.items()]
    return {name: [loads[k] for k in sorted(loads, key=str)] for name, loads in found.items()}, said


def _holds(service: Service, total: Total) -> bool:
    if not service.tags or (service.site is not None and total.group["site"] != service.site):
        return False
    return all(total.group[f"tag:{key}"] == value for key, value in service.tags.items())


def _month(total: Total) -> str:
    month = total.group["month"]
    return f"{month // 100:04}-{month % 100:02}" if isinstance(month, int) else ""


def _metered(
    services: Sequence[Service],
    inventory: Inventory,
    store: Ledger,
    calendar: Calendar,
    span: Period,
    now_us: int,
) -> tuple[Mapping[str, Mapping[str, Metered]], list[Finding]]:
    """Return what the services' meters counted by service and local month."""
    wanted = {s.service_id: s.meter for s in services if s.meter is not None}
    if not wanted:
        return {}, []
    known, readings, said = meters_and_readings(store, inventory, ())
    meters = {m.meter_id: replace(m, covers="ai") for m in known}
    found: dict[str, dict[str, Metered]] = {}
    findings = list(said)
    local = month_of(calendar)
    for name, meter in wanted.items():
        if meter not in meters:
            findings.append(_no_meter(name, meter))
            continue
        for month, start, end in _months(calendar, span):
            if start >= now_us:
                continue
            for one in metered([meters[meter]], readings, start, min(end, now_us), local):
                if one.is_whole:
                    found.setdefault(name, {})[month] = one
                else:
                    findings.append(not_whole(one))
    return found, findings


def _months(calendar: Calendar, span: Period) -> list[tuple[str, int, int]]:
    """Return the local months of a period with their instants."""
    months: list[tuple[str, int, int]] = []
    hour = span.first_hour
    while hour < span.end_hour:
        number = calendar.rows(hour, hour + 1)[0].month
        name = f"{number // 100:04}-{number % 100:02}"
        month = calendar.period(name)
        months.append((name, month.first_hour * US_PER_HOUR, month.end_hour * US_PER_HOUR))
        hour = month.end_hour
    return months


def _with_meters(
    service: Service, loads: Sequence[Load], counted: Mapping[str, Metered]
) -> tuple[list[Load], list[Finding]]:
    """Return a service's loads where its meter counts: the runs of another boundary stand apart."""
    found, said = [], []
    met: set[str] = set()
    for load in loads:
        meter = counted.get(load.month)
        if meter is None or meter.boundary != load.boundary:
            found.append(load)
            continue
        with_rest, findings = with_meter(load, meter)
        found.append(with_rest)
        said += [replace(f, subject=service.service_id) for f in findings]
        met.add(load.month)
    for month, meter in counted.items():
        if month in met:
            continue
        if any(load.month == month for load in loads):
            said.append(_other_boundary(service, month, meter))
        whole = Portion(exact=meter.exact_j, estimate=meter.energy)
        found = [load for load in found if load.month != month]
        found.append(Load(month=month, boundary=meter.boundary, used=whole))
    return sorted(found, key=lambda load: load.month), said


def _by_boundary(loads: Sequence[Load]) -> list[list[Load]]:
    groups: dict[Boundary | None, list[Load]] = {}
    for load in loads:
        groups.setdefault(load.boundary, []).append(load)
    return list(groups.values())


def _doubled(names: Sequence[str], part: Portion) -> Finding:
    amount = "energy that is unknown" if part.exact is None else f"{energy_kwh(part.exact):.6g} kWh"
    return Finding(
        code="CL476",
        severity="error",
        message=f"{amount} would belong to the services {' and '.join(names)}: none of them has it",
        mend="let site and tags of services.toml tell them apart",
        subject=names[0],
    )


def _no_energy(service: Service, period: str) -> Finding:
    tags = ", ".join(f"{key}={value}" for key, value in sorted(service.tags.items()))
    return Finding(
        code="CL477",
        severity="warning",
        message=f"service {service.service_id} has no energy in {period}"
        + (f": no run is tagged {tags}" if tags else ""),
        mend="tag its runs, or check tags, site and meter in services.toml",
        subject=service.service_id,
    )


def _no_meter(service: str, meter: str) -> Finding:
    return Finding(
        code="CL477",
        severity="warning",
        message=f"service {service} names the meter {meter}, which meters.toml does not have",
        mend="declare the meter, or write its id as it stands there",
        subject=service,
    )


def _other_boundary(service: Service, month: str, meter: Metered) -> Finding:
    return Finding(
        code="CL477",
        severity="info",
        message=f"service {service.service_id}: its runs of {month} have another boundary than its meter "
        f"({meter.boundary}): the meter's energy is divided, and its idle is not told apart",
        mend="record the runs at the meter's boundary",
        subject=service.service_id,
    )
