"""Money of a period: currencies, rates, price years, and which of several prices counts."""

import pytest

from carbonlens.domain.units import US_PER_HOUR
from tests.app import statement_case as case
from tests.app.costs_case import AT, DAY_US, PRICES, RATES, asking, charge, codes


@pytest.fixture
def ask(tmp_path):
    return asking(tmp_path)


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
