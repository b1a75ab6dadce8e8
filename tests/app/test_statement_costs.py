"""Cost of a period end to end: bills in parts, work, and nothing counted twice."""

from decimal import Decimal

import pytest

from carbonlens.domain.units import US_PER_HOUR
from tests.app import statement_case as case
from tests.app.costs_case import (
    AT,
    CLOUD,
    DAY_US,
    END_US,
    PRICES,
    RATES,
    START_US,
    asking,
    bill,
    charge,
    codes,
    parts,
    run,
)


@pytest.fixture
def ask(tmp_path):
    return asking(tmp_path)


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
