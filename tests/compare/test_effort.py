"""Effort: where and when compute ran, and the hours of engineering; and what it takes to earn it back."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec.structs import replace

from carbonlens.compare.study import compare_study
from carbonlens.domain.study import EffortPlace, Engineering, Step, Study
from carbonlens.errors import IncomparableError
from tests.compare.study_runs import rounds, run, vector

STUDY = Study(
    name="t",
    baseline="a",
    steps=(Step(name="b"), Step(name="c")),
    unit="image",
    volume_units=1000.0,
    volume_period="a week",
)
DRIFT = (1.0, 1.01, 0.99, 1.02, 0.98, 1.0)


def compared(study=STUDY, zone=None, start_us=None):
    arms = {"a": 100.0, "b": 60.0, "c": 50.0}
    runs = [
        r
        for n, e in arms.items()
        for r in rounds(n, [e * d for d in DRIFT], boundary="facility", cpu_s=1.0, u_relative=0.05)
    ]
    for name, joules in (("b", 4000.0), ("c", 10_000.0)):
        runs.append(
            run(
                name, joules, repeat=None, units=None, role="effort", boundary="facility", cpu_s=9.0,
                zone=zone, start_us=start_us, u_relative=0.05,
            )
        )  # fmt: skip
    return compare_study(study, runs, vector(), {})


def carbon(result, step="b"):
    return next(s for s in result.steps if s.step == step).effort.emissions_location_kg


def place(value, **where):
    here = vector()
    return EffortPlace(vector=replace(here, location=replace(here.location, value_kg_per_kwh=value)), **where)


def test_effort_without_a_zone_takes_the_serving_sites_factor():
    assert carbon(compared()).value == pytest.approx(4000 / 3.6e6 * 0.35)


def test_effort_takes_the_factor_of_where_it_ran():
    study = replace(STUDY, effort_places=(place(0.02, zone="se"), place(0.9, zone="PL")))
    assert carbon(compared(study, zone="SE")).value == pytest.approx(4000 / 3.6e6 * 0.02)


def test_effort_takes_the_factor_of_when_it_ran():
    march = 1_741_000_000_000_000
    study = replace(STUDY, effort_places=(place(0.5, period="2025-03"), place(0.1, period="2025")))
    assert carbon(compared(study, start_us=march)).value == pytest.approx(4000 / 3.6e6 * 0.5)
    july = march + 120 * 86_400_000_000
    assert carbon(compared(study, start_us=july)).value == pytest.approx(4000 / 3.6e6 * 0.1)


def test_effort_in_a_zone_without_a_factor_has_unknown_carbon():
    result = compared(zone="SE")
    assert (carbon(result).value, carbon(result).state) == (None, "unknown")
    assert "CL440" in {f.code for f in result.findings}
    by_measure = {b.measure: b.outcome for b in result.break_even}
    assert (by_measure["energy"], by_measure["carbon_location"]) == ("reached", "unknown")


def hours(study=STUDY, rate=None, **of_step):
    steps = tuple(replace(s, engineering_hours=of_step.get(s.name)) for s in study.steps)
    return replace(study, steps=steps, engineering=rate)


RATE = Engineering(amount_per_hour=Decimal("90"), currency="EUR", source="payroll")


def test_engineering_hours_are_part_of_the_cost_of_a_step():
    plain, priced = compared(), compared(hours(rate=RATE, b=2.0))
    costs = [next(s for s in r.steps if s.step == "b").effort.cost.value for r in (plain, priced)]
    assert costs[1] - costs[0] == pytest.approx(180.0)
    before, after = (next(b for b in r.break_even if b.measure == "cost") for r in (plain, priced))
    assert after.units.value > 1e3 * before.units.value


def test_hours_without_a_price_leave_a_lower_bound():
    result = compared(hours(b=2.0))
    assert "CL441" in {f.code for f in result.findings}
    cost = next(b for b in result.break_even if b.measure == "cost")
    assert (cost.outcome, cost.units.high) == ("may_never", None)


def test_hours_in_another_currency_are_refused():
    with pytest.raises(IncomparableError, match="USD"):
        compared(hours(rate=replace(RATE, currency="USD"), b=2.0))


def test_break_even_of_the_path_and_of_each_step_in_units_and_days():
    result = compared()
    whole = next(b for b in result.break_even if b.measure == "energy")
    # 14 kJ of work over 50 J an image; 1000 images a week.
    assert whole.units.value == pytest.approx(280)
    assert whole.days.value == pytest.approx(280 / 1000 * 7)
    own = {s.step: next(b for b in s.break_even if b.measure == "energy").units.value for s in result.steps}
    assert own == pytest.approx({"b": 100, "c": 1000})


@pytest.mark.parametrize(
    ("period", "days"),
    [
        *(
            ("a day", 1),
            ("a month", 365.2425 / 12),
            ("per year", 365.2425),
            ("Each  week", 7),
            ("quarter", 365.2425 / 4),
        ),
        # No plain period: what is not understood is unknown, and not its last word.
        *(
            (text, None)
            for text in ("a sprint", "half a year", "6 month", "per 10 day", "every other day", "")
        ),
        *((text, None) for text in ("two weeks", "a fiscal year", "11 year", "yesterday")),
    ],
)
def test_days_need_a_period_that_is_one(period, days):
    study = replace(STUDY, volume_period=period)
    assert study.per_day == (None if days is None else pytest.approx(1000 / days))
    assert replace(study, units_per_day=5.0).per_day == 5.0


@pytest.mark.parametrize(
    ("of_effort", "outcome", "state"),
    [
        ("it", "reached", "known"),
        ("device", "may_never", "unbounded"),
        ("facility", "unknown", "unknown"),
        (None, "unknown", "unknown"),
    ],
)
def test_effort_at_another_boundary_is_not_divided_by_the_saving(of_effort, outcome, state):
    """The saving is at ``it``; joules of two boundaries make no quotient."""
    study = replace(STUDY, steps=(Step(name="b"),))
    runs = [
        r for n, e in (("a", 100.0), ("b", 60.0)) for r in rounds(n, [e * d for d in DRIFT], u_relative=0.05)
    ]
    work = run("b", 4000.0, repeat=None, units=None, role="effort", boundary=of_effort, u_relative=0.05)
    result = compare_study(study, [*runs, work], vector(), {})
    energy = next(b for b in result.break_even if b.measure == "energy")
    assert (energy.outcome, energy.units.state, energy.units.high is None) == (
        outcome,
        state,
        state != "known",
    )
    assert ("CL445" in {f.code for f in result.findings}) == (of_effort != "it")


def test_two_meters_with_stated_intervals_do_not_cancel():
    """Effort on another host than serving: each meter errs by itself."""

    def stated(one):
        (r,) = one.energy
        joules = float(r.energy_j)
        return replace(one, energy=(replace(r, u_by_source_j={}, low_j=joules * 0.7, high_j=joules * 1.4),))

    def width(host):
        study = replace(STUDY, steps=(Step(name="b"),))
        runs = [r for n, e in (("a", 100.0), ("b", 60.0)) for r in rounds(n, [e * d for d in DRIFT])]
        work = run("b", 4000.0, repeat=None, units=None, role="effort", host_id=host)
        result = compare_study(study, [stated(r) for r in (*runs, work)], vector(), {})
        units = next(b for b in result.break_even if b.measure == "energy").units
        return units.high / units.low

    assert width("host-1") < 1.2
    assert width("host-2") > 2.0
