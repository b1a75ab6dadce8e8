"""Runs that the ranks of a job recorded together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.job_runs import billed, job_runs, wholes
from tests.accounting.device_runs import gpu, run


def ids(jobs):
    return [[r.run_id for r in j.parts] for j in jobs]


def test_one_run_of_each_rank_at_a_time():
    """Each rank first loads, then trains twice, in blocks of its own."""
    runs = [
        run(f"{step}{number}-{rank}", (10 * number, 10 * number + 5), job_id="j", rank=rank, step=step)
        for step, number in (("load", 0), ("train", 1), ("train", 2))
        for rank in (1, 0)
    ]
    assert ids(job_runs(runs)) == [["load0-0", "load0-1"], ["train1-0", "train1-1"], ["train2-0", "train2-1"]]


@pytest.mark.parametrize(
    "other",
    [{"job_id": "k"}, {"attempt": 2}, {"step": "int8"}, {"rank": None}, {"job_id": None}, {"rank": 0}],
)
def test_what_does_not_belong_together(other):
    usual = {"job_id": "j", "rank": 1}
    pair = [run("a", (0, 1), job_id="j", rank=0), run("b", (0, 1), **{**usual, **other})]
    assert job_runs(pair) == ()
    assert ids(job_runs([pair[0], run("c", (0, 1), **usual)])) == [["a", "c"]]


def test_units_and_status_of_all():
    known = [run(str(n), (0, 1 + n), job_id="j", rank=n, units=4) for n in range(3)]
    (job,) = job_runs(known)
    assert (job.units, job.status, job.duration_s, job.hosts) == (12, "complete", 3, 1)
    (job,) = job_runs([*known, run("x", (0, 1), job_id="j", rank=3, status="recovered", host_id="g")])
    assert (job.units, job.status, job.hosts) == (None, "recovered", 2)


def test_boundaries_are_not_summed():
    pair = [
        run("a", (0, 1), gpu(1), job_id="j", rank=0),
        run("b", (0, 1), gpu(1, "GPU-b", boundary="it"), job_id="j", rank=1),
    ]
    (job,) = job_runs(pair)
    assert billed(job, allocate(pair)).state == "unknown"


@given(st.integers(2, 6), st.integers(1, 10**6))
def test_a_device_that_all_ranks_read_is_billed_once(ranks, joules):
    runs = [run(str(n), (0, 100), gpu(joules), job_id="j", rank=n) for n in range(ranks)]
    (job,) = job_runs(runs)
    assert billed(job, allocate(runs)).value == pytest.approx(joules)


def test_ranks_inside_a_run_of_their_own_each_belong_together():
    """``srun carbonlens run -- python train.py``, where train.py tracks a step itself."""
    outer = [run(f"outer{k}", (0, 10), job_id="j", rank=k, step="train") for k in (0, 1)]
    inner = [
        run(f"inner{k}", (1, 9), job_id="j", rank=k, step="train", parent_run_id=f"outer{k}") for k in (0, 1)
    ]
    found = job_runs([part for pair in zip(outer, inner, strict=True) for part in pair])
    assert ids(found) == [["outer0", "outer1"], ["inner0", "inner1"]]


def test_runs_inside_two_runs_around_all_ranks_are_two():
    inner = [
        run(f"{outer}{k}", (0, 9), job_id="j", rank=k, parent_run_id=outer) for k in (0, 1) for outer in "ab"
    ]
    assert ids(job_runs(inner)) == [["a0", "a1"], ["b0", "b1"]]


def test_a_rank_that_states_no_unit_is_part_of_its_job_whose_units_are_unknown():
    pair = [
        run("a", (0, 1), job_id="j", rank=0, unit="image", units=8),
        run("b", (0, 1), job_id="j", rank=1, units=8),
    ]
    (job,) = job_runs(pair)
    assert job.units is None
    (job,) = job_runs([pair[0], replace(pair[1], unit="image")])
    assert job.units == 16


def test_every_run_is_in_one_whole_in_the_order_given():
    runs = [
        run("x", (0, 1)),
        run("a1", (0, 1), job_id="j", rank=1),
        run("y", (0, 1), job_id="j"),
        run("a0", (0, 1), job_id="j", rank=0),
    ]
    assert [[r.run_id for r in w] for w in wholes(runs)] == [["x"], ["a0", "a1"], ["y"]]
    assert wholes([]) == []
