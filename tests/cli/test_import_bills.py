"""Bills on the command line: imported once, cash apart from accrual, shared over runs."""

import gzip
from pathlib import Path

import pytest

from tests.importers.test_focus import line, table

C35 = Path(__file__).parents[2] / ".." / "shared" / "cases" / "inputs" / "c35.csv"
RUNS = """run_id,study,step,energy_j,units,start_utc,duration_s,site,boundary,energy_grade
a,s,base,3600000,10,2026-03-29T00:00:00Z,1800,paris,it,B
b,s,fast,1200000,10,2026-03-29T00:30:00Z,900,paris,it,B
"""


def write(shell, name, *rows):
    (shell.folder / name).write_text(table(*rows), "utf-8")


def codes(result):
    return [f["code"] for f in result["files"][0]["findings"]]


def test_a_bill_gives_its_four_costs_by_currency(shell):
    euros = line(
        BillingCurrency="EUR", BilledCost="1.123456789012345678", ResourceId="i-2", ListCost="1.2E-15"
    )
    write(shell, "bill.csv", line(), euros)
    result = shell.json("import", "bill.csv")
    assert result["totals"]["cost"] == {
        "EUR": {"billed": 1.123456789012345678, "effective": 12.3, "list": 1.2e-15, "contracted": 13.5},
        "USD": {"billed": 12.3, "effective": 12.3, "list": 15, "contracted": 13.5},
    }
    assert (result["totals"]["charges"], result["totals"]["runs"]) == (2, 0)
    assert result["files"][0]["format"] == "focus"
    # All digits stand in the text, though few readers keep them.
    assert "1.123456789012345678" in shell("import", "bill.csv", "--json", "--ledger", "other").stdout


def test_the_text_says_which_cost_is_cash_and_which_accrual(shell):
    write(shell, "bill.csv", line(EffectiveCost="0.001"))
    out = shell("import", "bill.csv").stdout
    assert "saved 1 charge, in " in out
    assert "USD: cash (billed) 12.30; accrual (effective) 0.001; list 15.00; contracted 13.50" in out


def test_the_same_bill_and_one_that_overlaps_count_once(shell):
    write(shell, "a.csv", line(), line(ResourceId="i-2"))
    write(shell, "b.csv", line(ResourceId="i-2"), line(ResourceId="i-3"))
    (shell.folder / "a.csv.gz").write_bytes(gzip.compress((shell.folder / "a.csv").read_bytes()))
    assert shell.json("import", "a.csv")["totals"]["charges"] == 2
    again = shell.json("import", "a.csv")
    assert (again["files"][0]["status"], "cost" in again["totals"]) == ("duplicate", False)
    packed = shell.json("import", "a.csv.gz")
    assert (packed["files"][0]["status"], codes(packed)) == ("duplicate", ["CL210"])
    overlap = shell.json("import", "b.csv")
    assert (overlap["totals"]["charges"], codes(overlap)) == (1, ["CL236"])
    assert shell.json("charges")["cost"]["USD"]["billed"] == pytest.approx(36.9)


def test_a_null_cost_is_null_and_a_bad_line_is_said_with_its_number(shell):
    write(shell, "bill.csv", line(), line(ListCost="", ResourceId="i-2"), line(BilledCost="x"))
    result = shell.json("import", "bill.csv")
    assert result["totals"]["cost"]["USD"]["list"] is None
    assert result["totals"]["cost"]["USD"]["billed"] == pytest.approx(24.6)
    assert (result["totals"]["rows"], result["totals"]["rows_rejected"]) == (3, 1)
    assert [(f["code"], f["line"]) for f in result["files"][0]["findings"]] == [("CL232", 4), ("CL234", 3)]
    shell("import", "bill.csv", "--strict", "--ledger", "other", code=3)


def test_a_bill_without_a_column_it_cannot_do_without_is_refused(shell):
    write(shell, "bill.csv", line(BillingCurrency=None))
    assert "lacks BillingCurrency" in shell("import", "bill.csv", code=3).stderr


