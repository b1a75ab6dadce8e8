"""Units are checked, not believed: wrong ones are told with what would fit, right ones are let be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.importers.sources import Source
from carbonlens.importers.unit_checks import Power, Stated, of_length, of_power, of_run, of_trace

KWH = 3.6e6


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path / "x.csv")


@given(
    st.floats(1, 10_000),
    st.floats(1, 1e6),
    st.sampled_from([("J", 3.6e6), ("Wh", 1000.0), ("mJ", 3.6e9)]),
)
def test_energy_in_another_unit_than_its_header_is_seen_and_offered(tmp_path_factory, watts, seconds, wrong):
    """Joules, watt-hours or millijoules under a header of kWh."""
    unit, factor = wrong
    source = Source(tmp_path_factory.getbasetemp() / "x")
    told = of_run(Stated(energy_j=watts * seconds * factor, energy_unit="kWh", duration_s=seconds), source, 1)
    found = list(told)
    if watts * factor <= 50_000:
        return
    (one,) = found
    assert one.code == "CL248"
    assert "would fit" in one.message
    if unit == "J":
        assert (
            " J would fit" in one.message or " mJ would fit" in one.message or " Wh would fit" in one.message
        )


@given(st.floats(0.1, 40_000), st.floats(1e-3, 1e7), st.floats(0.001, 2.0))
def test_what_can_be_is_let_be(tmp_path_factory, watts, seconds, intensity):
    source = Source(tmp_path_factory.getbasetemp() / "x")
    energy_j = watts * seconds
    stated = Stated(
        energy_j=energy_j,
        energy_unit="kWh",
        duration_s=seconds,
        emissions_kg=energy_j / KWH * min(max(intensity, 0.00101), 1.99),
    )
    assert list(of_run(stated, source, 1)) == []


@pytest.mark.parametrize(("kg", "told"), [(0.4, None), (400.0, " g would"), (0.0004, " t would"), (9.0, "")])
def test_intensities_that_no_grid_has(source, kg, told):
    found = list(of_run(Stated(energy_j=KWH, emissions_kg=kg), source, 1))
    if told is None:
        assert found == []
    else:
        assert found[0].code == "CL250"
        assert told in found[0].message


@pytest.mark.parametrize(
    ("energy_j", "watts", "seconds", "multiplier", "said"),
    [
        (1000.0, 10.0, 100.0, 1.0, False),
        (1600.0, 10.0, 100.0, 1.0, False),
        (9300.0, 10.0, 100.0, 1.0, True),
        (100.0, 10.0, 100.0, 1.0, True),
        (3000.0, 10.0, 100.0, 3.0, False),
        (0.0, 10.0, 100.0, 1.0, False),
        (None, 10.0, 100.0, 1.0, False),
    ],
)
def test_energy_against_the_power_beside_it(source, energy_j, watts, seconds, multiplier, said):
    told = Power(part="cpu", energy_j=energy_j, stated_w=watts, duration_s=seconds, multiplier=multiplier)
    assert bool(list(of_power(told, source, 1))) is said


@pytest.mark.parametrize(
    ("part", "watts", "unit", "told"),
    [
        ("gpu", 300.0, "W", None),
        ("gpu", 300_000.0, "W", "mW would fit"),
        ("total", 5_000_000.0, "W", "W would fit"),
        ("gpu", 5_000.0, "kw", ": W would fit, under a header of kW"),
        ("gpu", 300_000.0, "w", ": mW would fit, under a header of W"),
        ("gpu", 300_000.0, "mJ", ": uJ would fit, under a header of mJ"),
        ("gpu", 300_000.0, "mj", "more than any has"),
        ("gpu", 300_000.0, "hp", "more than any has"),
        ("gpu", -10.0, "W", "below zero"),
        ("wall", 20_000.0, "W", None),
        ("gpu", None, "W", None),
    ],
)
def test_power_that_no_device_has(source, part, watts, unit, told):
    found = list(of_trace(part, watts, unit, source))
    assert (found == []) if told is None else told in found[0].message


@pytest.mark.parametrize("unit", ["mj", "hp", "MW"])
def test_a_unit_that_may_be_two_or_is_none_of_ours_is_no_ground_for_an_offer(source, unit):
    (found,) = of_trace("gpu", 300_000.0, unit, source)
    assert "would fit" not in found.message


def test_a_milliwatt_in_lower_case_is_one(source):
    (found,) = of_trace("gpu", 0.3, "mw", source, least_w=1.0)
    assert ": W would fit, under a header of mW" in found.message


@pytest.mark.parametrize(
    ("part", "watts", "least_w", "told"),
    [
        ("gpu", 0.3, 1.0, "kW would fit, under a header of W"),
        ("wall", 0.0, 0.5, "less than any draws"),
        ("wall", 0.2, 5.0, "kW would fit"),
        ("gpu", 0.3, 0.0, None),
        ("gpu", 1.5, 1.0, None),
    ],
)
def test_power_that_no_device_is_as_low_as(source, part, watts, least_w, told):
    found = list(of_trace(part, watts, "W", source, least_w=least_w))
    assert (found == []) if told is None else told in found[0].message


@pytest.mark.parametrize(
    ("kwh", "duration_s", "least_w", "offers", "mend"),
    [
        (1.0, 2.0, 0.0, ["1 Wh would fit", "a duration of 2 h would fit"], "in Wh or the duration in h"),
        (10.0, 2.5, 0.0, ["10 Wh would fit", "a duration of 2.5 h would fit"], "the duration in h"),
        (0.3, 3.6e6, 1.0, ["a duration of 3.6e+06 ms would fit"], "in ms"),
        (18_000.0, 100.0, 0.0, ["18000 J would fit"], "if it is J, mend the header"),
    ],
)
def test_a_duration_in_another_unit_is_offered_too(source, kwh, duration_s, least_w, offers, mend):
    """Hours under seconds come to the same power as a thousandfold energy: which it is nothing tells."""
    told = Stated(energy_j=kwh * KWH, energy_unit="kWh", duration_s=duration_s, least_w=least_w)
    (one,) = of_run(told, source, 1)
    assert all(offer in one.message for offer in offers), one.message
    assert mend in one.mend, one.mend


def test_gaps_between_times_are_no_unit(source):
    assert list(of_length(100.0, 7000.0, source, 1, has_gaps=True)) == []
    assert "h would fit" in next(of_length(2.0, 7200.0, source, 1, has_gaps=True)).message
    assert "ms would fit" in next(of_length(7e6, 7000.0, source, 1, has_gaps=True)).message


@pytest.mark.parametrize(
    ("stated_s", "told_s", "said"),
    [
        (10.0, 10.4, None),
        (10_000.0, 10.0, "ms would fit"),
        (1.0, 60.0, "min would fit"),
        (0.5, 3600.0, ""),
        (1.0, 1000.0, "a thousandfold would fit"),
        (5.0, 0.0, None),
    ],
)
def test_lengths_against_times(source, stated_s, told_s, said):
    found = list(of_length(stated_s, told_s, source, 3))
    if said is None:
        assert found == []
    else:
        assert (found[0].code, found[0].line) == ("CL249", 3)
        assert said in found[0].message
