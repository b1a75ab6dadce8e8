"""Laws that hold for any study."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.compare.arms import MEASURES
from carbonlens.compare.study import compare_study
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import rounds, vector

NAMES = ("a", "b", "c", "d")
STUDY = Study(name="t", baseline="a", steps=tuple(Step(name=n) for n in NAMES[1:]), unit="image")
FLIPPED = {"better": "worse", "worse": "better", "same": "same", "inconclusive": "inconclusive"}

energies = st.lists(
    st.lists(st.floats(1.0, 10.0).map(lambda x: round(x, 4)), min_size=6, max_size=6), min_size=4, max_size=4
)
quick = settings(max_examples=40, deadline=None)


def runs_of(table, **fields):
    return [r for name, row in zip(NAMES, table, strict=True) for r in rounds(name, row, **fields)]


def compared(table, study=STUDY, **fields):
    return compare_study(study, runs_of(table, **fields), vector(), {})


def falling(table):
    """Let every step halve the one before, so that it is accepted."""
    return [[x * 0.02 + 10.0 / 2**i for x in row] for i, row in enumerate(table)]


def told(effect):
    return replace(effect, drift_per_round=None, drift_p=None, outlier_rounds=())


@quick
@given(table=energies)
def test_attributions_sum_to_the_total(table):
    result = compared(falling(table), u_relative=0.3, cpu_s=2.0)
    assert result.path == NAMES
    for measure in MEASURES:
        parts = [getattr(s.attribution, measure) for s in result.steps]
        whole = getattr(result.total, measure)
        assert math.fsum(p.value for p in parts) == whole.value
        assert set(whole.u_by_source) == {name for p in parts for name in p.u_by_source}
        for name, u in whole.u_by_source.items():
            assert math.fsum(p.u_by_source.get(name, 0.0) for p in parts) == u


@quick
@given(table=energies)
def test_swapping_the_arms_flips_signs(table):
    ab = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    ba = Study(name="t", baseline="b", steps=(Step(name="a"),), unit="image")
    one, other = (compared(table, study, u_relative=1e-9).steps[0] for study in (ab, ba))
    assert math.log(one.vs_previous.ratio.value) == pytest.approx(
        -math.log(other.vs_previous.ratio.value), abs=1e-12
    )
    assert one.vs_previous.ratio.low == pytest.approx(1 / other.vs_previous.ratio.high)
    assert one.savings.energy_j.value == -other.savings.energy_j.value
    assert one.savings.energy_j.low == pytest.approx(-other.savings.energy_j.high)
    assert FLIPPED[one.verdict] == other.verdict


@quick
@given(
    table=energies, units=st.sampled_from([1e-6, 1e-3, 64, 1e6]), scale=st.sampled_from([1e-3, 3.6e3, 3.6e6])
)
def test_units_do_not_change_verdicts(table, units, scale):
    plain = compared(table)
    other = compared([[x * scale for x in row] for row in table], units=units)
    assert [s.verdict for s in plain.steps] == [s.verdict for s in other.steps]
    assert [s.decision for s in plain.steps] == [s.decision for s in other.steps]
    for one, two in zip(plain.steps, other.steps, strict=True):
        assert one.vs_previous.ratio.value == pytest.approx(two.vs_previous.ratio.value)


@quick
@given(table=energies, order=st.permutations(range(6)))
def test_permuting_the_rounds_changes_nothing(table, order):
    plain = compared(table)
    other = compared([[row[i] for i in order] for row in table])
    for one, two in zip(plain.steps, other.steps, strict=True):
        # Drift and outliers are told by the number of the round, so they move with it.
        assert told(one.vs_previous) == told(two.vs_previous)
        assert one.savings == two.savings


@quick
@given(row=energies.map(lambda t: t[0]), u=st.sampled_from([0.0, 0.3]))
def test_an_identical_step_is_the_same(row, u):
    step = compared([row] * 4, u_relative=u).steps[0]
    assert step.vs_previous.ratio.value == 1.0
    assert (step.verdict, step.decision) == ("same", "reject")
    assert step.savings.energy_j.value == 0.0


@quick
@given(table=energies)
def test_every_known_interval_holds_its_value(table):
    result = compared(table, u_relative=0.3, cpu_s=2.0)
    for step in result.steps:
        for measure in MEASURES:
            estimate = getattr(step.savings, measure)
            assert estimate.low <= estimate.value <= estimate.high
        ratio = step.vs_previous.ratio
        assert ratio.low <= ratio.value <= ratio.high
