"""Laws of the decomposition: it leaves nothing, turns with time, adds up, knows zeros and negatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.compare.drivers import decompose, log_mean
from carbonlens.compare.drivers_bridge import (
    Beside,
    Cell,
    Side,
    Totals,
    bridge,
    closes,
    is_comparable,
    nothing,
)
from carbonlens.compare.drivers_errors import FactorError, moved
from carbonlens.compare.drivers_names import alike, changes, joined, with_other_kind
from carbonlens.compare.drivers_rates import rate_of
from carbonlens.domain.drivers import NO_UNIT
from carbonlens.domain.estimate import Estimate, add

POSITIVE = st.floats(1e-6, 1e6)
COUNT = 5


def tables(values=POSITIVE, rows=4):
    """Return two tables of factors by rows."""
    cells = st.lists(values, min_size=COUNT * rows, max_size=COUNT * rows)
    return st.tuples(cells, cells).map(lambda two: [np.array(t).reshape(COUNT, rows) for t in two])


def effects(split, count=COUNT):
    return np.stack([split.effect(k) for k in range(count)])


def scale_of(before, after):
    return max(abs(before.prod(axis=0)).max(), abs(after.prod(axis=0)).max())


def kwh(value, u=0.0, source="sensor", **fields):
    return Estimate(value=value, unit="kWh", u_by_source={source: u} if u else {}, **fields)


def side(units, it, pue=1.25, u=0.0, source="sensor"):
    energy = kwh(it, u * it, source)
    return Side(
        units=units, it_kwh=energy, facility_kwh=energy.scale(pue, "kWh"), amount=energy.scale(pue, "kWh")
    )


def totals(cells, unit="kWh", beside=()):
    ends = []
    for name in ("before", "after"):
        held = [getattr(c, name).amount for c in cells if getattr(c, name) is not None]
        ends.append(add([*held, *(getattr(b, name) for b in beside)], unit) if held else nothing(unit))
    return Totals(before=ends[0], after=ends[1], beside=tuple(beside))


def change_of(made, name):
    return next(e.change for e in made.effects if e.name == name)


@given(tables())
def test_nothing_is_left(two):
    before, after = two
    left = after.prod(axis=0) - before.prod(axis=0) - effects(decompose(before, after)).sum(axis=0)
    assert abs(left).max() <= 1e-12 * scale_of(before, after)


@given(tables(st.one_of(st.just(0.0), POSITIVE)))
def test_nothing_is_left_with_zeros_and_nothing_is_no_number(two):
    before, after = two
    found = effects(decompose(before, after))
    assert np.isfinite(found).all()
    left = after.prod(axis=0) - before.prod(axis=0) - found.sum(axis=0)
    assert abs(left).max() <= 1e-12 * max(scale_of(before, after), 1e-300)


@given(tables(st.one_of(st.just(0.0), POSITIVE)))
def test_time_reversal_turns_the_sign_alone(two):
    before, after = two
    there, back = effects(decompose(before, after)), effects(decompose(after, before))
    assert there == pytest.approx(-back, abs=1e-12 * max(scale_of(before, after), 1e-300))


@given(tables(), st.integers(0, COUNT - 1), st.floats(1e-3, 1e3))
def test_units_of_a_factor_do_not_matter(two, k, scale):
    """Scale invariance: volume in thousands and energy per thousand give the same effects."""
    before, after = two
    other = (k + 1) % COUNT
    scaled = [t.copy() for t in two]
    for table in scaled:
        table[k] *= scale
        table[other] /= scale
    plain, moved_ = effects(decompose(before, after)), effects(decompose(*scaled))
    assert moved_ == pytest.approx(plain, abs=1e-9 * scale_of(before, after))


@given(tables(), st.integers(0, COUNT - 1))
def test_what_does_not_change_has_exactly_no_effect(two, k):
    before, after = two
    after[k] = before[k]
    assert (decompose(before, after).effect(k) == 0).all()


@given(tables(st.floats(-1e3, 1e3).filter(lambda x: abs(x) > 1e-3)))
def test_negative_values_are_split_by_shapley_values_that_leave_nothing(two):
    before, after = two
    before[0, 0] = -abs(before[0, 0])
    split = decompose(before, after)
    assert split.method == "shapley"
    left = after.prod(axis=0) - before.prod(axis=0) - effects(split).sum(axis=0)
    assert abs(left).max() <= 1e-9 * scale_of(before, after)
    back = effects(decompose(after, before))
    assert effects(split) == pytest.approx(-back, abs=1e-9 * scale_of(before, after))


def test_shapley_of_two_factors_is_the_mean_of_both_orders():
    before, after = np.array([[2.0], [-3.0]]), np.array([[5.0], [7.0]])
    split = decompose(before, after)
    first = ((5 - 2) * -3.0 + (5 - 2) * 7.0) / 2
    assert split.effect(0)[0] == pytest.approx(first)
    assert split.effect(1)[0] == pytest.approx(5 * 7 - 2 * -3 - first)


@given(POSITIVE, POSITIVE)
def test_the_logarithmic_mean_lies_between_both_and_is_symmetric(a, b):
    found = float(log_mean(np.array(a), np.array(b)))
    assert min(a, b) * (1 - 1e-12) <= found <= max(a, b) * (1 + 1e-12)
    assert found == pytest.approx(float(log_mean(np.array(b), np.array(a))), rel=1e-12)
    assert float(log_mean(np.array(a), np.array(a))) == a


@pytest.mark.parametrize("small", [1e-10, 1e-15, 1e-20])
def test_zeros_have_the_limit_that_small_values_lead_to(small):
    """Ang & Liu 2007: replace by a small value and let it vanish; two zeros share alike."""
    before = np.array([[4.0, 4.0], [0.0, 0.0], [3.0, 0.0]])
    after = np.array([[4.0, 8.0], [2.0, 2.0], [3.0, 3.0]])
    exact = effects(decompose(before, after), 3)
    assert exact[:, 0] == pytest.approx([0.0, 24.0, 0.0])
    assert exact[:, 1] == pytest.approx([0.0, 24.0, 24.0])
    near = effects(decompose(np.where(before == 0, small, before), after), 3)
    # The limit is reached as slowly as a logarithm is.
    assert near == pytest.approx(exact, abs=48 * 2 / abs(math.log(small)))


def test_a_factor_that_does_not_exist_without_work_is_taken_as_unchanged():
    before = np.array([[100.0], [0.0], [math.nan]])
    after = np.array([[200.0], [0.5], [3.0]])
    assert effects(decompose(before, after), 3)[:, 0] == pytest.approx([0.0, 300.0, 0.0])


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["lmdi", "shapley"])
@pytest.mark.parametrize("near", [1.0 + 1e-9, 1.5])
def test_slopes_are_those_of_differences(sign, near):
    rng = np.random.default_rng(7)
    before = rng.uniform(0.2, 4.0, (COUNT, 3))
    after = before * rng.uniform(1.0, near, (COUNT, 3))
    after[1, 2] = 0.0
    before[0, 0] *= sign
    step = 1e-5
    for j in range(COUNT):
        for t in range(2):
            both = []
            for turn in (step, -step):
                table = [before.copy(), after.copy()]
                table[t][j] *= math.exp(turn)
                both.append(effects(decompose(*table)))
            wanted = (both[0] - both[1]) / (2 * step)
            split = decompose(before, after)
            found = np.stack([s.copy() for s in split.slopes(j, t, np.ones(3))])
            assert found == pytest.approx(wanted, abs=1e-7 * scale_of(before, after))


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["lmdi", "shapley"])
def test_slopes_of_some_rows_are_those_of_all(sign):
    rng = np.random.default_rng(11)
    before, after = rng.uniform(0.2, 4.0, (2, COUNT, 9))
    before[0] *= sign
    after[1, 4] = 0.0
    split, rows, weights = decompose(before, after), np.array([1, 4, 4, 8]), np.array([1.0, -2.0, 0.5, 3.0])
    for j in range(COUNT):
        for t in range(2):
            every = [s.copy() for s in split.slopes(j, t, np.ones(9))]
            some = [s.copy() for s in split.slopes(j, t, weights, rows)]
            for k in range(COUNT):
                assert some[k] == pytest.approx(every[k][rows] * weights, rel=1e-12, abs=1e-15)


def test_an_error_that_both_periods_share_cancels_and_another_does_not():
    """A gain of 5 % on both sides moves each effect by 5 % of it; on one side by the whole mean."""
    before, after = np.array([[10.0], [2.0]]), np.array([[20.0], [2.0]])
    row = np.array([0])

    def error(source):
        return FactorError(np.zeros(1), row, np.array([source]), np.array([0.05]), np.zeros(1, bool))

    shared = moved(before, after, {(1, 0): error(0), (1, 1): error(0)}, row, (1, 1))
    apart = moved(before, after, {(1, 0): error(0), (1, 1): error(1)}, row, (1, 2))
    together = shared.estimate(0, [0], ["gain"], "kWh")
    assert together.u_total == pytest.approx(0.05 * 20.0)
    assert shared.estimate(1, [0], ["gain"], "kWh").u_total == pytest.approx(0.0, abs=1e-12)
    mean = float(log_mean(np.array(40.0), np.array(20.0)))
    assert apart.estimate(1, [0], ["a", "b"], "kWh").u_total == pytest.approx(0.05 * mean * 2**0.5)


def test_blocks_of_rows_give_what_all_rows_at_once_do():
    """More rows than a block, with errors in some rows only, against plain sums of slopes."""
    rng = np.random.default_rng(3)
    count = 40_000
    before, after = rng.uniform(0.5, 2.0, (2, count)), rng.uniform(0.5, 2.0, (2, count))
    rows = np.arange(0, count, 3)
    group, sources = rng.integers(0, 4, count), rng.integers(0, 2, len(rows))
    random, wide = np.full(count, 0.01), np.zeros(count, bool)
    wide[-1] = True
    error = FactorError(random, rows, sources, np.full(len(rows), 0.02), wide)
    found = moved(before, after, {(1, 1): error}, group, (4, 2))
    split = decompose(before, after)
    slopes = [s.copy() for s in split.slopes(1, 1, np.ones(count))]
    for k, slope in enumerate(slopes):
        for g in range(4):
            mine = group == g
            assert found.values[k, g] == pytest.approx(split.effect(k)[mine].sum())
            assert found.variances[k, g] == pytest.approx(((slope * random)[mine] ** 2).sum())
            for s in range(2):
                held = rows[(sources == s) & mine[rows]]
                assert found.by_source[k, g, s] == pytest.approx(0.02 * slope[held].sum())
    assert found.wide.sum() == 2
    assert found.wide[:, group[-1]].all()


def test_one_negative_row_among_blocks_is_split_as_all_others_are():
    before = np.full((2, 40_000), 2.0)
    before[0, -1] = -1.0
    after = np.full((2, 40_000), 3.0)
    found = moved(before, after, {}, np.zeros(40_000, np.intp), (1, 0))
    assert found.method == "shapley"
    assert found.values.sum() == pytest.approx(after.prod(axis=0).sum() - before.prod(axis=0).sum())


def two_units():
    return [
        Cell(
            unit="token",
            name="chat",
            site="b",
            before=side(100.0, 50.0, u=0.03),
            after=side(150.0, 60.0, u=0.03),
        ),
        Cell(unit="token", name="sum", site="b", before=side(50.0, 40.0), after=side(25.0, 21.0)),
        Cell(unit="request", name="rank", site="b", before=side(10.0, 5.0), after=side(30.0, 16.0, pue=1.2)),
    ]


def test_effects_add_up_over_units_whose_volumes_are_never_added():
    cells = two_units()
    made = bridge(cells, totals(cells), "energy")
    assert closes(made)
    alone = [
        bridge(own, totals(own), "energy")
        for own in ([c for c in cells if c.unit == u] for u in ("token", "request"))
    ]
    for name in ("volume", "mix", "place", "energy", "pue"):
        whole = change_of(made, name)
        parts = [change_of(one, name) for one in alone]
        assert whole.value == pytest.approx(sum(p.value for p in parts))
        assert whole.u_by_source == pytest.approx(add(parts, "kWh").u_by_source)
    scaled = [
        Cell(
            unit=c.unit,
            name=c.name,
            site=c.site,
            before=side(c.before.units * 1e6, c.before.it_kwh.value),
            after=side(c.after.units * 1e6, c.after.it_kwh.value),
        )
        if c.unit == "request"
        else c
        for c in cells
    ]
    told = bridge(scaled, totals(scaled), "energy")
    assert change_of(told, "volume").value == pytest.approx(change_of(made, "volume").value, rel=0.05)


def test_units_and_classes_sum_to_the_bridge():
    cells = two_units()
    made = bridge(cells, totals(cells), "energy")
    for name in ("volume", "mix", "energy", "pue"):
        whole = change_of(made, name)
        for parts in (made.parts, made.classes):
            assert sum(change_of(p, name).value for p in parts) == pytest.approx(whole.value)
    assert made.parts[0].volumes == (150.0, 175.0)


def test_the_change_of_a_shared_meter_is_surer_than_both_totals():
    cells = two_units()
    made = bridge(cells, totals(cells), "energy")
    assert made.change.u_total < made.before.u_total
    whole = add([e.change for e in made.effects], "kWh")
    assert whole.u_by_source == pytest.approx(made.change.u_by_source)


def test_new_and_gone_work_is_a_matter_of_mix_and_a_new_unit_one_of_volume():
    cells = [
        Cell(unit="token", name="chat", site="b", before=side(100.0, 50.0), after=side(100.0, 50.0)),
        Cell(unit="token", name="new", site="b", before=None, after=side(20.0, 10.0)),
        Cell(unit="image", name="draw", site="b", before=None, after=side(5.0, 8.0)),
    ]
    made = bridge(cells, totals(cells), "energy")
    assert closes(made)
    by_unit = {p.unit: p for p in made.parts}
    assert change_of(by_unit["image"], "volume").value == pytest.approx(10.0)
    assert change_of(made, "energy").value == pytest.approx(0.0, abs=1e-12)
    of_new = next(c for c in made.classes if c.name == "new")
    assert change_of(of_new, "mix").value == pytest.approx(12.5)
    kinds = {(c.name, c.kind) for c in changes(cells)}
    assert kinds == {("new", "new"), ("draw", "new")}


def test_work_that_moves_to_another_site_is_a_matter_of_place():
    cells = [
        Cell(unit="token", name="chat", site="b", before=side(100.0, 50.0), after=side(40.0, 20.0)),
        Cell(unit="token", name="chat", site="p", before=None, after=side(60.0, 30.0)),
    ]
    made = bridge(cells, totals(cells), "energy")
    assert change_of(made, "place").value == pytest.approx(0.0, abs=1e-9)
    for name in ("volume", "mix", "energy"):
        assert change_of(made, name).value == pytest.approx(0.0, abs=1e-9)


def test_runs_that_count_no_work_have_a_line_of_their_own():
    cells = [
        *two_units(),
        Cell(unit=NO_UNIT, name="tune", site="b", before=side(None, 10.0), after=side(None, 30.0, pue=1.0)),
    ]
    made = bridge(cells, totals(cells), "energy")
    assert closes(made)
    plain = bridge(two_units(), totals(two_units()), "energy")
    assert change_of(made, "energy").value == pytest.approx(change_of(plain, "energy").value)
    own = next(p for p in made.parts if p.unit == NO_UNIT)
    assert {e.name for e in own.effects} == {"uncounted", "pue"}
    assert sum(e.change.value for e in own.effects) == pytest.approx(30.0 - 12.5)


def test_what_is_known_in_one_period_only_has_a_line_and_no_driver():
    cells = two_units()
    odd = Cell(
        unit="token",
        name="odd",
        site="b",
        before=side(10.0, 8.0),
        after=Side(units=10.0, it_kwh=kwh(8.0), facility_kwh=kwh(8.0, state="unbounded"), amount=kwh(8.0)),
    )
    every = [*cells, odd]
    assert not is_comparable(odd, is_least=False)
    ends = totals(cells)
    ends = Totals(before=add([ends.before, odd.before.amount], "kWh"), after=ends.after)
    made = bridge(every, ends, "energy")
    assert change_of(made, "basis").value == pytest.approx(-10.0)
    assert closes(made)


def test_lines_beside_the_drivers_close_the_bridge():
    cells = two_units()
    meters = Beside(name="unattributed", before=kwh(7.0), after=kwh(3.0))
    made = bridge(cells, totals(cells, beside=(meters,)), "energy")
    assert change_of(made, "unattributed").value == pytest.approx(-4.0)
    assert closes(made)


def test_a_total_that_its_rows_do_not_make_does_not_close():
    cells = two_units()
    ends = totals(cells)
    made = bridge(cells, Totals(before=ends.before, after=ends.after.scale(1.01, "kWh")), "energy")
    assert not closes(made)
    assert made.remainder == pytest.approx(ends.after.value * 0.01)


def test_no_rows_at_all_give_a_bridge_of_what_stands_beside_them():
    meters = Beside(name="unattributed", before=kwh(7.0), after=kwh(3.0))
    made = bridge([], Totals(before=kwh(7.0), after=kwh(3.0), beside=(meters,)), "energy")
    assert closes(made)
    assert [e.change.value for e in made.effects] == [0.0] * 5 + [-4.0]


def test_lower_bounds_stand_apart_and_their_changes_read_as_of_known_parts():
    least = Side(units=4.0, it_kwh=kwh(8.0), facility_kwh=kwh(8.0, state="unbounded"), amount=kwh(8.0))
    cells = [Cell(unit="token", name="a", site="b", before=least, after=least)]
    made = bridge(cells, Totals(before=least.facility_kwh, after=least.facility_kwh), "energy", is_least=True)
    assert made.change.state == "unbounded"
    assert {e.change.state for e in made.effects} == {"unbounded"}
    assert made.key == "energy.at_least"


def test_a_width_that_nobody_knows_is_not_made_up():
    wide = kwh(50.0, bounds=(None, None))
    odd = Side(units=100.0, it_kwh=wide, facility_kwh=wide, amount=wide)
    cells = [*two_units(), Cell(unit="token", name="odd", site="b", before=odd, after=side(100.0, 60.0))]
    made = bridge(cells, totals(cells), "energy")
    assert change_of(made, "energy").low is None
    assert made.change.low is None


def test_renamed_work_is_one_where_that_is_stated_and_told_where_it_seems_so():
    before = {("token", "old", "b"): side(100.0, 50.0), ("token", "chat", "b"): side(10.0, 5.0)}
    after = {("token", "new", "b"): side(100.0, 45.0), ("token", "chat", "b"): side(10.0, 5.0)}
    cells = joined(before, after)
    found = changes(cells)
    assert {(c.kind, c.name) for c in found} == {("vanished", "old"), ("new", "new")}
    marks = {("token", "old"): frozenset({"model m"})}, {("token", "new"): frozenset({"model m"})}
    (pair,) = alike(found, *marks)
    assert (pair.name, pair.to, pair.evidence) == ("old", "new", "model m")
    assert alike(found, {}, {}) == ()
    one = joined(before, after, {"old": "new"})
    (told,) = changes(one, {"old": "new"})
    assert (told.kind, told.name, told.to) == ("retagged", "old", "new")
    made = bridge(one, totals(one), "energy")
    assert change_of(made, "mix").value == pytest.approx(0.0, abs=1e-9)
    assert change_of(made, "energy").value == pytest.approx(-5.0 * 1.25)


def test_work_that_begins_to_be_counted_is_told_once():
    cells = joined({(NO_UNIT, "chat", "b"): side(None, 5.0)}, {("token", "chat", "b"): side(10.0, 5.0)})
    (told,) = changes(cells)
    assert (told.kind, told.unit, told.name) == ("counting_began", "token", "chat")
    back = joined({("token", "chat", "b"): side(10.0, 5.0)}, {(NO_UNIT, "chat", "b"): side(None, 5.0)})
    assert [c.kind for c in changes(back)] == ["counting_ended"]


def test_a_row_that_became_a_lower_bound_did_not_end():
    true = joined({("token", "chat", "b"): side(10.0, 5.0)}, {})
    least = joined({}, {("token", "chat", "b"): side(10.0, 6.0)})
    (cell,) = with_other_kind(true, least)
    assert cell.after == least[0].after


def test_a_rate_has_its_own_error_alone():
    energy = kwh(100.0, 5.0)
    kg = Estimate(value=40.0, unit="kg", u_by_source={"sensor": 2.0, "factor": 4.0})
    rate = rate_of(kg, energy)
    assert rate.value == pytest.approx(0.4)
    assert rate.u_by_source == pytest.approx({"factor": 0.04})
    assert rate_of(kg, kwh(0.0)).value is None
