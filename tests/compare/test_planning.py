"""Plans: which combinations, how many rounds, in which order, and what time they take."""

from __future__ import annotations

from itertools import pairwise

import pytest
from scipy import stats

from carbonlens.compare.orders import prefixes
from carbonlens.compare.planning import LEAST_RUN_S, MOST_STEPS, Wish, detectable, plan
from carbonlens.errors import UsageError


def wish(n, **fields):
    return Wish(steps=tuple(f"s{i}" for i in range(n)), **fields)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_up_to_four_steps_every_combination_is_run(n):
    made = plan(wish(n, budget_s=7200))
    assert (made.mode, len(set(made.cells)), made.orders) == ("lattice", 2**n, ())
    assert made.cells[0] == ()


@pytest.mark.parametrize("n", [5, 6, 8])
def test_beyond_them_the_combinations_on_drawn_orders_are_run(n):
    made = plan(wish(n, budget_s=7200))
    assert made.mode == "orders"
    assert len(made.orders) >= 6
    assert all(a == b[::-1] for a, b in list(pairwise(made.orders))[::2])
    on_orders = {c for o in made.orders for c in prefixes(o)}
    assert {frozenset(c) for c in made.cells} == on_orders
    assert len(made.cells) == len(on_orders)


def test_every_round_runs_every_combination_and_every_second_is_the_reverse():
    made = plan(wish(3, rounds=7))
    assert all(sorted(order) == list(range(8)) for order in made.schedule)
    assert len(made.schedule) == 7
    assert all(b == a[::-1] for a, b in list(pairwise(made.schedule))[::2])
    assert len(set(made.schedule[::2])) > 1


def test_a_linear_drift_cancels_over_a_pair_of_rounds():
    made = plan(wish(3, rounds=6))
    places = dict.fromkeys(range(8), 0)
    for number, order in enumerate(made.schedule):
        for place, cell in enumerate(order):
            places[cell] += number * 8 + place
    assert len(set(places.values())) == 1


def test_a_budget_is_kept_and_more_of_it_gives_longer_runs_or_more_orders():
    for n in (2, 4, 6):
        short, long = plan(wish(n, budget_s=3600)), plan(wish(n, budget_s=4 * 3600))
        assert short.fits
        assert short.total_s <= 3600
        assert (long.run_s, len(long.orders)) >= (short.run_s, len(short.orders))


def test_what_does_not_fit_says_so_and_keeps_the_rounds_that_a_verdict_needs():
    made = plan(wish(4, budget_s=60))
    assert (made.fits, made.rounds, made.run_s) == (False, 5, LEAST_RUN_S)


def test_the_rounds_find_the_wanted_effect():
    made = plan(wish(2, effect=0.01, cv=0.01))
    assert made.detectable <= 0.01 < detectable(2, made.rounds - 1, 0.01)
    # 95 % simultaneous over two steps, 80 % power.
    df = made.rounds - 1
    reach = stats.t.ppf(1 - 0.05 / 4, df) + stats.t.ppf(0.8, df)
    assert made.detectable == pytest.approx(reach * 0.01 * (2 / made.rounds) ** 0.5, rel=0.02)


def test_a_plan_is_the_same_each_time():
    assert plan(wish(6, budget_s=3600)) == plan(wish(6, budget_s=3600))


@pytest.mark.parametrize(
    "bad",
    [
        wish(0),
        wish(MOST_STEPS + 1),
        Wish(steps=("a", "a")),
        wish(2, rounds=4),
        wish(2, cv=0.0),
        wish(2, effect=1.0),
        wish(2, budget_s=0.0),
        wish(2, run_s=float("inf")),
    ],
)
def test_impossible_wishes_are_refused(bad):
    with pytest.raises(UsageError):
        plan(bad)
