"""Tables by group: every printed part is inside its interval, and each column adds up to its total."""

from __future__ import annotations

import math
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.domain.estimate import Estimate, add
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import column
from carbonlens.reporting.rounding_within import within
from tests.accounting.test_periods_compared import made
from tests.reporting import sustainability_case as case

_NUMBER = r"[−+]?[0-9][0-9\u202f]*(?:\.[0-9]+)?"
_CELL = re.compile(
    rf"(?P<less><\u00a0|< )?(?P<number>{_NUMBER})[^|]*(?:\| \[(?P<low>{_NUMBER}), (?P<high>{_NUMBER})\])?$"
)
ALIKE = [2.5 + n / 1000 for n in range(100)]


def number(text):
    return float(text.replace("\u202f", "").replace(fmt.MINUS, "-"))


def table(values, error=0.01):
    """Return the rows of a quarter without an earlier one, split into groups of such kWh."""
    groups = [(f"team-{n}", v) for n, v in enumerate(values)]
    whole = made(case.QUARTER, math.fsum(values))
    split = made(case.QUARTER, math.fsum(values), groups)
    splits = {"team": msgspec.structs.replace(split, groups=tuple(surer(x, error) for x in split.groups))}
    rows = case.rows(case.view({case.QUARTER: whole}, splits=splits), "By team")
    rows.pop("")
    return rows


def surer(line, error):
    """Return a line whose facility energy is as sure as that: of groups, never as their total is."""
    amount = line.amounts["facility_kwh"]
    held = msgspec.structs.replace(amount.estimate, u_random=(amount.estimate.value or 0.0) * error)
    return msgspec.structs.replace(
        line, amounts={**line.amounts, "facility_kwh": msgspec.structs.replace(amount, estimate=held)}
    )


def assert_true_and_whole(rows):
    *parts, total = rows.values()
    for n in range(3):
        cells = [_CELL.match(row[n]) for row in (*parts, total)]
        assert all(cells), [row[n] for row in (*parts, total)]
        for cell in cells:
            if cell["low"] is not None and not cell["less"]:
                assert number(cell["low"]) <= number(cell["number"]) <= number(cell["high"]), cell[0]
        own = [0.0 if c["less"] else number(c["number"]) for c in cells]
        assert math.fsum(own[:-1]) == pytest.approx(own[-1], rel=1e-9), [c[0] for c in cells]


@pytest.mark.parametrize(
    "values",
    [
        ALIKE,  # "10 kg [2, 3]" of each, and "60 kg [120, 160]" of the others
        [340.0],
        [300.0, *ALIKE],
        [0.4] * 60 + [900.0],
        [25.0] * 13,
        [24.9] * 14,
        [1000.0, 0.03, 0.02, 0.004],
        [5000.0 / n for n in range(1, 400)],
    ],
)
@pytest.mark.parametrize("error", [0.01, 0.05, 0.3])
def test_a_quarter_without_an_earlier_one_prints_no_group_outside_its_interval(values, error):
    assert_true_and_whole(table(values, error))


@settings(max_examples=60)
@given(st.lists(st.floats(0.01, 2e4), min_size=1, max_size=40), st.floats(0.01, 0.4))
def test_no_split_prints_a_group_outside_its_interval(values, error):
    assert_true_and_whole(table(values, error))


PARTS = st.lists(st.tuples(st.floats(-50, 1e4), st.floats(0, 0.5)), min_size=1, max_size=30)


@given(PARTS, st.integers(-1, 3))
def test_parts_are_rounded_inside_their_intervals_and_sum_to_the_whole(parts, places):
    values = [v for v, _ in parts]
    ends = [(v - abs(v) * u, v + abs(v) * u) for v, u in parts]
    grain, whole = 10.0**-places, round(math.fsum(values), places)
    found = within(values, ends, places, whole)
    if found is None:
        return
    assert math.fsum(found) == pytest.approx(whole, abs=grain / 1e3)
    for value, (low, high), shown in zip(values, ends, found, strict=True):
        is_less = shown == 0 and abs(value) < grain
        assert is_less or low - grain * 0.5001 <= shown <= high + grain * 0.5001
        assert abs(shown - value) < grain


def test_what_is_left_goes_to_a_part_that_has_room_for_it():
    """Largest remainder printed 3.48, sure to 0.02, as 4, for the sake of a sum that is sure to 40 only."""
    held = {"narrow": Estimate(value=3.48, unit="kg", u_random=0.005)}
    held["wide"] = Estimate(value=500.3, unit="kg", u_random=20.0)
    held["unsure"] = Estimate(value=200.26, unit="kg", u_random=20.0)
    whole = column(fmt.mass, "total", add(held.values(), "kg"), held, least=0)
    assert whole.places == 0
    assert [whole.numbers[n] for n in held] == [3.0, 501.0, 200.0]
    assert not any(whole.is_outside(n, e) for n, e in held.items())


@pytest.mark.parametrize("ends", [(3.4, 3.45), (3.4, None), (None, None)])
def test_no_part_is_moved_where_no_interval_has_room(ends):
    found = within([3.42] * 4, [ends] * 4, 0, 14.0)
    assert found is None if ends[1] is not None else sorted(found) == [3.0, 3.0, 4.0, 4.0]
