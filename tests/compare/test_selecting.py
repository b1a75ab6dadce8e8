"""Selectors: which runs of the ledger a study means."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from carbonlens.compare.selecting import matches, parse_selector, select_runs, with_combinations
from carbonlens.domain.study import Selector, Step, Study
from carbonlens.errors import SelectionError, UsageError
from tests.compare.study_runs import rounds, run

RUNS = [
    *rounds("x", [1.0, 2.0], study="old", tags={"precision": "fp32"}, zone="DE"),
    *rounds("y", [3.0, 4.0], study="new", tags={"precision": "int8"}, job_id="7"),
    *rounds("z", [5.0], study="new"),
]
STUDY = Study(name="new", baseline="fp32", steps=(Step(name="int8"),), unit="image")


def selected(baseline, step, **study):
    chosen = replace(STUDY, baseline_select=baseline, steps=(Step(name="int8", select=step),), **study)
    return {(r.step, r.study, r.run_id) for r in select_runs(chosen, RUNS)}


def test_runs_take_the_name_of_the_step_that_selects_them():
    found = selected(Selector(study="old"), Selector(tag={"precision": "int8"}))
    assert {(s, n) for s, n, i in found if i[0] in "xy"} == {("fp32", "new"), ("int8", "new")}


def test_a_steps_selector_looks_among_the_studys_runs_only():
    with pytest.raises(SelectionError, match="none has zone = 'DE'"):
        selected(Selector(zone="DE"), Selector(job="7"))
    everywhere = selected(Selector(zone="DE"), Selector(job="7"), select=Selector())
    assert {s for s, _, i in everywhere if i[0] == "x"} == {"fp32"}


def test_a_run_that_two_steps_select_is_refused():
    with pytest.raises(SelectionError, match="is selected by step 'fp32' and by 'int8'"):
        selected(Selector(study="new"), Selector(step="z"))


def test_a_selector_without_a_match_names_what_there_is():
    with pytest.raises(SelectionError, match=r"precision.*int4.*choose.*fp32, int8"):
        selected(Selector(tag={"precision": "int4"}), Selector(job="7"), select=Selector())
    with pytest.raises(SelectionError, match="all together none"):
        selected(Selector(zone="DE", job="7"), Selector(step="z"), select=Selector())


def test_matching_needs_everything_that_is_stated():
    one = run("a", 1.0, on=("P", "Q"), site="s", tags={"k": "v"})
    assert matches(Selector(on=("Q", "P"), site="s", tag={"k": "v"}), one)
    assert not matches(Selector(on=("Q",)), one)
    assert not matches(Selector(site="s", tag={"k": "w"}), one)
    assert matches(Selector(run=(one.run_id, "other")), one)


@pytest.mark.parametrize(
    ("text", "name", "selector"),
    [
        ("fp32:tag.p=fp32,zone=DE", "fp32", Selector(zone="DE", tag={"p": "fp32"})),
        ("step=x", "step=x", Selector(step="x")),
        ("on=P+Q", "on=P+Q", Selector(on=("P", "Q"))),
    ],
)
def test_selectors_are_spelled_as_key_value(text, name, selector):
    assert parse_selector(text) == (name, selector)


def test_a_plain_name_is_no_selector_and_an_unknown_key_is_an_error():
    assert parse_selector("int8: static") is None
    with pytest.raises(UsageError, match=r"tag\.NAME"):
        parse_selector("a:colour=red")


def test_a_lattices_steps_are_its_measured_combinations():
    runs = [run("+".join(c) or "baseline", 1.0, on=tuple(c)) for c in ("", "P", "PQ", "R")]
    study = Study(name="t", baseline="baseline", steps=(), unit="image", optimizations=("P", "Q"))
    assert [s.on for s in with_combinations(study, runs).steps] == [("P",), ("P", "Q")]
    with pytest.raises(SelectionError, match="no run has X on"):
        with_combinations(replace(study, optimizations=("P", "X")), runs)
    with pytest.raises(SelectionError, match="no baseline"):
        with_combinations(study, runs[1:])


@pytest.mark.parametrize("where", ["step", "baseline", "study"])
@pytest.mark.parametrize(
    ("named", "words"),
    [
        (("y-1-variant", "nosuch"), "not there: nosuch"),
        (("y-1-variant", "nosuch", "neither"), "not there: nosuch, neither"),
        (("y-1-variant", "z-1-variant"), "does not get all runs that it names: z-1-variant"),
    ],
)
def test_an_id_that_selects_nothing_is_named(where, named, words):
    selector = Selector(run=named, job="7" if "z-1-variant" in named else None)
    other = Selector(run=("x-1-variant",))
    how = {
        "step": ((other, selector), {}),
        "baseline": ((selector, other), {}),
        "study": ((other, Selector(run=("y-2-variant",))), {"select": selector}),
    }[where]
    with pytest.raises(SelectionError, match=words):
        selected(*how[0], **how[1])
