"""Costs of a period for tests: charges, prices, and a statement made of them."""

from decimal import Decimal

from carbonlens.app.statement import make_statement
from carbonlens.domain.charge import Charge
from carbonlens.domain.money import Money
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import J_PER_KWH, US_PER_HOUR
from carbonlens.ledger.activity import CHARGES
from carbonlens.ledger.store import Ledger
from tests.app import statement_case as case

START_US = case.FIRST_HOUR * US_PER_HOUR
END_US = START_US + case.HOURS * US_PER_HOUR
DAY_US = 24 * US_PER_HOUR
AT = f"statement.{case.PERIOD}"

CLOUD = """
[[site]]
id = "aws"
kind = "cloud"
zone = "FR"
market = "FR"
provider = "aws"
region = "eu-west-3"
pue = 1.1
pue_source = "test"
"""
PRICES = (
    "id,subject,region,per,amount,currency,cost_kind,valid_from,u_relative,source,address,read_on\n"
    "power,electricity,,kWh,0.5,EUR,list,2026-01-01,0,s,a,2026-01-01\n"
    "p5,aws:p5.48xlarge,eu-west-3,hour,90,USD,list,2026-01-01,0,s,a,2026-01-01\n"
    "p5-ours,aws:p5.48xlarge,eu-west-3,hour,60,USD,contracted,2026-05-10,0,s,a,2026-01-01\n"
    "work,engineering,,hour,80,EUR,effective,2026-01-01,0,s,a,2026-01-01\n"
)
RATES = "base,quote,date,rate,source\nUSD,EUR,2026-05-29,0.9,bank\nUSD,EUR,2026-06-02,2,bank\n"


def charge(name, amount, currency="EUR", *, start=START_US, end=END_US, kwh=None, **fields):
    money = Money(Decimal(str(amount)), currency)
    joules = None if kwh is None else Decimal(str(kwh)) * J_PER_KWH
    given = {"category": "usage", "billed": money, "effective": money, **fields}
    return Charge(charge_id=name, start_us=start, end_us=end, energy_j=joules, **given)


def bill(site="lab", **times):
    """Return a bill of electricity: 1,000 kWh, and a fee per kWh that states them again."""
    return [
        charge("e", 280, kwh=1000, site=site, invoice_id="i", **times),
        charge("n", 90, kwh=1000, site=site, invoice_id="i", sku="network fee", **times),
        charge("v", 20, site=site, invoice_id="i", service="levy on power", **times),
        charge("t", 70, site=site, invoice_id="i", category="tax", **times),
        charge("c", -30, site=site, invoice_id="i", category="credit", **times),
    ]


def run(name, *, site="aws", start=START_US, hours=10, **fields):
    reading = Reading(
        component="gpu", energy_j=Decimal(J_PER_KWH), boundary="it", grade="B", method="counter"
    )
    return Run(
        run_id=name,
        start_us=start,
        end_us=start + hours * US_PER_HOUR,
        duration_s=hours * 3600.0,
        site=site,
        energy=(reading,),
        **fields,
    )


def parts(statement, name="electricity"):
    return {(x.site_id, x.part): x.amount.value for x in statement.cost.lines if x.name == name}


def codes(statement):
    return {f.code for f in statement.findings}


def asking(tmp_path):
    """Return a function that makes the statement of charges, runs and files of an inventory."""
    case.write(tmp_path)
    inventory = tmp_path / "inventory"

    def made(*charges, runs=(), sites="", base=case.SITES, period=case.PERIOD, without=(), by=None, **files):
        (inventory / "sites.toml").write_text(base + sites)
        for name, text in files.items():
            stem, _, suffix = name.rpartition("_")
            (inventory / f"{stem}.{suffix}").write_text(text)
        for name in without:
            (inventory / name).unlink()
        store = Ledger(tmp_path / "ledger")
        if charges:
            store.add_rows(CHARGES, charges, source_sha256="cd" * 32, importer="test-1")
        for run in runs:
            store.append(run)
        return make_statement(
            period,
            by=by,
            ledger=tmp_path / "ledger",
            inventory=inventory,
            factors=tmp_path / "factors.csv",
            now_us=case.NOW_US,
        ).statement

    return made
