"""Many contrasts at once give the figures of one at a time."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest
from msgspec.structs import replace

from carbonlens.compare import batch
from carbonlens.compare.contrast import contrast, log_change
from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.grouping import StepRuns, build_arm
from carbonlens.compare.lattice import main_effect_weights, shapley_weights
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.money import Money
from tests.compare.study_runs import rounds, run, vector

PLAYERS = "abcdef"
MEASURES = ("energy_j", "emissions_location_kg", "emissions_market_kg", "embodied_kg", "cost")


def arm(name, energies, **fields):
    runs = tuple(rounds(name, energies, **fields))
    group = StepRuns(step=name, on=None, variants=runs, failed=(), effort=(), all=runs)
    return build_arm(group, vector(), per_run=False)[0]


def lattice(**fields):
    rng = np.random.default_rng(11)
    return {
        frozenset(on): arm(
            "+".join(on) or "baseline",
            (100 * 0.8**size * np.exp(rng.normal(0, 0.01, 6))).tolist(),
            **{"u_relative": 0.2, "cpu_s": 3.0, **fields},
        )
        for size in range(len(PLAYERS) + 1)
        for on in combinations(PLAYERS, size)
    }


CELLS = lattice()
SHAPLEY = {p: shapley_weights(p, PLAYERS) for p in PLAYERS}
MAIN = {p: main_effect_weights(p, CELLS) for p in PLAYERS}


def terms(weights, cells):
    return [(w, cells[k]) for w, k in weights]


def alike(one, other):
    assert one.value == pytest.approx(other.value, rel=1e-9, abs=1e-15)
    assert one.u_random == pytest.approx(other.u_random, rel=1e-9)
    assert one.u_by_source == pytest.approx(other.u_by_source, rel=1e-9, abs=1e-15)
    assert (one.unit, one.state, one.grade, one.bounds) == (
        other.unit,
        other.state,
        other.grade,
        other.bounds,
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_contrasts_are_those_of_one_at_a_time(measure):
    many = batch.contrasts(SHAPLEY, CELLS)
    for player, weights in SHAPLEY.items():
        alike(getattr(many[player], measure), getattr(contrast(terms(weights, CELLS)), measure))


def test_log_changes_are_those_of_one_at_a_time():
    many = batch.log_changes(MAIN, CELLS)
    for player, weights in MAIN.items():
        one, other = many[player], log_change(terms(weights, CELLS))
        assert (one.over.mean, one.over.se, one.over.df) == pytest.approx(
            (other.over.mean, other.over.se, other.over.df)
        )
        assert one.u_common == pytest.approx(other.u_common, abs=1e-15)
        assert one.estimate.value == pytest.approx(other.estimate.value)
        assert [n for n, _ in one.rounds] == [n for n, _ in other.rounds]
        assert [v for _, v in one.rounds] == pytest.approx([v for _, v in other.rounds])


@pytest.mark.parametrize(
    "spoilt",
    [
        {"boundary": None},  # lower bounds: no figure of carbon is known
        {"cpu_s": None},
        {"source": "meter:other"},
    ],
)
def test_a_cell_unlike_the_others_gives_the_same_either_way(spoilt):
    full = frozenset(PLAYERS)
    cells = {
        **CELLS,
        full: arm("full", [20.0, 20.1, 19.9, 20.2, 20.0, 19.8], **{"u_relative": 0.2, **spoilt}),
    }
    many = batch.contrasts(SHAPLEY, cells)
    for measure in MEASURES:
        one = getattr(many["a"], measure)
        other = getattr(contrast(terms(SHAPLEY["a"], cells)), measure)
        if other.value is None:
            assert one == other
        else:
            alike(one, other)


@pytest.mark.parametrize("energies", [[1.0, 1.0, 1.0, 1.0, 1.0], [0.0] * 6])
def test_cells_without_common_rounds_or_logarithms_fall_back(energies):
    full = frozenset(PLAYERS)
    cells = {**CELLS, full: arm("full", energies)}
    many = batch.log_changes(MAIN, cells)["a"]
    assert many == log_change(terms(MAIN["a"], cells))


def test_a_disturbed_cell_marks_what_rests_on_it():
    cells = {**CELLS, frozenset("a"): replace(CELLS[frozenset("a")], is_disturbed=True)}
    some = {"a": MAIN["a"], "pair": [(1.0, frozenset()), (-1.0, frozenset("b"))]}
    changes = batch.log_changes(some, cells)
    assert (changes["a"].is_disturbed, changes["pair"].is_disturbed) == (True, False)


def test_the_parts_sum_to_the_whole():
    parts = batch.contrasts(SHAPLEY, CELLS).values()
    whole = contrast([(1.0, CELLS[frozenset()]), (-1.0, CELLS[frozenset(PLAYERS)])])
    assert math.fsum(p.energy_j.value for p in parts) == pytest.approx(whole.energy_j.value)


@pytest.mark.parametrize("what", ["cost", "width", "state", "grade"])
def test_what_one_cell_lacks_is_lacking_in_the_contrasts_with_it_alone(what):
    """A figure of one optimization says nothing of a contrast between others."""
    cells = {cell: replace(one) for cell, one in CELLS.items()}
    spoilt = cells[frozenset("ab")]
    cost = spoilt.series["cost"]
    changed = {
        "cost": replace(cost, mean=replace(cost.mean, value=None, state="unknown"), repeats=None, values=()),
        "width": replace(cost, mean=replace(cost.mean, bounds=(None, None))),
        "state": replace(cost, mean=replace(cost.mean, state="unbounded")),
        "grade": replace(cost, mean=replace(cost.mean, grade="E")),
    }[what]
    cells[frozenset("ab")] = replace(spoilt, series={**spoilt.series, "cost": changed})
    weights = {
        "with": SHAPLEY["a"],
        "without": [(w, c) for w, c in MAIN["c"] if not c >= frozenset("ab")],
        "beside": [(1.0, frozenset()), (-1.0, frozenset("c"))],
    }
    many = batch.contrasts(weights, cells)
    for name, terms_ in weights.items():
        one, other = many[name].cost, contrast(terms(terms_, cells)).cost
        assert (one.state, one.grade, one.bounds, one.value is None) == (
            other.state, other.grade, other.bounds, other.value is None,
        )  # fmt: skip
    assert many["beside"].cost.low is not None
    assert many["beside"].energy_j.low is not None


def test_one_missing_price_leaves_the_money_of_a_large_lattice_known_where_it_can_be():
    """One round of 384 states no cost: means are over the others, as in a small lattice."""

    def result(players):
        runs = [
            run(
                "+".join(on) or "baseline", 100.0 * 0.8**size * (1 + 0.001 * i), repeat=i, on=on,
                cost=None if (on, i) == (("a",), 2) else Money(Decimal(3 - size) + Decimal(i) / 100, "EUR"),
            )
            for size in range(len(players) + 1)
            for on in combinations(players, size)
            for i in range(1, 7)
        ]  # fmt: skip
        return compare_study(study_from_runs(runs), runs, Vector(), {})

    for players in ("ab", "abcdef"):
        steps = result(players).steps
        assert [s.attribution.cost.value for s in steps] == pytest.approx([1.0] * len(players), abs=0.01)
