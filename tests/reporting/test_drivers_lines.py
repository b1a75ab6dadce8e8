"""Rows of a bridge add up as they are printed, whatever the sizes, and small ones are no false digits."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carbonlens.cli.drivers_view import _bars
from carbonlens.domain.drivers import Bridge, Effect
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import alike, column
from carbonlens.reporting.drivers_lines import (
    change_text,
    ends_of,
    least_places,
    quantity_of,
    rows,
    shown,
)

NAMES = ("volume", "mix", "place", "energy", "pue")


def estimate(value, unit="kWh", u=0.0):
    return Estimate(value=value, unit=unit, u_random=u, signed=True)


def bridge(before, changes, *, measure="energy", unit="kWh", u=0.0, remainder=0.0):
    effects = tuple(Effect(name=n, change=estimate(v, unit, u)) for n, v in zip(NAMES, changes, strict=False))
    after = before + sum(changes)
    return Bridge(
        measure=measure,
        unit=unit,
        method="lmdi",
        before=Estimate(value=before, unit=unit, u_random=u),
        after=Estimate(value=after, unit=unit, u_random=u, signed=True),
        change=estimate(after - before, unit, u),
        effects=effects,
        remainder=remainder,
        parts=(),
        classes=(),
        changes=(),
    )


def number(text):
    """Return the number of a printed amount."""
    plain = text.replace("\u202f", "").replace("\u00a0", " ").replace("−", "-")
    return float(re.search(r"[-+]?\d+(?:\.\d+)?", plain)[0])


AMOUNTS = st.floats(-1e5, 1e5).map(lambda x: round(x, 3))


@given(
    st.floats(1.0, 1e6),
    st.lists(AMOUNTS, min_size=5, max_size=5),
    st.sampled_from([("energy", "kWh"), ("carbon-location", "kg"), ("cost", "EUR")]),
    st.floats(0, 100),
)
@example(1000.0, [0.0] * 5, ("energy", "kWh"), 2.2250738585e-313)
@example(4884.4, [640.4, -60.4, -10.4, -360.4, 154.7], ("energy", "kWh"), 38.0)
def test_all_effects_sum_to_the_change_and_to_the_last_total_as_printed(before, changes, what, u):
    measure, unit = what
    made = bridge(before, changes, measure=measure, unit=unit, u=u)
    found = rows(made, ("a", "b"), "x")
    first, *effects, last = [r for r in found if r.kind != "remainder"]
    moved = sum(number(r.number) for r in effects)
    total = number(first.number) + moved
    close = 1e-6 * max(abs(total), 1)
    assert total == pytest.approx(number(last.number), abs=close)
    assert number(change_text(made)) == pytest.approx(moved, abs=close)
    assert max(len(r.number) for r in found) < 30
    units = {re.sub(r"[\d.+−\u202f\u00a0]|million", "", r.number) for r in found if r.kind != "remainder"}
    assert len(units) == 1


@given(
    st.floats(1.0, 1e6),
    st.lists(AMOUNTS, min_size=1, max_size=5),
    st.sampled_from([("energy", "kWh"), ("carbon-location", "kg"), ("cost", "EUR")]),
    st.floats(0, 1e4),
)
@example(8790.0, [142.0, 7254.0], ("cost", "EUR"), 15.0)
@example(5293.0, [631.0, -57.0, -14.0, -364.0, 123.0], ("energy", "kWh"), 105.0)
def test_both_totals_are_printed_as_elsewhere_and_the_effects_lead_from_one_to_the_other(
    before, changes, what, u
):
    """EUR 16 186 on the first page was EUR 16 190 beside its drivers."""
    measure, unit = what
    made = bridge(before, changes, measure=measure, unit=unit, u=u)
    quantity, after = quantity_of(made), shown(made.after)
    own = column(quantity, "total", after, {}, least=least_places(made, made.after)).printed("total", after)
    for elsewhere in (None, alike(quantity, shown(made.before), own)):
        ends = ends_of(made, elsewhere, own)
        if ends is None:
            # In two units, or without a digit that means anything: nothing adds up there.
            assert elsewhere is None or elsewhere.scale != own.scale or u > before or u > made.after.value
            continue
        first, *effects, last = [r for r in rows(made, ("a", "b"), "x", ends) if r.kind != "remainder"]
        assert (last.number, last.interval) == (own.text, own.interval)
        if elsewhere is not None:
            assert (first.number, first.interval) == (elsewhere.text, elsewhere.interval)
        moved = number(last.number) - number(first.number)
        assert sum(number(r.number) for r in effects) == pytest.approx(moved, abs=1e-6 * max(abs(moved), 1))


def test_an_effect_has_two_digits_where_the_total_can_have_as_many():
    total = Estimate(value=16186.0, unit="EUR", u_random=15.0)
    assert fmt.money.places(total, fmt.money.choose(total)) == -1
    assert least_places(bridge(16000.0, [186.0], measure="cost", unit="EUR"), total) == -1
    assert least_places(bridge(16182.8, [3.2], measure="cost", unit="EUR"), total) == 0
    assert least_places(bridge(16185.999, [0.001], measure="cost", unit="EUR"), total) == 0
    energy = Estimate(value=5612.0, unit="kWh", u_random=100.0)
    assert [least_places(bridge(5612.0 - x, [x]), energy) for x in (600.0, 60.0, 6.0)] == [2, 3, 4]


def test_an_effect_of_rounding_alone_is_no_row_and_a_remainder_has_its_own():
    found = rows(bridge(100.0, [10.0, 1e-14, 0.0, -2.0, 0.0], remainder=1e-13), ("a", "b"), "x")
    assert [r.name for r in found] == [
        "a",
        "volume of work",
        "energy per unit of work",
        "remainder (rounding)",
        "b",
    ]
    assert found[-2].number == "0"
    assert found[-2].figure_id == "x.remainder"
    assert rows(bridge(100.0, [10.0], remainder=0.5), ("a", "b"), "x")[-2].number == "5.0e-01 kWh"


def test_a_remainder_that_is_more_than_rounding_is_a_part_of_the_column():
    made = bridge(100.0, [10.0], remainder=5.0)
    made = msgspec.structs.replace(made, after=estimate(115.0), change=estimate(15.0))
    texts = [r.number for r in rows(made, ("a", "b"), "x")]
    assert texts == ["100\u00a0kWh", "+10\u00a0kWh", "+5\u00a0kWh", "115\u00a0kWh"]


def test_the_share_of_a_change_has_no_more_digits_than_the_change():
    assert change_text(bridge(4884.4, [364.3], u=38.0)) == "+370\u00a0kWh [290, 440], +7.5\u00a0%"


def test_the_change_stands_with_its_sign_and_share():
    assert change_text(bridge(100.0, [10.0])) == "+10\u00a0kWh, +10\u00a0%"
    assert "%" not in change_text(bridge(0.0, [10.0]))


@given(st.floats(-10, 1e6), st.lists(AMOUNTS, min_size=1, max_size=5))
def test_bars_fit_their_column_and_show_the_sign(before, changes):
    found = rows(bridge(before, changes), ("a", "b"), "x")
    for row, bar in zip(found, _bars(found), strict=True):
        assert len(bar) <= 23
        if row.kind == "effect":
            assert set(bar.strip()) == ({"+"} if row.end >= row.start else {"-"})
