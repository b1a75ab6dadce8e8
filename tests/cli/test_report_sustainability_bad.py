"""What ``report sustainability`` says of a ledger that hardly holds a quarter, and what it refuses."""

import json

import pytest

from carbonlens.domain.identity import host_pseudonym
from scripts.write_company import BILL_COLUMNS
from tests.cli.commands import Shell

RUN = """run_id,study,step,role,start_utc,duration_s,energy_j,energy_grade,boundary,units,unit,site
only,production,live,serving,2026-08-05T00:00:00Z,3600,36000000,B,it,1000,token,hall
"""
SITES = """
[[site]]
id = "hall"
kind = "own"
entity = "One AG"
zone = "AQ"
market = "AQ"
pue = 1.5
pue_source = "stated for this test"
"""
TARIFF = """
[[tariff]]
id = "hall-2026"
site = "hall"
currency = "EUR"
timezone = "UTC"
valid_from = 2026-01-01
source = "stated for this test"

[[tariff.band]]
name = "all"
amount_per_kwh = "0.20"
start_hour = 0
end_hour = 24
"""
BILL = {
    "BillingAccountId": "a", "BillingCurrency": "USD",
    "BillingPeriodStart": "2026-08-01T00:00:00Z", "BillingPeriodEnd": "2026-09-01T00:00:00Z",
    "ChargeCategory": "Usage", "ChargeDescription": "Storage",
    "ChargePeriodStart": "2026-08-01T00:00:00Z", "ChargePeriodEnd": "2026-09-01T00:00:00Z",
    "BilledCost": "40", "EffectiveCost": "40", "ListCost": "40", "ContractedCost": "40",
    "PricingQuantity": "1", "PricingUnit": "GB-Months", "ServiceCategory": "Storage",
    "ServiceName": "Object storage", "ProviderName": "P", "PublisherName": "P", "InvoiceIssuerName": "P",
}  # fmt: skip


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A ledger of one run at a place without grid factors, priced in euros, with a bill in dollars."""
    folder = tmp_path_factory.mktemp("one")
    (folder / "runs.csv").write_text(RUN, "utf-8")
    bill = [",".join(BILL_COLUMNS), ",".join(BILL.get(name, "") for name in BILL_COLUMNS)]
    (folder / "bill.csv").write_text("\n".join(bill) + "\n", "utf-8")
    inventory = folder / "inventory"
    inventory.mkdir()
    (inventory / "sites.toml").write_text(SITES, "utf-8")
    (inventory / "tariffs.toml").write_text(TARIFF, "utf-8")
    (inventory / "reporting.toml").write_text('entity = "One AG"\ncurrency = "EUR"\n', "utf-8")
    made = Shell(folder)
    made("import", "runs.csv", "bill.csv", "--ledger", "ledger")
    return made


def report(shell, *more, code=0):
    places = ("--ledger", "ledger", "--inventory", "inventory")
    return shell("report", "sustainability", *places, "-o", "out", *more, code=code)


@pytest.fixture(scope="module")
def page(shell):
    """The one report that the tests below read, as Markdown and as plain values."""
    report(shell, "--period", "2026Q3", "--format", "md,json")
    out = shell.folder / "out"
    data = json.loads((out / "sustainability-2026Q3.json").read_text("utf-8"))
    text = (out / "sustainability-2026Q3.md").read_text("utf-8")
    return text.replace("\N{NO-BREAK SPACE}", " "), data["figures"]


@pytest.mark.slow
def test_of_one_run_there_is_a_report_that_says_what_it_lacks(page):
    text, figures = page
    # 10 kWh, and the half as much again that the hall takes.
    assert "2026Q3: 15" in text.splitlines()[0]
    assert figures["statement.2026Q3.total.facility_kwh"]["value"] == pytest.approx(15)
    assert "no runs in 2026Q2" in text
    assert "nothing is known of 2026Q2, so there is nothing to have changed from" in text


@pytest.mark.slow
def test_the_records_of_a_ledger_can_be_left_out(shell):
    report(shell, "--period", "2026Q3", "--format", "json", "--without-records", "-o", "bare")
    file = shell.folder / "bare" / "sustainability-2026Q3.json"
    assert json.loads(file.read_text("utf-8"))["ledger_zip"] is None
    shell("verify", file, "--ledger", "ledger")


@pytest.mark.slow
def test_names_of_hosts_leave_no_house_unless_told_to(shell):
    host = "build-node7.acme.internal"
    head, first = RUN.splitlines()
    # Two runs that read one device at once: a Finding tells of their host.
    second = first.replace("only,", "second,").replace("T00:00", "T00:30")
    table = "\n".join([f"{head},host", f"{first},{host}", f"{second},{host}"]) + "\n"
    (shell.folder / "hosts.csv").write_text(table, "utf-8")
    shell("import", "hosts.csv", "--ledger", "hosts")
    more = ("--ledger", "hosts", "--inventory", "inventory", "--period", "2026Q3", "-o", "hosted")
    said = shell("report", "sustainability", *more, "--format", "json").stderr
    assert "1 host in plain letters" in said
    assert len(said.splitlines()) == 1
    text = (shell.folder / "hosted" / "sustainability-2026Q3.json").read_text("utf-8")
    assert f"of host {host_pseudonym(host)}" in text
    assert host not in text
    data = json.loads(text)
    assert (data["ledger_zip"], data["basis"]["records_left_out"]) == (None, "hosts")
    shell("verify", "hosted/sustainability-2026Q3.json", "--ledger", "hosts")


@pytest.mark.slow
def test_without_a_factor_emissions_are_unknown_and_a_finding_names_the_zone(page):
    text, figures = page
    for method in ("location", "market"):
        name = f"statement.2026Q3.every_scope.{method}_kg"
        assert (figures[name]["value"], figures[name]["state"]) == (None, "unknown")
    assert "unknown location-based" in text.splitlines()[0] or "emissions unknown" in text.splitlines()[0]
    findings = text.partition("### Findings")[2]
    assert "AQ" in findings


@pytest.mark.slow
def test_currencies_without_a_rate_stay_apart(page):
    text, figures = page
    assert figures["statement.2026Q3.cost.total.EUR"]["value"] == pytest.approx(15 * 0.20)
    assert figures["statement.2026Q3.cost.total.USD"]["value"] == pytest.approx(40)
    assert "**in several currencies**" in text
    assert "| CL333 |" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (("--period", "2024Q1"), 2, "no runs in 2024Q1"),
        (("--period", "2026-08"), 2, "is no quarter"),
        (("--templates", "own"), 2, "own: is no folder of templates"),
        (("--format", "docx"), 2, "no such format: 'docx'"),
        (("--factors", "none.csv"), 3, "none.csv: there is no such file"),
        (("--without-records", "--with-host-names"), 2, "no effect with --without-records"),
    ],
)
def test_a_refusal_says_why_and_leaves_no_folder_behind(more, code, words, shell):
    refused = report(shell, "-o", "refused/deep", *more, code=code)
    assert words in refused.stderr
    assert not (shell.folder / "refused").exists()


@pytest.mark.parametrize("kind", ["business-case", "engineering", "quarterly"])
def test_other_kinds_leave_none_behind_either(kind, tmp_path):
    refused = Shell(tmp_path)("report", kind, "--ledger", "ledger", "-o", "refused/deep", code=2)
    assert refused.stderr
    assert not (tmp_path / "refused").exists()
