"""A job of several ranks is used whole or not at all: what one rank lacks, the job lacks."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.allocation import allocate
from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.sharing import without_double_billing
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Step, Study
from tests.accounting.device_runs import gpu
from tests.accounting.device_runs import run as on_device
from tests.compare.study_runs import rounds, run

STUDY = Study(name="t", baseline="one", steps=(Step(name="two"),), unit="image")
ALONE = [1.0, 1.01, 0.99, 1.005, 0.995, 1.0]
JOBS = 8


def without_energy(rank):
    (reading,) = rank.energy
    return replace(rank, energy=(replace(reading, energy_j=None, state="unknown"),))


FAULTS = {
    "no units": ("CL404", lambda r: replace(r, units=None)),
    "no reading": ("CL401", lambda r: replace(r, energy=())),
    "energy unknown": ("CL401", without_energy),
    "another boundary": ("CL401", lambda r: replace(r, energy=(replace(r.energy[0], boundary="device"),))),
    "negative": ("CL402", lambda r: replace(r, energy=(replace(r.energy[0], energy_j=Decimal(-1)),))),
    "recovered": ("CL416", lambda r: replace(r, status="recovered")),
    "running": ("CL416", lambda r: replace(r, status="running")),
    "failed": ("CL421", lambda r: replace(r, status="failed", error="OOM")),
}


def job(number, ranks=2, *, repeat=None, **fields):
    """Return the parts of one job of step ``two``, which takes 0.5 J an image."""
    given = {"units": 1.0 / ranks, "job_id": f"j{number}", "repeat": repeat, **fields}
    return [run("two", 0.5 / ranks, rank=k, run_id=f"two-{number}-{k}", **given) for k in range(ranks)]


def baseline():
    return [replace(r, repeat=None, run_id=f"one-{k}") for k, r in enumerate(rounds("one", ALONE))]


def compared(jobs, first=None):
    return compare_study(STUDY, [*(first or baseline()), *(r for parts in jobs for r in parts)], Vector(), {})


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(FAULTS)), st.integers(0, 2)), min_size=1, max_size=2, unique=True
    ),
    st.booleans(),
)
def test_a_job_with_a_rank_at_fault_is_left_out_whole_and_counted_as_one(faults, numbered):
    jobs = [job(n, ranks=3, repeat=n + 1 if numbered else None) for n in range(JOBS)]
    first = rounds("one", [*ALONE, 1.0, 1.0]) if numbered else None
    for n, (fault, rank) in enumerate(faults):
        jobs[n][rank] = FAULTS[fault][1](jobs[n][rank])
    result, clean = compared(jobs, first), compared(jobs[len(faults) :], first)
    ours, theirs = result.steps[0], clean.steps[0]
    assert ours.metrics.energy_by_round_j == theirs.metrics.energy_by_round_j
    assert ours.vs_previous.ratio == theirs.vs_previous.ratio
    said = {f.code: f.message for f in result.findings}
    codes = [FAULTS[fault][0] for fault, _ in faults]
    for code in codes:
        count = codes.count(code)
        assert said[code].startswith(
            "1 run of 3 ranks (two-" if count == 1 else f"{count} runs of step 'two'"
        )


@pytest.mark.parametrize("numbered", [False, True])
def test_units_that_one_rank_counts_for_all_are_no_saving(numbered):
    jobs = [job(n, units=None, repeat=n + 1 if numbered else None) for n in range(JOBS)]
    jobs = [[replace(first, units=Decimal(1)), *others] for first, *others in jobs]
    result = compared(jobs, rounds("one", [*ALONE, 1.0, 1.0]) if numbered else None)
    assert (result.steps[0].verdict, result.steps[0].decision) == ("inconclusive", "undetermined")
    (said,) = [f for f in result.findings if f.code == "CL404"]
    assert said.message.startswith(f"{JOBS} runs of step 'two' state no units of work in one rank or more")
    assert "count the units of each rank's own part" in said.mend


def test_a_rank_that_did_nothing_and_says_so_is_part_of_its_job():
    jobs = [job(n, units=1.0) for n in range(JOBS)]
    jobs = [[first, replace(second, units=Decimal(0))] for first, second in jobs]
    assert compared(jobs).steps[0].metrics.energy_by_round_j == pytest.approx([0.5] * JOBS)


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_job_is_one_run_where_runs_are_the_unit(ranks):
    first = [replace(r, units=None, unit=None) for r in baseline()]
    jobs = [job(n, ranks, units=None, unit=None) for n in range(JOBS)]
    runs = [*first, *(r for parts in jobs for r in parts)]
    result = compare_study(study_from_runs(runs), runs, Vector(), {})
    assert result.steps[0].metrics.energy_by_round_j == pytest.approx([0.5] * JOBS)


def test_the_ranks_of_a_failed_attempt_take_nothing_from_the_next():
    first = [replace(r, attempt=1) for r in job(0)]
    first[1] = replace(first[1], status="failed", error="OOM")
    again = [[replace(r, attempt=2, run_id=f"{r.run_id}-again") for r in job(0)]]
    result = compared([first, *again, *(job(n) for n in range(1, JOBS))])
    assert len(result.steps[0].metrics.energy_by_round_j) == JOBS
    (said,) = [f.message for f in result.findings if f.code == "CL421"]
    assert said == "1 run of 2 ranks (two-0-0) of step 'two' failed and is left out: OOM"


def test_a_job_with_a_rank_that_nothing_divides_is_left_out_whole():
    def shared(run_id, start, device, **fields):
        return on_device(
            run_id, (start, start + 10), gpu(1000, device), study="t", role="variant", units=1, **fields
        )

    ranks = [
        shared(f"two-{n}-{k}", 20 * n, f"GPU-{k}", step="two", job_id=f"j{n}", rank=k)
        for n in range(3)
        for k in (0, 1)
    ]
    runs = [*ranks, shared("one-0", 5, "GPU-1", step="one"), shared("one-1", 100, "GPU-1", step="one")]
    kept, said = without_double_billing(runs, allocate(runs), STUDY)
    assert [r.run_id for r in kept] == ["two-1-0", "two-1-1", "two-2-0", "two-2-1", "one-1"]
    assert "CL322" in {f.code for f in said}
