"""Arms: stated intervals, single rounds, and rounds that do not match."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from msgspec.structs import replace

from carbonlens.compare.contrast import log_change, saving
from carbonlens.compare.observation import measured_energy
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Reading
from carbonlens.domain.study import Step, Study
from carbonlens.domain.units import Z_95
from tests.compare.study_runs import rounds, run
from tests.compare.test_effects import BASE, arm, shifted

STUDY = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")


def reading(value, low=None, high=None, **more):
    return Reading(
        component="total",
        energy_j=Decimal(repr(value)),
        boundary="it",
        grade="C",
        method="table",
        low_j=low,
        high_j=high,
        **more,
    )


def energy_of(*readings):
    return measured_energy(run("a", 1.0, energy=readings))


@pytest.mark.parametrize(
    ("low", "high", "u"),
    [
        (80.0, 125.0, 100 * math.log(1.25) / Z_95),
        (80.0, None, 100 * math.log(1.25) / Z_95),
        (None, 125.0, 100 * math.log(1.25) / Z_95),
        (0.0, None, 100 / Z_95),
    ],
)
def test_a_stated_interval_becomes_one_named_error(low, high, u):
    got = energy_of(reading(100.0, low, high))
    assert got.u_by_source == pytest.approx({"stated:total:table:host-1": u})


def test_a_stated_interval_of_zero_energy_is_symmetric():
    assert energy_of(reading(0.0, 0.0, 3.0)).u_total == pytest.approx(3.0 / Z_95)


def test_errors_given_apart_come_before_a_stated_interval():
    got = energy_of(reading(100.0, 50.0, 200.0, u_random_j=1.0))
    assert (got.u_by_source, got.u_random) == ({}, 1.0)


def test_stated_intervals_of_several_readings_are_kept_in_their_sum():
    other = Reading(component="ram", energy_j=Decimal(10), boundary="it", grade="E", method="datasheet")
    got = energy_of(reading(100.0, 80.0, 125.0), other)
    assert got.value == 110.0
    assert got.u_total > 10


def test_the_assumption_about_stated_intervals_is_said():
    runs = [
        run(step, e, repeat=i, energy=(reading(e, e / 1.1, e * 1.1),))
        for step, energies in (("a", BASE), ("b", shifted(0.5)))
        for i, e in enumerate(energies, start=1)
    ]
    result = compare_study(STUDY, runs, Vector(), {})
    assert any(f.code == "CL414" for f in result.findings)
    assert result.steps[0].verdict == "better"


def test_a_single_round_keeps_its_own_random_error():
    one = run("a", 100.0, energy=(reading(100.0, u_random_j=4.0),))
    result = compare_study(STUDY, [one, run("b", 50.0)], Vector(), {})
    assert result.baseline_amounts.energy_j.u_random == 4.0
    # One round shows no scatter, so no interval of a change is claimed.
    assert result.steps[0].savings.energy_j.low is None


def test_arms_with_other_rounds_are_not_paired_in_joules():
    """The means are over other rounds, so a paired scatter would not be theirs."""
    full = arm("r", BASE)
    part = arm("s", shifted(0.5)[:3])
    paired = saving(arm("r", BASE[:3]), part).energy_j
    loose = saving(full, part).energy_j
    assert loose.value == pytest.approx(math.fsum(BASE) / 5 - math.fsum(shifted(0.5)[:3]) / 3)
    assert loose.u_random != pytest.approx(paired.u_random)


def test_arms_numbered_without_a_common_round_are_independent_samples():
    later = arm("s", BASE)
    early = compare_study(
        STUDY,
        [*rounds("a", BASE), *(run("b", e, repeat=i) for i, e in enumerate(BASE, start=11))],
        Vector(),
        {},
    )
    unnumbered = compare_study(
        STUDY,
        [run(n, e, repeat=None, run_id=f"{n}{i}") for n in "ab" for i, e in enumerate(BASE)],
        Vector(),
        {},
    )
    got, welch = (replace(r.steps[0].vs_previous, drift_per_round=None) for r in (early, unnumbered))
    assert got == welch
    assert got.ratio.value == pytest.approx(1.0)
    assert "CL428" in {f.code for f in early.findings}
    assert log_change([(1.0, later), (-1.0, arm("r", BASE))]).over.n == 5


def test_a_measure_in_two_units_has_no_difference():
    euro = arm("a", BASE, cost=None)
    from carbonlens.domain.money import Money

    dollar = arm("b", BASE, cost=Money(Decimal(1), "USD"))
    assert saving(euro, dollar).cost.state == "unknown"
    assert saving(euro, dollar).energy_j.value == 0.0


def of_ranks(step, energy_j, job, **more):
    """Return what the two ranks of a job recorded: each its own part."""
    parts = {"units": 0.5, "repeat": None, "job_id": job, **more}
    return [run(step, energy_j / 2, rank=k, run_id=f"{step}-{job}-{k}", **parts) for k in (0, 1)]


def test_the_ranks_of_a_job_are_one_observation():
    alone = [run(s, e, repeat=None, run_id=f"{s}-{k}") for s, e in (("a", 4.0), ("b", 3.0)) for k in range(6)]
    ranked = [
        part for s, e in (("a", 4.0), ("b", 3.0)) for job in range(6) for part in of_ranks(s, e, f"{s}{job}")
    ]
    one, two = (compare_study(STUDY, runs, Vector(), {}).steps[0] for runs in (alone, ranked))
    assert two.metrics.rounds == one.metrics.rounds == 6
    assert two.metrics.energy_by_round_j == pytest.approx(one.metrics.energy_by_round_j)
    assert two.vs_previous.ratio == one.vs_previous.ratio


def test_only_runs_that_are_no_ranks_of_one_job_are_said_to_share_a_round():
    ranked = [r for k in range(6) for s in "ab" for r in of_ranks(s, 2.0, f"{s}{k}")]
    numbered = [replace(r, repeat=int(r.job_id[1])) for r in ranked]
    twice = [*numbered, *(replace(r, job_id="again", run_id=f"{r.run_id}-2") for r in numbered[:2])]
    said = [
        [f.message for f in compare_study(STUDY, runs, Vector(), {}).findings if f.code == "CL406"]
        for runs in (ranked, numbered, twice)
    ]
    assert said[:2] == [[], []]
    assert len(said[2]) == 1
    assert said[2][0].startswith("1 run shares a round of step 'a'")


def test_leaving_out_the_grade_is_no_surer_than_stating_one():
    """The scatter of the rounds says nothing of what the meter leaves open: no interval then."""

    def saved(u_relative):
        runs = [
            *rounds("a", BASE, u_relative=u_relative),
            *rounds("b", [0.7 * x for x in BASE], u_relative=u_relative),
        ]
        result = compare_study(STUDY, runs, Vector(), {})
        return result.steps[0], result.total.energy_j

    (graded, total), (bare, bare_total) = saved(0.025), saved(0.0)
    assert graded.savings.energy_j.low < total.value < total.high
    for estimate in (bare.savings.energy_j, bare.attribution.energy_j, bare.would_have.energy_j, bare_total):
        assert estimate.value == pytest.approx(total.value)
        assert (estimate.low, estimate.high) == (None, None)
    # In the ratio an error of the meter cancels, stated or not.
    assert bare.vs_previous.ratio.low == pytest.approx(graded.vs_previous.ratio.low)
    assert (bare.verdict, bare.decision) == (graded.verdict, graded.decision)
