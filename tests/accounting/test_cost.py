"""Cost line by line: prices, tariffs, bills and hardware, and totals that say what they lack."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncertainties import ufloat

from carbonlens.accounting.cost import (
    electricity_by_tariff,
    electricity_fixed,
    of_bill,
    priced,
    stated_costs,
    total,
)
from carbonlens.accounting.hardware_cost import hardware
from carbonlens.accounting.price_choice import Wanted, choose_price
from carbonlens.accounting.tariff import HourPrice
from carbonlens.domain.asset import Asset
from carbonlens.domain.charge import Charge
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.money import Money
from carbonlens.domain.pricing import PriceRow
from carbonlens.errors import IncomparableError
from tests.accounting.test_tariff import BERLIN


def price(name="p", amount="90", currency="EUR", **fields):
    given_fields = {
        "subject": "aws:p5.48xlarge",
        "per": "hour",
        "valid_from": "2026-01-01",
        "source": "s",
        "address": "a",
        "read_on": "2026-01-01",
        "u_relative": 0.02,
        **fields,
    }
    return PriceRow(price_id=name, amount=Money(Decimal(amount), currency), **given_fields)


def charge(name, billed, effective, at_list, currency="USD", category="usage"):
    billed, effective, at_list = (
        None if a is None else Money(Decimal(a), currency) for a in (billed, effective, at_list)
    )
    return Charge(
        charge_id=name,
        start_us=0,
        end_us=1,
        billed=billed,
        effective=effective,
        list_cost=at_list,
        contracted=at_list,
        category=category,
    )


def cloud(charges, kind):
    return of_bill("cloud", "bills", charges, kind)


BOUGHT = charge("p", "4550", "0", "5430", category="purchase")
USED = charge("u", "0", "379", "452.5")


@given(st.floats(0.1, 1e4), st.floats(0.001, 0.3), st.floats(0.001, 0.3))
def test_a_price_and_its_error_go_through_as_the_oracle_says(hours, u_hours, u_price):
    quantity = Estimate(value=hours, unit="h", u_by_source={"meter": hours * u_hours})
    line = priced("cloud", "GPU hours", quantity, price(u_relative=u_price))
    wanted = ufloat(hours, hours * u_hours) * ufloat(90.0, 90.0 * u_price)
    assert line.amount.value == pytest.approx(wanted.nominal_value)
    assert line.amount.u_total == pytest.approx(wanted.std_dev)
    assert (line.currency, line.input_ids, line.cost_kind) == ("EUR", ("p",), "list")


def test_no_price_is_unknown_and_another_unit_is_refused():
    quantity = Estimate(value=2.0, unit="h")
    assert priced("engineering", "work", quantity, None).amount.value is None
    with pytest.raises(IncomparableError, match="per kWh, and the quantity in h"):
        priced("electricity", "power", quantity, price(per="kWh"))


@pytest.mark.parametrize("subject", ["software:licence", "engineering"])
def test_work_and_software_are_priced_lines_too(subject):
    row = price(subject=subject)
    name = "software" if subject.startswith("software") else "engineering"
    assert priced(name, subject, Estimate(value=3.0, unit="h"), row).amount.value == pytest.approx(270)


def test_the_price_of_the_day_and_region_is_the_users_before_a_bundled_one():
    wanted = Wanted(subject="aws:p5.48xlarge", date="2026-06-01", per="hour", region="eu-west-1")
    ours = [price("ours", "98")]
    assert choose_price([], ours, wanted).row.price_id == "ours"
    everywhere, there = price("everywhere"), price("there", region="eu-west-1")
    later = price("later", region="eu-west-1", valid_from="2026-05-01")
    over = price("over", region="eu-west-1", valid_from="2026-05-20", valid_to="2026-06-01")
    elsewhere = price("elsewhere", region="us-east-1")
    own = [everywhere, there, later, over, elsewhere]
    assert choose_price(own, ours, wanted).row is later
    assert choose_price([everywhere, there], ours, wanted).row is there


def test_no_price_of_the_day_is_a_finding_that_names_others():
    wanted = Wanted(subject="aws:p5.48xlarge", date="2025-06-01", per="hour")
    choice = choose_price([], [price("ours")], wanted)
    assert choice.row is None
    assert choice.findings[0].code == "CL336"
    assert "ours" in choice.findings[0].mend


def test_prices_that_stand_alike_give_the_largest_and_are_said():
    wanted = Wanted(subject="aws:p5.48xlarge", date="2026-06-01", per="hour")
    choice = choose_price([price("a", "80"), price("b", "95")], [], wanted)
    assert (choice.row.price_id, choice.findings[0].code) == ("b", "CL337")
    assert choose_price([price("a"), price("b")], [], wanted).findings == ()


def hour(at, amount, band, u_relative=0.01):
    return HourPrice(at, Decimal(amount), "EUR", "t", band, u_relative)


def test_electricity_by_the_hour_keeps_the_tariffs_common_error():
    kwh = {n: Estimate(value=1.0, unit="kWh", u_random=0.1) for n in range(4)}
    prices = [hour(0, "0.3", "day"), hour(1, "0.3", "day"), hour(2, "0.2", "night"), hour(3, "0.2", "night")]
    (line,) = electricity_by_tariff(kwh, prices)
    assert line.amount.value == pytest.approx(1.0)
    assert line.amount.u_by_source == {"t": pytest.approx(0.01)}
    assert line.amount.u_random == pytest.approx((2 * 0.03**2 + 2 * 0.02**2) ** 0.5)
    assert line.input_ids == ("t",)


def test_an_hour_without_a_price_makes_the_cost_a_lower_bound():
    kwh = {n: Estimate(value=1.0, unit="kWh") for n in range(2)}
    (line,) = electricity_by_tariff(kwh, [hour(0, "0.3", "day")])
    assert (line.amount.value, line.amount.state) == (pytest.approx(0.3), "unbounded")
    (none,) = electricity_by_tariff(kwh, [])
    assert (none.amount.value, none.amount.state) == (None, "unknown")


def test_the_fixed_charge_is_a_line_of_its_own():
    line = electricity_fixed(BERLIN, 1.5)
    assert (line.name, line.amount.value, line.currency) == ("electricity_fixed", 150.0, "EUR")


def test_each_kind_of_cloud_cost_is_its_own_and_two_are_never_added():
    lines = {k: cloud([BOUGHT, USED], k)[0] for k in ("billed", "effective", "list", "contracted")}
    assert {k: str(line.exact.amount) for k, line in lines.items()} == {
        "billed": "4550",
        "effective": "379",
        "list": "452.5",
        "contracted": "452.5",
    }
    with pytest.raises(IncomparableError, match="the same money"):
        total([lines["billed"], lines["effective"]])


def test_a_bill_that_lacks_the_cost_is_a_lower_bound():
    (line,) = cloud([USED, charge("n", "1", None, "1")], "effective")
    assert (line.amount.value, line.amount.state, line.exact) == (379.0, "unbounded", None)
    assert [f.code for f in line.findings] == ["CL316"]
    (none,) = cloud([charge("n", "1", None, "1")], "effective")
    assert none.amount.value is None


def test_totals_stand_by_currency_and_an_unpriced_line_makes_them_lower_bounds():
    euros = priced("hardware", "x", Estimate(value=2.0, unit="h"), price())
    dollars = cloud([USED], "effective")
    cost = total([euros, *dollars])
    assert {c: t.value for c, t in cost.totals.items()} == {"EUR": 180.0, "USD": 379.0}
    assert {t.state for t in cost.totals.values()} == {"known"}
    unpriced = priced("engineering", "work", Estimate(value=2.0, unit="h"), None)
    assert {t.state for t in total([euros, unpriced]).totals.values()} == {"unbounded"}
    assert total([unpriced]).totals["XXX"].value is None


def test_every_line_and_total_is_a_figure_with_its_inputs():
    figures = {f.figure_id: f for f in total([*cloud([USED], "effective")]).figures("cost")}
    assert figures["cost.1.cloud"].inputs == ("u",)
    assert figures["cost.total.USD"].inputs == ("cost.1.cloud",)
    assert figures["cost.total.USD"].estimate.value == 379.0


ASSET = Asset(
    asset_id="a",
    hardware="nvidia-h100",
    count=2,
    purchased="2026-01-01",
    life_years=4.0,
    cost=Money(Decimal(35040), "EUR"),
)


def with_fields(**fields):
    return Asset(**{**{f: getattr(ASSET, f) for f in ASSET.__struct_fields__}, **fields})


def test_hardware_is_spread_over_its_life_with_idle_time_as_a_line():
    used, idle = hardware(ASSET, start="2026-02-01", end="2026-02-02", used_hours=12.0)
    # 35,040 EUR over 35,040 h are 1 EUR an hour; two pieces have 48 h a day.
    assert [(x.name, x.amount.value, x.currency) for x in (used, idle)] == [
        ("hardware", pytest.approx(12), "EUR"),
        ("hardware_idle", pytest.approx(36), "EUR"),
    ]


def test_hardware_per_expected_hour_of_use_has_no_idle_line():
    (line,) = hardware(with_fields(used_hours=17520.0), start="2026-02-01", end="2026-02-02", used_hours=12.0)
    assert (line.name, line.amount.value) == ("hardware", pytest.approx(24))


def test_what_an_early_end_leaves_is_a_line():
    lines = hardware(with_fields(retired="2027-01-01"), start="2026-12-01", end="2027-02-01", used_hours=0.0)
    assert [line.name for line in lines] == ["hardware", "hardware_idle", "hardware_written_off"]
    assert lines[2].amount.value == pytest.approx(2 * 3 * 8760)


@pytest.mark.parametrize("lacking", ["cost", "life_years"])
def test_an_asset_without_price_or_life_is_of_unknown_cost(lacking):
    (line,) = hardware(with_fields(**{lacking: None}), start="2026-02-01", end="2026-02-02", used_hours=1.0)
    assert (line.amount.value, [f.code for f in line.findings]) == (None, ["CL339"])


@given(st.floats(0, 48), st.integers(1, 12))
def test_used_and_idle_hours_sum_to_what_the_period_costs(used_hours, month):
    start, end = f"2026-{month:02}-03", f"2026-{month:02}-04"
    lines = hardware(ASSET, start=start, end=end, used_hours=used_hours)
    assert sum(line.amount.value for line in lines) == pytest.approx(48)


def test_a_run_without_a_price_is_counted_and_not_free():
    costs = {"a": Money(Decimal("1.20"), "USD"), "b": None, "c": Money(Decimal("0.80"), "USD")}
    found = stated_costs(costs)
    assert found.totals == {"USD": Money(Decimal("2.00"), "USD")}
    assert found.without == ("b",)
    assert found.findings[0].message.startswith("1 of 3 runs has no price")
    assert stated_costs({"a": costs["a"]}).findings == ()
    assert stated_costs({"b": None}).totals == {}
