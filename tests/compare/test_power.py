"""Power over time of an arm: of one run that was measured, chosen by rules that the report states."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.compare.study import compare_study
from carbonlens.domain.phase import Phase
from carbonlens.domain.study import Step, Study
from carbonlens.domain.trace import PowerTrace
from tests.compare.study_runs import rounds, run, vector

replace = msgspec.structs.replace
STUDY = Study(name="s", baseline="a", steps=(Step(name="b", title="b", measured_on="a"),), unit="image")
CURVE = PowerTrace(  # with a gap, so that its area may be less than any energy
    bin_s=0.5, power_w=(90.0, None, 210.0), low_w=(80.0, None, 200.0), high_w=(95.0, None, 260.0)
)  # fmt: skip
PHASES = (Phase(name="load", entries=1, duration_s=0.5, energy_j=Decimal(45), grade="B"),)


def traced(one, *, phases=(), **more):
    given = {"duration_s": 2.0, "power": CURVE, "phases": phases}
    return replace(one, **given | more)


def of(*more, a=None):
    runs = (a or rounds("a", (10, 11, 12, 13, 14, 15))) + rounds("b", (9, 8, 9, 8, 9, 8))
    return compare_study(STUDY, (*runs, *more), vector(), {}).power


def test_no_curve_is_invented():
    assert of() == ()


def test_the_round_with_the_median_energy_stands_for_the_rounds():
    order = (14.0, 10.0, 12.0, 11.0, 13.0)
    (power,) = of(a=[traced(r) for r in rounds("a", order)])
    middle = [r for r in rounds("a", order) if r.total_energy.value == 12.0]
    assert power.run_id == middle[0].run_id
    assert (power.kept, power.alike, power.role, power.step) == (5, 5, "variant", "a")
    assert power.power_w.value == pytest.approx(6.0)
    assert (power.peak_w, power.idle_w, power.trace) == (260.0, None, CURVE)
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


def test_a_machine_that_worked_was_not_idle():
    check = traced(run("a", 9.0, role="evaluation"))
    idle = traced(run(None, 120.0, role="idle"), power=None, duration_s=10.0, start_us=0, end_us=10_000_000)
    at_work = replace(check, run_id="other", start_us=9_000_000, end_us=12_000_000)
    assert of(check, replace(at_work, start_us=10_000_000), idle)[0].idle_w.value == pytest.approx(12.0)
    assert of(check, at_work, idle)[0].idle_w is None


def test_the_curve_of_a_device_that_others_used_too_does_not_stand_for_a_run():
    whole = PowerTrace(bin_s=1.0, power_w=(50.0, 70.0), low_w=(50.0, 70.0), high_w=(50.0, 70.0))
    (power,) = of(traced(run("a", 120.0, role="evaluation"), power=whole))
    assert power.power_w.value == pytest.approx(60.0)
    assert of(traced(run("a", 40.0, role="evaluation"), power=whole)) == ()
