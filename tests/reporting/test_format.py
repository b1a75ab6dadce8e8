"""Formats: digits follow the interval, units follow the size, unknown stays unknown."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carbonlens.domain.estimate import Estimate, not_applicable, unknown
from carbonlens.reporting import format as fmt

NBSP, GROUP, MINUS = "\u00a0", "\u202f", "−"


def known(value, low=None, high=None, unit="J", **more):
    bounds = None if low is None and high is None else (low, high)
    return Estimate(value=value, unit=unit, bounds=bounds, **more)


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        (3.44e-3, "3.44 mJ"),
        (4.2e-7, "420 nJ"),
        (2.5e-5, "25 µJ"),
        (12.0, "12 J"),
        (1200.0, "1.2 kJ"),
        (7200.0, "2 Wh"),
        (3.44e6, "956 Wh"),
        (9e6, "2.5 kWh"),
        (999.96, "1 kJ"),
        (1e-15, "0.001 pJ"),
    ],
)
def test_energy_takes_the_unit_that_suits_it(joules, text):
    assert fmt.energy(known(joules)).text == text.replace(" ", NBSP)


@pytest.mark.parametrize(
    ("kg", "text"),
    [(4e-10, "400 ng"), (2.3e-6, "2.3 mg"), (0.39, "390 g"), (12.0, "12 kg"), (4.5e3, "4.5 t")],
)
def test_mass(kg, text):
    assert fmt.mass(known(kg, unit="kg")).text == f"{text} CO₂e".replace(" ", NBSP)


@pytest.mark.parametrize(
    ("value", "low", "high", "number", "interval"),
    [
        (3.44, 1.91, 6.19, "3.4", "[1.9, 6.2]"),
        (0.416, 0.231, 0.749, "0.42", "[0.23, 0.75]"),
        (860.2, 852.1, 868.3, "860", "[852, 868]"),
        (11_627.0, 11_160.0, 12_100.0, f"11{GROUP}600", f"[11{GROUP}200, 12{GROUP}100]"),
        (-0.11, -0.67, 0.33, f"{MINUS}0.11", f"[{MINUS}0.67, 0.33]"),
        (0.0, -0.44, 0.44, "0.00", f"[{MINUS}0.44, 0.44]"),
        (3.4, 0.02, 9.0, "3.4", "[0.02, 9.0]"),
    ],
)
def test_digits_follow_the_interval(value, low, high, number, interval):
    printed = fmt.plain(known(value, low, high, unit="1"))
    assert (printed.number, printed.interval) == (number, interval)


@pytest.mark.parametrize(
    ("share", "half", "text"),
    [
        (0.88, 0.0045, "88.0 %"),
        (0.9997, 0.0001, "99.97 %"),
        (0.99999, 0.00001, "99.999 %"),
        (0.5, 0.2, "50 %"),
        (1.025, 0.02, "102 %"),
        (0.01, 0.0, "1 %"),
        (0.0, 0.0, "0 %"),
    ],
)
def test_percent_never_rounds_up_to_all(share, half, text):
    assert fmt.percent(known(share, share - half, share + half)).text == text.replace(" ", NBSP)


def test_a_change_shows_its_sign():
    assert fmt.percent(known(1.03, 1.0, 1.06), plus=True).number == "+103"
    assert fmt.percent(known(-0.52, -0.53, -0.51), plus=True).number == f"{MINUS}52.0"


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (9.78, "EUR 9.78"),
        (0.2, "EUR 0.20"),
        (12_345.0, f"EUR 12{GROUP}300"),
        (2.5e6, "EUR 2.50 million"),
        (0.0000114, "EUR 0.0000114"),
    ],
)
def test_money_names_its_currency(amount, text):
    assert fmt.money(known(amount, unit="EUR")).text == text.replace(" ", NBSP)


@pytest.mark.parametrize(
    "show",
    [fmt.energy, fmt.mass, fmt.duration, fmt.size, fmt.money, fmt.count, fmt.percent, fmt.points, fmt.plain],
)
def test_unknown_is_a_word_and_never_a_number(show):
    half_known = Estimate(value=1.0, unit="J", state="unknown")
    for estimate in (unknown("J"), half_known, Estimate(value=float("nan"), unit="J")):
        assert show(estimate) == fmt.Printed(text="unknown", number="unknown")
    assert show(not_applicable("J")).text == "not applicable"


def test_a_lower_bound_says_so():
    printed = fmt.money(known(9.5, 9.0, 10.0, unit="EUR", state="unbounded"))
    assert printed.text == "EUR 9.50 counted".replace(" ", NBSP)
    assert printed.interval == "[at least 9.00]"
    assert fmt.count(known(3.2e6, 1.1e6, None), no_bound="never").interval == "[1.1, never]"


def test_p_values():
    printed = [fmt.probability(p).number for p in (None, 1e-9, 0.0123, 0.34)]
    assert printed == ["unknown", f"<{NBSP}0.001", "0.012", "0.34"]


def test_a_stated_factor_keeps_its_digits():
    printed = fmt.given(known(0.27582, unit="kg/kWh", u_random=0.0138), "g CO₂e/kWh", 1e3)
    assert printed.text == "275.82 g CO₂e/kWh".replace(" ", NBSP)
    assert printed.interval == "[250, 304]"


def test_points_have_a_singular():
    assert fmt.points(known(0.01)).text == f"1{NBSP}point"
    assert fmt.points(known(0.02)).text == f"2{NBSP}points"


@given(st.floats(1e-14, 1e14), st.floats(0.0, 1.5))
def test_no_positive_figure_prints_as_zero(value, u_relative):
    estimate = Estimate(value=value, unit="J", u_random=u_relative * value)
    for show in (fmt.energy, fmt.mass, fmt.money, fmt.count, fmt.plain):
        printed = show(estimate)
        for number in [printed.number, *re.findall(r"[0-9.\u202f]+", printed.interval)]:
            assert float(number.replace(GROUP, "")) > 0


@given(st.floats(1e-9, 1e9), st.floats(0.001, 0.9))
def test_the_printed_value_lies_in_its_printed_interval(value, u_relative):
    printed = fmt.plain(Estimate(value=value, unit="1", u_random=u_relative * value))
    low, high = (float(e.replace(GROUP, "")) for e in printed.interval[1:-1].split(", "))
    assert low <= float(printed.number.replace(GROUP, "")) <= high


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9), st.integers(-1, 3))
def test_apportioned_parts_add_up_and_stay_close(parts, places):
    grain = 10.0**-places
    rounded = fmt.apportion(parts, places)
    assert abs(sum(rounded) - sum(parts)) <= 0.5001 * grain
    assert all(abs(a - b) <= 1.0001 * grain for a, b in zip(rounded, parts, strict=True))
    assert all(abs(r / grain - round(r / grain)) < 1e-6 for r in rounded)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FINITE, max_size=5), st.integers(-330, 330), st.none() | FINITE)
@example([2.2250738585e-313], 320, 1e9)
@example([1.0], -330, None)
@example([1e308, 1e308], -300, None)
@example([1.797e308], -307, None)
def test_no_finite_number_is_too_small_or_too_large_to_apportion(parts, places, total):
    rounded = fmt.apportion(parts, places, total)
    assert len(rounded) == len(parts)
    assert all(map(math.isfinite, rounded))


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300))
@example(0.0, 5e-324)
@example(1.0, 2.2250738585e-313)
def test_every_finite_estimate_is_printed(value, u):
    for show in (fmt.energy, fmt.mass, fmt.money, fmt.count, fmt.plain, fmt.percent):
        printed = show(Estimate(value=value, unit="J", u_random=u, signed=True))
        assert re.search(r"\d|unknown", printed.text)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9), st.integers(-1, 3), st.floats(-1e4, 1e4))
def test_apportioned_parts_add_up_to_a_total_that_is_printed_elsewhere(parts, places, total):
    """The total is rounded as Python prints it: 1.115 is below 1.115, and 1.11 to two places."""
    rounded = fmt.apportion(parts, places, total)
    assert math.fsum(rounded) == pytest.approx(round(total, places), abs=10.0**-places / 1e3)
    assert fmt.apportion([1.115], 2) == (1.11,)


@pytest.mark.parametrize("u", [1.0, 10.0, 100.0])
def test_an_interval_that_says_nothing_is_printed_so_and_not_in_digits(u):
    printed = fmt.energy(Estimate(value=0.2, unit="J", u_random=u))
    assert printed.interval == "[0, no bound]"
    narrow = fmt.energy(Estimate(value=0.2, unit="J", u_random=0.2))
    assert "no bound" not in narrow.interval


@given(
    st.floats(1e-6, 1e12, allow_nan=False),
    st.just(0.0) | st.floats(1e-6, 2, allow_nan=False),
    st.sampled_from([fmt.energy, fmt.mass, fmt.duration, fmt.size, fmt.count]),
)
def test_a_lower_bound_never_begins_above_its_interval(value, width, quantity):
    """What is called "at least" is the lower end of the interval, never the value in its middle."""
    unit = {fmt.mass: "kg", fmt.duration: "s"}.get(quantity, "J")
    printed = quantity(Estimate(value=value, unit=unit, state="unbounded", u_random=value * width))
    if width == 0:
        assert printed.text.startswith(f"at{NBSP}least{NBSP}")
        assert printed.interval == ""
    else:
        assert printed.text.endswith("counted")
        assert printed.interval.startswith("[at least ")
        assert "bound" not in printed.interval


def test_a_part_of_a_change_bounds_nothing():
    change = Estimate(value=-0.26, unit="1", state="unbounded", signed=True, u_random=0.02)
    assert (fmt.percent(change).text, fmt.percent(change).interval) == (
        "−26" + NBSP + "%" + NBSP + "in" + NBSP + "part",
        "",
    )


def test_a_break_even_that_may_never_come_keeps_its_word():
    units = Estimate(value=12e6, unit="1", state="unbounded", bounds=(12e6, None))
    printed = fmt.count(units, no_bound="never")
    assert printed.text.replace(NBSP, " ") == "at least 12 million"
    assert printed.interval == "[12, never]"


def test_digits_are_grouped_by_this_module_alone():
    found = []
    for file in sorted(Path(fmt.__file__).parents[1].rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            spec = node.format_spec if isinstance(node, ast.FormattedValue) else None
            if spec is not None and any("," in str(getattr(part, "value", "")) for part in spec.values):
                found.append(f"{file.name}: {ast.unparse(node.value)}")
    assert found == ["format.py: abs(rounded)"]


@pytest.mark.parametrize("parts", [[math.inf], [1.0, -math.inf], [math.nan, 2.0]])
def test_what_is_not_finite_is_not_rounded(parts):
    assert list(map(repr, fmt.apportion(parts, 2))) == list(map(repr, parts))
