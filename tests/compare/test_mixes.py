"""Arms on several machines or workloads stand beside each other only on the same mix of them."""

import pytest
from msgspec.structs import replace

from carbonlens.compare.grouping import build_arm, group
from carbonlens.compare.mixes import other_mixes
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Conditions
from carbonlens.domain.study import Adjustment, Step, Study
from carbonlens.errors import IncomparableError
from tests.compare.study_runs import run

STUDY = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
FIELDS = ["hardware", "host_id", "machine_id", "workload", "batch", "sequence_length"]
JOULES = {"x": 10.0, "y": 7.0}


def arm(step, places, field, *, numbered, **more):
    """Return a run on each place, which alone decides what it takes."""
    found = []
    for number, place in enumerate(places, start=1):
        stated = {"tags": {field: place}} if field in ("batch", "sequence_length") else {field: place}
        one = {"repeat": number if numbered else None, "run_id": f"{step}{number}{more.get('role', '')}"}
        found.append(run(step, JOULES[place], **one, **stated, **more))
    return found


def compared(a, b, field, *, numbered=True, **study):
    runs = [*arm("a", a, field, numbered=numbered), *arm("b", b, field, numbered=numbered)]
    return compare_study(STUDY if not study else Study(**{**asdict(STUDY), **study}), runs, Vector(), {})


def asdict(study):
    return {f: getattr(study, f) for f in study.__struct_fields__}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize(
    ("a", "b"), [("xxxxxxy", "yyyyyyx"), ("xxxxxyy", "xxxxxxy"), ("xyxyxyxy", "xyxyxyxx")]
)
def test_another_mix_is_refused(field, numbered, a, b):
    name = "host" if field.endswith("_id") else field
    with pytest.raises(IncomparableError, match=f"mix of {name}"):
        compared(a, b, field, numbered=numbered)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("numbered", "a", "b"), [(True, "xxxxxxy", "xxxxxxy"), (False, "xyxyxyxy", "xxyy")])
def test_the_same_mix_is_compared(field, numbered, a, b):
    result = compared(a, b, field, numbered=numbered)
    assert result.steps[0].vs_previous.ratio.value == pytest.approx(1.0)
    assert "CL450" not in {f.code for f in result.findings}


def test_arms_that_change_places_between_rounds_are_told_of():
    result = compared("xyxyxyxy", "yxyxyxyx", "hardware")
    assert result.steps[0].vs_previous.ratio.value == pytest.approx(1.0)
    assert "8 rounds" in next(f.message for f in result.findings if f.code == "CL450")


def test_a_pooled_round_with_more_units_of_one_workload_is_refused():
    runs = []
    for number in range(1, 7):
        for step, units in (("a", {"short": 5, "long": 5}), ("b", {"short": 5, "long": 2})):
            for kind, count in units.items():
                joules = count * {"short": 1.0, "long": 9.0}[kind]
                runs.append(
                    run(
                        step,
                        joules,
                        repeat=number,
                        units=count,
                        workload=kind,
                        run_id=f"{step}{number}{kind}",
                    )
                )
    with pytest.raises(IncomparableError, match="mix of workload"):
        compare_study(STUDY, runs, Vector(), {})


def test_a_declared_adjustment_lets_batches_differ():
    result = compared("xxxxxxy", "xxxxxxy", "batch", adjustments=(Adjustment(tag="batch", exponent=0),))
    assert "CL450" not in {f.code for f in result.findings}


def test_rounds_that_a_failed_step_lacks_do_not_end_the_comparison():
    runs = [
        *arm("a", "xyxyxyx", "hardware", numbered=True),
        *arm("b", "xyxyxyx", "hardware", numbered=True),
        *arm("c", "xyx", "hardware", numbered=True),
        run("c", 1.0, repeat=4, hardware="y", status="failed", error="ValueError"),
    ]
    study = Study(name="t", baseline="a", steps=(Step(name="b"), Step(name="c")), unit="image")
    assert compare_study(study, runs, Vector(), {}).steps[1].status == "failed"


