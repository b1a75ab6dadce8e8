"""Cost of effort: one currency, what the runs state, and lower bounds where a part has no price."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec.structs import replace

from carbonlens.compare.selecting import with_combinations
from carbonlens.compare.study import compare_study, material_of
from carbonlens.domain.factor import Price, Vector
from carbonlens.domain.money import Money
from carbonlens.domain.study import EffortPlace, Engineering, Step, Study
from carbonlens.errors import IncomparableError
from tests.compare.study_runs import rounds, run

DRIFT = (1.0, 1.01, 0.99, 1.02, 0.98, 1.0)
RATE = Engineering(amount_per_hour=Decimal("90"), currency="EUR", source="payroll")


def priced(currency, amount="0.2"):
    price = Price(
        price_id=f"p:{currency}",
        amount=Decimal(amount),
        currency=currency,
        per="kWh",
        period="2026",
        source="s",
    )
    machine = replace(price, price_id=f"m:{currency}", per="core_hour", amount=Decimal(0))
    return Vector(electricity=price, machine=machine, pue=1.1, pue_source="s")


def study(rate=None, places=(), **hours):
    steps = tuple(Step(name=n, engineering_hours=hours.get(n)) for n in "bc")
    return Study(name="t", baseline="a", steps=steps, unit="image", engineering=rate, effort_places=places)


def arms(costs=None):
    """Return three arms; ``costs`` are what a round of each says it cost, in EUR."""
    return [
        r
        for n, joules in (("a", 100.0), ("b", 60.0), ("c", 50.0))
        for r in rounds(
            n,
            [joules * d for d in DRIFT],
            u_relative=0.05,
            boundary="facility",
            cpu_s=1.0,
            cost=None if costs is None else Money(Decimal(costs[n]), "EUR"),
        )
    ]


def effort(step, joules=4000.0, **fields):
    number = fields.pop("number", 1)
    return run(
        step, joules, repeat=None, units=None, role="effort", u_relative=0.05, boundary="facility", cpu_s=1.0,
        **{"run_id": f"effort-{step}-{number}", **fields},
    )  # fmt: skip


STATED = {"a": "1.0", "b": "0.5", "c": "0.4"}


def cost_of(result):
    return next(b for b in result.break_even if b.measure == "cost")


@pytest.mark.parametrize("hours", [{"b": 3.0}, {"c": 3.0}])
def test_engineering_priced_and_electricity_not_is_a_lower_bound(hours):
    made = next(n for n in "bc" if n not in hours)
    result = compare_study(study(RATE, **hours), [*arms(), effort(made)], Vector(), {})
    cost = result.accepted_effort.cost
    assert (cost.value, cost.unit, cost.state, cost.high) == (270.0, "EUR", "unbounded", None)
    (told,) = [f for f in result.findings if f.code == "CL427"]
    assert (told.severity, made in told.message) == ("warning", True)
    energy = next(b for b in result.break_even if b.measure == "energy")
    assert energy.units.value == pytest.approx(4000 / 50)


def test_no_price_at_all_is_unknown_and_no_lower_bound():
    result = compare_study(study(), [*arms(), effort("b"), effort("c")], Vector(), {})
    assert result.accepted_effort.cost.value is None
    assert not any(f.code == "CL427" for f in result.findings)


def test_what_effort_runs_state_is_their_cost():
    paid = {"cost": Money(Decimal(30), "EUR")}
    work = [effort("b", **paid), effort("c", **paid)]
    result = compare_study(study(), [*arms(STATED), *work], Vector(), {})
    assert (result.accepted_effort.cost.value, result.accepted_effort.cost.state) == (60.0, "known")
    assert cost_of(result).units.value == pytest.approx(60 / 0.6)
    with_hours = compare_study(study(RATE, b=3.0, c=2.0), [*arms(STATED), *work], Vector(), {})
    assert with_hours.accepted_effort.cost.value == pytest.approx(510.0)
    assert with_hours.accepted_effort.cost.state == "known"
    assert "CL309" not in {f.code for f in result.findings}


def test_a_price_vector_comes_before_what_effort_runs_state():
    work = [effort(n, cost=Money(Decimal(30), "EUR")) for n in "bc"]
    result = compare_study(study(), [*arms(), *work], priced("EUR"), {})
    assert result.accepted_effort.cost.value == pytest.approx(8000 / 3.6e6 * 0.2)


US = EffortPlace(zone="US", vector=priced("USD"))
MIXED = {
    "effort in a place priced otherwise than the saving": (
        study(places=(US,)), [*arms(), effort("b", zone="US"), effort("c")], priced("EUR"), "USD.*EUR",
    ),
    "only effort there": (study(places=(US,)), [*arms(), effort("b", zone="US")], priced("EUR"), "USD.*EUR"),
    "two places of one step": (
        study(places=(US, EffortPlace(zone="DE", vector=priced("EUR")))),
        [*arms(), effort("b", zone="US"), effort("b", zone="DE", number=2)], Vector(), "USD.*EUR",
    ),
    "two places of two steps": (
        study(places=(US, EffortPlace(zone="DE", vector=priced("EUR")))),
        [*arms(), effort("b", zone="US"), effort("c", zone="DE")], Vector(), "USD.*EUR",
    ),
    "engineering and what the arms state": (
        study(replace(RATE, currency="USD"), b=1.0), arms(STATED), Vector(), "engineering.*USD.*EUR",
    ),
    "engineering and the price vector": (
        study(replace(RATE, currency="USD"), b=1.0), arms(), priced("EUR"), "engineering.*USD.*EUR",
    ),
    "what effort and arms state": (
        study(), [*arms(STATED), effort("b", cost=Money(Decimal(30), "USD"))], Vector(), "USD.*EUR",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MIXED)
def test_mixed_currencies_are_refused_with_the_mend_in_compare_and_check(case):
    chosen, runs, vector, said = MIXED[case]
    for use in (compare_study, material_of):
        with pytest.raises(IncomparableError, match=said) as refused:
            use(chosen, runs, vector, {})
        assert "one currency" in refused.value.mend


def planned(cells, **hours):
    """Return a planned lattice's study and runs: hours by optimization, cells by their letters."""
    given = Study(
        name="t", baseline="baseline", steps=(), unit="image", engineering=RATE,
        optimizations=("p", "q"), optimization_hours=hours,
    )  # fmt: skip
    runs = [
        run("+".join(cell) or "baseline", joules * d, repeat=i, on=tuple(cell), u_relative=0.05)
        for cell, joules in cells.items()
        for i, d in enumerate(DRIFT, start=1)
    ]
    return with_combinations(given, runs), runs


