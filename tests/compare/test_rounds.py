"""The order of arms in rounds, and what rounds say before a verdict."""

import math
from collections import Counter
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.compare.rounds import log_ratios, round_orders
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Conditions
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import rounds, run

STUDY = Study(name="example", baseline="a", steps=(Step(name="b"), Step(name="c")), unit="image")
BASE = (10.0, 11.0, 9.0, 10.5, 9.5, 10.0)


@given(st.integers(1, 9))
def test_every_pair_of_rounds_mirrors_itself_and_holds_each_arm_once(size):
    arms = [str(i) for i in range(size)]
    orders = list(islice(round_orders(arms), 2 * size))
    assert all(sorted(o) == arms for o in orders)
    assert all(second == first[::-1] for first, second in zip(orders[::2], orders[1::2], strict=True))


@given(st.integers(1, 9))
def test_places_and_neighbours_are_balanced(size):
    arms = [str(i) for i in range(size)]
    full = list(islice(round_orders(arms), 2 * size))
    places = Counter((place, a) for o in full for place, a in enumerate(o))
    assert set(places.values()) == {2}
    assert len(places) == size * size
    neighbours = Counter(pair for o in full for pair in pairwise(o))
    assert len(neighbours) == size * (size - 1)
    assert len(set(neighbours.values())) <= 1


def test_a_ratio_is_to_the_step_before():
    runs = [*rounds("a", BASE), *rounds("b", [e / 2 for e in BASE]), *rounds("c", [e / 3 for e in BASE])]
    found = log_ratios(STUDY, runs)
    assert found["b"] == pytest.approx([math.log(1 / 2)] * 6)
    assert found["c"] == pytest.approx([math.log(2 / 3)] * 6)


def test_the_rounds_are_those_of_the_verdict():
    runs = [*rounds("a", BASE), *rounds("b", [e / 2 for e in BASE]), *rounds("c", BASE[:5])]
    assert {len(v) for v in log_ratios(STUDY, runs).values()} == {5}


def test_a_disturbed_round_does_not_count():
    quiet = Conditions(wall_s=1.0, cpu_s=1.0)
    stolen = Conditions(wall_s=1.0, cpu_s=1.0, throttled_s=0.5)
    study = Study(name="example", baseline="a", steps=(Step(name="b"),), unit="image")
    runs = [run("a", e, repeat=i, conditions=quiet) for i, e in enumerate(BASE, 1)]
    runs += [run("b", e, repeat=i, conditions=stolen if i == 2 else quiet) for i, e in enumerate(BASE, 1)]
    assert len(log_ratios(study, runs)["b"]) == 5


def test_a_step_that_failed_is_absent_and_the_next_one_waits_for_no_reference():
    runs = [*rounds("a", BASE), *rounds("b", BASE), *rounds("c", BASE)]
    runs.append(run("b", None, repeat=7, status="failed"))
    assert set(log_ratios(STUDY, runs)) == set()


@given(st.lists(st.floats(1, 100), min_size=5, max_size=12))
def test_the_mean_is_that_of_the_comparison(energies):
    study = Study(name="example", baseline="a", steps=(Step(name="b"),), unit="image")
    runs = [*rounds("a", [50.0] * len(energies)), *rounds("b", energies)]
    values = log_ratios(study, runs)["b"]
    ratio = compare_study(study, runs, Vector(), {}).steps[0].vs_baseline.ratio.value
    assert math.fsum(values) / len(values) == pytest.approx(math.log(ratio), abs=1e-9)
