"""Plans: which combinations, how many rounds, in which order, and what time they take."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
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


@pytest.mark.parametrize(("n", "budget"), [(5, 900), (6, 7200), (8, 7200)])
def test_beyond_them_the_combinations_on_drawn_orders_are_run(n, budget):
    made = plan(wish(n, budget_s=budget))
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


def test_orders_that_pass_every_combination_are_a_full_lattice():
    made = plan(wish(5))
    assert (made.mode, len(made.cells), made.orders) == ("lattice", 32, ())


def test_the_rounds_find_the_wanted_effect():
    made = plan(wish(2, effect=0.005, cv=0.01, margin=0.001))
    assert made.finds_effect
    assert made.detectable <= 0.005 < detectable(2, made.rounds - 1, 0.01, margin=0.001)
    # 95 % simultaneous over two steps, 80 % power, two pairs a round.
    df = made.rounds - 1
    reach = stats.t.ppf(1 - 0.05 / 4, df) + stats.t.ppf(0.8, df)
    assert made.detectable == pytest.approx(reach * 0.01 * (2 / made.rounds / 2) ** 0.5, rel=0.02)


def test_an_effect_that_no_plan_finds_is_told():
    made = plan(wish(2, effect=0.001, cv=0.5))
    assert (made.rounds, made.finds_effect) == (200, False)
    # Within the margin more rounds do not help: the verdict is the more surely "same".
    made = plan(wish(1, effect=0.005))
    assert not made.finds_effect
    assert 0.005 < made.detectable < detectable(1, 200, 0.01)
    assert plan(wish(1, effect=0.005, margin=0.002)).finds_effect
    assert not plan(wish(3, rounds=5, cv=0.1)).finds_effect


@pytest.mark.parametrize(
    ("n", "budget", "rounds", "cv"),
    [
        (1, None, None, 0.02),
        (2, None, None, 0.02),
        (3, None, None, 0.02),
        (4, None, None, 0.02),
        (6, 3600.0, None, 0.02),
        (1, None, 60, 0.02),  # the margin of 1 % asks for more than the interval does
        (3, None, 20, 0.01),
    ],
)
def test_the_printed_effect_is_found_in_eight_of_ten_simulated_studies(n, budget, rounds, cv):
    made = plan(wish(n, budget_s=budget, rounds=rounds, cv=cv, effect=0.02))
    cells = [frozenset(c) for c in made.cells]
    # The step with the fewest pairs is what the plan vouches for.
    pairs, step = min(
        (([(c, c | {s}) for c in cells if s not in c and c | {s} in cells], s) for s in made.steps),
        key=lambda found: len(found[0]),
    )
    rng = np.random.default_rng(7)
    place = {c: i for i, c in enumerate(cells)}
    logs = rng.normal(0.0, made.cv, (4000, made.rounds, len(cells)))
    logs += [math.log1p(-made.detectable) * (step in c) for c in cells]
    changes = sum(logs[:, :, place[on]] - logs[:, :, place[off]] for off, on in pairs) / len(pairs)
    half = stats.t.ppf(1 - 0.05 / n / 2, made.rounds - 1) * changes.std(axis=1, ddof=1)
    mean, se = changes.mean(axis=1), changes.std(axis=1, ddof=1) / math.sqrt(made.rounds)
    close = np.abs(mean) + stats.t.ppf(0.95, made.rounds - 1) * se
    found = (mean + half / math.sqrt(made.rounds) < 0) & (close > math.log1p(0.01))
    # Central t in place of the noncentral is a little off at five rounds.
    assert 0.76 <= found.mean() <= 0.86


def test_a_plan_is_the_same_each_time():
    assert plan(wish(6, budget_s=3600)) == plan(wish(6, budget_s=3600))


@pytest.mark.parametrize(
    "bad",
    [
        wish(0),
        wish(MOST_STEPS + 1),
        Wish(steps=("a", "a")),
        *(
            Wish(steps=("ok", name))
            for name in ("", " a", "a ", "a\nb", "a+b", "a > b", "a>b", "a,b", "baseline", "a\x1b[31m")
        ),
        wish(2, budget_s=86_400 * 367.0),
        wish(2, run_s=86_401.0),
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
