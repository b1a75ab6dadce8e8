"""Attribution along a ladder: parts telescope, pairing narrows, common errors stay."""

from __future__ import annotations

import math

import pytest

from carbonlens.compare.arms import MEASURES
from carbonlens.compare.contrast import saving
from carbonlens.compare.ladder import ladder, references
from carbonlens.compare.statistics import paired
from carbonlens.domain.study import Step, Study
from carbonlens.domain.units import J_PER_KWH
from carbonlens.errors import ConfigError, SelectionError
from tests.compare.study_runs import demo_comparison, vector
from tests.compare.test_effects import BASE, arm, shifted


@pytest.mark.parametrize(
    ("measured_kwh", "saved", "total"),
    [((100, 70, 56, 42), (30, 14, 14), 58), ((100, 90, 95, 60), (10, -5, 35), 40)],
    ids=["attr/waterfall-1", "attr/waterfall-3-regression"],
)
def test_golden_waterfalls(measured_kwh, saved, total):
    arms = [arm(str(i), [kwh * float(J_PER_KWH)]) for i, kwh in enumerate(measured_kwh)]
    parts, whole = ladder(arms)
    assert [p.energy_j.value / J_PER_KWH for p in parts] == pytest.approx(saved, rel=1e-12)
    assert whole.energy_j.value / J_PER_KWH == pytest.approx(total, rel=1e-12)
    # One run has no scatter, so the change has no interval.
    assert (whole.energy_j.low, whole.energy_j.high) == (None, None)


def test_parts_sum_to_the_total_with_their_signed_sources():
    result = demo_comparison()
    parts = [s.attribution for s in result.steps if s.attribution is not None]
    assert len(parts) == 3
    for measure in MEASURES:
        whole = getattr(result.total, measure)
        estimates = [getattr(p, measure) for p in parts]
        assert math.fsum(e.value for e in estimates) == whole.value
        assert set(whole.u_by_source) == {name for e in estimates for name in e.u_by_source}
        for name, u in whole.u_by_source.items():
            assert math.fsum(e.u_by_source.get(name, 0.0) for e in estimates) == u
        before, after = (getattr(a, measure).value for a in (result.baseline_amounts, result.final_amounts))
        assert whole.value == pytest.approx(before - after, rel=1e-12)


def test_a_saving_pairs_its_rounds_by_a_t_interval():
    step, reference = arm("s", shifted(0.5), u_relative=1e-9), arm("r", BASE, u_relative=1e-9)
    saved = saving(reference, step).energy_j
    over = paired([(1.0, BASE), (-1.0, shifted(0.5))])
    assert saved.value == pytest.approx(over.mean)
    assert saved.high - saved.value == pytest.approx(over.half_width(0.95))
    # Drift is common to both arms, so the difference is surer than either.
    assert saved.u_random < reference.series["energy_j"].mean.u_random


def test_a_common_error_is_proportional_and_stays_in_the_saving():
    saved = saving(arm("r", BASE, u_relative=0.3), arm("s", shifted(0.5), u_relative=0.3)).energy_j
    assert saved.u_by_source == pytest.approx({"cpu_model:example": 0.3 * saved.value})


def test_device_energy_saves_joules_but_no_known_emissions():
    result = demo_comparison()
    assert result.total.emissions_location_kg.state == "known"
    from carbonlens.compare.grouping import StepRuns, build_arm
    from tests.compare.study_runs import rounds

    arms = []
    for name, energies in (("r", BASE), ("s", shifted(0.5))):
        runs = tuple(rounds(name, energies, boundary="device"))
        group = StepRuns(step=name, on=None, variants=runs, failed=(), effort=(), all=runs)
        arms.append(build_arm(group, vector(), per_run=False)[0])
    saved = saving(*arms)
    assert saved.energy_j.state == "known"
    assert saved.emissions_location_kg.state == "unknown"
    assert (saved.emissions_location_kg.low, saved.emissions_location_kg.high) == (None, None)


def test_a_path_without_steps_saves_exactly_nothing():
    parts, whole = ladder([arm("r", BASE)])
    assert parts == ()
    assert (whole.energy_j.value, whole.energy_j.low, whole.energy_j.high) == (0.0, 0.0, 0.0)


def study(*steps: Step) -> Study:
    return Study(name="t", baseline="base", steps=steps, unit="image")


def test_a_step_is_measured_on_the_preceding_one_unless_stated():
    chain = study(Step(name="a"), Step(name="b"), Step(name="c", measured_on="a"))
    assert references(chain) == {"a": "base", "b": "a", "c": "a"}


def test_a_chain_of_sets_is_ordered_by_inclusion():
    steps = study(Step(name="ab", on=("a", "b")), Step(name="a", on=("a",)))
    assert references(steps) == {"a": "base", "ab": "a"}


def test_unknown_and_circular_references_are_refused():
    with pytest.raises(SelectionError, match="does not name"):
        references(study(Step(name="a", measured_on="nowhere")))
    with pytest.raises(ConfigError, match="itself"):
        references(study(Step(name="a", measured_on="b"), Step(name="b", measured_on="a")))


@pytest.mark.parametrize("names", [("a", "a"), ("base",), ("a", "base")])
def test_a_name_that_stands_twice_is_refused(names):
    with pytest.raises(ConfigError, match="named twice"):
        references(study(*(Step(name=n) for n in names)))


def test_each_step_states_what_it_uses_itself():
    result = demo_comparison()
    for step in result.steps:
        if step.savings is not None:
            used = result.baseline_amounts.energy_j.value - step.savings.energy_j.value
            assert step.amounts.energy_j.value == pytest.approx(used)
            assert step.amounts.emissions_location_kg.value > 0


@pytest.mark.parametrize(
    ("sets", "baseline_on", "words"),
    [
        ("p q p", (), "same optimizations"),
        ("p p", (), "same optimizations"),
        ("- q p", (), "same optimizations"),  # a step of nothing beside the baseline
        ("q pq", ("p",), "does not hold what is on"),  # no cell with all off
    ],
)
def test_sets_that_are_no_chain_are_no_ladder_by_fallback(sets, baseline_on, words):
    steps = [Step(name=f"s{i}", on=tuple(s.strip("-"))) for i, s in enumerate(sets.split())]
    with pytest.raises(ConfigError, match=words) as caught:
        references(study(*steps), baseline_on)
    assert "measured_on" in str(caught.value)


def test_a_study_that_says_what_each_step_is_measured_on_is_a_ladder_whatever_its_sets():
    steps = [Step(name=n, on=("p",), measured_on="base") for n in ("a", "b")]
    assert references(study(*steps)) == {"a": "base", "b": "base"}


def test_a_set_beside_a_stated_reference_still_needs_its_order():
    steps = study(
        Step(name="p1", on=("p",)), Step(name="q", on=("q",)), Step(name="p2", on=("p",), measured_on="base")
    )
    with pytest.raises(ConfigError, match="'p1' and 'p2' have the same"):
        references(steps)
