"""Planning: which combinations to run, in which rounds and order, within a time.

Up to four steps every combination is run, so that Shapley values are exact. Beyond,
orders are drawn at random in antithetic pairs, and only the combinations on them
are run: an unbiased estimate, with an interval from three pairs on. Where they pass
every combination, the values are exact again.

The verdict on an optimization is over all pairs of combinations with and without it,
so what a design finds depends on how many pairs a round holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final, Literal

import msgspec

from carbonlens.compare.arms import ROUNDS_NEEDED
from carbonlens.compare.effects import Rule
from carbonlens.compare.from_runs import joined
from carbonlens.compare.orders import PAIRS_NEEDED, SEED, Order, antithetic_orders, prefixes
from carbonlens.compare.statistics import Sample
from carbonlens.domain.counting import counted
from carbonlens.errors import UsageError

FULL_LATTICE_UP_TO: Final = 4
MOST_STEPS: Final = 20
LEAST_RUN_S: Final = 10.0
"""Shorter runs are ruled by the sensor's lag and the edges of its window (a board's
power is read over 0.1 to 1 s)."""

SETTLE_S: Final = 2.0
"""Between runs, for the sensor to come to rest and the process to start."""

_MOST_PAIRS: Final = 12
_MOST_ROUNDS: Final = 200
_LONGEST_RUN_S: Final = 86_400.0
_LARGEST_BUDGET_S: Final = 366 * 86_400.0

Cell = frozenset[str]
Mode = Literal["lattice", "orders"]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The runs to make.

    Attributes:
        steps: Optimizations, in the order given.
        mode: All combinations, or those on drawn orders.
        cells: Combinations to run, each in the order of ``steps``; none first.
        orders: Drawn orders, each followed by its reverse; empty where every
            combination is run.
        orders_possible: n! for n steps.
        rounds: How often each combination is run.
        schedule: Per round, places in ``cells`` in the order to run them.
        run_s: Seconds of work of one run.
        settle_s: Seconds between runs.
        total_s: Time of all of it.
        budget_s: Time there is; ``None`` without one.
        fits: Whether the whole is within the budget.
        detectable: Change that this design finds with 80 % power, at ``cv``.
        effect: Change that it should find.
        finds_effect: Whether it does.
        cv: Scatter of one run, relative, that the plan counts on.
        margin: Relative change that the verdict will regard as none.
    """

    steps: tuple[str, ...]
    mode: Mode
    cells: tuple[tuple[str, ...], ...]
    orders: tuple[Order, ...]
    orders_possible: int
    rounds: int
    schedule: tuple[tuple[int, ...], ...]
    run_s: float
    settle_s: float
    total_s: float
    budget_s: float | None
    fits: bool
    detectable: float
    effect: float
    finds_effect: bool
    cv: float
    margin: float


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan should do.

    Attributes:
        steps: Names of the optimizations.
        budget_s: Time there is; the plan takes what it needs when ``None``.
        run_s: Seconds of work of one run; chosen to fit when ``None``.
        rounds: Rounds; chosen when ``None``.
        effect: Smallest relative change to be found with 80 % power.
        cv: Scatter of one run, relative.
        margin: Relative change that the verdict will regard as none.
        seed: Of the draws.
    """

    steps: tuple[str, ...]
    budget_s: float | None = None
    run_s: float | None = None
    rounds: int | None = None
    effect: float = 0.03
    cv: float = 0.01
    margin: float = 0.01
    seed: int = SEED


def plan(wish: Wish) -> Plan:
    """Return the runs to make.

    More rounds come before longer runs, longer runs before more orders: a verdict
    needs rounds, and one run less lag.

    Args:
        wish: Steps and time.

    Raises:
        UsageError: If a value is impossible.
    """
    _refuse(wish)
    n = len(wish.steps)
    orders = _orders_within(wish) if n > FULL_LATTICE_UP_TO else ()
    drawn = _on_orders(orders)
    if not orders or len(drawn) == 2**n:
        every = [frozenset(c) for size in range(n + 1) for c in combinations(wish.steps, size)]
        return _made(wish, "lattice", every, ())
    return _made(wish, "orders", sorted(drawn, key=lambda c: (len(c), _spelled(c, wish))), orders)


def detectable(n_steps: int, rounds: int, cv: float, pairs: int | None = None, margin: float = 0.01) -> float:
    """Return the relative saving that a design finds with 80 % power.

    It is found where the verdict calls it better: more rounds tell a change within
    the margin the more surely to be none. A difference of two runs of one round
    scatters by ``cv * sqrt(2)``, and the mean over pairs that have no run in common
    by the root of their number less; intervals are simultaneous over the steps.

    Args:
        n_steps: Steps tested together.
        rounds: Complete rounds.
        cv: Scatter of one run, relative.
        pairs: Pairs of combinations with and without a step, a round; those of a
            full lattice when ``None``.
        margin: Relative change regarded as none.
    """
    per_round = 2 ** (n_steps - 1) if pairs is None else pairs
    se = cv * math.sqrt(2 / per_round / rounds)
    over = Sample(mean=0.0, se=se, df=rounds - 1, n=rounds)
    return -math.expm1(-(Rule(tests=n_steps, margin=margin).detectable_log(over) or 0.0))


def _refuse(wish: Wish) -> None:
    n = len(wish.steps)
    if not 1 <= n <= MOST_STEPS:
        raise UsageError(f"{counted(n, 'step')} to plan", mend=f"plan 1 to {MOST_STEPS} steps")
    for name in wish.steps:
        _refuse_name(name)
    if len(set(wish.steps)) < n:
        raise UsageError("a step stands twice", mend="plan each step once, under its own name")
    if wish.rounds is not None and not ROUNDS_NEEDED <= wish.rounds <= _MOST_ROUNDS:
        raise UsageError(
            counted(wish.rounds, "round"),
            mend=f"plan {ROUNDS_NEEDED} to {_MOST_ROUNDS}: fewer give no verdict",
        )
    for option, value in (("--effect", wish.effect), ("--cv", wish.cv), ("--margin", wish.margin)):
        if not 0 < value < 1:
            raise UsageError(f"{option} is {value}", mend="give a share between 0 and 1: 0.03 is 3 %")
    times = (
        ("--budget", wish.budget_s, _LARGEST_BUDGET_S, "366 days"),
        ("--run", wish.run_s, _LONGEST_RUN_S, "1 day"),
    )
    for option, seconds, most, words in times:
        if seconds is not None and not 0 < seconds <= most:
            raise UsageError(
                f"{option} is {seconds:g} s",
                mend=f"give a time above 0 and up to {words}, for example 2h or 90s",
            )


def _refuse_name(name: str) -> None:
    """Refuse a name under which the runs, or the orders in the study file, could not be found again."""
    mend = "use a plain name, such as int8 or batch-8"
    if not name or name != name.strip() or not name.isprintable():
        raise UsageError(
            f"step name {name!r} is empty, begins or ends with a blank, or holds a line break", mend=mend
        )
    taken = next((mark for mark in "+>," if mark in name), None)
    if taken is not None:
        raise UsageError(
            f"step name {name!r} holds {taken!r}, which separates names of combinations and orders", mend=mend
        )
    if name == joined(()):
        raise UsageError(f"step name {name!r} is that of the run with no step on", mend=mend)


def _pairs(sets: Sequence[Cell], steps: Sequence[str]) -> int:
    """Return how many pairs with and without a step a round holds, for the step that has fewest."""
    there = set(sets)
    return min(sum(s not in cell and cell | {s} in there for cell in sets) for s in steps)


def _rounds_for(wish: Wish, pairs: int) -> int:
    """Return the fewest rounds that find the wanted effect, else those that find the smallest."""
    n, counts = len(wish.steps), range(ROUNDS_NEEDED, _MOST_ROUNDS + 1)
    reach = {r: detectable(n, r, wish.cv, pairs, wish.margin) for r in counts}
    return next((r for r, least in reach.items() if least <= wish.effect), min(reach, key=reach.__getitem__))


def _on_orders(orders: Sequence[Order]) -> list[Cell]:
    return list(dict.fromkeys(c for o in orders for c in prefixes(o)))


def _orders_within(wish: Wish) -> tuple[Order, ...]:
    """Return as many pairs of orders as the budget has time for, at least three."""
    n = len(wish.steps)
    most = min(_MOST_PAIRS, math.factorial(n) // 2)
    run_s = wish.run_s or LEAST_RUN_S
    found = antithetic_orders(wish.steps, PAIRS_NEEDED, wish.seed)
    rounds = wish.rounds or _rounds_for(wish, _pairs(_on_orders(found), wish.steps))
    for pairs in range(PAIRS_NEEDED + 1, most + 1):
        longer = antithetic_orders(wish.steps, pairs, wish.seed)
        cells = len(_on_orders(longer))
        if wish.budget_s is not None and cells * rounds * (run_s + SETTLE_S) > wish.budget_s:
            break
        found = longer
    return found


def _made(wish: Wish, mode: Mode, sets: Sequence[Cell], orders: tuple[Order, ...]) -> Plan:
    pairs = _pairs(sets, wish.steps)
    rounds = wish.rounds or _rounds_for(wish, pairs)
    if wish.rounds is None and wish.budget_s is not None:
        # What does not fit is measured less often, but never too seldom for a verdict.
        room_for = math.floor(wish.budget_s / len(sets) / ((wish.run_s or LEAST_RUN_S) + SETTLE_S))
        rounds = min(rounds, max(ROUNDS_NEEDED, room_for))
    runs = len(sets) * rounds
    run_s = wish.run_s
    if run_s is None:
        room = math.inf if wish.budget_s is None else wish.budget_s / runs - SETTLE_S
        # Without a budget the shortest that a sensor bears; with one, up to a minute of what there is.
        run_s = LEAST_RUN_S if room == math.inf else float(math.floor(min(60.0, max(LEAST_RUN_S, room))))
    total = runs * (run_s + SETTLE_S)
    found = detectable(len(wish.steps), rounds, wish.cv, pairs, wish.margin)
    return Plan(
        steps=wish.steps,
        mode=mode,
        cells=tuple(tuple(s for s in wish.steps if s in cell) for cell in sets),
        orders=orders,
        orders_possible=math.factorial(len(wish.steps)),
        rounds=rounds,
        schedule=_schedule(len(sets), rounds, wish.seed),
        run_s=run_s,
        settle_s=SETTLE_S,
        total_s=total,
        budget_s=wish.budget_s,
        fits=wish.budget_s is None or total <= wish.budget_s,
        detectable=found,
        effect=wish.effect,
        finds_effect=found <= wish.effect,
        cv=wish.cv,
        margin=wish.margin,
    )


def _schedule(cells: int, rounds: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Return the order of each round: drawn at random, every second the reverse of the one before.

    In such a pair every combination has the same mean place, so a linear drift
    within it cancels (ABBA).
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    made: list[tuple[int, ...]] = []
    while len(made) < rounds:
        order = tuple(int(i) for i in rng.permutation(cells))
        made += [order, order[::-1]]
    return tuple(made[:rounds])


def _spelled(cell: Cell, wish: Wish) -> tuple[int, ...]:
    return tuple(wish.steps.index(s) for s in wish.steps if s in cell)
