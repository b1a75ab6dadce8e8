"""Runs of a study that shared a device: used by their part, left out, or refused."""

import pytest
from msgspec.structs import replace

from carbonlens.accounting.allocation import allocate
from carbonlens.compare.sharing import without_double_billing
from carbonlens.domain.study import Step, Study
from carbonlens.errors import IncomparableError
from tests.accounting.device_runs import gpu, run

STUDY = Study(name="s", baseline="base", steps=(Step(name="fast"),), unit="image")


def variant(run_id, step, window, *readings, **fields):
    return run(run_id, window, *readings, study="s", step=step, role="variant", **fields)


def shared(runs, others=()):
    kept, findings = without_double_billing(runs, allocate([*runs, *others]), STUDY)
    return {r.run_id: float(r.energy[0].energy_j) for r in kept}, [f.code for f in findings]


def test_runs_that_did_not_overlap_are_untouched():
    runs = [
        variant("b", "base", (0, 10), gpu(100)),
        variant("f", "fast", (10, 20), gpu(80)),
    ]
    kept, findings = without_double_billing(runs, allocate(runs), STUDY)
    assert kept == tuple(runs)
    assert findings == ()


def test_processes_of_one_step_are_compared_by_their_part():
    runs = [
        variant("b1", "base", (0, 10), gpu(100)),
        variant("b2", "base", (0, 10), gpu(100)),
        variant("f", "fast", (20, 30), gpu(80)),
    ]
    assert shared(runs) == ({"b1": 50, "b2": 50, "f": 80}, ["CL321"])


def test_steps_at_the_same_time_are_used_where_activity_divides_the_device():
    runs = [
        variant("b", "base", (0, 10), gpu(100, share=0.7)),
        variant("f", "fast", (0, 10), gpu(100, share=0.2)),
    ]
    assert shared(runs) == ({"b": 70, "f": 20}, ["CL321"])


def test_steps_that_nothing_divides_are_left_out_while_others_remain():
    runs = [
        variant("b1", "base", (0, 10), gpu(100)),
        variant("f1", "fast", (0, 10), gpu(100)),
        variant("b2", "base", (20, 30), gpu(100)),
        variant("f2", "fast", (40, 50), gpu(80)),
    ]
    assert shared(runs) == ({"b2": 100, "f2": 80}, ["CL322"])


def test_a_step_of_which_nothing_else_is_left_is_refused():
    runs = [variant("b", "base", (0, 10), gpu(100)), variant("f", "fast", (0, 10), gpu(100))]
    with pytest.raises(IncomparableError, match="'base' shared a device"):
        shared(runs)
    # A run of no study on the same device is no better.
    stranger = run("x", (0, 30), gpu(300))
    with pytest.raises(IncomparableError):
        shared([runs[0], variant("f", "fast", (10, 20), gpu(80))], [stranger])


def test_a_sliver_of_overlap_changes_nothing():
    runs = [variant("b", "base", (0, 10), gpu(100)), variant("f", "fast", (9.999, 20), gpu(80))]
    assert shared(runs) == ({"b": 100, "f": 80}, [])


def test_stated_totals_without_a_device_are_used_as_stated():
    stated = {"component": "total", "devices": ()}
    runs = [
        variant("b", "base", (0, 10), gpu(100, **stated)),
        variant("f", "fast", (0, 10), gpu(80, **stated)),
    ]
    assert shared(runs) == ({"b": 100, "f": 80}, ["CL323"])
    homeless = [replace(r, host_id=None) for r in runs]
    assert shared(homeless) == ({"b": 100, "f": 80}, [])


def test_effort_and_failed_attempts_do_not_disappear():
    runs = [
        variant("b", "base", (20, 30), gpu(100)),
        variant("f", "fast", (40, 50), gpu(80)),
        replace(variant("made", "fast", (0, 10), gpu(100)), role="effort"),
        replace(variant("broke", "base", (0, 10), gpu(100)), status="failed"),
    ]
    assert shared(runs) == ({"b": 100, "f": 80, "made": 50, "broke": 50}, ["CL321"])