@pytest.mark.parametrize("tag", ["batch", "sequence_length", "volume"])
def test_a_routine_tag_that_one_arm_does_not_state_is_a_warning(tag):
    runs = [run("a", 2.0, repeat=i, tags={tag: "8"}) for i in range(1, 7)]
    runs += [run("b", 1.8, repeat=i) for i in range(1, 7)]
    found = [f for f in compare_study(STUDY, runs, Vector(), {}).findings if f.code == "CL420"]
    assert [(f.subject, f.severity) for f in found] == [(tag, "warning")]
    assert "b" in found[0].message


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("1e3", "1000"), ("8", " 8 ")])
def test_one_size_written_in_two_ways_is_one_size(one, other):
    runs = [run("a", 2.0, repeat=i, tags={"batch": one}) for i in range(1, 7)]
    runs += [run("b", 1.8, repeat=i, tags={"batch": other}) for i in range(1, 7)]
    assert compare_study(STUDY, runs, Vector(), {}).steps[0].decision == "adopt"


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize(
    ("a", "b"), [("-AAAAAH", "HHHHHHA"), ("AAAAAAH-", "HHHHHHA-"), ("AAAAAAH-", "-AHHHHHH")]
)
def test_a_run_that_does_not_state_its_hardware_hides_no_other_mix(a, b, numbered):
    runs = unstated("a", a, numbered) + unstated("b", b, numbered)
    with pytest.raises(IncomparableError, match="mix of hardware"):
        compare_study(STUDY, runs, Vector(), {})


@pytest.mark.parametrize(("a", "b"), [("AHAHAHAH", "AHAHAHA-"), ("AAAHHH", "AAA---"), ("AHAHAH", "------")])
def test_a_mix_that_the_silent_runs_may_explain_is_compared(a, b):
    runs = unstated("a", a, False) + unstated("b", b, False)
    if "H" in b:
        found = compare_study(STUDY, runs, Vector(), {}).findings
        assert {f.code for f in found} & {"CL420"}
    else:  # which values there are at all is another rule
        assert other_mixes("hardware", lambda r: r.hardware, arms_of(runs), "t", "m", margin=0.01) == []


def unstated(step, places, numbered):
    joules = {"A": 1000.0, "H": 700.0, "-": 900.0}
    return [
        run(
            step,
            joules[p],
            repeat=i if numbered else None,
            run_id=f"{step}{i}",
            hardware=None if p == "-" else p,
        )
        for i, p in enumerate(places, 1)
    ]


def arms_of(runs):
    groups, _ = group(STUDY, runs)
    return [build_arm(g, Vector(), per_run=False)[0] for g in groups.values()]


def workloads(step, chat, code, joules, code_joules):
    """Return six rounds with a run of each workload."""
    found = []
    for i in range(1, 7):
        for kind, units, each in (("chat", chat, joules), ("code", code, code_joules)):
            found.append(
                run(step, each * units, repeat=i, units=units, workload=kind, run_id=f"{step}{kind}{i}")
            )
    return found


@pytest.mark.parametrize("dear", [1.0, 3.0])
def test_token_counts_that_differ_a_little_are_compared(dear):
    runs = workloads("a", 10_000, 10_000, 1.0, dear) + workloads("b", 10_001, 10_000, 0.9, 0.9 * dear)
    result = compare_study(STUDY, runs, Vector(), {})
    assert result.steps[0].decision == "adopt"
    assert "CL453" in {f.code for f in result.findings}


def test_a_mix_that_moves_the_mean_by_a_tenth_of_the_margin_is_refused_with_digits_that_differ():
    runs = workloads("a", 10_000, 10_000, 1.0, 3.0) + workloads("b", 10_010, 10_000, 1.0, 3.0)
    with pytest.raises(IncomparableError) as caught:
        compare_study(replace(STUDY, margin=0.001), runs, Vector(), {})
    assert "50 % chat, 50 % code and 50.02 % chat, 49.98 % code" in str(caught.value)


def hosts(spoil=None, places="AHAHAHAH"):
    return [
        run(
            step,
            {"A": 10.0, "H": 7.0}[h] * factor,
            repeat=None,
            run_id=f"{step}{i}",
            machine_id=h,
            start_us=i,
            conditions=Conditions(wall_s=10.0, throttled_s=5.0 if (step, i) == spoil else 0.0),
        )
        for step, factor in (("a", 1.0), ("b", 0.9))
        for i, h in enumerate(places)
    ]


@pytest.mark.parametrize("spoil", [("b", 3), ("a", 0)])
def test_a_run_that_was_left_out_takes_one_of_the_other_arm_with_it(spoil):
    result = compare_study(STUDY, hosts(spoil), Vector(), {})
    assert result.steps[0].vs_previous.ratio.value == pytest.approx(0.9)
    told = next(f for f in result.findings if f.code == "CL454")
    assert told.subject == ("a" if spoil[0] == "b" else "b")


def test_a_run_without_energy_takes_one_of_the_other_arm_with_it():
    runs = hosts()
    runs[-1] = replace(runs[-1], energy=())
    result = compare_study(STUDY, runs, Vector(), {})
    assert result.steps[0].vs_previous.ratio.value == pytest.approx(0.9)


def test_arms_measured_on_another_mix_are_not_evened():
    runs = [r for r in hosts() if r.run_id not in ("b1", "b3", "b5")]
    with pytest.raises(IncomparableError, match="mix of host"):
        compare_study(STUDY, runs, Vector(), {})
