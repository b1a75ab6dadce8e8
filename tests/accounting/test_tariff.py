"""Tariffs by the hour: each local hour once, also on days on which the clocks change."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.tariff import fixed_charges, prices
from carbonlens.app.tariffs import local_hours, tariff_prices
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.pricing import Tariff, TariffBand
from carbonlens.ledger.calendar import Calendar

DAY = TariffBand(name="day", amount_per_kwh=Decimal("0.30"), start_hour=6, end_hour=22)
NIGHT = TariffBand(name="night", amount_per_kwh=Decimal("0.20"), start_hour=22, end_hour=6)
BERLIN = Tariff(
    tariff_id="t",
    site="berlin",
    currency="EUR",
    timezone="Europe/Berlin",
    valid_from="2026-01-01",
    valid_to="2027-01-01",
    bands=(DAY, NIGHT),
    fixed_per_month=Decimal(100),
    u_relative=0.01,
    source="contract",
)


def with_fields(**fields):
    return Tariff(**{**{f: getattr(BERLIN, f) for f in BERLIN.__struct_fields__}, **fields})


def priced(text, *tariffs):
    period = Calendar(reporting_timezone="Europe/Berlin").period(text)
    (found,) = tariff_prices(Inventory(tariffs=tariffs or (BERLIN,)), period)
    return found


@pytest.mark.parametrize(
    ("day", "night", "hours"),
    [("2026-03-28", 8, 24), ("2026-03-29", 7, 23), ("2026-10-25", 9, 25)],
)
def test_a_day_on_which_the_clocks_change_has_its_own_number_of_hours(day, night, hours):
    found = priced(day)
    assert found.findings == ()
    assert [len(found.hours), sum(h.band == "night" for h in found.hours)] == [hours, night]
    assert len({h.hour_utc for h in found.hours}) == hours


def test_a_band_is_of_the_local_hour_not_of_the_utc_one():
    found = priced("2026-07-01")
    # 22:00 in Berlin in summer is 20:00 UTC.
    assert [h.hour_utc % 24 for h in found.hours if h.band == "night"] == [*(22, 23, 0, 1, 2, 3), *(20, 21)]


def test_the_rows_are_rates_of_a_ledger():
    row = next(priced("2026-07-01").rate_rows())
    assert row == {
        "site": "berlin",
        "hour_utc": row["hour_utc"],
        "rate": Decimal("0.20"),
        "source_id": "t",
        "u_relative": 0.01,
        "currency": "EUR",
    }


def test_hours_without_a_price_are_left_out_and_said():
    found = priced("2026-12-31", with_fields(bands=(DAY,)))
    assert len(found.hours) == 16
    assert [(f.code, f.subject) for f in found.findings] == [("CL319", "berlin")]
    assert "8 hours at berlin, the first 20261231 00:00" in found.findings[0].message
    assert priced("2027-01-01").hours == ()
    two = priced("2026-05-05", BERLIN, with_fields(tariff_id="u"))
    assert two.hours == ()
    assert "two tariffs hold" in two.findings[0].message


def test_one_tariff_follows_another_within_a_period():
    first = with_fields(valid_to="2026-05-16")
    second = with_fields(tariff_id="u", valid_from="2026-05-16", timezone="UTC")
    found = priced("2026-05", first, second)
    by_id = {name: sum(h.tariff_id == name for h in found.hours) for name in ("t", "u")}
    # The second is meant in UTC: its first day begins two hours after the first one's last.
    assert by_id == {"t": 15 * 24, "u": 16 * 24 - 2}
    assert "2 hours" in found.findings[0].message


def test_a_fixed_charge_counts_by_months_and_days_of_them():
    quarter = ["2026-01", "2026-02", "2026-03"]
    assert fixed_charges([BERLIN], "berlin", quarter) == ((BERLIN, Decimal(3)),)
    half = with_fields(valid_from="2026-02-15")
    ((_, months),) = fixed_charges([half], "berlin", quarter)
    assert months == Decimal("1.5")
    assert fixed_charges([with_fields(fixed_per_month=None)], "berlin", quarter) == ()
    assert fixed_charges([BERLIN], "paris", quarter) == ()


@given(st.integers(0, 23), st.integers(0, 23), st.integers(0, 365))
def test_two_bands_that_fill_the_day_price_every_hour_once(a, b, day):
    first, last = sorted((a, b))
    if first == last:
        last += 1
    inside = TariffBand(name="i", amount_per_kwh=Decimal(1), start_hour=first, end_hour=last)
    rest = [
        TariffBand(name="o", amount_per_kwh=Decimal(2), start_hour=s, end_hour=e)
        for s, e in ((0, first), (last, 24))
        if s < e
    ]
    start = 490_896 + day * 24
    hours = list(local_hours("Europe/Berlin", start, start + 24))
    tariff = with_fields(valid_from="2025-01-01", valid_to=None, bands=(inside, *rest))
    found = prices([tariff], "berlin", {"Europe/Berlin": hours})
    assert [h.hour_utc for h in found.hours] == list(range(start, start + 24))
    assert all((h.band == "i") == (first <= at.hour < last) for h, at in zip(found.hours, hours, strict=True))
