"""The company's bill, its second currency and its restatement, against sums made by hand.

The hand's sums follow from what ``scripts/write_company.py`` writes down (hours, prices, devices), not
from the ledger: 3 months of 560 h at 2.50 USD, 3 of storage at 85.20 USD, less 40 h that came back.
"""

from __future__ import annotations

import csv
import json

import msgspec
import pytest

from carbonlens.accounting.base_year import recalculation
from carbonlens.app.statement import make_statement
from carbonlens.reporting.content import plain_text
from scripts.write_company import CORRECTED_TIMES
from tests.app import company_case
from tests.reporting import sustainability_case as case

pytestmark = pytest.mark.slow

QUARTER = "2026Q3"
BILLED = {
    # hours a month, storage a month, what came back
    "2025Q3": 3 * 540 * 2.50 + 3 * 85.20,
    "2025Q4": 3 * 540 * 2.50 + 3 * 85.20 - 150.00,
    "2026Q2": 3 * 620 * 2.50 + 3 * 85.20,
    QUARTER: 3 * 560 * 2.50 + 3 * 85.20 - 40 * 2.50,
}
AUGUST_KG_PER_KWH = 0.2945
"""Of ``own/IE-2025-08`` in the factor table."""


@pytest.fixture(scope="module")
def statements(company_report):
    held = company_report.material.gathered.made
    return {name: one.statement for name, one in held.items()}


@pytest.mark.parametrize("name", BILLED)
def test_the_cloud_costs_what_its_bill_asks_for_less_what_came_back(name, statements):
    total = statements[name].cost.totals["USD"]
    assert (total.value, total.state) == (pytest.approx(BILLED[name]), "known")


def test_what_no_run_carries_of_the_bill_is_a_line_of_its_own(statements):
    lines = {x.name: x.amount for x in statements[QUARTER].cost.lines if x.amount.unit == "USD"}
    assert set(lines) == {"cloud", "unallocated"}
    assert lines["cloud"].value + lines["unallocated"].value == pytest.approx(4355.60)
    # 15 or 16 hours a month of the 744 that a line lasts.
    assert 0 < lines["cloud"].value < 4355.60 / 20


def test_dollars_are_brought_to_euros_at_the_rate_of_the_last_day(statements):
    held = statements[QUARTER]
    euros = held.cost.totals["EUR"].value
    assert held.reported_cost.total.value == pytest.approx(euros + 4355.60 * 0.90)
    assert held.reported_cost.how == ("1 USD = 0.90 EUR on 2026-09-30 (Invented for this example)",)


def test_the_printed_cost_is_that_sum(company_report, statements):
    tiles = case.tiles(company_report.material.view)
    whole = statements[QUARTER].cost.totals["EUR"].value + 4355.60 * 0.90
    number = f"{round(whole, -1):,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    assert tiles["Cost"].partition(" | ")[0] == f"EUR\N{NO-BREAK SPACE}{number}"


@pytest.fixture(scope="module")
def without_rate(company_report, tmp_path_factory):
    """The statement of the quarter, and of the one before, of an inventory that has no exchange rate."""
    places = dict(company_report.places)
    folder = tmp_path_factory.mktemp("without") / "inventory"
    folder.mkdir()
    for file in places["inventory"].iterdir():
        if file.name != "exchange_rates.csv":
            (folder / file.name).write_bytes(file.read_bytes())
    places["inventory"] = folder
    return make_statement(QUARTER, now_us=company_case.NOW_US, **places).statement


def test_without_a_rate_currencies_stay_apart_and_a_finding_says_so(without_rate):
    assert without_rate.cost.totals.keys() == {"EUR", "USD"}
    assert without_rate.cost.totals["USD"].value == pytest.approx(4355.60)
    in_one = without_rate.reported_cost.total
    # Only what is in euros is counted, and that it is not all is said: never one for one.
    assert in_one.state == "unbounded"
    assert in_one.value == pytest.approx(without_rate.cost.totals["EUR"].value)
    (missing,) = [f for f in without_rate.findings if f.code == "CL333"]
    assert "USD" in missing.message
    view = case.view({case.QUARTER: without_rate})
    cost = case.tiles(view)["Cost"]
    assert cost.startswith("in several currencies")
    assert "EUR\N{NO-BREAK SPACE}" in cost
    assert "USD\N{NO-BREAK SPACE}4" in cost
    assert any(head.startswith("CL333") for head in case.rows(view, "Findings"))


