"""A tariff in the ledger's queries: runs across a change of the clocks cost what an oracle says."""

from decimal import Decimal

import pytest

from carbonlens.accounting.cost import electricity_by_tariff
from carbonlens.app.tariffs import tariff_prices
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.run import HourEnergy, Reading, Run
from carbonlens.ledger import rates
from carbonlens.ledger.accounts import account
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger
from tests.accounting.test_tariff import BERLIN, with_fields

CALENDAR = Calendar(reporting_timezone="Europe/Berlin")
DAY = CALENDAR.period("2026-03-29")
KWH_J = Decimal(3_600_000)


def ledger_of(tmp_path, hours):
    """Keep one run at the site of the tariff with one kWh in each hour."""
    first, last = min(hours), max(hours) + 1
    run = Run(
        run_id="r",
        site="berlin",
        start_us=first * 3_600_000_000,
        end_us=last * 3_600_000_000,
        duration_s=(last - first) * 3600.0,
        energy=(
            Reading(
                component="total", energy_j=KWH_J * len(hours), boundary="facility", grade="B", method="m"
            ),
        ),
        energy_by_hour=tuple(HourEnergy(hour_utc=h, component="total", energy_j=KWH_J) for h in hours),
    )
    store = Ledger(tmp_path)
    store.append(run)
    return store


@pytest.mark.parametrize("u_relative", [0.01, None])
def test_a_day_of_23_hours_costs_7_at_night_and_16_by_day(tmp_path, u_relative):
    hours = range(DAY.first_hour, DAY.end_hour)
    (prices,) = tariff_prices(Inventory(tariffs=(with_fields(u_relative=u_relative),)), DAY)
    with ledger_of(tmp_path, hours).query("2026-03-29", CALENDAR) as view:
        (total,) = account(view, ["site"], rates=[rates.load(view, "cost", prices.rate_rows())]).totals
    # 7 h at 0.20 and 16 h at 0.30.
    assert (total.cost.exact, total.currency) == (Decimal("6.2"), "EUR")
    kwh = {h: Estimate(value=1.0, unit="kWh") for h in hours}
    (line,) = electricity_by_tariff(kwh, prices.hours)
    assert line.amount.value == pytest.approx(6.2)
    if u_relative is None:
        # Nobody states how sure the price is, and so nobody knows how sure the cost is.
        assert total.cost.estimate.low is None
        assert line.amount.low is None
    else:
        assert line.amount.u_total == pytest.approx(0.062)


def test_energy_without_a_price_is_said_and_not_free(tmp_path):
    hours = range(DAY.first_hour, DAY.end_hour)
    (prices,) = tariff_prices(Inventory(tariffs=(with_fields(bands=BERLIN.bands[:1]),)), DAY)
    with ledger_of(tmp_path, hours).query("2026-03-29", CALENDAR) as view:
        found = account(view, ["site"], rates=[rates.load(view, "cost", prices.rate_rows())])
    by_currency = {t.currency: t.cost for t in found.totals}
    assert by_currency["EUR"].exact == Decimal("4.8")
    # What found no price is in no currency.
    assert (by_currency[None].exact, by_currency[None].unrated_j) == (None, 7 * KWH_J)
    assert any("no price" in f.message for f in found.findings)
