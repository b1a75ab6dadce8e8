"""Every figure of every kind of report says how it was made, of things that can be looked up."""

import pytest

from carbonlens.reporting.derivations import ArmRuns, derived
from carbonlens.reporting.view import build_view
from tests.reporting.golden import cases

CASES = cases()


def of(comparison):
    names = [comparison.study.baseline, *(s.step for s in comparison.steps)]
    arms = {n: ArmRuns(measured=(f"{n}-1", f"{n}-2"), effort=(f"{n}-e",)) for n in names}
    printed = build_view(comparison).figures
    return printed, derived({name: p.figure for name, p in printed.items()}, comparison, arms)


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
