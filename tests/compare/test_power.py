"""Power over time of an arm: of one run that was measured, chosen by rules that the report states."""

import sys
from decimal import Decimal
from types import SimpleNamespace

import msgspec
import pytest

from carbonlens.compare.grouping import StepRuns
from carbonlens.compare.power import powers
from carbonlens.compare.study import compare_study
from carbonlens.domain.phase import Phase
from carbonlens.domain.study import Step, Study
from carbonlens.domain.trace import PowerTrace
from carbonlens.ledger.editing import corrected
from carbonlens.metering.power_obstacles import no_power
from tests.compare.study_runs import rounds, run, vector

replace = msgspec.structs.replace
STUDY = Study(name="s", baseline="a", steps=(Step(name="b", title="b", measured_on="a"),), unit="image")
SHAPE = {"power_w": (0.6, None, 1.4), "low_w": (0.5, None, 1.3), "high_w": (0.7, None, 2.0)}
PHASES = (Phase(name="load", entries=1, duration_s=0.5, energy_j=Decimal(45), grade="B"),)


def curve(watts, bin_s=2 / 3):
    """A curve with a gap, of so many watts in the rest."""
    scaled = {name: tuple(w and w * watts for w in told) for name, told in SHAPE.items()}
    return PowerTrace(bin_s=bin_s, **scaled)


def traced(one, *, phases=(), duration_s=2.0, **more):
    """The run with a curve that holds its energy, of one board."""
    energy = tuple(replace(r, devices=("GPU-1",)) for r in one.energy)
    power = curve(one.total_energy.value / duration_s)
    given = {"duration_s": duration_s, "power": power, "phases": phases, "energy": energy}
    return replace(one, **given | more)


def one_after_the_other(runs):
    """The runs, each at a time of its own where it says none."""
    for place, one in enumerate(runs):
        start_us = 1_000_000_000 * (place + 1)
        own = {"start_us": start_us, "end_us": start_us + 10_000_000} if one.start_us is None else {}
        yield replace(one, **own)


def of(*more, a=None):
    runs = (a or rounds("a", (10, 11, 12, 13, 14, 15))) + rounds("b", (9, 8, 9, 8, 9, 8))
    return compare_study(STUDY, tuple(one_after_the_other((*runs, *more))), vector(), {}).power


def test_no_curve_is_invented():
    assert of() == ()


def test_the_round_with_the_median_energy_stands_for_the_rounds():
    order = (14.0, 10.0, 12.0, 11.0, 13.0)
    (power,) = of(a=[traced(r) for r in rounds("a", order)])
    middle = [r for r in rounds("a", order) if r.total_energy.value == 12.0]
    assert power.run_id == middle[0].run_id
    assert (power.kept, power.alike, power.role, power.step) == (5, 5, "variant", "a")
    assert power.power_w.value == pytest.approx(6.0)
    assert (power.peak_w, power.idle_w, power.trace) == (12.0, None, curve(6.0))
    # Of an even number it is one that was measured, never a mean of two.
    (even,) = of(a=[traced(r) for r in rounds("a", (14.0, 10.0, 12.0, 11.0))])
    assert even.power_w.value == pytest.approx(5.5)


def test_a_run_that_tells_phases_goes_before_rounds_that_do_not():
    check = traced(run("a", 99.0, role="evaluation"), phases=PHASES)
    (power,) = of(check, a=[traced(r) for r in rounds("a", (10.0, 11.0, 12.0))])
    assert (power.role, power.kept, power.alike) == ("evaluation", 4, 1)
    (load,) = power.phases
    assert (load.name, load.duration_s, load.power_w.value, load.power_w.grade) == ("load", 0.5, 90.0, "B")
    told = [traced(r, phases=PHASES) for r in rounds("a", (10.0, 11.0, 12.0))]
    (power,) = of(check, a=told)
    assert (power.role, power.kept, power.alike) == ("variant", 4, 3)


def test_runs_that_failed_or_were_cut_short_stand_for_nothing():
    ended = [traced(run("a", 5.0, role="evaluation", status=s)) for s in ("failed", "recovered")]
    assert of(*ended) == ()


def test_a_phase_whose_energy_is_not_known_has_no_power():
    silent = (Phase(name="warm-up", entries=1, duration_s=0.01),)
    (power,) = of(traced(run("a", 9.0, role="evaluation"), phases=silent))
    assert power.phases[0].power_w.value is None


def test_idle_power_is_that_of_the_same_machine_at_the_same_boundary():
    check = traced(run("a", 9.0, role="evaluation"))
    idle = traced(run(None, 120.0, role="idle"), power=None, duration_s=10.0)
    assert of(check, idle)[0].idle_w.value == pytest.approx(12.0)
    assert of(check, replace(idle, host_id="another"))[0].idle_w is None
    other = tuple(replace(r, boundary="facility") for r in idle.energy)
    assert of(check, replace(idle, energy=other))[0].idle_w is None
    nameless = replace(check, host_id=None)
    assert of(nameless, replace(idle, host_id=None))[0].idle_w is None


