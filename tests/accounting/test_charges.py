"""Bills in sums: cash apart from accrual, and the identities that the costs must keep."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.charges import (
    by_currency,
    check_commitments,
    check_invoices,
    check_list_costs,
    invoices,
    of_period,
    preferred_kind,
)
from carbonlens.domain.charge import Charge
from carbonlens.domain.money import Money

HOUR = 3_600_000_000
DAY = 24 * HOUR


def money(amount, currency="USD"):
    return None if amount is None else Money(Decimal(str(amount)), currency)


def charge(name, billed, effective, at_list=None, *, currency="USD", **fields):
    costs = [money(a, currency) for a in (billed, effective, at_list, at_list)]
    given_fields = {"start_us": 0, "end_us": 30 * DAY, "category": "usage", **fields}
    return Charge(
        charge_id=name,
        billed=costs[0],
        effective=costs[1],
        list_cost=costs[2],
        contracted=costs[3],
        **given_fields,
    )


PURCHASE = charge("p", 4550, 0, 5430, category="purchase", end_us=365 * DAY, commitment_id="sub-1")
APRIL = charge("u", 0, 379, "452.5", commitment_id="sub-1")


def test_effective_cost_is_taken_where_any_line_states_it():
    assert preferred_kind([PURCHASE, APRIL]) == "effective"
    assert preferred_kind([charge("n", 1, None)]) == "billed"


def test_list_cost_of_what_was_bought_ahead_is_that_of_its_use():
    (sums,) = by_currency([PURCHASE, APRIL]).values()
    assert (sums.list_cost, sums.contracted) == (money("452.5"), money("452.5"))
    assert sums.savings == money("73.5")


def test_a_line_is_of_the_period_in_which_it_starts_and_cash_of_its_billing_period():
    late = charge("l", 5, 5, 5, start_us=DAY, billing_start_us=40 * DAY)
    assert of_period([late], "effective", 0, 30 * DAY) == [late]
    assert of_period([late], "billed", 0, 30 * DAY) == []
    assert of_period([late], "billed", 30 * DAY, 60 * DAY) == [late]


def test_currencies_stay_apart():
    sums = by_currency([APRIL, charge("e", 3, 3, 3, currency="EUR"), charge("x", None, None)])
    assert list(sums) == ["EUR", "USD"]
    assert sums["EUR"].complete("effective") == money(3, "EUR")


def test_invoices_are_summed_and_held_against_what_they_ask_for():
    lines = [charge("a", 3, 3, invoice_id="i"), charge("b", "0.5", 0, invoice_id="i"), APRIL]
    assert invoices(lines) == {("i", "USD"): money("3.5")}
    assert check_invoices(lines, {"i": money("3.5")}) == ()
    off, absent = check_invoices(lines, {"i": money(4), "j": money(1)})
    assert "asks for 4 USD, and the bills hold lines that sum to 3.5 USD" in off.message
    assert "no line" in absent.message


@pytest.mark.parametrize(
    ("effective", "codes"),
    [(("850", "150"), []), (("850", "140"), ["CL313"]), (("900", "150"), ["CL313"])],
)
def test_use_of_a_commitment_sums_to_what_was_paid(effective, codes):
    bought = charge("p", 1000, 0, 1000, category="purchase", commitment_id="c")
    used = charge("u", 0, effective[0], 1300, commitment_id="c", commitment_status="used")
    unused = charge("v", 0, effective[1], 0, commitment_id="c", commitment_status="unused")
    found = check_commitments([bought, used, unused])
    assert [f.code for f in found] == codes
    for finding in found:
        assert f"{effective[1]} USD of it unused" in finding.message
        assert f"{Decimal(effective[0]) + Decimal(effective[1]) - 1000} USD off" in finding.message


def test_use_that_goes_on_after_the_bill_is_no_fault_but_more_than_was_paid_is():
    assert check_commitments([PURCHASE, APRIL]) == ()
    assert check_commitments([APRIL]) == ()
    assert [
        f.subject for f in check_commitments([PURCHASE, charge("u", 0, 4551, commitment_id="sub-1")])
    ] == ["sub-1"]


@pytest.mark.parametrize(
    ("at_list", "correction", "is_off"),
    [("12", False, False), ("12.0000004", False, False), ("13", False, True), ("13", True, False)],
)
def test_list_cost_is_unit_price_times_quantity_but_for_corrections(at_list, correction, is_off):
    line = charge("a", 1, 1, at_list, correction=correction)
    line = msgspec.structs.replace(line, list_unit_price=Decimal(3), pricing_quantity=Decimal(4))
    found = check_list_costs([line, APRIL])
    assert [f.code for f in found] == ["CL314"] * is_off
    if is_off:
        assert "1 USD off in all" in found[0].message


costs = st.decimals(0, 10**9, places=6, allow_nan=False)


@given(st.lists(st.tuples(costs, costs, st.sampled_from(["EUR", "USD"]), st.integers(0, 59)), max_size=30))
def test_periods_and_currencies_split_a_bill_without_loss(rows):
    lines = [
        charge(str(n), b, e, currency=c, start_us=day * DAY, end_us=(day + 1) * DAY)
        for n, (b, e, c, day) in enumerate(rows)
    ]
    for kind, place in (("billed", 0), ("effective", 1)):
        parts = [by_currency(of_period(lines, kind, a * DAY, (a + 30) * DAY)) for a in (0, 30)]
        for currency in ("EUR", "USD"):
            wanted = sum(row[place] for row in rows if row[2] == currency)
            assert sum(getattr(p[currency], kind).amount for p in parts if currency in p) == wanted


def test_a_billing_month_is_a_calendar_month_in_every_time_zone():
    """May in New York begins four hours into the UTC month, and in Tokyo nine hours before it."""
    april, may = (
        charge("a", 1, 1, start_us=0, end_us=30 * DAY),
        charge(
            "m", 2, 2, start_us=30 * DAY, end_us=61 * DAY, billing_start_us=30 * DAY, billing_end_us=61 * DAY
        ),
    )
    for shift in (4 * HOUR, -9 * HOUR):
        first, second = (0 + shift, 30 * DAY + shift), (30 * DAY + shift, 61 * DAY + shift)
        for kind in ("effective", "billed"):
            dates = ("1970-01-01", "1970-01-31")
            assert of_period([april, may], kind, *first, dates) == [april]
            assert of_period([april, may], kind, *second, ("1970-01-31", "1970-03-03")) == [may]


def test_a_line_of_an_hour_is_of_the_period_of_its_instant():
    night = charge("h", 1, 1, start_us=30 * DAY, end_us=30 * DAY + HOUR)
    shift = 4 * HOUR
    assert of_period([night], "effective", shift, 30 * DAY + shift, ("1970-01-01", "1970-01-31")) == [night]
