"""Cost of a period end to end: bills in parts, clouds, work, rates, and nothing counted twice."""

from decimal import Decimal

import pytest

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


@pytest.fixture
def ask(tmp_path):
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


def test_a_bill_is_one_cost_whose_parts_are_named(ask):
    statement = ask(*bill())
    assert parts(statement) == {
        ("lab", "energy"): 280,
        ("lab", "network"): 90,
        ("lab", "levy"): 20,
        ("lab", "tax"): 70,
        ("lab", "credit"): -30,
        (None, None): None,
    }
    assert [x.label for x in statement.cost.lines if x.amount.value is None] == [
        "electricity of edge, no price"
    ]
    # The fee states its kWh again: the site used them once.
    values = {f.figure_id: f.estimate.value for f in statement.figures}
    assert values[f"{AT}.lab.metered.facility_kwh"] == pytest.approx(1000)
    assert values[f"{AT}.lab.metered.electricity.EUR"] == pytest.approx(430)
    assert values[f"{AT}.cost.total.EUR"] == pytest.approx(430)
    assert values[f"{AT}.lab.bill.network.EUR"] == 90


def test_a_bill_stands_for_the_tariff_which_is_not_added(ask):
    """The runs keep the prices of their hours; the bill less these is unattributed."""
    statement = ask(*bill())
    values = {f.figure_id: f.estimate.value for f in statement.figures}
    assert values[f"{AT}.lab.electricity.EUR"] == pytest.approx(float(case.cost()))
    rest = values[f"{AT}.lab.unattributed.electricity.EUR"]
    assert rest == pytest.approx(430 - float(case.cost()))
    assert "CL498" not in codes(statement)


def test_without_a_tariff_the_runs_carry_the_bill_by_their_kwh(ask):
    statement = ask(*bill(), without=["tariffs.toml"])
    values = {f.figure_id: f.estimate.value for f in statement.figures}
    share = float(case.it_kwh() * case.PUE) / 1000
    assert values[f"{AT}.lab.electricity.EUR"] == pytest.approx(430 * share)


def test_the_energy_of_a_bill_alone_is_held_against_the_tariff(ask):
    """0.28 lies in the tariff's 0.20 to 0.30, the whole bill's 0.43 does not and need not."""
    dear = [charge("e", 400, kwh=1000, site="lab")]
    (found,) = [f for f in ask(*dear).findings if f.code == "CL498"]
    assert "0.4 EUR/kWh, its tariff says 0.20 to 0.30" in found.message


def test_a_bill_over_two_periods_is_split_by_time_without_loss(ask):
    lines = [charge("e", "100.01", kwh=1000, site="lab", start=START_US - 31 * DAY_US, end=END_US)]
    statement = ask(*lines, runs=[run("april", site="lab", start=START_US - DAY_US)])
    april = ask(period="2026-04")
    values = [parts(s)["lab", "energy"] for s in (statement, april)]
    assert values[0] == pytest.approx(100.01 * 31 / 62)
    # April has 30 days of it, and March a day.
    assert values[1] == pytest.approx(100.01 * 30 / 62)


def test_a_bill_with_a_gap_is_left_out_where_there_is_a_price_and_else_a_lower_bound(ask):
    """Its 1,000 kWh stay as a lower bound, at the tariff's 0.25 on average."""
    half = bill(start=START_US, end=START_US + 15 * DAY_US)
    priced = ask(*half)
    assert "CL495" in codes(priced)
    total = priced.cost.totals["EUR"]
    assert (total.value, total.state) == (pytest.approx(250), "unbounded")
    alone = ask(without=["tariffs.toml"])
    assert parts(alone)["lab", "energy"] == 280
    assert alone.cost.totals["EUR"].state == "unbounded"
    assert "CL494" in codes(alone)


