"""A study made from runs alone."""

from __future__ import annotations

import pytest

from carbonlens.compare.from_runs import study_from_runs
from carbonlens.errors import SelectionError
from tests.compare.study_runs import demo_runs, rounds, run


def test_steps_stand_in_order_of_first_appearance():
    study = study_from_runs(demo_runs())
    assert study.baseline == "torch"
    assert [s.name for s in study.steps] == ["onnx", "pruned", "dynamic-int8", "static-int8"]
    assert (study.name, study.unit) == ("example", "image")


def test_a_chain_of_sets_stands_in_its_own_order():
    runs = [run("a+b", 5.0, on=("a", "b")), run("baseline", 10.0, on=()), run("a", 7.0, on=("a",))]
    study = study_from_runs(runs, "chain")
    assert (study.name, study.baseline) == ("chain", "baseline")
    assert [(s.name, s.on) for s in study.steps] == [("a", ("a",)), ("a+b", ("a", "b"))]


def test_a_set_is_the_same_in_any_order():
    runs = [run("baseline", 1.0, on=()), run("a+b", 1.0, on=("a", "b")), run("b+a", 1.0, on=("b", "a"))]
    assert [s.name for s in study_from_runs(runs).steps] == ["a+b"]


def test_runs_with_sets_only_are_named_after_them():
    runs = [run(None, 1.0, on=()), run(None, 1.0, on=("a", "b"))]
    study = study_from_runs(runs)
    assert (study.baseline, [s.name for s in study.steps]) == ("baseline", ["a+b"])


def test_a_named_step_keeps_its_name_beside_its_set():
    runs = [run("fp32", 1.0, on=()), run("int8", 1.0, on=("quantize",))]
    study = study_from_runs(runs)
    assert (study.baseline, study.steps[0].name, study.steps[0].on) == ("fp32", "int8", ("quantize",))


def test_effort_runs_are_no_steps():
    runs = [*rounds("a", [1.0]), run("b", 1.0, role="effort")]
    assert study_from_runs(runs).steps == ()


def test_units_without_a_name_and_runs_without_units():
    assert study_from_runs([run("a", 1.0, unit=None)]).unit == "unit"
    assert study_from_runs([run("a", 1.0, unit=None, units=None)]).unit == "run"


def test_sets_without_an_empty_one_have_no_baseline():
    with pytest.raises(SelectionError, match="no baseline"):
        study_from_runs([run("a", 1.0, on=("a",)), run("a+b", 1.0, on=("a", "b"))])


def test_runs_without_steps_are_refused():
    with pytest.raises(SelectionError, match="names a step"):
        study_from_runs([run(None, 1.0)])
