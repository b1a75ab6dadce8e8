"""Periods are whole UTC hours, and the calendar says the same of each hour."""

import pytest

from carbonlens.errors import ConfigError, UsageError
from carbonlens.ledger.calendar import Calendar

ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Europe/Berlin", "Pacific/Kiritimati"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("start", "named"), [(1, "end"), (4, "end"), (10, "start")])
def test_a_period_holds_exactly_the_hours_the_calendar_gives_it(zone, start, named):
    calendar = Calendar(reporting_timezone=zone, fiscal_year_start=start, fiscal_year_named_by=named)
    first, end = calendar.period("2025").first_hour - 50, calendar.period("2026").end_hour + 50
    rows = calendar.rows(first, end)
    texts = {
        "2026": lambda r: r.fiscal_year == 2026,
        "2026Q1": lambda r: r.fiscal_quarter == "2026Q1",
        "2025Q4": lambda r: r.fiscal_quarter == "2025Q4",
        "2026-03": lambda r: r.month == 202603,
        "2025-12-31": lambda r: r.date == 20251231,
    }
    for text, belongs in texts.items():
        hours = [r.hour_utc for r in rows if belongs(r)]
        period = calendar.period(text)
        within = range(max(first, period.first_hour), min(end, period.end_hour))
        assert hours == list(within), text


@pytest.mark.parametrize("zone", ZONES)
def test_quarters_tile_the_year(zone):
    calendar = Calendar(reporting_timezone=zone, fiscal_year_start=7)
    quarters = [calendar.period(f"2026Q{i}") for i in range(1, 5)]
    year = calendar.period("2026")
    ends = [year.first_hour, *(q.end_hour for q in quarters)]
    assert [q.first_hour for q in quarters] == ends[:-1]
    assert ends[-1] == year.end_hour


def test_a_day_with_a_clock_change_has_23_or_25_hours():
    calendar = Calendar(reporting_timezone="Europe/Berlin")
    hours = [p.end_hour - p.first_hour for p in map(calendar.period, ("2026-03-29", "2026-10-25"))]
    assert hours == [23, 25]


def test_the_fiscal_year_is_named_as_declared():
    assert Calendar(fiscal_year_start=4).fiscal(2025, 4) == (2026, 1)
    assert Calendar(fiscal_year_start=4, fiscal_year_named_by="start").fiscal(2026, 3) == (2025, 4)
    assert Calendar().fiscal(2026, 12) == (2026, 4)


@pytest.mark.parametrize(
    "text", ["", "2026Q5", "2026-13", "2026-02-30", "26", "2026-1", "0000", "9999-12-31"]
)
def test_what_is_no_period_is_refused(text):
    with pytest.raises(UsageError, match="no period") as caught:
        Calendar().period(text)
    assert "--" not in str(caught.value)  # ``close`` takes it without an option


def test_a_zone_or_month_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="Mars"):
        Calendar(reporting_timezone="Mars/Base")
    with pytest.raises(ConfigError, match="13"):
        Calendar(fiscal_year_start=13)
