"""Runs that serve requests at a site, headroom, a training and another model, for scores."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger.store import Ledger
from tests.app import statement_case as case

PERIOD = case.PERIOD
PUE, HOST, GRID = case.PUE, case.HOST, case.GRID
EACH_KG, LIFE_YEARS = 150, 4
LIFE_H = LIFE_YEARS * 365 * 24
REQUESTS = 1000
SERVING = 10
ASSET = (
    "id,hardware,site,purchased,life_years,embodied_kg,embodied_low_kg,embodied_high_kg,embodied_source\n"
    f"a,gpu-x,lab,2026-01-01,{LIFE_YEARS},{EACH_KG},100,225,Maker\n"
)


def run(number: int, role: str, kwh: int = 2, **fields: object) -> Run:
    """Return a run of one hour at the lab, at the device boundary."""
    start = (case.FIRST_HOUR + number) * US_PER_HOUR
    reading = Reading(
        component="gpu",
        energy_j=Decimal(3_600_000) * kwh,
        boundary="device",
        grade="B",
        method="counter",
        u_by_source_j={"sensor:gpu": 180_000.0 * kwh},
        covered_s=3600.0,
    )
    held = {"site": "lab", "hardware": "gpu-x", "study": "chat", "duration_s": 3600.0} | fields
    return Run(
        run_id=f"{role}-{number:02}",
        role=role,
        start_us=start,
        end_us=start + US_PER_HOUR,
        energy=(reading,),
        **held,
    )


def served(**fields: object) -> list[Run]:
    """Return runs that serve ``REQUESTS`` requests each."""
    given = {"units": Decimal(REQUESTS), "unit": "requests"} | fields
    return [run(i, "serving", **given) for i in range(SERVING)]


def headroom() -> Run:
    """Return an hour of idle power, which counts no request."""
    return run(20, "idle", 1)


def write(folder: Path, runs: list[Run], *, assets: str | None = ASSET, sites: str = case.SITES) -> None:
    """Write ``ledger``, ``inventory`` and ``factors.csv`` into a folder."""
    Ledger(folder / "ledger").add_batch(runs, source_sha256="cd" * 32, importer="test-1")
    inventory = folder / "inventory"
    inventory.mkdir()
    (inventory / "reporting.toml").write_text(case.REPORTING)
    (inventory / "sites.toml").write_text(sites)
    (inventory / "certificates.toml").write_text(case.CERTIFICATES)
    if assets is not None:
        (inventory / "assets.csv").write_text(assets)
    (folder / "factors.csv").write_text(case.FACTORS)
