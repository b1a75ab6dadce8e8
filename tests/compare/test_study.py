"""Whole studies: from runs to decision and break-even."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.money import Money
from carbonlens.domain.run import Quality, Reading
from carbonlens.domain.study import Gate, Step, Study
from carbonlens.errors import ConfigError, SelectionError
from tests.compare.study_runs import (
    demo_comparison,
    demo_outcomes,
    demo_runs,
    demo_study,
    rounds,
    run,
    vector,
)

STUDY = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
A = [1.00, 1.02, 0.98, 1.01, 0.99]
B = [0.51, 0.50, 0.49, 0.50, 0.50]


def codes(result):
    return {f.code for f in result.findings}


def by_name(result):
    return {s.step: s for s in result.steps}


def test_the_demo_ladder():
    result = demo_comparison()
    steps = by_name(result)
    assert result.path == ("torch", "onnx", "pruned", "static-int8")
    assert (result.mode, result.basis) == ("ladder", "volume")
    assert [s.status for s in result.steps] == ["accepted", "accepted", "rejected", "accepted"]
    assert steps["dynamic-int8"].attribution is None
    assert steps["dynamic-int8"].would_have.energy_j.value < 0
    assert steps["dynamic-int8"].savings.energy_j.value > 0
    assert steps["static-int8"].measured_on == "pruned"
    assert {b.outcome for b in result.break_even} == {"reached"}
    assert result.interaction_j is None


def test_ratios_are_narrow_and_joules_wide_where_energy_is_modelled():
    step = by_name(demo_comparison())["onnx"]
    ratio, saved = step.vs_previous.ratio, step.savings.energy_j
    assert (ratio.high - ratio.low) / ratio.value < 0.03
    assert (saved.high - saved.low) / saved.value > 1.0
    assert saved.grade == "D"


def test_volume_multiplies_amounts_but_not_effort_nor_break_even():
    volume, unit = demo_comparison(), demo_comparison(volume_units=None)
    assert unit.basis == "per_unit"
    assert volume.total.energy_j.value == pytest.approx(1e9 * unit.total.energy_j.value)
    assert volume.total.energy_j.high == pytest.approx(1e9 * unit.total.energy_j.high)
    assert volume.accepted_effort == unit.accepted_effort
    assert [b.units for b in volume.break_even] == [b.units for b in unit.break_even]
    assert all(b.days.value == pytest.approx(b.units.value * 365.2425 / 1e9) for b in volume.break_even)


def test_effort_is_split_into_baseline_accepted_and_rejected():
    result = demo_comparison()
    assert result.baseline_effort.energy_j.value == pytest.approx(12.0 * 9)
    assert result.accepted_effort.energy_j.value == pytest.approx((0.2 + 9.0 + 1.5) * 9)
    assert result.rejected_effort.energy_j.value == pytest.approx(0.3 * 9)
    saved = demo_comparison(volume_units=None).total.energy_j.value
    assert result.break_even[0].units.value == pytest.approx(10.7 * 9 / saved)


def test_a_step_without_recorded_effort_makes_break_even_a_lower_bound():
    runs = [r for r in demo_runs() if not (r.role == "effort" and r.step == "onnx")]
    result = compare_study(demo_study(), runs, vector(), demo_outcomes())
    assert result.accepted_effort.energy_j.state == "unbounded"
    assert {b.outcome for b in result.break_even} == {"may_never"}
    assert any(f.code == "CL419" and "onnx" in f.message for f in result.findings)


def test_a_failed_step_leaves_the_others_standing():
    result = demo_comparison(failed=["pruned"])
    steps = by_name(result)
    assert (steps["pruned"].status, steps["pruned"].error) == ("failed", "ValueError: example")
    assert (steps["pruned"].savings, steps["pruned"].metrics) == (None, None)
    assert steps["onnx"].status == "accepted"
    assert (steps["static-int8"].status, steps["static-int8"].reason) == ("undetermined", "rests_on")
    assert result.path == ("torch", "onnx")
    assert any(f.code == "CL411" and f.severity == "error" for f in result.findings)


def test_a_step_that_only_failed_while_being_made():
    runs = [r for r in demo_runs() if r.step != "static-int8"]
    runs.append(run("static-int8", 1.0, role="effort", status="failed", error="RuntimeError: no kernel"))
    result = compare_study(demo_study(), runs, vector(), demo_outcomes())
    assert by_name(result)["static-int8"].error == "RuntimeError: no kernel"


def test_a_step_measured_on_a_rejected_one_is_not_accepted():
    steps = tuple(replace(s, measured_on=None) for s in demo_study().steps)
    result = demo_comparison(steps=steps)
    last = by_name(result)["static-int8"]
    assert last.verdict == "better"
    assert (last.decision, last.reason) == ("undetermined", "rests_on")
    assert last.attribution is None


def test_accepted_alternatives_are_not_summed():
    study = Study(
        name="t", baseline="a", steps=(Step(name="b"), Step(name="c", measured_on="a")), unit="image"
    )
    runs = [*rounds("a", A), *rounds("b", B), *rounds("c", [0.8 * x for x in A])]
    result = compare_study(study, runs, Vector(), {})
    assert [s.status for s in result.steps] == ["accepted", "accepted"]
    assert result.path == ("a", "b")
    assert by_name(result)["c"].attribution is None
    assert "CL412" in codes(result)


def test_a_study_without_steps_saves_exactly_nothing():
    result = compare_study(replace(STUDY, steps=()), rounds("a", A), Vector(), {})
    assert (result.path, result.total.energy_j.value, result.break_even) == (("a",), 0.0, ())


@pytest.mark.parametrize("missing", ["a", "b"])
def test_a_missing_arm_is_named(missing):
    runs = [r for r in [*rounds("a", A), *rounds("b", B)] if r.step != missing]
    with pytest.raises(SelectionError, match=f"'{missing}' has no measured run") as caught:
        compare_study(STUDY, runs, Vector(), {})
    assert "choose among the measured" in caught.value.mend


def test_a_baseline_without_energy_is_refused():
    with pytest.raises(SelectionError, match="usable energy"):
        compare_study(STUDY, [*rounds("a", [None] * 5), *rounds("b", B)], Vector(), {})


def test_a_baseline_by_its_empty_set():
    study = Study(name="t", baseline="fp32", steps=(Step(name="int8", on=("q",)),), unit="image")
    runs = [*rounds("baseline", A, on=()), *rounds("q", B, on=("q",))]
    result = compare_study(study, runs, Vector(), {})
    assert result.steps[0].vs_previous.reference == "fp32"
    assert result.steps[0].verdict == "better"


def test_unknown_energy_is_left_out_and_never_zero():
    result = compare_study(STUDY, [*rounds("a", [*A, None]), *rounds("b", [*B, 0.5])], Vector(), {})
    assert result.baseline_amounts.energy_j.value == pytest.approx(1.0)
    assert result.steps[0].vs_previous.n_rounds == 5
    assert {"CL401", "CL405"} <= codes(result)


def test_negative_energy_and_missing_units_are_left_out():
    runs = [*rounds("a", [*A, -3.0]), *rounds("b", B), run("b", 0.5, repeat=6, units=None)]
    result = compare_study(STUDY, runs, Vector(), {})
    assert {"CL402", "CL404"} <= codes(result)
    assert result.baseline_metrics.rounds == 5


def test_a_step_without_usable_runs_is_undetermined():
    result = compare_study(STUDY, [*rounds("a", A), *rounds("b", [None] * 5)], Vector(), {})
    step = result.steps[0]
    assert (step.status, step.verdict, step.savings) == ("undetermined", "inconclusive", None)


@pytest.mark.parametrize(
    ("before", "after", "saved", "ratio"), [(0.0, 0.0124, -0.0124, None), (0.0124, 0.0, 0.0124, 0.0)]
)
def test_a_zero_baseline_gives_a_difference_and_no_ratio(before, after, saved, ratio):
    """cases.json C41: against nothing there is no percentage; down to nothing is -100 %."""
    result = compare_study(STUDY, [run("a", before), run("b", after)], Vector(), {})
    step = result.steps[0]
    assert step.savings.energy_j.value == pytest.approx(saved)
    assert step.vs_previous.ratio.value == ratio
    assert (step.vs_previous.ratio.low, step.vs_previous.ratio.high) == (None, None)
    assert step.verdict == "inconclusive"
    assert "CL403" in codes(result)


def test_a_superseded_run_and_a_part_of_a_run_do_not_count():
    wrong = run("b", 50.0, repeat=1, run_id="wrong")
    right = run("b", B[0], repeat=1, run_id="right", supersedes="wrong")
    part = run("b", 0.1, repeat=1, run_id="part", parent_run_id="right")
    runs = [*rounds("a", A), wrong, right, part, *rounds("b", B)[1:]]
    assert compare_study(STUDY, runs, Vector(), {}).steps[0].metrics.energy_by_round_j == tuple(B)


def test_runs_of_one_round_are_pooled():
    halves = [run("b", e, repeat=1, units=u, run_id=f"h{u}") for e, u in ((0.2, 1), (1.3, 2))]
    result = compare_study(STUDY, [*rounds("a", A), *halves, *rounds("b", B)[1:]], Vector(), {})
    assert result.steps[0].metrics.energy_by_round_j[0] == pytest.approx(0.5)
    assert "CL406" in codes(result)


def test_a_run_cut_short_is_left_out():
    runs = [*rounds("a", A), *rounds("b", B)[:4], run("b", 0.1, repeat=5, status="recovered")]
    result = compare_study(STUDY, runs, Vector(), {})
    assert "CL416" in codes(result)
    assert result.steps[0].vs_previous.n_rounds == 4


def test_rounds_that_lack_a_step_are_left_out_of_all_means():
    runs = [*rounds("a", [*A, 9.0]), *rounds("b", B)]
    result = compare_study(STUDY, runs, Vector(), {})
    assert result.baseline_metrics.rounds == 5
    assert any(f.code == "CL405" and "round 6" in f.message for f in result.findings)


def test_too_few_complete_rounds_keep_what_there_is():
    result = compare_study(STUDY, [*rounds("a", A), *rounds("b", B[:3])], Vector(), {})
    assert result.baseline_metrics.rounds == 5
    assert result.steps[0].vs_previous.n_rounds == 3
    assert result.steps[0].verdict == "inconclusive"


def test_runs_without_rounds_are_independent_samples():
    runs = [
        run(s, e, repeat=None, run_id=f"{s}{i}") for s, es in (("a", A), ("b", B)) for i, e in enumerate(es)
    ]
    result = compare_study(STUDY, runs, Vector(), {})
    assert result.steps[0].verdict == "better"
    assert "CL417" in codes(result)


def test_runs_without_units_count_as_one_unit_each():
    study = study_from_runs([*rounds("a", A, units=None, unit=None), *rounds("b", B, units=None, unit=None)])
    result = compare_study(
        study, [*rounds("a", A, units=None, unit=None), *rounds("b", B, units=None, unit=None)], Vector(), {}
    )
    assert result.study.unit == "run"
    assert result.baseline_amounts.energy_j.value == pytest.approx(1.0)
    assert "CL422" in codes(result)
    assert "CL404" not in codes(result)


def money(amount):
    return Money(Decimal(amount), "EUR")


def test_costs_of_the_runs_serve_where_no_price_is_given():
    """cases.json C42: a run without a price is said, not counted as 0."""
    runs = [
        run("a", 1.0, repeat=1, cost=money("1.20")),
        run("a", 1.0, repeat=2),
        run("a", 1.0, repeat=3, cost=money("0.80")),
        *rounds("b", [0.5, 0.5, 0.5], cost=money("0.30")),
    ]
    result = compare_study(STUDY, runs, Vector(), {})
    assert result.baseline_amounts.cost.value == pytest.approx(1.0)
    assert result.steps[0].savings.cost.value == pytest.approx(0.7)
    assert result.steps[0].savings.cost.unit == "EUR"
    assert any(f.code == "CL418" and "1 of 6 runs has no price" in f.message for f in result.findings)
    priced = compare_study(STUDY, runs, vector(), {})
    assert priced.baseline_amounts.cost.value < 0.01


def test_costs_that_all_runs_state_are_said_to_be_theirs():
    runs = [*rounds("a", A, cost=money("0.40")), *rounds("b", B, cost=money("0.10"))]
    result = compare_study(STUDY, runs, Vector(), {})
    assert result.total.cost.value == pytest.approx(0.30)
    assert any(f.code == "CL418" and "themselves state" in f.message for f in result.findings)


def test_a_step_that_raised_in_one_round_is_never_adopted():
    runs = [*rounds("a", A), *rounds("b", B), run("b", 0.1, repeat=6, status="failed", error="OSError: gone")]
    result = compare_study(STUDY, runs, Vector(), {})
    step = result.steps[0]
    assert (step.status, step.decision, step.error) == ("failed", "undetermined", "OSError: gone")
    assert result.path == ("a",)
    # What its good rounds show stands beside it.
    assert step.would_have.energy_j.value > 0
    assert any(f.code == "CL421" and "OSError: gone" in f.message for f in result.findings)


def test_int8_that_loses_on_a_cpu_is_a_regression():
    """cases.json C44 and C45, with five equal rounds."""
    runs = [*rounds("a", [668.2] * 5, units=1000), *rounds("b", [1008.8] * 5, units=1000)]
    step = compare_study(STUDY, runs, Vector(), {}).steps[0]
    assert step.vs_previous.ratio.value - 1 == pytest.approx(0.5097, abs=1e-4)
    assert (step.verdict, step.decision) == ("worse", "reject")
    assert step.would_have.energy_j.value < 0


def test_a_small_comparison_loads_no_numeric_library():
    code = (
        "import sys; from tests.compare.study_runs import demo_comparison; demo_comparison(); "
        "print([m for m in ('numpy', 'scipy', 'pandas', 'duckdb', 'torch') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "[]"


def test_a_failed_run_that_was_superseded_does_not_fail_its_step():
    failed = run("b", 0.1, repeat=1, run_id="bad", status="failed", error="OSError: gone")
    first, *rest = rounds("b", B)
    runs = [*rounds("a", A), failed, replace(first, supersedes="bad"), *rest]
    assert compare_study(STUDY, runs, Vector(), {}).steps[0].status == "accepted"


def test_a_failed_attempt_to_make_a_step_is_its_effort_and_no_more():
    attempt = run("b", 3.0, role="effort", status="failed", error="OSError: gone")
    result = compare_study(STUDY, [*rounds("a", A), *rounds("b", B), attempt], Vector(), {})
    assert result.steps[0].status == "accepted"
    assert result.accepted_effort.energy_j.value == 3.0
    assert not any("left out" in f.message for f in result.findings if f.code == "CL421")


def test_a_failing_step_takes_no_rounds_from_the_others():
    study = replace(STUDY, steps=(Step(name="b"), Step(name="c")))
    broken = [run("c", e, repeat=i, status="failed", error="E: x") for i, e in enumerate(B[2:], start=3)]
    runs = [*rounds("a", A), *rounds("b", B), *rounds("c", B[:2]), *broken]
    result = compare_study(study, runs, Vector(), {})
    assert by_name(result)["b"].vs_previous.n_rounds == len(B)
    assert by_name(result)["b"].status == "accepted"
    assert by_name(result)["c"].status == "failed"


def unmeasured_gpu(step, energies):
    part = Reading(component="gpu", energy_j=None, boundary="it", grade=None, method="none", state="unknown")
    finding = Finding(code="CL101", severity="warning", message="GPU present but not measured")
    return [replace(r, energy=(*r.energy, part), findings=(finding,)) for r in rounds(step, energies)]


def test_a_part_of_the_energy_that_nobody_measured_gives_no_verdict():
    runs = [*unmeasured_gpu("a", [100 * x for x in A]), *unmeasured_gpu("b", [20 * x for x in A])]
    result = compare_study(STUDY, runs, Vector(), {})
    step = result.steps[0]
    assert (step.verdict, step.decision, step.reason) == ("inconclusive", "undetermined", "incomplete_energy")
    ratio = step.vs_previous.ratio
    assert (ratio.state, ratio.low, ratio.high) == ("unbounded", None, None)
    assert ratio.value == pytest.approx(0.2)
    assert (step.vs_previous.p_value, step.vs_previous.minimum_detectable) == (None, None)
    assert "a part is unknown" in step.reasons[0]
    assert [f.message for f in result.findings if f.code == "CL101"] == [
        f"GPU present but not measured (in {2 * len(A)} of {2 * len(A)} runs)"
    ]


def test_findings_of_runs_that_differ_in_figures_are_told_once():
    def noisy(r):
        said = Finding(code="CL105", severity="warning", message=f"{r.run_id} covered in part")
        return replace(r, findings=(said,))

    result = compare_study(STUDY, [noisy(r) for r in (*rounds("a", A), *rounds("b", B))], Vector(), {})
    found = [f.message for f in result.findings if f.code == "CL105"]
    assert found == [f"a-1-variant covered in part (and alike, in {2 * len(A)} of {2 * len(A)} runs)"]


@pytest.mark.parametrize("steps", [("b", "b"), ("a",), ("b", "a")])
def test_a_name_that_stands_twice_is_refused(steps):
    study = replace(STUDY, steps=tuple(Step(name=s) for s in steps))
    with pytest.raises(ConfigError, match="named twice"):
        compare_study(study, [*rounds("a", A), *rounds("b", B)], Vector(), {})


def test_runs_outside_the_study_are_counted():
    nameless = [replace(r, step=None, run_id=f"n{r.run_id}") for r in rounds("x", A)]
    strange = rounds("other", A)
    idle = [run("x", 1.0, role="idle")]
    result = compare_study(
        STUDY, [*rounds("a", A), *rounds("b", B), *nameless, *strange, *idle], Vector(), {}
    )
    found = [(f.severity, f.message) for f in result.findings if f.code == "CL423"]
    assert found == [
        ("warning", f"{len(A)} runs of the study name no step and are left out"),
        ("info", f"{len(A)} runs name a step that the study does not (other), and are left out"),
    ]


def test_a_step_whose_optimizations_nobody_states_has_an_unknown_set():
    silent = compare_study(STUDY, [*rounds("a", A), *rounds("b", B)], Vector(), {}).steps[0]
    assert (silent.on, silent.on_known) == ((), False)
    stated = compare_study(STUDY, [*rounds("a", A, on=()), *rounds("b", B, on=("q",))], Vector(), {}).steps[0]
    assert (stated.on, stated.on_known) == (("q",), True)


def test_the_effect_of_a_ladder_is_that_of_its_end():
    result = demo_comparison()
    assert result.total_effect == by_name(result)["static-int8"].vs_baseline
    nothing = compare_study(STUDY, [*rounds("a", A), *rounds("b", [2 * x for x in A])], Vector(), {})
    assert nothing.total_effect is None


def test_an_energy_of_unknown_width_has_no_interval_however_many_rounds():
    """Scatter tells the random part alone."""
    result = compare_study(STUDY, [*rounds("a", A), *rounds("b", B)], Vector(), {})
    energy = result.baseline_metrics.energy_per_unit_j
    assert (energy.low, energy.high) == (None, None)
    assert any(f.code == "CL426" and "of a, b is" in f.message for f in result.findings)
    single = compare_study(STUDY, [run("a", 1.0), run("b", 0.5)], vector(), {})
    for amount in (single.baseline_amounts.energy_j, single.baseline_amounts.emissions_location_kg):
        assert (amount.low, amount.high) == (None, None)


def test_quality_that_changes_from_round_to_round_is_said():
    def with_accuracy(runs, values):
        return [
            replace(r, quality=(Quality(name="accuracy", value=v, n=100, outcomes_sha256=f"h{v}"),))
            for r, v in zip(runs, values, strict=True)
        ]

    gate = Gate(name="accuracy", metric="accuracy", kind="max_loss", limit=0.05)
    step = rounds("b", B)
    runs = [
        *with_accuracy(rounds("a", A), [0.9] * len(A)),
        *with_accuracy(step, [0.9, *[0.5] * (len(B) - 1)]),
    ]
    scores = {"h0.9": [1] * 90 + [0] * 10, "h0.5": [1] * 50 + [0] * 50}
    result = compare_study(replace(STUDY, gates=(gate,)), runs, Vector(), scores)
    assert (result.steps[0].gates[0].outcome, result.steps[0].decision) == ("fail", "reject")
    assert [f.subject for f in result.findings if f.code == "CL424"] == ["b"]
    graded = {**scores, "h0.9": [0.9] * 100, "h0.5": [0.5] * 100}
    result = compare_study(replace(STUDY, gates=(gate,)), runs, Vector(), graded)
    assert result.steps[0].decision != "adopt"
    assert {f.subject for f in result.findings if f.code == "CL425"} == {"a", "b"}


@pytest.mark.parametrize("units", ["1e-400", "1e-310", "1e-7", "1e18", "NaN", "Infinity"])
def test_units_that_no_record_holds_leave_the_run_out_and_are_said(units):
    odd = replace(run("b", 1.0, repeat=6, run_id="odd"), units=Decimal(units))
    result = compare_study(STUDY, [*rounds("a", A), *rounds("b", B), odd], Vector(), {})
    (said,) = [f for f in result.findings if f.code in ("CL404", "CL451")]
    assert said.message.startswith("1 run (odd) of step 'b' states ")
    assert result.steps[0].metrics.energy_by_round_j == tuple(B)


@pytest.mark.parametrize("energy", ["NaN", "Infinity", "-Infinity"])
def test_energy_that_is_no_finite_number_is_no_energy(energy):
    odd = run("b", 1.0, repeat=6, run_id="odd")
    reading = replace(odd.energy[0], energy_j=Decimal(energy))
    odd = replace(odd, energy=(reading,))
    result = compare_study(STUDY, [*rounds("a", A), *rounds("b", B), odd], Vector(), {})
    (said,) = [f for f in result.findings if f.code == "CL401"]
    assert (
        said.message == "1 run (odd) of step 'b' has no energy, or energy at mixed boundaries and is left out"
    )
    assert result.steps[0].metrics.energy_by_round_j == tuple(B)
