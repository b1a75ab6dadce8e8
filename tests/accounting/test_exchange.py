"""Money in another currency or year: at the user's rates, or unknown."""

from decimal import Decimal

import pytest

from carbonlens.accounting.exchange import exchanged, in_prices_of
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.pricing import ExchangeRate

AMOUNT = Estimate(value=100.0, unit="USD", u_by_source={"p": 5.0})


def rate(date, value, base="USD", quote="EUR"):
    return ExchangeRate(base=base, quote=quote, date=date, rate=Decimal(value), source="bank")


RATES = [rate("2026-01-02", "0.90"), rate("2026-02-02", "0.80"), rate("2026-03-02", "0.70")]


def test_the_rate_of_the_day_is_taken_and_errors_go_along():
    found = exchanged(AMOUNT, "EUR", "2026-02-02", RATES)
    assert (found.estimate.value, found.estimate.unit) == (pytest.approx(80), "EUR")
    assert found.estimate.u_by_source == {"p": pytest.approx(4)}
    assert found.input_ids == ("exchange:USD/EUR/2026-02-02",)
    assert found.findings == ()


def test_the_nearest_earlier_rate_is_taken_and_said():
    found = exchanged(AMOUNT, "EUR", "2026-02-28", RATES)
    assert found.estimate.value == pytest.approx(80)
    assert [(f.code, f.severity) for f in found.findings] == [("CL334", "info")]


@pytest.mark.parametrize(("date", "rates"), [("2026-01-01", RATES), ("2026-02-02", [])])
def test_no_rate_is_unknown_never_one_for_one(date, rates):
    found = exchanged(AMOUNT, "EUR", date, rates)
    assert (found.estimate.value, found.estimate.state, found.estimate.unit) == (None, "unknown", "EUR")
    assert [f.code for f in found.findings] == ["CL333"]


def test_a_rate_of_the_other_direction_is_its_inverse_and_the_same_currency_needs_none():
    back = exchanged(AMOUNT, "EUR", "2026-02-02", [rate("2026-02-02", "1.25", "EUR", "USD")])
    assert back.estimate.value == pytest.approx(80)
    assert exchanged(AMOUNT, "USD", "2026-02-02", []).estimate is AMOUNT
    both = [rate("2026-02-02", "1.25", "EUR", "USD"), rate("2026-02-02", "0.5")]
    assert exchanged(AMOUNT, "EUR", "2026-02-02", both).estimate.value == pytest.approx(50)


def test_a_price_year_needs_an_index_of_both_years():
    index = {2024: 100.0, 2026: 110.0}
    found = in_prices_of(AMOUNT, 2024, 2026, index)
    assert (found.estimate.value, found.findings) == (pytest.approx(110), ())
    left = in_prices_of(AMOUNT, 2023, 2026, index)
    assert (left.estimate, [f.code for f in left.findings]) == (AMOUNT, ["CL335"])
    assert "nominal" in left.how
    for year in (None, 2024):
        assert in_prices_of(AMOUNT, 2024, year).estimate is AMOUNT