def test_a_metered_site_costs_its_metered_kwh_by_the_hour(ask):
    """10 kWh at night at 0.20 and 30 by day at 0.30, whatever the hours of the runs."""
    readings = (
        "meter,start,end,energy,unit\n"
        "main,2026-05-01T00:00Z,2026-05-01T01:00Z,10,kWh\n"
        "main,2026-05-01T01:00Z,2026-05-01T12:00Z,0,kWh\n"
        "main,2026-05-01T12:00Z,2026-05-01T13:00Z,30,kWh\n"
        "main,2026-05-01T13:00Z,2026-06-01T00:00Z,0,kWh\n"
    )
    statement = ask(meters_toml=case.METER, readings_csv=readings)
    assert statement.cost.totals["EUR"].value == pytest.approx(10 * 0.2 + 30 * 0.3)
    assert "CL496" in codes(statement)


def test_a_metered_site_with_device_runs_alone_has_a_cost(ask):
    """Without a host overhead all runs are lower bounds; what the meter counted is not."""
    sites = "\n".join(line for line in case.SITES.splitlines() if not line.startswith("host_overhead"))
    readings = "meter,start,end,energy,unit\nmain,2026-05-01T00:00Z,2026-06-01T00:00Z,744,kWh\n"
    statement = ask(base=sites, meters_toml=case.METER, readings_csv=readings)
    # Half of the hours lie by day: a kWh an hour costs 0.25 on average.
    assert statement.cost.totals["EUR"].value == pytest.approx(744 * 0.25)
    values = {f.figure_id: f.estimate for f in statement.figures}
    assert values[f"{AT}.lab.at_least.electricity.EUR"].state == "unbounded"


def test_charges_are_carried_by_runs_and_the_rest_is_unallocated(ask):
    """A run of 10 of 100 hours carries a tenth of its instance; the other account is nobody's."""
    lines = [
        charge("a", 100, "USD", end=START_US + 100 * US_PER_HOUR, resource_id="i-1"),
        charge("b", 7, "USD", resource_id="other"),
    ]
    statement = ask(*lines, runs=[run("r", tags={"instance_id": "i-1"})], sites=CLOUD)
    assert parts(statement, "cloud") == {(None, None): 10}
    assert parts(statement, "unallocated") == {(None, None): 97}
    assert statement.cost.totals["USD"].value == 107
    assert "CL317" in codes(statement)


