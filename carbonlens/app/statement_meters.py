"""Use case part: meters of an inventory with their readings; a bill of energy stands for a meter."""

from __future__ import annotations

from collections.abc import Sequence

from carbonlens.accounting.metered import BILLED
from carbonlens.domain.charge import Charge
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.site import Meter
from carbonlens.ledger.activity import READINGS
from carbonlens.ledger.store import Ledger


def meters_and_readings(
    store: Ledger, inventory: Inventory, charges: Sequence[Charge]
) -> tuple[tuple[Meter, ...], tuple[MeterReading, ...], tuple[Finding, ...]]:
    """Return the meters that cover sites, and what they counted.

    A site without a meter of its own whose bills state its energy is metered by them.

    Args:
        store: Ledger with imported readings.
        inventory: With meters, and readings of its own.
        charges: Bills in the ledger.
    """
    imported, findings = store.rows(READINGS)
    by_id = {r.reading_id: r for r in (*inventory.readings, *imported)}
    gone = {r.supersedes for r in by_id.values() if r.supersedes}
    readings = [r for name, r in by_id.items() if name not in gone]
    metered = {m.site for m in inventory.meters if m.covers != "part"}
    known = {s.site_id for s in inventory.sites}
    billed = [
        c for c in charges if c.energy_j is not None and c.site in known - metered and c.category == "usage"
    ]
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
