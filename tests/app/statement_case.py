"""A small ledger and inventory for the statement and for explain, and their sums in plain Decimals."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from carbonlens.domain.run import Origin, Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger

PERIOD = "2026-05"
NOW_US = 1_790_000_000_000_000
FIRST_HOUR = Calendar().period(PERIOD).first_hour
HOURS = 31 * 24

DAY, NIGHT = Decimal("0.30"), Decimal("0.20")
PUE, HOST, GRID, RESIDUAL = Decimal("1.25"), Decimal("1.1"), Decimal("0.4"), Decimal("0.7")
CERTIFIED_KWH = Decimal(100)

REPORTING = 'entity = "Test Ltd"\ntimezone = "UTC"\ncurrency = "EUR"\n'
SITES = """
[[site]]
id = "lab"
kind = "own"
entity = "Test Ltd"
zone = "DE"
market = "DE"
pue = 1.25
pue_source = "test"
pue_u_relative = 0.02
host_overhead = 1.1
host_overhead_source = "test"
host_overhead_u_relative = 0.03
wue_l_per_kwh = 0.5
wue_source = "test"

[[site]]
id = "edge"
kind = "customer"
zone = "FR"
market = "FR"
pue = 1.0
pue_source = "test"
"""
CERTIFICATES = """
[[certificate]]
id = "GO-1"
kind = "certificate"
entity = "Test Ltd"
market = "DE"
energy_mwh = 0.1
period = "2026"
value_kg_per_kwh = 0
registry = "test"
technology = "wind"
retired = 2026-06-30
evidence = "test"

[certificate.criteria]
ghg_rate = true
unique_claim = true
tracked_and_retired = true
vintage_close = true
same_market = true
supplier_specific = true
direct_transfer = true
residual_mix_available = true
"""
TARIFFS = """
[[tariff]]
id = "lab-2026"
site = "lab"
currency = "EUR"
timezone = "UTC"
valid_from = 2026-01-01
u_relative = 0.0
source = "test"

[[tariff.band]]
name = "day"
amount_per_kwh = "0.30"
start_hour = 8
end_hour = 20

[[tariff.band]]
name = "night"
amount_per_kwh = "0.20"
start_hour = 20
end_hour = 8
"""
_BASIS = "average,direct,consumption,0.1,Test table,test,CC0,2026"
FACTORS = f"""\
factor_id,kind,subject,name,period,value,method,averaging,span,flow,u_relative,source,address,licence,vintage
own/DE,grid,DE,Germany,2026,0.4,location,{_BASIS}
own/DE-residual,grid,DE,Germany,2026,0.7,residual,{_BASIS}
own/FR,grid,FR,France,2026,0.05,location,{_BASIS}
"""
METER = """
[[meter]]
id = "main"
site = "lab"
boundary = "facility"
covers = "site"
accuracy_class = 0.01
"""


def runs() -> list[Run]:
    """Return runs of an hour each: at the lab by IT and by device, and on customers' devices."""
    found = []
    for i in range(60):
        site = "edge" if i % 5 == 4 else "lab"
        boundary = "device" if i % 3 == 0 else "it"
        start = (FIRST_HOUR + i * 7) * US_PER_HOUR
        reading = Reading(
            component="gpu",
            energy_j=Decimal(3_600_000) * (i + 1) / 2 + Decimal("0.125"),
            boundary="it" if site == "edge" else boundary,
            grade="B",
            method="counter",
            u_by_source_j={"sensor:gpu": 50_000.0 * (i + 1)},
            covered_s=3600.0,
        )
        found.append(
            Run(
                run_id=f"run-{i:02}",
                start_us=start,
                end_us=start + US_PER_HOUR,
                duration_s=3600.0,
                site=site,
                energy=(reading,),
                tags={"team": "red" if i % 2 else "blue"},
                origin=Origin(instrument="test-1", source_file="runs.csv", source_line=i + 2),
            )
        )
    return found


def write(folder: Path, *, with_meter: Decimal | None = None) -> None:
    """Write ``ledger``, ``inventory`` and ``factors.csv`` into a folder.

    Args:
        folder: Where.
        with_meter: kWh that a meter of the lab counted in the period; no meter when ``None``.
    """
    Ledger(folder / "ledger").add_batch(runs(), source_sha256="ab" * 32, importer="test-1")
    inventory = folder / "inventory"
    inventory.mkdir()
    texts = {"reporting": REPORTING, "sites": SITES, "certificates": CERTIFICATES, "tariffs": TARIFFS}
    if with_meter is not None:
        texts["meters"] = METER
        (inventory / "readings.csv").write_text(
            f"meter,start,end,energy,unit\nmain,2026-05-01T00:00Z,2026-06-01T00:00Z,{with_meter},kWh\n"
        )
    for name, text in texts.items():
        (inventory / f"{name}.toml").write_text(text)
    (folder / "factors.csv").write_text(FACTORS)


def it_kwh(site: str = "lab", team: str | None = None) -> Decimal:
    """Return IT energy, summed in plain Decimals."""
    total = Decimal(0)
    for run in runs():
        if run.site == site and team in (None, run.tags["team"]):
            (reading,) = run.energy
            kwh = (reading.energy_j or Decimal(0)) / 3_600_000
            total += kwh * HOST if reading.boundary == "device" else kwh
    return total


def cost() -> Decimal:
    """Return the cost of the lab's electricity, hour by hour."""
    total = Decimal(0)
    for run in runs():
        if run.site == "lab":
            (reading,) = run.energy
            kwh = (reading.energy_j or Decimal(0)) / 3_600_000
            facility = kwh * (HOST if reading.boundary == "device" else 1) * PUE
            hour = (run.start_us or 0) // US_PER_HOUR % 24
            total += facility * (DAY if 8 <= hour < 20 else NIGHT)
    return total