@pytest.mark.skipif(not C35.exists(), reason="the shared cases are not beside the repository")
def test_case_c35_is_379_on_accrual_and_4550_on_cash_never_4929(shell):
    result = shell.json("import", C35)
    (costs,) = result["totals"]["cost"].values()
    assert (costs["billed"], costs["effective"]) == (4550, 379)
    assert costs["list"] == 452.5
    april = shell("charges", "--period", "2025-04").stdout
    assert april.startswith("effective cost (accrual basis), 2025-04\n")
    assert "sum          379.00" in april
    cash = shell("charges", "--period", "2025-04", "--kind", "billed").stdout
    assert "billed cost (cash basis)" in cash
    assert "sum          4550.00" in cash
    assert "4929" not in april + cash


def test_charges_are_shared_over_runs_and_the_rest_is_a_line(shell):
    (shell.folder / "runs.csv").write_text(RUNS, "utf-8")
    write(shell, "bill.csv", line(), line(ResourceId="i-9", BilledCost="7", EffectiveCost="7"))
    shell("import", "runs.csv")
    shell("import", "bill.csv", "--site", "paris")
    result = shell.json("charges")
    assert result["basis"] == "accrual"
    assert result["runs"]["USD"] == {"a": 9.65, "b": 4.825, "unallocated": 4.825}
    assert {p["how"] for p in result["parts"]} == {"time"}
    (invoice,) = result["invoices"]
    assert (invoice["invoice_id"], invoice["currency"], invoice["billed"]) == ("inv-1", "USD", 19.3)
    assert invoice["figure"] == "charges.all.effective.time.invoice.inv-1.USD"
    by_energy = shell.json("charges", "--weights", "energy")
    assert by_energy["runs"]["USD"] == {"a": 14.475, "b": 4.825}
    text = shell("charges").stdout.splitlines()
    # Printed parts add up to the printed sum.
    printed = [float(row.split()[-1]) for row in text[2:6]]
    assert sum(printed[:3]) == pytest.approx(printed[3])
    assert printed[3] == pytest.approx(19.30)


def test_no_bill_an_unknown_kind_or_period_are_errors(shell):
    assert "no charge is in the ledger" in shell("charges", code=2).stderr
    assert "no kind of cost 'cash'" in shell("charges", "--kind", "cash", code=2).stderr
    write(shell, "bill.csv", line())
    shell("import", "bill.csv")
    assert "no charge starts in 2020" in shell("charges", "--period", "2020", code=2).stderr


def test_a_run_without_a_price_is_said_and_null(shell):
    rows = ["run_id,study,step,energy_j,units,boundary,energy_grade,cost,currency"]
    rows += [f"r{n},s,base,5,1,it,B,{cost},USD" for n, cost in enumerate(("1.20", "", "0.80"))]
    (shell.folder / "runs.csv").write_text("\n".join(rows) + "\n", "utf-8")
    result = shell.json("import", "runs.csv")
    assert result["totals"]["cost_stated"] == {"USD": 2.0}
    assert any(f["message"].startswith("1 of 3 runs has no price") for f in result["files"][0]["findings"])
    runs = {r["run_id"]: r["cost"] for r in shell.json("runs")["runs"]}
    assert runs["r1"] is None
    assert runs["r0"] == {"amount": "1.20", "currency": "USD"}


def test_a_tag_or_site_that_is_told_too_late_of_a_bill_is_not_passed_over(shell):
    write(shell, "a.csv", line(), line(ResourceId="i-2"))
    shell("import", "a.csv", "--tag", "team=a", "--site", "hall")
    assert codes(shell.json("import", "a.csv", "--tag", "team=a", "--site", "hall")) == ["CL236"]
    for said in (("--tag", "team=b"), ("--site", "yard")):
        again = shell.json("import", "a.csv", *said)
        assert (again["files"][0]["status"], codes(again)) == ("duplicate", ["CL236", "CL293"])
        assert "2 lines are" in again["files"][0]["findings"][1]["message"]