def of_devices(one, *devices):
    """The run with its energy divided evenly among components and their devices."""
    (reading,) = one.energy
    part_j = reading.energy_j / len(devices)
    told = (replace(reading, energy_j=part_j, component=c, devices=d) for c, *d in devices)
    return replace(one, energy=tuple(replace(r, devices=tuple(r.devices)) for r in told))


CPU, GPU, OTHER_GPU = ("cpu", "package-0"), ("gpu", "GPU-1"), ("gpu", "GPU-2")


@pytest.mark.parametrize(
    ("worked", "rested", "is_alike"),
    [
        ((CPU, GPU), (GPU, CPU), True),
        ((CPU,), (CPU,), True),
        ((CPU, GPU), (CPU,), False),
        ((CPU,), (CPU, GPU), False),
        ((GPU,), (OTHER_GPU,), False),
        ((GPU, OTHER_GPU), (GPU,), False),
        ((("cpu",), GPU), (("cpu",), GPU), False),  # of a process alone
    ],
)
def test_idle_power_is_that_of_the_same_devices(worked, rested, is_alike):
    check = of_devices(traced(run("a", 9.0, role="evaluation")), *worked)
    idle = of_devices(traced(run(None, 120.0, role="idle"), power=None, duration_s=10.0), *rested)
    found = of(check, idle)[0].idle_w
    assert (found is not None) is is_alike
    assert found is None or found.value == pytest.approx(12.0)


def test_the_part_of_a_divided_device_has_no_idle_power():
    check = traced(run("a", 9.0, role="evaluation"))
    idle = traced(run(None, 120.0, role="idle"), power=None, duration_s=10.0)
    parts = [replace(r, energy=tuple(replace(e, divided=True) for e in r.energy)) for r in (check, idle)]
    assert of(*parts)[0].idle_w is None


def test_work_on_another_machine_leaves_this_one_idle():
    check = traced(run("a", 9.0, role="evaluation"), machine_id="m1")
    idle = traced(run(None, 120.0, role="idle"), power=None, duration_s=10.0, start_us=0, end_us=10_000_000)
    idle = replace(idle, machine_id="m1")
    beside = replace(check, run_id="other", start_us=1_000_000, end_us=2_000_000)
    there = replace(beside, machine_id="m2")
    assert of(check, there, idle)[0].idle_w.value == pytest.approx(12.0)
    assert of(check, beside, idle)[0].idle_w is None
    assert of(check, replace(beside, host_id=None, machine_id=None), idle)[0].idle_w is None


def test_a_machine_that_worked_was_not_idle():
    check = traced(run("a", 9.0, role="evaluation"))
    idle = traced(run(None, 120.0, role="idle"), power=None, duration_s=10.0, start_us=0, end_us=10_000_000)
    at_work = replace(check, run_id="other", start_us=9_000_000, end_us=12_000_000)
    assert of(check, replace(at_work, start_us=10_000_000), idle)[0].idle_w.value == pytest.approx(12.0)
    assert of(check, at_work, idle)[0].idle_w is None


SILENT = [("start_us", "end_us"), ("start_us",), ("end_us",)]


def at(one, start_s, end_s, **more):
    """The run at seconds of one machine."""
    return replace(one, start_us=start_s * 1_000_000, end_us=end_s * 1_000_000, **{"machine_id": "m1"} | more)


def idle_power(*told):
    """Idle power of runs at their own times, beside rounds on a machine of their own."""
    alone = one_after_the_other([*rounds("a", (10, 11)), *rounds("b", (9, 8))])
    rest = (replace(r, machine_id="m9") for r in alone)
    return compare_study(STUDY, (*rest, *told), vector(), {}).power[0].idle_w


@pytest.mark.parametrize("silent", SILENT)
@pytest.mark.parametrize("machine", ["m1", "m2", None])
def test_work_that_does_not_say_when_it_was_may_have_run_meanwhile(machine, silent):
    check = at(traced(run("a", 9.0, role="evaluation")), 20, 21)
    idle = at(traced(run(None, 120.0, role="idle"), power=None, duration_s=10.0), 5, 15)
    work = at(replace(check, run_id="other"), 6, 7, machine_id=machine, host_id=machine)
    work = replace(work, **dict.fromkeys(silent))
    assert (idle_power(check, work, idle) is not None) is (machine == "m2")
    # What it does say can tell that it was at another time.
    after = replace(work, **{} if "start_us" in silent else {"start_us": 15_000_000})
    assert (idle_power(check, after, idle) is not None) is (machine == "m2" or silent == ("end_us",))


