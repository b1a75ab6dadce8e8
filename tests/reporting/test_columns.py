"""Columns add up as they are printed, and a small part is never printed as nothing."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.estimate import Estimate, add
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import alike, column

AMOUNTS = st.lists(st.floats(-1e6, 1e9, allow_subnormal=False), min_size=1, max_size=12)


def estimates(values, unit="kg"):
    return {f"p{n}": Estimate(value=v, unit=unit, signed=v < 0) for n, v in enumerate(values)}


def number(text):
    """Return the number of a printed text; a part below the last place counts as nothing."""
    if text.startswith(("<", ">")):
        return 0.0
    return float(
        re.sub("[^-0-9.e]", "", text.replace("\N{MINUS SIGN}", "-").partition("\N{NO-BREAK SPACE}")[0])
    )


@given(AMOUNTS, st.floats(0, 1))
def test_parts_add_up_to_the_total_as_it_is_printed(values, width):
    parts = estimates(values)
    total = add(parts.values(), "kg")
    total = Estimate(value=total.value, unit="kg", signed=True, u_random=abs(total.value or 0) * width)
    made = column(fmt.mass, "total", total, parts)
    printed = [number(made.printed(n, e).text) for n, e in parts.items()]
    whole = number(made.printed("total", total).text)
    if made.numbers.keys() != {"total"}:
        grain = 10.0**-made.places
        assert math.fsum(printed) == pytest.approx(whole, abs=grain / 1e3)
        for value, shown in zip(values, printed, strict=True):
            assert abs(value * made.scale.factor - shown) <= grain * 1.001


@given(AMOUNTS.filter(lambda v: min(v) > 0), AMOUNTS.filter(lambda v: min(v) > 0))
def test_parts_of_a_part_add_up_to_it(first, second):
    parts = estimates([math.fsum(first), *second])
    made = column(fmt.mass, "total", add(parts.values(), "kg"), parts)
    inner = {f"inner{n}": e for n, e in enumerate(estimates(first).values())}
    if "p0" in made.numbers:
        made = made.with_parts(made.numbers["p0"], inner)
        grain = 10.0**-made.places
        assert math.fsum(made.numbers[n] for n in inner) == pytest.approx(made.numbers["p0"], abs=grain / 1e3)


def test_a_part_that_rounds_to_nothing_is_not_printed_as_nothing():
    parts = estimates([1000.0, 1e-6])
    made = column(fmt.mass, "total", add(parts.values(), "kg"), parts)
    assert made.printed("p1", parts["p1"]).text.startswith("<")
    assert made.printed("p0", parts["p0"]).text == made.printed("total", add(parts.values(), "kg")).text


def test_the_case_of_three_texts():
    """1.35 and 10.0 are 11.35: printed apart they were 1.35 + 10.0 = 11.3."""
    parts = {n: Estimate(value=v, unit="EUR", u_random=0.3) for n, v in (("a", 1.35), ("b", 9.99))}
    total = add(parts.values(), "EUR")
    made = column(fmt.money, "total", total, parts)
    texts = [number(made.printed(n, e).number) for n, e in parts.items()]
    assert math.fsum(texts) == pytest.approx(number(made.printed("total", total).number))


def test_parts_that_are_no_sum_are_left_as_they_are():
    parts = estimates([1.0, 2.0])
    made = column(fmt.mass, "total", Estimate(value=9.0, unit="kg"), parts)
    assert set(made.numbers) == {"total"}
    assert made.printed("p0", parts["p0"]).text == fmt.mass(parts["p0"]).text
    unknown = column(fmt.mass, "total", Estimate(value=None, unit="kg", state="unknown"), parts)
    assert unknown.printed("total", Estimate(value=None, unit="kg", state="unknown")).text == fmt.UNKNOWN


@given(AMOUNTS.filter(lambda v: min(v) > 0), st.integers(1, 4), st.floats(0, 0.3))
def test_a_part_that_comes_again_takes_the_number_that_it_has(values, size, width):
    """A site with one kind of hardware was 0.06 t by site and 0.07 t by hardware."""
    parts = estimates(dict.fromkeys(values))
    total = add(parts.values(), "kg")
    total = Estimate(value=total.value, unit="kg", u_random=(total.value or 0) * width)
    made = column(fmt.mass, "total", total, parts)
    if made.numbers.keys() == {"total"}:
        return
    kept = dict([*parts.items()][:size])
    others = [p for n, p in parts.items() if n not in kept]
    again = {f"again {n}": p for n, p in kept.items()}
    again |= {"others": add(others, "kg")} if others else {}
    grain = 10.0**-made.places
    held = made.with_parts(made.numbers["total"], again)
    assert math.fsum(held.numbers[n] for n in again) == pytest.approx(made.numbers["total"], abs=grain / 1e3)
    rest = math.fsum(made.numbers[n] for n in parts if n not in kept)
    real = math.fsum((p.value or 0.0) * made.scale.factor for p in others)
    if abs(rest - real) < grain * 0.999:
        assert [held.numbers[f"again {n}"] for n in kept] == [made.numbers[n] for n in kept]
        assert [made.numbers[n] for n in parts] == [held.numbers[n] for n in parts]


def test_a_figure_beside_another_has_its_unit_and_decimals_unless_these_do_not_suit_it():
    own = fmt.energy(Estimate(value=5.61 * 3.6e9, unit="J", u_random=0.05 * 3.6e9))
    assert own.text == "5.61\u00a0MWh"
    for mwh, u, text in (
        (5.3, 0.15, "5.30\u00a0MWh"),
        (0.2934, 0.0, "0.29\u00a0MWh"),
        (0.03, 0.0, None),  # one digit would be left
        (52.0, 40.0, None),  # and three that say nothing
    ):
        estimate = Estimate(value=mwh * 3.6e9, unit="J", u_random=u * 3.6e9)
        assert fmt.energy(estimate).text != text
        assert alike(fmt.energy, estimate, own).text == (text or fmt.energy(estimate).text)


def test_a_part_far_from_what_it_is_for_the_sake_of_the_sum_is_rough_and_less_so_with_a_place_more():
    """139 kWh were printed as 0.2 MWh, as 4.77 and 4.63 MWh are 4.8 and 4.6."""
    parts = {n: Estimate(value=v * 3.6e9, unit="J") for n, v in (("met", 4.769), ("b", 0.234), ("c", 0.61))}
    total = Estimate(value=add(parts.values(), "J").value, unit="J", u_random=0.11 * 3.6e9)
    inner = {n: Estimate(value=v * 3.6e9, unit="J") for n, v in (("runs", 4.63), ("rest", 0.139))}
    for least, rough in ((None, ["rest"]), (2, [])):
        made = column(fmt.energy, "total", total, parts, least=least)
        made = made.with_parts(made.numbers["met"], inner)
        assert [n for n, e in {**parts, **inner}.items() if made.is_rough(n, e)] == rough
        assert math.fsum(made.numbers[n] for n in inner) == pytest.approx(made.numbers["met"])
