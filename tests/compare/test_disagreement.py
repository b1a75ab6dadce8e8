"""Disagreement: verdict by ratios, saving by joules, and what is said where they differ."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from carbonlens.compare.disagreement import disagreements
from carbonlens.compare.study import compare_study
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import demo_comparison, rounds


def step(verdict, value, bounds):
    made = demo_comparison().steps[0]
    saved = Estimate(value=value, unit="J", signed=True, bounds=bounds)
    return replace(made, verdict=verdict, attribution=replace(made.attribution, energy_j=saved))


@pytest.mark.parametrize(
    ("verdict", "value", "bounds", "said"),
    [
        ("better", -2.0, (-3.0, -1.0), "costs"),
        ("better", -2.0, (-5.0, 1.0), "may cost"),
        ("better", -2.0, (None, None), "may cost"),
        ("better", 2.0, (1.0, 3.0), None),
        ("better", 0.0, (-1.0, 1.0), None),
        ("worse", 2.0, (1.0, 3.0), "saves"),
        ("worse", 2.0, (-1.0, 5.0), "may save"),
        ("worse", -2.0, (-3.0, -1.0), None),
        ("same", -2.0, (-3.0, -1.0), None),
        ("inconclusive", 2.0, (1.0, 3.0), None),
    ],
)
def test_what_joules_say_against_a_verdict(verdict, value, bounds, said):
    one = step(verdict, value, bounds)
    assert one.joules_say == said
    for mode in ("ladder", "lattice"):
        found = disagreements([one], mode)
        assert [f.subject for f in found] == ([one.step] if said else [])
        assert all(f.code == "CL444" and f" {said} energy" in f.message and f.mend for f in found)


def test_nothing_is_said_of_a_step_without_joules():
    one = step("better", -2.0, (-3.0, -1.0))
    assert replace(one, attribution=None, would_have=None).joules_say is None


def test_a_ladder_whose_rounds_lie_at_different_levels_is_said_too():
    """Half the energy in nine light rounds, a little more in a heavy one: ratios and sums differ."""
    before = [1.0 + 0.01 * i for i in range(9)] + [1000.0]
    after = [0.5 * e for e in before[:-1]] + [1010.0]
    study = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    result = compare_study(study, [*rounds("a", before), *rounds("b", after)], Vector(), {})
    (b,) = result.steps
    assert b.verdict == "better"
    assert b.joules_say == "may cost"
    (found,) = [f for f in result.findings if f.code == "CL444"]
    assert "different levels" in found.message
