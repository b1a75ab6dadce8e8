"""A run inside another run of its study is counted once: no round and no effort beside it."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.nested import with_near_parents
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Engineering, Step, Study
from carbonlens.errors import SelectionError
from tests.compare.study_runs import accuracy, rounds, run, vector

STUDY = Study(
    name="example", baseline="a", steps=(Step(name="prune"), Step(name="int8")), unit="image", margin=0.01
)
FROM_BASE = (Step(name="prune"), Step(name="int8", measured_on="a"))
VARIANTS = [*rounds("a", [10.0] * 6), *rounds("prune", [9.0] * 6), *rounds("int8", [8.0] * 6)]


def effort(step, joules, run_id, parent=None, role="effort"):
    return run(step, joules, repeat=None, units=None, role=role, run_id=run_id, parent_run_id=parent)


def compared(*more):
    return compare_study(STUDY, [*VARIANTS, *more], Vector(), {})


def finding(result, code="CL449"):
    return [f for f in result.findings if f.code == code]


@pytest.mark.parametrize(
    ("step", "role"), [("int8", "effort"), ("prune", "training"), ("int8", "training"), ("prune", "effort")]
)
def test_effort_inside_effort_counts_once(step, role):
    """Of another step, of another role, of both, of neither: the outer run holds its joules."""
    outer, inner = effort("prune", 2.944, "outer"), effort(step, 1.950, "inner", "outer", role)
    assert compared(outer, inner).accepted_effort.energy_j.value == pytest.approx(2.944)
    apart = compared(outer, effort(step, 1.950, "inner", None, role))
    assert apart.accepted_effort.energy_j.value == pytest.approx(4.894)


def test_effort_two_runs_deep_counts_once():
    deep = [effort("prune", 5.0, "x"), effort("int8", 3.0, "y", "x"), effort("prune", 2.0, "z", "y")]
    assert compared(*deep).accepted_effort.energy_j.value == pytest.approx(5.0)


def test_work_held_by_an_adopted_step_is_counted_there_and_one_held_by_a_rejected_step_on_its_own():
    inner = effort("int8", 1.0, "inner", "outer")
    held = compared(effort("prune", 3.0, "outer"), inner)
    assert held.accepted_effort.energy_j.state == "known"
    assert finding(held, "CL419") == []
    worse = [*rounds("a", [10.0] * 6), *rounds("prune", [12.0] * 6), *rounds("int8", [8.0] * 6)]
    runs = [*worse, effort("prune", 3.0, "outer"), inner]
    beside = compare_study(msgspec.structs.replace(STUDY, steps=FROM_BASE), runs, Vector(), {})
    assert beside.path == ("a", "int8")
    assert (beside.accepted_effort.energy_j.value, beside.accepted_effort.energy_j.state) == (1.0, "known")
    assert beside.rejected_effort.energy_j.value == 3.0
    assert finding(beside, "CL419") == []


@pytest.mark.parametrize("role", ["evaluation", "effort", "training", "serving"])
def test_a_measuring_run_inside_another_run_of_the_study_is_no_round(role):
    """As when a script that bench checks calls track with the names of the bench itself."""
    check = effort("int8", 50.0, "check", role=role)
    inner = run("int8", 4.0, repeat=1, run_id="inner", parent_run_id="check")
    assert compared(check, inner).steps[1].metrics.energy_by_round_j == (8.0,) * 6


def test_a_measuring_run_of_another_step_inside_one_is_said_aloud():
    found = compared(run("prune", 9.0, repeat=7, run_id="p7", parent_run_id="a-1-variant"))
    assert found.steps[0].metrics.energy_by_round_j == (9.0,) * 6
    assert [f.severity for f in finding(found)] == ["warning"]


def test_a_step_measured_only_inside_other_runs_is_refused_with_the_reason():
    runs = [r for r in VARIANTS if r.step != "int8"]
    inner = rounds("int8", [8.0] * 6, parent_run_id="outer")
    with pytest.raises(SelectionError, match="lie inside run outer"):
        compare_study(STUDY, [*runs, effort("prune", 99.0, "outer"), *inner], Vector(), {})


def test_runs_inside_a_run_of_no_step_are_rounds():
    around = effort(None, 999.0, "script", role="other")
    inside = [
        run(r.step, float(r.total_energy.value), repeat=r.repeat, parent_run_id="script") for r in VARIANTS
    ]
    result = compare_study(STUDY, [around, *inside], Vector(), {})
    assert result.steps[1].metrics.energy_by_round_j == (8.0,) * 6


def test_quality_recorded_inside_a_measured_run_stays_known():
    judged = run(
        "prune",
        None,
        role="evaluation",
        run_id="judge",
        parent_run_id="prune-1-variant",
        quality=(accuracy("pruned"),),
    )
    assert "accuracy" in compared(judged).steps[0].metrics.quality


def test_a_circle_of_parents_ends():
    ring = [effort("prune", 1.0, "x", "y"), effort("int8", 1.0, "y", "x")]
    assert compared(*ring).accepted_effort.energy_j.value == 2.0  # neither can hold the other


def test_a_parent_outside_the_study_and_a_corrected_parent_lead_to_the_run_around_both():
    outer = run("prune", 3.0, run_id="outer-2", role="effort", repeat=None, supersedes="outer")
    old = run("prune", 3.0, run_id="outer", role="effort", repeat=None)
    between = run("x", 1.0, run_id="between", study=None, parent_run_id="outer")
    inner = effort("int8", 1.0, "inner", "between")
    alone = effort("int8", 1.0, "alone", "elsewhere")
    near = with_near_parents([outer, inner, alone], [outer, old, between, inner, alone], {"outer": "outer-2"})
    assert [r.parent_run_id for r in near] == [None, "outer-2", "elsewhere"]


def test_effort_is_dropped_only_where_the_run_around_it_is_in_the_same_sum():
    worse = [*rounds("a", [10.0] * 6), *rounds("prune", [12.0] * 6), *rounds("int8", [8.0] * 6)]
    work = [effort("prune", 300.0, "o"), effort("int8", 200.0, "i", "o"), effort("int8", 1.0, "root")]
    found = compare_study(msgspec.structs.replace(STUDY, steps=FROM_BASE), [*worse, *work], Vector(), {})
    assert found.accepted_effort.energy_j.value == pytest.approx(201.0)
    assert found.rejected_effort.energy_j.value == pytest.approx(300.0)
    assert compared(*work).accepted_effort.energy_j.value == pytest.approx(301.0)


@pytest.mark.parametrize(("outer", "role"), [("int8-1-variant", None), ("o", "training")])
def test_effort_inside_a_measuring_run_or_in_making_the_baseline_is_counted(outer, role):
    around = [] if role is None else [effort("a", 100.0, "o", None, role)]
    found = compared(*around, effort("int8", 200.0, "i", outer), effort("prune", 1.0, "p"))
    assert found.accepted_effort.energy_j.value == pytest.approx(201.0)
    assert found.accepted_effort.energy_j.state == "known"
    assert finding(found, "CL419") == []


def test_effort_inside_effort_of_unknown_energy_is_a_lower_bound():
    found = compared(effort("prune", None, "o"), effort("int8", 200.0, "i", "o"))
    energy = found.accepted_effort.energy_j
    assert (energy.value, energy.state) == (200.0, "unbounded")


def test_hours_of_a_step_whose_work_lies_in_another_are_counted():
    hours = (Step(name="prune"), Step(name="int8", engineering_hours=2.0))
    study = msgspec.structs.replace(
        STUDY, steps=hours, engineering=Engineering(amount_per_hour=Decimal(50), currency="EUR", source="x")
    )
    runs = [*VARIANTS, effort("prune", 3.0, "o"), effort("int8", 2.0, "i", "o")]
    found = compare_study(study, runs, vector(), {}).accepted_effort
    assert found.energy_j.value == pytest.approx(3.0)
    assert found.cost.value >= 100.0


def test_a_failed_measuring_run_inside_another_run_fails_no_step():
    check = run("int8", 1.0, role="evaluation", run_id="ev")
    inner = run("int8", 8.0, repeat=1, run_id="n", parent_run_id="ev", status="failed", error="E")
    found = compared(check, inner)
    assert found.steps[1].status == "accepted"
    assert finding(found, "CL421") == []


def test_what_a_failed_run_inside_another_judged_is_not_used():
    judged = run(
        "prune",
        1.0,
        run_id="n",
        status="failed",
        error="E",
        parent_run_id="check",
        quality=(accuracy("pruned"),),
    )
    check = run("prune", 1.0, role="evaluation", run_id="check")
    assert "accuracy" not in compared(check, judged).steps[0].metrics.quality


def test_a_refused_step_is_not_among_those_to_choose():
    runs = [r for r in VARIANTS if r.step != "int8"]
    inner = rounds("int8", [8.0] * 6, parent_run_id="outer")
    with pytest.raises(SelectionError) as caught:
        compare_study(STUDY, [*runs, effort("prune", 99.0, "outer"), *inner], Vector(), {})
    assert "int8" not in caught.value.mend


@pytest.mark.parametrize("scripts", [1, 2])
@pytest.mark.parametrize("first", [True, False])
def test_a_run_around_all_steps_is_no_step_of_a_guessed_study(scripts, first):
    outer = [run("script", 500.0, repeat=None, units=None, run_id=f"s{i}") for i in range(scripts)]
    inner = [
        msgspec.structs.replace(r, parent_run_id=f"s{i % scripts}")
        for i, r in enumerate([*rounds("a", [10.0] * 6), *rounds("b", [9.0] * 6)])
    ]
    runs = [*outer, *inner] if first else [*inner, *outer]
    study = study_from_runs(runs, "example")
    assert (study.baseline, [s.name for s in study.steps]) == ("a", ["b"])
    result = compare_study(study, runs, Vector(), {})
    assert result.steps[0].decision == "adopt"
    told = finding(result, "CL423")[0]
    assert "script" in told.message
    assert "add the step" not in told.mend


def test_a_step_that_holds_one_other_is_not_dropped_in_silence():
    outer = rounds("a", [10.0] * 6)
    inner = [
        msgspec.structs.replace(r, parent_run_id=o.run_id)
        for r, o in zip(rounds("b", [4.0] * 6), outer, strict=True)
    ]
    assert study_from_runs([*outer, *inner], "example").baseline == "a"


def test_what_measured_a_run_is_around_it_whether_it_names_that_or_not():
    def timed(one, start, end, process, *above):
        given = {"start_us": start, "end_us": end, "host_id": "h", "ancestors": (*above, "init")}
        return msgspec.structs.replace(one, process=process, **given)

    block = timed(effort("prune", 5.0, "block"), 0, 10**8, "p")
    worker = timed(effort("prune", 1.0, "worker"), 10**7, 9 * 10**7, "w", "p")
    daemons = timed(effort("prune", 1.0, "rank", "block"), 10**7, 9 * 10**7, "r", "daemon")
    later = timed(effort("prune", 1.0, "later"), 2 * 10**8, 3 * 10**8, "w", "p")
    runs = [block, worker, daemons, later]
    near = with_near_parents(runs, runs, {})
    assert [r.parent_run_id for r in near] == [None, "block", None, None]
    assert compared(*near).accepted_effort.energy_j.value == pytest.approx(7.0)
    between = timed(effort("prune", 1.0, "between"), 10**7, 9 * 10**7, "b", "p")
    deep = timed(effort("prune", 1.0, "deep"), 2 * 10**7, 8 * 10**7, "d", "b", "p")
    (_, found) = with_near_parents([block, deep], [block, between, deep], {})
    assert found.parent_run_id == "block"


def inside(outers, *, units=1000.0, numbered=True):
    """Return six rounds of two steps, all of a step inside the run around its script."""
    inner = [
        run(
            name,
            joules * units if units else joules,
            repeat=i if numbered else None,
            units=units,
            unit="image" if units else None,
            run_id=f"{name}{i}",
            parent_run_id=f"{name}-script",
        )
        for name, joules in (("a", 10.0), ("prune", 9.0))
        for i in range(1, 7)
    ]
    return [*outers, *inner]


def around_a_script(**fields):
    made = {"repeat": None, "units": None, "unit": None, **fields}
    return [run(name, 99_000.0, run_id=f"{name}-script", **made) for name in ("a", "prune")]


@pytest.mark.parametrize(
    ("script", "rounds_in_it"),
    [
        ({}, {}),
        ({}, {"numbered": False}),
        ({"units": 6000.0, "unit": "image"}, {}),
        ({}, {"units": None}),
        ({"role": "other"}, {}),
    ],
)
def test_a_run_around_a_script_that_measures_its_own_rounds_hides_none_of_them(script, rounds_in_it):
    """``carbonlens run --step a -- script`` where the script calls ``track`` for each round of ``a``."""
    runs = inside(around_a_script(**script), **rounds_in_it)
    result = compare_study(study_from_runs(runs), runs, Vector(), {})
    assert result.steps[0].metrics.energy_by_round_j == pytest.approx((9.0,) * 6)
    assert result.steps[0].vs_previous.ratio.value == pytest.approx(0.9)
    assert len(finding(result)) == 2
    assert all("hold" in f.message for f in finding(result))


def test_a_failed_run_around_the_rounds_of_its_step_still_fails_it():
    runs = inside([*around_a_script()[:1], *around_a_script(status="failed", error="boom")[1:]])
    step = compare_study(study_from_runs(runs), runs, Vector(), {}).steps[0]
    assert (step.status, step.error) == ("failed", "boom")
    assert step.metrics.energy_by_round_j == pytest.approx((9.0,) * 6)


@pytest.mark.parametrize("script", [{"repeat": 1}, {"repeat": 1, "units": 6000.0}, {"units": 6000.0}])
def test_parts_of_a_counted_run_are_no_rounds(script):
    """Warm-up or batches inside a run that counts its own work, or has its own number."""
    fields = {"units": script.get("units"), "numbered": "units" not in script or "repeat" in script}
    if script.get("units") is None:
        fields["units"] = None
    runs = inside(around_a_script(unit="image" if script.get("units") else None, **script), **fields)
    result = compare_study(study_from_runs(runs), runs, Vector(), {})
    assert result.steps[0].metrics.energy_by_round_j == (99_000.0 / script.get("units", 1.0),)


@pytest.mark.parametrize("parts", [1, 3])
def test_rounds_numbered_by_the_run_around_a_counting_script_stay_pairs(parts):
    """``carbonlens run --repeat 3 --step a -- script`` where the script counts its units in ``track``."""
    drift = [1.0, 1.2, 0.9, 1.1, 1.3, 0.8]
    runs = []
    for name, joules in (("a", 10.0), ("prune", 9.0)):
        for number, level in enumerate(drift, start=1):
            frame = f"{name}-script-{number}"
            runs.append(run(name, 99.0, repeat=number, units=None, unit=None, run_id=frame))
            for part in range(parts):
                given = {"repeat": None, "units": 100.0, "run_id": f"{frame}-{part}", "parent_run_id": frame}
                runs.append(run(name, joules * level * 100.0, **given))
    step = compare_study(study_from_runs(runs), runs, Vector(), {}).steps[0]
    assert step.vs_previous.n_rounds == 6
    assert step.vs_previous.ratio.high - step.vs_previous.ratio.low < 1e-6