@pytest.mark.parametrize(
    "cells",
    [
        {"": 100.0, "p": 70.0, "q": 80.0, "pq": 56.0},
        {"": 100.0, "p": 70.0, "pq": 56.0},  # a chain: a ladder
        {"": 100.0, "pq": 56.0},
    ],
    ids=["lattice", "chain", "full set alone"],
)
def test_hours_of_a_planned_lattice_are_effort_of_the_full_set(cells):
    chosen, runs = planned(cells, p=2.0, q=3.0)
    result = compare_study(chosen, runs, Vector(), {})
    assert result.accepted_effort.cost.value == pytest.approx(450.0)


def test_hours_of_an_optimization_that_was_not_measured_alone_count_too():
    cells = {"": 100.0, "p": 70.0, "q": 80.0, "r": 90.0, "pq": 56.0, "pqr": 50.0}
    given, runs = planned(cells, p=2.0, q=3.0)
    some = [r for r in runs if r.step != "r"]
    given = replace(
        given, steps=(), optimizations=("p", "q", "r"), optimization_hours={"p": 1.0, "q": 1.0, "r": 5.0}
    )
    result = compare_study(with_combinations(given, some), some, Vector(), {})
    assert result.mode == "lattice"
    assert result.accepted_effort.cost.value == pytest.approx(7 * 90.0)
    assert next(s for s in result.steps if s.step == "r").effort.cost.value == pytest.approx(450.0)
