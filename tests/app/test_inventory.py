"""The inventory in use: kept in the ledger once, and held against what was delivered."""

from decimal import Decimal

import pytest

from carbonlens.app.deliveries import delivered
from carbonlens.app.inventory import (
    calendar_of,
    check_inventory,
    load_inventory,
    write_example,
)
from carbonlens.domain.charge import Charge
from carbonlens.domain.initiative import Delivery
from carbonlens.domain.inventory import Inventory, ReportingTerms
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.run import Run
from carbonlens.domain.site import Meter
from carbonlens.errors import ConfigError, UsageError
from carbonlens.ledger.activity import CHARGES, SNAPSHOTS
from carbonlens.ledger.store import Ledger

DAY_US = 86_400_000_000
JANUARY_US = 1_767_225_600_000_000
"""2026-01-01T00:00Z."""


@pytest.fixture
def example(tmp_path):
    folder = tmp_path / "inventory"
    write_example(folder)
    return folder


def test_the_example_loads_without_findings(example):
    loaded = check_inventory(example)
    assert loaded.faults == ()
    assert loaded.inventory.findings == ()
    assert loaded.inventory.terms.example
    assert all(f.kind and f.rows for f in loaded.files)
    filled = {f: getattr(loaded.inventory, f) for f in loaded.inventory.__struct_fields__ if f != "findings"}
    assert all(filled.values()), filled


def test_the_example_does_not_write_over_anything(example):
    with pytest.raises(UsageError, match="holds files already"):
        write_example(example)


def test_each_file_is_kept_once_and_again_when_it_changes(example, tmp_path):
    store = Ledger(tmp_path / "ledger")
    first = load_inventory(example, store=store)
    assert load_inventory(example, store=store).snapshots == first.snapshots
    kept, findings = store.rows(SNAPSHOTS)
    assert findings == []
    assert {s.name: s.snapshot_id for s in kept} == first.snapshots
    texts = {s.name: s.text for s in kept}
    assert texts["sites.toml"] == (example / "sites.toml").read_text("utf-8")
    (example / "notes.txt").write_text("not of the inventory")
    (example / "meters.toml").write_text("")
    changed = load_inventory(example, store=store).snapshots
    assert {n for n, i in changed.items() if first.snapshots[n] != i} == {"meters.toml"}
    assert len(store.rows(SNAPSHOTS)[0]) == len(kept) + 1


def test_a_malformed_inventory_is_refused_and_nothing_is_kept(example, tmp_path):
    (example / "sites.toml").write_text("[[site]]\n")
    store = Ledger(tmp_path / "ledger")
    with pytest.raises(ConfigError, match=r"sites\.toml:1: lacks 'id'"):
        load_inventory(example, store=store)
    assert not store.exists


def test_no_inventory_is_an_empty_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CARBONLENS_INVENTORY", raising=False)
    kept = load_inventory()
    assert (kept.folder, kept.inventory, kept.snapshots) == (None, Inventory(), {})


def test_periods_are_cut_in_the_stated_zone_and_year():
    calendar = calendar_of(ReportingTerms(timezone="Asia/Kolkata", fiscal_year_start=4))
    assert calendar.fiscal(2026, 3) == (2026, 4)
    assert calendar.reporting_timezone == "Asia/Kolkata"


def test_deliveries_are_looked_for_in_local_months(tmp_path):
    store = Ledger(tmp_path)
    # Half an hour before midnight UTC it is the next month in Berlin.
    late_us = JANUARY_US + 31 * DAY_US - 1_800_000_000
    store.append(
        Run(
            run_id="r",
            study="s",
            step="b",
            energy=(),
            start_us=late_us,
            end_us=late_us + 1,
            tags={"team": "ai"},
        )
    )
    store.append(Run(run_id="u", study="s", step="b", energy=(), start_us=JANUARY_US, end_us=JANUARY_US + 1))
    bill = Charge(charge_id="c", start_us=JANUARY_US, end_us=JANUARY_US + 40 * DAY_US, meter_id="m")
    store.add_rows(CHARGES, [bill], source_sha256="ab" * 32, importer="t-1")
    reading = MeterReading(
        reading_id="x",
        meter_id="m",
        site="berlin",
        start_us=JANUARY_US,
        end_us=JANUARY_US + 31 * DAY_US - 3_600_000_000,
        energy_j=Decimal(1),
    )
    quarter = ("2026-01", "2026-02", "2026-03")
    inventory = Inventory(
        terms=ReportingTerms(timezone="Europe/Berlin"),
        meters=(Meter(meter_id="m", site="berlin", boundary="facility"),),
        readings=(reading,),
        deliveries=(
            Delivery(team="ai", months=quarter),
            Delivery(team="ops", months=quarter, what="meter", site="berlin"),
            Delivery(team="ops", months=quarter, what="bill", site="berlin"),
        ),
    )
    found = delivered(inventory, store, now_us=JANUARY_US + 70 * DAY_US)
    assert [f.message for f in found.findings] == [
        "ai sent no runs in 1 month: 2026-01",
        "ops sent no meter readings for berlin in 1 month: 2026-02",
    ]
    assert (found.expected, found.came) == (6, 4)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Los_Angeles", "Asia/Tokyo", "UTC"])
def test_a_bill_of_one_month_is_no_delivery_of_its_neighbours(tmp_path, zone):
    """Bills write dates in UTC: January's ends an hour into February in Berlin, and begins in December."""
    store = Ledger(tmp_path / "ledger")
    bill = Charge(charge_id="c", start_us=JANUARY_US, end_us=JANUARY_US + 31 * DAY_US, site="berlin")
    store.add_rows(CHARGES, [bill], source_sha256="ab" * 32, importer="t-1")
    months = ("2025-12", "2026-01", "2026-02")
    inventory = Inventory(
        terms=ReportingTerms(timezone=zone),
        deliveries=(Delivery(team="ops", months=months, what="bill", site="berlin"),),
    )
    found = delivered(inventory, store, now_us=JANUARY_US + 70 * DAY_US)
    assert [f.message for f in found.findings] == [
        "ops sent no bill for berlin in 2 months: 2025-12, 2026-02"
    ]
