"""Every figure of every kind of report says how it was made, of things that can be looked up."""

import math

import pytest

from carbonlens.reporting.comparison_figures import COUNT, PER_UNIT, every_figure
from carbonlens.reporting.derivations import ArmRuns, derived
from carbonlens.reporting.view import build_view
from tests.reporting.golden import cases

CASES = cases()
NOTHING_COUNTED = ()


def of(comparison):
    names = [comparison.study.baseline, *(s.step for s in comparison.steps)]
    arms = {n: ArmRuns(measured=(f"{n}-1", f"{n}-2"), effort=(f"{n}-e",)) for n in names}
    printed = build_view(comparison).figures
    return printed, derived({name: p.figure for name, p in printed.items()}, comparison, arms)


def every(comparison):
    names = [comparison.study.baseline, *(s.step for s in comparison.steps)]
    arms = {n: ArmRuns(measured=(f"{n}-1", f"{n}-2"), effort=(f"{n}-e",)) for n in names}
    return {f.figure_id: f for f in derived(every_figure(comparison), comparison, arms)}


@pytest.mark.parametrize("name", CASES)
def test_what_a_formula_says_of_its_inputs_gives_the_figure(name):
    """Inputs are of the same count of units as the figure, or the count is one of them."""
    figures = every(CASES[name])
    values = {i: f.estimate.value for i, f in figures.items()}
    checked = 0
    for figure_id, figure in figures.items():
        ends = [values.get(i) for i in figure.inputs]
        if values[figure_id] is None or None in ends:
            continue
        if " - " in figure.formula and len(ends) == 2 and not figure.formula.startswith(("1 -", "ratio")):
            expected = ends[0] - ends[1]
        elif figure.formula.startswith("energy_per_unit"):
            expected = math.prod(ends)
        elif figure.formula.startswith("effort / saving"):
            expected = ends[0] / ends[1]
        elif figure.formula.startswith("saving of the accepted path / volume"):
            expected = ends[0] / ends[1] * math.prod(ends[2:])
        elif figure.formula in ("that of the last accepted step", "saving of the accepted path"):
            (expected,) = ends
        else:
            continue
        checked += 1
        size = max(abs(e) for e in ends)
        assert values[figure_id] == pytest.approx(expected, rel=1e-6, abs=1e-9 * size), figure_id
    assert checked or name in NOTHING_COUNTED, name


@pytest.mark.parametrize("name", CASES)
def test_an_amount_is_that_of_one_unit_times_the_count_that_is_named(name):
    figures = every(CASES[name])
    for figure_id in [i for i in figures if i.endswith(PER_UNIT)]:
        whole, one = (figures[i].estimate for i in (figure_id.removesuffix(PER_UNIT), figure_id))
        if one.value is not None:
            assert whole.value == pytest.approx(one.value * figures[COUNT].estimate.value)
        assert figures[figure_id].label != figures[figure_id.removesuffix(PER_UNIT)].label


@pytest.mark.parametrize("name", CASES)
def test_each_printed_figure_has_a_formula_and_inputs_that_exist(name):
    printed, figures = of(CASES[name])
    known = {f.figure_id for f in figures}
    for figure in figures:
        if figure.figure_id in printed:
            assert figure.formula, figure.figure_id
            assert figure.inputs, figure.figure_id
        for given in figure.inputs:
            assert given in known or given.startswith(("run:", "study:")), (figure.figure_id, given)


def test_values_are_those_of_the_report():
    printed, figures = of(CASES["demo_from_runs"])
    values = {f.figure_id: f.estimate for f in figures}
    assert all(values[name] == p.figure.estimate for name, p in printed.items())


def test_no_figure_rests_on_itself():
    for comparison in CASES.values():
        _, figures = of(comparison)
        inputs = {f.figure_id: f.inputs for f in figures}

        def below(name, above, inputs=inputs):
            assert name not in above, (name, above)
            for given in inputs.get(name, ()):
                below(given, (*above, name))

        for name in inputs:
            below(name, ())


def test_energy_per_unit_rests_on_the_runs_of_its_arm():
    comparison = CASES["demo_from_runs"]
    figures = {f.figure_id: f for f in of(comparison)[1]}
    assert figures["step.torch.energy_per_unit"].inputs == ("run:torch-1", "run:torch-2")
    cost = figures["baseline.cost"]
    assert {"baseline.energy", "assumption.pue", "assumption.electricity_price"} <= set(cost.inputs)
