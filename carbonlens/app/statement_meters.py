"""Use case part: meters of an inventory with their readings; a bill of energy stands for a meter."""

from __future__ import annotations

from collections.abc import Sequence

from carbonlens.accounting.bill_energy import energy_once
from carbonlens.accounting.electricity_bill import states_energy
from carbonlens.accounting.metered import BILLED
from carbonlens.domain.charge import Charge
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.site import Meter
from carbonlens.ledger.activity import READINGS
from carbonlens.ledger.store import Ledger


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
    by_id = {r.reading_id: r for r in (*inventory.readings, *imported)}
    gone = {r.supersedes for r in by_id.values() if r.supersedes}
    readings = [r for name, r in by_id.items() if name not in gone]
    known = {s.site_id for s in inventory.sites}
    billed = [c for c in energy_once(charges)[0] if states_energy(c) and c.site in known]
    meters = {c.site or "": _meter_of_bills(c.site or "") for c in billed}
    readings += [_reading(c) for c in billed]
    return (*inventory.meters, *meters.values()), tuple(readings), tuple(findings)


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