@pytest.mark.parametrize("silent", SILENT)
def test_an_idle_run_that_does_not_say_when_it_was_may_have_been_during_work(silent):
    check = at(traced(run("a", 9.0, role="evaluation")), 20, 21)
    idle = at(traced(run(None, 120.0, role="idle"), power=None, duration_s=10.0), 5, 15)
    idle = replace(idle, **dict.fromkeys(silent))
    assert (idle_power(check, idle) is not None) is ("end_us" not in silent)
    there = replace(check, run_id="other", machine_id="m2")
    assert idle_power(replace(check, machine_id="m3"), there, idle) is None


def test_the_search_for_idle_power_grows_with_the_runs_and_not_with_their_pairs():
    def calls_of(number):
        """Return how many calls `powers` makes within its module, of so many idle runs and others."""
        called = []
        made = [
            run("a", 9.0, role=role, duration_s=2.0) for role in ("evaluation", "idle") for _ in range(number)
        ]
        told = [replace(r, run_id=f"r{n}") for n, r in enumerate(made)]
        runs = tuple(one_after_the_other(traced(r) for r in told))
        arm = StepRuns(step="a", on=None, variants=(), failed=(), effort=(), all=runs[:1])
        sys.setprofile(lambda frame, event, _: called.append(frame.f_code) if event == "call" else None)
        try:
            powers(SimpleNamespace(groups={"a": arm}), runs)
        finally:
            sys.setprofile(None)
        return sum(code.co_filename == powers.__code__.co_filename for code in called)

    few = calls_of(25)
    assert few > 50
    assert calls_of(100) < 6 * few


def test_the_curve_of_a_device_that_others_used_too_does_not_stand_for_a_run():
    whole = PowerTrace(bin_s=1.0, power_w=(50.0, 70.0), low_w=(50.0, 70.0), high_w=(50.0, 70.0))
    (power,) = of(traced(run("a", 120.0, role="evaluation"), power=whole))
    assert power.power_w.value == pytest.approx(60.0)
    assert of(traced(run("a", 40.0, role="evaluation"), power=whole)) == ()


def shaped(*power_w):
    return PowerTrace(bin_s=1.0, power_w=power_w, low_w=power_w, high_w=power_w)


@pytest.mark.parametrize("gap", [0, 1, 4])
@pytest.mark.parametrize("covers_gap", [True, False])
@pytest.mark.parametrize(("billed", "is_own"), [(1.0, True), (1.05, True), (100 / 350, False), (2.0, False)])
def test_a_gap_hides_no_device_that_others_used_too(gap, covers_gap, billed, is_own):
    told = shaped(*[350.0] * (10 - gap), *[None] * gap)
    covered_s = 10.0 if covers_gap else 10.0 - gap
    one = traced(run("a", 350.0 * billed * covered_s, role="evaluation"), power=told, duration_s=10.0)
    one = replace(one, energy=tuple(replace(r, covered_s=covered_s) for r in one.energy))
    assert bool(of(one)) is is_own


def test_of_two_readings_each_is_taken_over_the_time_that_it_covers():
    # One board was silent for half of the run, and the curve of both has a gap there.
    told = shaped(*[300.0] * 5, *[None] * 5)
    one = of_devices(traced(run("a", 2.0, role="evaluation"), power=told, duration_s=10.0), GPU, OTHER_GPU)
    whole, half = one.energy
    energy = (
        replace(whole, energy_j=Decimal(1000), covered_s=10.0),
        replace(half, energy_j=Decimal(1000), covered_s=5.0),
    )
    assert of(replace(one, energy=energy))


def why(*runs):
    made = compare_study(STUDY, (*rounds("a", (10, 11)), *rounds("b", (9, 8)), *runs), vector(), {})
    return {n.step: (n.why, n.mend) for n in made.no_power}


def test_an_arm_that_asked_for_a_trace_says_why_it_has_no_power_over_time():
    assert why() == {}
    asked = run("a", 9.0, role="evaluation", duration_s=2.0)
    assert why(traced(asked)) == {}
    shared = traced(asked, power=curve(100.0))
    assert "others used too" in why(shared)["a"][0]
    assert "alone" in why(shared)["a"][1]
    # Of a version that left the curve in a corrected record.
    stale = replace(shared, energy=tuple(replace(r, method="as corrected") for r in shared.energy))
    assert "corrected by hand" in why(stale)["a"][0]
    assert "cut short" in why(traced(asked, status="recovered"))["a"][0]
    note = no_power("the run was shorter", "let it do more")
    assert why(replace(asked, findings=(note,))) == {"a": ("the run was shorter", "let it do more")}
    by_hand = corrected(traced(asked), {"energy_j": "20"})
    assert "corrected by hand" in why(by_hand)["a"][0]
    # One run that has it is enough.
    assert why(shared, traced(replace(asked, run_id="own"))) == {}