@pytest.fixture(scope="module")
def added_kwh(company_report):
    """What the corrected runs took more than was recorded, by their tables."""
    folder = company_report.places["ledger"].parent
    recorded = {r["run_id"]: float(r["energy_j"]) for r in csv.DictReader((folder / "retrain.csv").open())}
    corrected = list(csv.DictReader((folder / "corrections.csv").open()))
    assert len(corrected) == 15
    for row in corrected:
        assert float(row["energy_j"]) == CORRECTED_TIMES * recorded[row["run_id"]]
    return sum(float(row["energy_j"]) - recorded[row["run_id"]] for row in corrected) / 3.6e6


def test_the_base_year_is_restated_by_what_was_corrected(company_report, added_kwh):
    (one,) = company_report.material.gathered.given.restatements
    rows = {r.figure_id.removeprefix("statement.2025.total."): r for r in one.rows}
    # PUE 1.14 of the cloud, and its grid in August.
    by_hand = {"it_kwh": added_kwh, "facility_kwh": added_kwh * 1.14}
    by_hand["location_kg"] = by_hand["facility_kwh"] * AUGUST_KG_PER_KWH
    for name, value in by_hand.items():
        assert rows[name].delta.value == pytest.approx(value, rel=2e-4), name
        assert (rows[name].reason, rows[name].detail) == ("error", company_case.CORRECTION_WHY)
    assert (one.period, one.made_on) == ("2025", "2026-08-12")


def test_the_threshold_decides_whether_the_base_year_is_recalculated(company_report):
    (one,) = company_report.material.gathered.given.restatements
    held = one.base_year["location"]
    row = next(r for r in one.rows if r.figure_id == "statement.2025.total.location_kg")
    assert held.change == pytest.approx(row.delta.value / row.old.value)
    assert (held.threshold, held.is_needed) == (0.05, False)
    assert held.recalculated_kg == held.base_kg
    lower = recalculation(2025, held.base_kg, held.counted, 0.03)
    assert lower.is_needed
    assert lower.recalculated_kg.value == pytest.approx(row.new.value)


def test_the_report_tells_of_the_restatement_and_of_the_close_before_it(company_report, added_kwh):
    view = company_report.material.view
    said = case.words(view, "restatements")
    assert "2025, made 2026-08-12: from statement-2025.json to factors.csv" in said
    assert f"reason given: {company_case.CORRECTION_WHY}" in said
    assert "against a threshold of 5\N{NO-BREAK SPACE}%: kept as it was stated." in said
    assert str(company_report.places["ledger"].parent) not in said
    table = case.rows(view, "Restated 1")
    assert table["location-based emissions of total"][3] == f"error: {company_case.CORRECTION_WHY}"
    # It was found when it was corrected, not when the wrong record was imported.
    assert case.rows(view, "Prior periods")["2025Q3"][0] == "2026-08"
    assert case.rows(view, "Statement")[""][2] == "2025Q3 ADJUSTED"
    figures = json.loads(company_report.file("json").read_text("utf-8"))["figures"]
    (energy,) = [f["value"] for name, f in figures.items() if name == "prior.0.energy"]
    assert energy == pytest.approx(added_kwh * 3.6e6)


def test_the_company_says_on_every_table_of_its_own_that_it_is_invented(company_report):
    folder = company_report.places["ledger"].parent
    for name in ("factors.csv", "inventory/exchange_rates.csv", "inventory/sites.toml"):
        assert "Invented for this example" in (folder / name).read_text("utf-8") or "Illustrative" in (
            folder / name
        ).read_text("utf-8")
    assert company_report.material.gathered.given.example
    assert plain_text(company_report.material.view.subject).endswith("example: invented figures")
    assert msgspec.json.decode(company_report.file("json").read_bytes())["example"]
