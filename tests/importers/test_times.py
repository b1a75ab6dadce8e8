"""Local times: the zone that is told, the hour that comes twice and the one that never comes."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.errors import UsageError
from carbonlens.importers.sources import Source
from carbonlens.importers.times import Clock, seconds_of

PARIS = "Europe/Paris"


def clock(tmp_path, tz=PARIS):
    return Clock(tz, Source(tmp_path / "x"))


def us(text):
    return round(datetime.fromisoformat(text).timestamp() * 1_000_000)


def test_a_time_without_a_zone_is_local_and_one_with_an_offset_is_believed(tmp_path):
    found = clock(tmp_path)
    assert found.us(datetime(2026, 1, 5, 10), 1) == us("2026-01-05T09:00:00+00:00")  # noqa: DTZ001  # a local clock without a zone is what is tested
    assert found.us(datetime(2026, 1, 5, 10, tzinfo=UTC), 1) == us("2026-01-05T10:00:00+00:00")
    assert found.findings == []


def test_no_zone_is_utc_and_said_once(tmp_path):
    found = clock(tmp_path, None)
    for hour in range(3):
        assert found.us(datetime(2026, 1, 5, hour), hour) == us(f"2026-01-05T0{hour}:00:00+00:00")  # noqa: DTZ001  # a local clock without a zone is what is tested
    assert [f.code for f in found.findings] == ["CL241"]


@given(st.integers(0, 3600 * 6), st.integers(1, 1800))
def test_a_log_over_the_change_back_loses_no_time(tmp_path_factory, offset_s, period_s):
    """Lines in order tell the hour that comes twice apart."""
    found = clock(tmp_path_factory.getbasetemp())
    begin = datetime(2026, 10, 24, 22, tzinfo=UTC) + timedelta(seconds=offset_s % 3600)
    moments = [begin + timedelta(seconds=n * period_s) for n in range(min(6 * 3600 // period_s, 400))]
    local = [m.astimezone(ZoneInfo(PARIS)).replace(tzinfo=None, fold=0) for m in moments]
    got = [found.us(m, n) for n, m in enumerate(local, 1)]
    assert got == [round(m.timestamp() * 1e6) for m in moments]


@pytest.mark.parametrize("zone", [PARIS, "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns"])
@given(st.datetimes(datetime(1971, 1, 1), datetime(2199, 12, 31)))  # noqa: DTZ001  # a local clock
def test_a_clock_tells_what_its_zone_tells(tmp_path_factory, zone, moment):
    at = moment.replace(tzinfo=ZoneInfo(zone))
    sure = at.utcoffset() == at.replace(fold=1).utcoffset()
    found = clock(tmp_path_factory.getbasetemp(), zone).us(moment, 1)
    assert not sure or found == (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_a_time_that_never_was_is_said(tmp_path):
    found = clock(tmp_path)
    found.us(datetime(2026, 3, 29, 2, 30), 7)  # noqa: DTZ001  # a local clock without a zone is what is tested
    assert [(f.code, f.line) for f in found.findings] == [("CL242", 7)]


def test_an_unknown_zone_and_another_age_are_refused(tmp_path):
    with pytest.raises(UsageError, match="Paris"):
        clock(tmp_path, "Paris")
    with pytest.raises(ValueError, match="years"):
        clock(tmp_path).us(datetime(1902, 1, 1), 1)  # noqa: DTZ001  # a local clock without a zone is what is tested


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("53", 53.0), ("0:00:20", 20.0), ("1-02:03:04", 93784.0), ("02:03", 123.0), ("1.5", 1.5)],
)
def test_durations(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "1:2:3:4", "-5", "nan", "1-x", "inf"])
def test_what_is_no_duration(text):
    assert seconds_of(text) is None
