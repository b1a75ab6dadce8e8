"""The cost of a statement as users see it: parts of a bill, what no run carries, the reporting currency."""

import pytest

from carbonlens.ledger.activity import CHARGES
from carbonlens.ledger.store import Ledger
from tests.app import statement_case as case
from tests.app.costs_case import RATES, bill, charge
from tests.cli.commands import Shell

OPTIONS = ("--inventory", "inventory", "--factors", "factors.csv", "--ledger", "ledger")


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cost")
    case.write(folder)
    (folder / "inventory" / "exchange_rates.csv").write_text(RATES)
    lines = [*bill(), charge("a", 100, "USD", resource_id="i-1")]
    Ledger(folder / "ledger").add_rows(CHARGES, lines, source_sha256="cd" * 32, importer="test-1")
    return Shell(folder)


def test_the_text_names_parts_rest_rate_and_date_within_the_terminal(shell):
    lines = shell("account", "--period", case.PERIOD, *OPTIONS).stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    text = " ".join(line.strip() for line in lines)
    assert "carried by no run USD 100" in text
    assert "Electricity bill of lab: energy EUR 280, network EUR 90, levy EUR 20, tax EUR 70, credit" in text
    assert "at 1 USD = 0.9 EUR on 2026-05-29 (bank)" in text


def test_the_json_has_each_line_in_both_currencies(shell):
    cost = shell.json("account", "--period", case.PERIOD, *OPTIONS)["cost"]
    (rest,) = [line for line in cost["lines"] if line["name"] == "unallocated"]
    assert (rest["amount"]["value"], rest["amount"]["unit"]) == (100, "USD")
    assert rest["reported"]["value"] == pytest.approx(90)
    assert cost["reported"]["currency"] == "EUR"
    assert cost["reported"]["total"]["value"] == pytest.approx(430 + 90)
    # Nobody prices the electricity of the customers' devices.
    assert cost["reported"]["total"]["state"] == "unbounded"
