"""Metered energy: split over months without losing a microjoule, and used only where it is whole."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.metered import metered
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.site import Meter
from carbonlens.domain.units import US_PER_HOUR

MAIN = Meter(meter_id="main", site="lab", boundary="facility", covers="site", accuracy_class=0.01)
JANUARY = 1_767_225_600_000_000
MONTH = 31 * 24 * US_PER_HOUR


def reading(start, end, joules, meter="main", **more):
    return MeterReading(
        reading_id=f"{meter}-{start}",
        meter_id=meter,
        start_us=start,
        end_us=end,
        energy_j=Decimal(joules),
        **more,
    )


@given(
    st.integers(0, 80 * 24),
    st.integers(1, 50 * 24),
    st.decimals("0.000001", "1e9", places=6),
    st.integers(1, 90 * 24),
)
def test_two_neighbouring_periods_share_a_reading_exactly(start, length, joules, cut):
    """Whatever a reading reaches over, its parts in neighbouring periods sum to it."""
    first = JANUARY + start * US_PER_HOUR
    one = [reading(first, first + length * US_PER_HOUR, joules)]
    middle = JANUARY + cut * US_PER_HOUR
    spans = ((JANUARY, middle), (middle, JANUARY + 200 * 24 * US_PER_HOUR))
    parts = [m for span in spans for m in metered([MAIN], one, *span)]
    assert sum(m.exact_j for m in parts) == joules
    for part in parts:
        assert sum(e.value for e in part.by_month.values()) == pytest.approx(part.energy.value)


def test_a_class_of_accuracy_is_one_rectangular_error_of_the_meter():
    (found,) = metered([MAIN], [reading(JANUARY, JANUARY + MONTH, 3.6e9)], JANUARY, JANUARY + MONTH)
    assert found.energy.u_by_source == {"meter:main": pytest.approx(3.6e9 * 0.01 / 3**0.5)}
    assert found.energy.grade == "A"
    assert found.is_whole


def test_a_meter_without_a_class_has_no_interval():
    plain = Meter(meter_id="main", site="lab", boundary="facility", covers="site")
    (found,) = metered([plain], [reading(JANUARY, JANUARY + MONTH, 1)], JANUARY, JANUARY + MONTH)
    assert found.energy.low is None


def test_exports_other_carriers_and_meters_of_parts_do_not_count():
    part = Meter(meter_id="part", site="lab", boundary="it", covers="part")
    readings = [
        reading(JANUARY, JANUARY + MONTH, 5, direction="export"),
        reading(JANUARY, JANUARY + MONTH // 2, 7, carrier="gas"),
        reading(JANUARY, JANUARY + MONTH, 9, meter="part"),
    ]
    assert metered([MAIN, part], readings, JANUARY, JANUARY + MONTH) == ()


def test_two_feeds_of_a_site_are_added_and_both_must_be_whole():
    other = Meter(meter_id="other", site="lab", boundary="facility", covers="site", accuracy_class=0.01)
    readings = [
        reading(JANUARY, JANUARY + MONTH, 10),
        reading(JANUARY, JANUARY + MONTH // 2, 4, meter="other"),
    ]
    (found,) = metered([MAIN, other], readings, JANUARY, JANUARY + MONTH)
    assert found.exact_j == 14
    assert found.covered == pytest.approx(0.5)
    assert not found.is_whole


def test_time_that_two_readings_of_a_meter_hold_counts_once():
    """The one that begins later is left out, with a Finding; lines of a bill are parts of it."""
    day = 24 * US_PER_HOUR
    again = reading(JANUARY + 9 * day, JANUARY + 19 * day, 1000)
    readings = [again, reading(JANUARY, JANUARY + MONTH, 3000)]
    (found,) = metered([MAIN], readings, JANUARY, JANUARY + MONTH)
    assert found.exact_j == 3000
    assert [(f.code, again.reading_id in f.message) for f in found.findings] == [("CL487", True)]
    bill = Meter(meter_id="bill:lab", site="lab", boundary="facility", covers="site")
    parts = [reading(JANUARY, JANUARY + MONTH, joules, meter="bill:lab") for joules in (600, 400)]
    (found,) = metered([bill], parts, JANUARY, JANUARY + MONTH)
    assert (found.exact_j, found.findings) == (1000, ())
