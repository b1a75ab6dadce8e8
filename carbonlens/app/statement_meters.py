"""Use case part: meters of an inventory with their readings; a bill of energy stands for a meter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from carbonlens.accounting.bill_energy import energy_once
from carbonlens.accounting.charges import is_dated
from carbonlens.accounting.electricity_bill import sorted_out, states_energy
from carbonlens.accounting.metered import BILLED
from carbonlens.app.inventory import calendar_of
from carbonlens.domain.charge import Charge
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.site import Meter
from carbonlens.domain.units import US_PER_HOUR, US_PER_S
from carbonlens.errors import UsageError
from carbonlens.ledger.activity import READINGS
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.superseding import counting


def in_local_days(charges: Sequence[Charge], inventory: Inventory) -> tuple[Charge, ...]:
    """Return charges with the dates of electricity bills as days of the reporting time zone.

    Bills of sites state whole days, which the format writes in UTC. What was delivered in March
    is of March there: a line that is shifted by the offset would miss an hour of it.

    Args:
        charges: Lines of bills.
        inventory: With sites, meters and the time zone.
    """
    sites = {s.site_id: s for s in inventory.sites}
    found = sorted_out(charges, sites, {m.meter_id: m.site for m in inventory.meters}).electricity
    dated = {c.charge_id for lines in found.values() for c in lines if is_dated(c.start_us, c.end_us)}
    calendar = calendar_of(inventory.terms)
    return tuple(_local(c, calendar) if c.charge_id in dated else c for c in charges)


def _local(charge: Charge, calendar: Calendar) -> Charge:
    try:
        start, end = (_begin_of_day(at, calendar) for at in (charge.start_us, charge.end_us))
    except (UsageError, OverflowError, ValueError):
        # A time that no calendar has: no period holds it either way.
        return charge
    return replace(charge, start_us=start, end_us=end)


def _begin_of_day(at_us: int, calendar: Calendar) -> int:
    """Return when the date that an instant has in UTC begins in the reporting time zone."""
    day = datetime.fromtimestamp(at_us // US_PER_S, tz=UTC).date()
    return calendar.period(day.isoformat()).first_hour * US_PER_HOUR


def meters_and_readings(
    store: Ledger,
    inventory: Inventory,
    charges: Sequence[Charge],
    imported: Sequence[MeterReading] | None = None,
) -> tuple[tuple[Meter, ...], tuple[MeterReading, ...], tuple[Finding, ...]]:
    """Return the meters that cover sites, and what they counted.

    Bills that state the energy of a site stand beside its meters: each is told by its meter id.

    Args:
        store: Ledger with imported readings.
        inventory: With meters, and readings of its own.
        charges: Bills in the ledger.
        imported: Readings, superseded ones too; those of the ledger when ``None``.
    """
    findings: Sequence[Finding] = ()
    if imported is None:
        imported, findings = store.rows(READINGS)
    readings, said = counting((*inventory.readings, *imported), READINGS.id_field)
    known = {s.site_id for s in inventory.sites}
    billed = [c for c in energy_once(charges)[0] if states_energy(c) and c.site in known]
    meters = {c.site or "": _meter_of_bills(c.site or "") for c in billed}
    readings += [_reading(c) for c in billed]
    return (*inventory.meters, *meters.values()), tuple(readings), (*findings, *said)


def _meter_of_bills(site: str) -> Meter:
    return Meter(meter_id=f"{BILLED}{site}", site=site, boundary="facility", covers="site")


def _reading(charge: Charge) -> MeterReading:
    return MeterReading(
        reading_id=charge.charge_id,
        meter_id=f"{BILLED}{charge.site}",
        site=charge.site,
        start_us=charge.start_us,
        end_us=charge.end_us,
        energy_j=charge.energy_j,
        boundary="facility",
        origin=charge.origin,
    )