def test_a_cloud_costs_its_bill_and_no_electricity_beside_it(ask):
    lines = [charge("a", 100, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-1")]
    statement = ask(*lines, runs=[run("r", tags={"instance_id": "i-1"})], sites=CLOUD, prices_csv=PRICES)
    (line,) = [x for x in statement.lines if x.site_id == "aws"]
    assert not [n for n in line.amounts if n.startswith("electricity.")]
    assert statement.total.estimate("electricity.EUR").state == "known"
    assert statement.cost.totals["USD"].state == "known"
    assert statement.cost.totals["USD"].value == 100
    edge = float(case.it_kwh("edge")) * 0.5
    assert statement.cost.totals["EUR"].value == pytest.approx(float(case.cost()) + edge)


def test_runs_of_an_undeclared_place_that_a_bill_covers_have_no_electricity(ask):
    lines = [charge("a", 100, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-1")]
    rented = run("r", site=None, zone="FR", tags={"instance_id": "i-1"})
    statement = ask(*lines, runs=[rented], prices_csv=PRICES)
    (line,) = [x for x in statement.lines if x.site_id == "zone:FR"]
    assert not [n for n in line.amounts if n.startswith("electricity.")]


def test_instances_that_no_bill_covers_take_the_price_of_their_day(ask):
    """Two runs share an instance: 10 hours at the list price; later ones at the agreed one."""
    tags = {"instance_type": "p5.48xlarge", "instance_id": "i-1"}
    later = START_US + 10 * DAY_US
    runs = [run("r", tags=tags), run("s", tags=tags), run("t", tags=tags, start=later, hours=2)]
    statement = ask(runs=runs, sites=CLOUD, prices_csv=PRICES)
    found = {x.label: x.amount.value for x in statement.cost.lines if x.name == "cloud_hours"}
    assert found == {
        "aws:p5.48xlarge at aws, list price": pytest.approx(900),
        "aws:p5.48xlarge at aws, contracted price": pytest.approx(120),
    }
    values = {f.figure_id for f in statement.figures}
    assert {"p5", "p5-ours"} <= values


def test_a_bill_comes_before_a_price_and_both_stand_apart(ask):
    tags = {"instance_type": "p5.48xlarge"}
    runs = [
        run("r", tags={**tags, "instance_id": "i-1"}),
        run("s", tags={**tags, "instance_id": "i-2"}, start=START_US + 20 * DAY_US, hours=1),
    ]
    lines = [charge("a", 500, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-1")]
    statement = ask(*lines, runs=runs, sites=CLOUD, prices_csv=PRICES)
    assert parts(statement, "cloud") == {(None, None): 500}
    assert parts(statement, "cloud_hours") == {("aws", None): pytest.approx(60)}
    assert statement.cost.totals["USD"].value == pytest.approx(560)


def test_a_cloud_run_without_type_or_bill_is_of_unknown_cost(ask):
    statement = ask(runs=[run("r")], sites=CLOUD)
    assert parts(statement, "cloud_hours") == {("aws", None): None}
    assert "CL497" in codes(statement)
    assert statement.cost.totals["EUR"].state == "unbounded"
    typed = ask(runs=[run("s", tags={"instance_type": "x1"})], sites=CLOUD)
    assert "CL336" in codes(typed)


def test_the_tariff_of_a_cloud_is_not_used_and_that_is_said(ask):
    tariff = case.TARIFFS + case.TARIFFS.replace('"lab-2026"', '"t"').replace('"lab"', '"aws"')
    statement = ask(runs=[run("r")], sites=CLOUD, tariffs_toml=tariff)
    assert "CL499" in codes(statement)
    (line,) = [x for x in statement.lines if x.site_id == "aws"]
    assert not [n for n in line.amounts if n.startswith("electricity.")]


def test_work_and_software_are_lines_shared_by_days(ask):
    expenses = (
        "id,kind,what,start,end,subject,quantity,per,amount,currency,source\n"
        "w,engineering,Quantization,2026-05-01,2026-05-08,,10,,,,timesheet\n"
        "s,software,Tracker,2026-05-22,2026-06-11,,,,200,EUR,invoice\n"
        "n,software,Compiler,2026-05-01,2026-06-01,software:none,1,month,,,invoice\n"
    )
    statement = ask(expenses_csv=expenses, prices_csv=PRICES)
    found = {x.label: x.amount.value for x in statement.cost.lines if x.name in {"engineering", "software"}}
    # Ten of twenty days of the tracker lie in May; nobody prices the compiler.
    assert found == {"Quantization": 800, "Tracker": pytest.approx(100), "Compiler": None}
    assert "CL336" in codes(statement)
    assert {"expense:w", "work"} <= {f.figure_id for f in statement.figures}


def test_costs_stand_in_their_own_currency_and_in_the_reporting_one(ask):
    lines = [charge("a", 100, "USD", resource_id="i-1")]
    statement = ask(*lines, exchange_rates_csv=RATES)
    values = {f.figure_id: f.estimate.value for f in statement.figures}
    assert values[f"{AT}.cost.total.USD"] == 100
    assert values[f"{AT}.cost.in_EUR.total"] == pytest.approx(float(case.cost()) + 90)
    assert values["exchange:USD/EUR/2026-05-29"] == pytest.approx(0.9)
    assert statement.reported_cost.how == ("1 USD = 0.9 EUR on 2026-05-29 (bank)",)
    # The rate of a later day is never taken.
    assert "CL334" in codes(statement)


def test_without_a_rate_the_sum_is_a_lower_bound_and_never_one_for_one(ask):
    statement = ask(charge("a", 100, "USD", resource_id="i-1"))
    total = statement.reported_cost.total
    assert (total.value, total.state) == (pytest.approx(float(case.cost())), "unbounded")
    assert "CL333" in codes(statement)


def test_a_price_year_needs_the_users_index_of_both_years(ask):
    terms = case.REPORTING + "price_year = 2025\n"
    without = ask(reporting_toml=terms)
    assert without.reported_cost.real is None
    assert "CL335" in codes(without)
    index = "currency,year,index,source\nEUR,2025,100,office\nEUR,2026,125,office\nUSD,2025,1,office\n"
    real = ask(price_index_csv=index).reported_cost
    assert real.real.value == pytest.approx(float(case.cost()) * 100 / 125)
    assert (real.price_year, real.real_how) == (2025, "at prices of 2025: index 100 / 125")


def test_an_invoice_whose_lines_do_not_sum_to_it_is_said(ask):
    asked = "id,amount,currency,source\ni,430,EUR,paper\nother,5,EUR,paper\n"
    assert "CL315" not in codes(ask(*bill(), invoices_csv=asked))
    (found,) = [f for f in ask(invoices_csv=asked.replace("430", "431")).findings if f.code == "CL315"]
    assert "asks for 431 EUR, and the bills hold lines that sum to 430 EUR" in found.message


def test_inputs_of_every_figure_of_the_cost_are_figures_or_charges(ask):
    lines = [*bill(), charge("a", 100, "USD", resource_id="i-1")]
    expenses = "id,kind,start,end,quantity,source\nw,engineering,2026-05-01,2026-05-08,10,timesheet\n"
    statement = ask(*lines, exchange_rates_csv=RATES, prices_csv=PRICES, expenses_csv=expenses)
    known = {f.figure_id for f in statement.figures} | {c.charge_id for c in lines}
    cost = [f for f in statement.figures if ".cost." in f.figure_id or ".bill." in f.figure_id]
    assert len(cost) > 15
    assert {i for f in cost for i in f.inputs} <= known


def test_each_line_is_brought_to_the_price_year_from_the_years_of_its_own_money(ask):
    terms = case.REPORTING + "price_year = 2024\nfiscal_year_start = 6\n"
    index = "currency,year,index,source\nEUR,2024,80,office\nEUR,2025,100,office\nEUR,2026,125,office\n"
    expenses = (
        "id,kind,what,start,end,amount,currency,source\n"
        "old,software,old,2025-06-01,2025-07-01,1000,EUR,office\n"
        "both,software,both,2025-12-22,2026-01-11,200,EUR,office\n"
        "new,software,new,2026-02-01,2026-03-01,30,EUR,office\n"
    )
    tariffs = case.TARIFFS.replace('source = "test"', 'source = "test"\nfixed_per_month = 10', 1)
    hardware = (
        "id,hardware,site,purchased,life_years,cost,currency,devices\nsrv,S,lab,2025-12-22,1,365,EUR,h1\n"
    )
    statement = ask(
        reporting_toml=terms,
        price_index_csv=index,
        expenses_csv=expenses,
        tariffs_toml=tariffs.replace("2026-01-01", "2025-01-01"),
        assets_csv=hardware,
        period="2026",
    )
    old = 1000 + 100 + 70 + 10
    new = float(case.cost()) + 100 + 30 + 50 + 151
    real = statement.reported_cost
    assert real.total.value == pytest.approx(old + new)
    assert real.real.value == pytest.approx(old * 80 / 100 + new * 80 / 125)
    assert real.real_how == "at prices of 2024: index 80 / 100 (2025), 80 / 125 (2026)"


def test_a_bill_is_of_the_years_of_its_time(ask):
    year_us = case.Calendar().period("2026-01").first_hour * US_PER_HOUR
    terms = case.REPORTING + "price_year = 2025\nfiscal_year_start = 6\n"
    index = "currency,year,index,source\nEUR,2025,100,office\nEUR,2026,125,office\n"
    over = charge("a", 300, start=year_us - 10 * DAY_US, end=year_us + 20 * DAY_US, resource_id="i-1")
    real = ask(over, reporting_toml=terms, price_index_csv=index, period="2026").reported_cost
    power = float(case.cost())
    assert real.total.value == pytest.approx(power + 300)
    assert real.real.value == pytest.approx((power + 200) * 0.8 + 100)


@pytest.mark.parametrize("kind", ["effective", "billed", "contracted", "list"])
def test_a_price_of_any_kind_prices_electricity_and_work(ask, kind):
    prices = PRICES.replace("0.5,EUR,list", f"0.5,EUR,{kind}").replace("80,EUR,effective", f"80,EUR,{kind}")
    expenses = "id,kind,start,end,quantity,source\nw,engineering,2026-05-01,2026-05-08,10,timesheet\n"
    statement = ask(prices_csv=prices, expenses_csv=expenses, without=["tariffs.toml"])
    assert "CL486" not in codes(statement)
    costs = {line.name: line.amount.value for line in statement.cost.lines}
    assert costs == {
        "electricity": pytest.approx(float(case.it_kwh() * case.PUE + case.it_kwh("edge")) / 2),
        "engineering": pytest.approx(800),
    }


def test_what_was_agreed_comes_before_a_list_price(ask):
    agreed = "ours,electricity,,kWh,0.2,EUR,contracted,2026-01-01,0,s,a,2026-01-01\n"
    statement = ask(prices_csv=PRICES + agreed, without=["tariffs.toml"])
    (power,) = [x.amount.value for x in statement.cost.lines if x.name == "electricity"]
    assert power == pytest.approx(float(case.it_kwh() * case.PUE + case.it_kwh("edge")) * 0.2)


def readings_of(kwh):
    return f"meter,start,end,energy,unit\nmain,2026-05-01T00:00Z,2026-06-01T00:00Z,{kwh},kWh\n"


def test_a_meter_of_ai_workloads_carries_its_part_of_the_sites_bill(ask):
    """430 EUR for 1,000 kWh: the 400 kWh of the meter cost 172, and 40 % of the bill is no 100 %."""
    ai = case.METER.replace('"site"', '"ai"')
    statement = ask(*bill(), meters_toml=ai, readings_csv=readings_of(400), without=["tariffs.toml"])
    values = {f.figure_id: f.estimate.value for f in statement.figures}
    assert values[f"{AT}.lab.metered.electricity.EUR"] == pytest.approx(172)
    runs = float(case.it_kwh() * case.PUE)
    assert values[f"{AT}.lab.electricity.EUR"] == pytest.approx(0.43 * runs)
    assert [f.severity for f in statement.findings if f.code == "CL458"] == ["info"]


def test_a_kwh_costs_what_the_bill_says_and_a_meter_that_disagrees_is_said(ask):
    meter = {"meters_toml": case.METER, "without": ["tariffs.toml"]}
    statement = ask(*bill(), readings_csv=readings_of(5000), **meter)
    values = {f.figure_id: f.estimate.value for f in statement.figures}
    assert values[f"{AT}.lab.metered.facility_kwh"] == pytest.approx(5000)
    assert values[f"{AT}.lab.metered.electricity.EUR"] == pytest.approx(430)
    assert values[f"{AT}.lab.electricity.EUR"] == pytest.approx(0.43 * float(case.it_kwh() * case.PUE))
    (found,) = [f for f in statement.findings if f.code == "CL458"]
    assert "is for 1000 kWh, and its meters counted 5000" in found.message


def test_a_meter_without_readings_does_not_silence_the_bill(ask):
    statement = ask(*bill(), meters_toml=case.METER, without=["tariffs.toml"])
    values = {f.figure_id: f.estimate.value for f in statement.figures}
    assert values[f"{AT}.lab.metered.facility_kwh"] == pytest.approx(1000)
    assert "CL494" not in codes(statement)


def test_hours_of_an_instance_that_its_bill_does_not_cover_are_priced(ask):
    """A day of the bill covers 24 of 34 hours; storage in the region covers none."""
    tags = {"instance_type": "p5.48xlarge", "instance_id": "i-1"}
    lines = [
        charge("day", 100, "USD", end=START_US + DAY_US, resource_id="i-1"),
        charge("disk", 1, "USD", service="S3", region="eu-west-3"),
    ]
    statement = ask(*lines, runs=[run("r", hours=34, tags=tags)], sites=CLOUD, prices_csv=PRICES)
    assert parts(statement, "cloud_hours") == {("aws", None): pytest.approx(900)}
    assert statement.cost.totals["USD"].value == pytest.approx(1001)


def test_hours_that_a_bill_of_the_region_may_hold_leave_a_lower_bound(ask):
    line = charge("all", 100, "USD", service="EC2", region="eu-west-3")
    runs = [run("r", tags={"instance_type": "p5.48xlarge"})]
    statement = ask(line, runs=runs, sites=CLOUD, prices_csv=PRICES)
    assert parts(statement, "cloud_hours") == {("aws", None): None}
    assert "CL455" in codes(statement)
    assert statement.cost.totals["USD"].value == 100
    assert statement.cost.totals["USD"].state == "unbounded"


def test_a_charge_that_began_before_the_period_covers_its_hours_and_counts_once(ask):
    tags = {"instance_type": "p5.48xlarge", "instance_id": "i-1"}
    line = charge("q", 100, "USD", start=START_US - 30 * DAY_US, resource_id="i-1")
    statement = ask(line, runs=[run("r", tags=tags)], sites=CLOUD, prices_csv=PRICES)
    assert [x for x in statement.cost.lines if x.name in {"cloud", "cloud_hours", "unallocated"}] == []
    assert "CL456" in codes(statement)


def test_the_bill_of_a_month_is_of_that_month_west_of_greenwich(ask):
    terms = case.REPORTING.replace("UTC", "America/New_York")
    line = charge("m", 100, "USD", resource_id="i-1")
    may = ask(line, reporting_toml=terms)
    assert parts(may, "unallocated") == {(None, None): 100}
    april = ask(runs=[run("a", site="lab", start=START_US - DAY_US)], period="2026-04")
    assert parts(april, "unallocated") == {}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "UTC"])
def test_the_electricity_bill_of_a_month_covers_that_month_in_every_time_zone(ask, zone):
    reporting = case.REPORTING.replace("UTC", zone)
    statement = ask(*bill(), reporting_toml=reporting, tariffs_toml=case.TARIFFS)
    assert "CL495" not in codes(statement)
    assert parts(statement)["lab", "energy"] == 280
    (one,) = (r for r in statement.reconciliations if r.metered.site_id == "lab")
    assert one.is_activity
    assert one.metered_kwh.value == pytest.approx(1000)
    assert one.metered_kwh.state == "known"
    after = ask(reporting_toml=reporting, period="2026-06", runs=[run("later", start=END_US + DAY_US)])
    assert not [r for r in after.reconciliations if r.metered.site_id == "lab"]


def test_a_bill_that_is_left_out_is_not_said_to_count(ask):
    statement = ask(*bill(end=START_US + 10 * DAY_US), tariffs_toml=case.TARIFFS)
    assert "CL495" in codes(statement)
    assert "CL498" not in codes(statement)


def test_an_open_period_counts_what_costs_by_the_day_up_to_today(ask):
    expenses = "id,kind,what,start,end,amount,currency,source\nt,software,T,2026-07-01,2026-10-01,92,EUR,o\n"
    hardware = (
        "id,hardware,count,site,purchased,life_years,cost,currency,embodied_kg,embodied_source,devices\n"
        "srv,S,1,lab,2026-07-01,1,365,EUR,365,o,h1\n"
    )
    late = run("now", site="lab", start=case.Calendar().period("2026-09-20").first_hour * US_PER_HOUR)
    files = {
        "expenses_csv": expenses,
        "assets_csv": hardware,
        "tariffs_toml": case.TARIFFS.replace('source = "test"', 'source = "test"\nfixed_per_month = 30', 1),
    }
    # The present is 2026-09-21: of 92 days 83 have begun, and of September 21.
    statement = ask(runs=[late], period="2026Q3", **files)
    costs = {line.name: line.amount.value for line in statement.cost.lines}
    assert costs["software"] == pytest.approx(83)
    assert costs["electricity_fixed"] == pytest.approx(30 + 30 + 21)
    assert costs["hardware_idle"] + (costs.get("hardware") or 0) == pytest.approx(83)
    (asset,) = statement.amortised
    assert asset.idle_kg.value + (asset.used_kg.value or 0) == pytest.approx(83)
    assert "up to 2026-09-21" in next(f.message for f in statement.findings if f.code == "CL467")
    whole = ask(period="2026-05")
    assert "CL467" not in codes(whole)


def test_a_site_whose_bill_states_its_cost_has_no_unknown_cost(ask):
    assert "CL486" in codes(ask(without=["tariffs.toml"]))
    (found,) = [f for f in ask(*bill()).findings if f.code == "CL486"]
    assert found.subject == "edge"


DEVICE_PRICES = PRICES + (
    "ours,gpu:H100,,device_hour,3,USD,contracted,2026-01-01,0,s,a,2026-01-01\n"
    "list,gpu:A100,,device_hour,2,USD,list,2026-01-01,0,s,a,2026-01-01\n"
)


def on_devices(name, *devices, hardware="NVIDIA H100 80GB HBM3", **fields):
    from msgspec.structs import replace

    return replace(run(name, **fields), hardware=hardware, device_uuids=devices)


def of_hours(statement):
    return {
        x.label: (x.amount.value, x.amount.state) for x in statement.cost.lines if x.name == "cloud_hours"
    }


def test_devices_that_no_bill_covers_cost_their_hours_at_the_price_of_a_device(ask):
    """Ten hours on two devices, of which another run shares one: 20 device hours at 3 USD."""
    runs = [on_devices("r", "GPU-a", "GPU-b"), on_devices("s", "GPU-b")]
    statement = ask(runs=runs, sites=CLOUD, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {"gpu:H100 at aws, contracted price": (pytest.approx(60), "known")}
    own = [f for f in statement.figures if f.figure_id.endswith(".cloud_hours") and ".in_" not in f.figure_id]
    assert [(f.inputs, f.formula) for f in own] == [(("ours",), "20 device_hour * 3 USD/device_hour")]
    assert "ours" in {f.figure_id for f in statement.figures}


def test_a_bill_or_a_price_of_the_instance_comes_before_that_of_its_devices(ask):
    tags = {"instance_id": "i-1"}
    runs = [
        on_devices("r", "GPU-a", tags=tags),
        on_devices("s", "GPU-b", tags={"instance_type": "p5.48xlarge"}),
        on_devices("t", "GPU-c", tags={"instance_type": "unpriced"}),
    ]
    lines = [charge("a", 500, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-1")]
    statement = ask(*lines, runs=runs, sites=CLOUD, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {
        "aws:p5.48xlarge at aws, list price": (pytest.approx(900), "known"),
        "gpu:H100 at aws, contracted price": (pytest.approx(30), "known"),
    }


def test_devices_are_counted_by_what_runs_say_of_them_and_are_a_lower_bound_else(ask):
    runs = [
        on_devices("r", hardware="4 x NVIDIA A100-SXM4-80GB"),
        on_devices("s", tags={"device_type": "H100", "devices": "8"}, hardware="AMD EPYC 9334 x64"),
        on_devices("t", hardware="NVIDIA A100"),
    ]
    statement = ask(runs=runs, sites=CLOUD, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {
        "gpu:A100 at aws, list price": (pytest.approx(80), "known"),
        "gpu:H100 at aws, contracted price": (pytest.approx(240), "known"),
        "gpu:A100 at aws, list price, one device a run at least": (pytest.approx(20), "unbounded"),
    }
    assert "CL459" in codes(statement)
    assert statement.cost.totals["USD"].state == "unbounded"


def test_a_slice_of_a_device_is_not_priced_as_a_device(ask):
    statement = ask(runs=[on_devices("r", "MIG-a")], sites=CLOUD, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {"cloud of aws, no price": (None, "unknown")}
    assert "CL497" in codes(statement)


def test_an_own_price_of_devices_counts_at_a_place_that_is_not_declared_and_holds_its_electricity(ask):
    runs = [on_devices("r", "GPU-a", site=None, zone="FR"), run("s", site=None, zone="FR")]
    statement = ask(runs=runs, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {
        "gpu:H100 at zone:FR, contracted price": (pytest.approx(30), "known"),
        "cloud of zone:FR, no price": (None, "unknown"),
    }
    (line,) = [x for x in statement.lines if x.site_id == "zone:FR"]
    assert not [n for n in line.amounts if n.startswith("electricity.")]
    assert statement.cost.totals["USD"].state == "unbounded"


def test_a_bundled_price_of_devices_is_no_claim_that_a_place_is_rented(ask):
    statement = ask(runs=[on_devices("r", "GPU-a", site=None, zone="FR")], prices_csv=PRICES)
    assert of_hours(statement) == {}


def test_the_price_of_devices_is_not_added_to_own_hardware_and_that_is_said(ask):
    statement = ask(runs=[on_devices("r", "GPU-a", site="lab")], prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {}
    assert "CL468" in codes(statement)


@pytest.mark.parametrize("by", ["team", "study", "step", "model", "zone", "tag:owner"])
def test_bills_go_with_the_runs_that_carry_them_and_the_rest_is_unallocated(ask, by):
    """Two of three runs are named by lines; what no run covers stays on its own line, to the cent."""
    fields = {
        "team": lambda v: {"tags": {"team": v}},
        "model": lambda v: {"tags": {"model": v}},
        "tag:owner": lambda v: {"tags": {"owner": v}},
        "zone": lambda v: {"zone": v},
        "study": lambda v: {"study": v},
        "step": lambda v: {"step": v, "study": "s"},
    }[by]
    runs = []
    for name, value in (("r", "FR"), ("s", "DE"), ("t", "DE")):
        given = fields(value)
        tags = {"instance_id": f"i-{name}", **given.pop("tags", {})}
        runs.append(run(name, site="aws", tags=tags, **given))
    lines = [
        charge("a", "100.01", "USD", end=START_US + 20 * US_PER_HOUR, resource_id="i-r"),
        charge("b", 30, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-s"),
        charge("c", 7, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-t"),
        charge("d", 5, "USD", resource_id="nobody"),
    ]
    made = ask(*lines, runs=runs, sites=CLOUD, by=by)
    found = {b.value: b.line.exact.amount for b in made.bills}
    assert found == {"FR": pytest.approx(Decimal("50.005")), "DE": 37}
    exact = {x.name: x.exact.amount for x in made.cost.lines if x.name in {"cloud", "unallocated"}}
    assert sum(found.values()) == exact["cloud"]
    assert exact["cloud"] + exact["unallocated"] == Decimal("142.01")
    figures = {f.figure_id: f for f in made.figures}
    assert figures[f"{AT}.by.{by}.DE.bills.USD"].inputs == ("b", "c")


def test_runs_without_the_label_carry_bills_as_such(ask):
    lines = [charge("a", 10, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-1")]
    made = ask(*lines, runs=[run("r", tags={"instance_id": "i-1"})], sites=CLOUD, by="team")
    assert [(b.value, b.line.exact.amount) for b in made.bills] == [("(none)", 10)]
