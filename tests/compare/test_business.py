"""Business case: golden figures through the whole, regimes of cash, risk, and what is not known."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.compare.business import business_case
from carbonlens.domain.business import CarbonPrice, OneOff, RunningCost, Scenario, Trajectory
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.study import Engineering, Step
from carbonlens.errors import ConfigError, IncomparableError
from tests.compare.business_cases import ON_DEMAND, golden, measured, stated
from tests.compare.study_runs import demo_comparison, vector

DEMO = demo_comparison()
VOLUME = DEMO.study.volume_units
SAVED = DEMO.total.cost.value / VOLUME
"""Money that an image saves on the accepted path."""


def codes(result):
    return {f.code for f in result.findings}


def test_the_golden_case_comes_out_of_the_whole():
    result = business_case(DEMO, golden())
    one, end = result.expected, result.year_end
    assert one.npv.value == pytest.approx(7_383.89, abs=0.005)
    assert one.payback_years == pytest.approx(2.143, abs=5e-4)
    assert end.npv == pytest.approx(6_079.36, abs=0.005)
    assert end.rates.rate == pytest.approx(0.18913, abs=5e-6)
    assert end.payback_years == pytest.approx(2.143, abs=5e-4)
    assert end.discounted_payback_years == pytest.approx(2.453, abs=5e-4)
    assert one.flows == pytest.approx((-30_000, *[14_000 / 12] * 36))
    assert one.cash.value == pytest.approx(42_000)
    assert codes(result) == set()


def test_measured_money_is_the_comparisons():
    result = business_case(DEMO, measured(volume={"expected": Scenario(units_per_month=1e12)}))
    parts = {s.what: s.unit_cost.value for s in result.streams}
    assert set(parts) == {"electricity", "machine"}
    assert sum(parts.values()) == pytest.approx(SAVED)
    kwh = DEMO.total.energy_j.value / VOLUME / 3.6e6 * 1.2
    assert parts["electricity"] == pytest.approx(kwh * 0.20)
    assert result.expected.cash.value == pytest.approx(36e12 * SAVED)
    assert result.expected.energy_j.value == pytest.approx(36e12 * DEMO.total.energy_j.value / VOLUME)


def test_a_comparison_for_a_volume_gives_the_same_case():
    per_unit = demo_comparison(volume_units=None, volume_period=None)
    assert (DEMO.basis, per_unit.basis) == ("volume", "per_unit")
    one, other = (business_case(c, measured()) for c in (DEMO, per_unit))
    assert one.expected.npv.value == pytest.approx(other.expected.npv.value)


def test_the_interval_of_npv_is_that_of_the_comparison():
    result = business_case(DEMO, measured(volume={"expected": Scenario(units_per_month=1e12)}))
    npv = result.expected.npv
    assert set(npv.u_by_source) == {"cpu_model:example", "power:example"}
    assert npv.low < npv.value < npv.high
    # The errors of electricity, over the discounted units.
    units = result.expected.cash_value.value / SAVED
    electricity = next(s.unit_cost for s in result.streams if s.what == "electricity")
    price = units * electricity.u_by_source["power:example"]
    assert npv.u_by_source["power:example"] == pytest.approx(price, rel=1e-6)


# Regimes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "months", "code"),
    [
        (stated(), 36, None),
        (stated(regime="committed", until="2027-06-30"), 30, None),
        (stated(regime="reserved", until="2027-06-01"), 30, None),
        (stated(regime="committed", until="2026-12-31"), 36, "CL843"),
        (stated(regime="committed", until="2029-11-30"), 1, None),
        (stated(regime="committed", until="2029-12-01"), 0, "CL844"),
        (stated(regime="owned"), 0, None),
        (stated(regime="owned", electricity_cost=Decimal("0.25")), 9, None),
    ],
)
def test_a_regime_says_from_when_a_saving_is_cash(rule, months, code):
    result = business_case(DEMO, golden(savings=(rule,), discount_rate=0.0))
    one, whole = result.expected, 36 * 14_000 / 12
    assert one.cash.value == pytest.approx(months * 14_000 / 12)
    assert one.cash.value + one.non_cash_value.value == pytest.approx(whole)
    assert one.npv.value == pytest.approx(one.cash.value - 30_000)
    assert codes(result) - {"CL847", "CL852"} == ({code} if code else set())


def test_owned_hardware_earns_its_electricity_and_a_purchase_that_waits():
    bought = stated(
        regime="owned",
        purchase_amount=Decimal(10_000),
        purchase_date="2027-03-15",
        deferred_to="2028-03-15",
    )
    flows = business_case(DEMO, golden(savings=(bought,), one_offs=())).expected.flows
    assert flows[3] == 10_000
    assert flows[15] == -10_000
    assert sum(map(abs, flows)) == 20_000
    never = replace(bought, deferred_to=None)
    assert sum(business_case(DEMO, golden(savings=(never,), one_offs=())).expected.flows) == 10_000


def test_a_purchase_outside_the_horizon_is_not_counted_and_said():
    late = stated(regime="owned", purchase_amount=Decimal(10_000), purchase_date="2031-01-01")
    result = business_case(DEMO, golden(savings=(late,)))
    assert "CL845" in codes(result)
    assert not any(result.expected.flows[1:])


def test_a_purchase_put_off_beyond_the_horizon_is_paid_in_its_last_month():
    bought = stated(
        regime="owned",
        purchase_amount=Decimal(10_000),
        purchase_date="2027-03-15",
        deferred_to="2030-01-01",
    )
    result = business_case(DEMO, golden(savings=(bought,), one_offs=()))
    assert result.expected.flows[3] == 10_000
    assert result.expected.flows[36] == -10_000
    assert result.expected.npv.value < 10_000 * (1.08 ** (-3 / 12) - 1.08 ** (-36 / 12)) + 1e-6
    assert "CL845" in codes(result)


def test_an_expense_without_a_rule_is_cash_and_a_gain_without_one_is_told():
    power = replace(ON_DEMAND, name="power", of="electricity")
    machine = replace(ON_DEMAND, name="vm", of="machine")
    whole = business_case(DEMO, measured(savings=(power, machine)))
    gain = business_case(DEMO, measured(savings=(power,)))
    assert "CL854" in codes(gain)
    assert "CL854" not in codes(whole)
    assert gain.expected.npv.value < whole.expected.npv.value
    # The same step, were its machine hours dearer than those it saves: left out, they would favour it.
    total = DEMO.total
    dearer = replace(DEMO, total=replace(total, cost=replace(total.cost, value=-total.cost.value)))
    both, alone = (business_case(dearer, measured(savings=s)) for s in ((power, machine), (power,)))
    assert alone.expected.npv.value == pytest.approx(both.expected.npv.value)
    assert "CL846" in codes(alone)


@pytest.mark.parametrize("regime", ["committed", "reserved", "owned"])
def test_what_costs_more_is_cash_in_every_regime(regime):
    until = None if regime == "owned" else "2030-12-31"
    rule = stated(regime=regime, until=until, unit_cost=Decimal(-1))
    result = business_case(DEMO, golden(savings=(rule,), discount_rate=0.0))
    assert result.expected.npv.value == pytest.approx(-30_000 - 42_000)
    assert "CL846" in codes(result)
    assert result.break_even.outcome == "never"


def test_the_machine_hours_of_owned_hardware_are_no_cash():
    result = business_case(DEMO, measured(savings=(replace(ON_DEMAND, regime="owned"),)))
    cash = {s.what: s.cash_from for s in result.streams}
    assert cash == {"electricity": 1, "machine": None}
    assert 0 < result.expected.cash_value.value < result.expected.non_cash_value.value


def test_electricity_and_machine_may_be_bought_in_different_ways():
    power = replace(ON_DEMAND, name="power", of="electricity")
    machine = replace(ON_DEMAND, name="vm", of="machine", regime="reserved", until="2027-12-31")
    result = business_case(DEMO, measured(savings=(power, machine)))
    assert {s.name: s.cash_from for s in result.streams} == {"power": 1, "vm": 13}


# Trajectories, growth, delay, break-even --------------------------------------------


def test_growth_and_prices_change_evenly_over_the_year():
    moved = golden(
        volume={"expected": Scenario(units_per_month=1000.0, growth=0.21)},
        savings=(stated(change_per_year=-0.19),),
    )
    flows = business_case(DEMO, moved).expected.flows
    assert flows[1] == pytest.approx(1000)
    assert flows[13] == pytest.approx(1000 * 1.21 * 0.81)
    assert flows[7] == pytest.approx(1000 * 1.1 * 0.9)


def test_an_index_holds_by_calendar_year_and_its_last_level_stays():
    index = Trajectory(index={"2027": 1.0, "2028": 2.0})
    volume = {"expected": Scenario(units_per_month=1e12)}
    case = measured(volume=volume, electricity_price=index, start="2027-07")
    plain = business_case(DEMO, measured(volume=volume, start="2027-07")).expected.flows
    result = business_case(DEMO, case)
    more = [a - b for a, b in zip(result.expected.flows[1:], plain[1:], strict=True)]
    electricity = next(s.unit_cost.value for s in result.streams if s.what == "electricity")
    assert more == pytest.approx([0.0] * 6 + [1e12 * electricity] * 30)
    assert "CL849" in codes(result)


def test_the_grid_moves_emissions_and_no_money():
    still, moving = (
        business_case(DEMO, measured(grid=Trajectory(change_per_year=c))).expected for c in (0.0, -0.5)
    )
    assert moving.emissions_location_kg.value < still.emissions_location_kg.value
    assert moving.emissions_market_kg.value == still.emissions_market_kg.value
    assert moving.npv.value == still.npv.value


def test_the_carbon_price_stands_beside_npv():
    without = business_case(DEMO, measured())
    priced = business_case(DEMO, measured(carbon_price=CarbonPrice(amount_per_tonne=Decimal(100))))
    one = priced.expected
    assert one.npv == without.expected.npv
    assert without.expected.carbon_location is None
    share = one.carbon_location.value / one.emissions_location_kg.value
    assert 0 < share < 0.1
    at_once = measured(carbon_price=CarbonPrice(amount_per_tonne=Decimal(100)), discount_rate=0.0,
                       discount_low=None, discount_high=None)  # fmt: skip
    plain = business_case(DEMO, at_once).expected
    assert plain.carbon_location.value == pytest.approx(plain.emissions_location_kg.value * 0.1)
    assert plain.carbon_embodied.value == pytest.approx(plain.embodied_kg.value * 0.1)


def test_running_costs_are_paid_every_month():
    result = business_case(
        DEMO, golden(running_costs=(RunningCost(name="licence", amount_per_month=Decimal(100)),))
    )
    assert result.expected.flows[1:] == pytest.approx([14_000 / 12 - 100] * 36)
    assert result.expected.cash.value == pytest.approx(42_000)


def test_a_months_delay_costs_the_first_month_less_the_interest_on_what_is_paid():
    case = golden()
    result = business_case(DEMO, case)
    shorter = list(result.expected.flows)
    now, month = result.expected.npv.value, 1.08 ** (-1 / 12)
    late = sum(f * 1.08 ** (-n / 12) for n, f in enumerate(shorter) if n > 1) + shorter[0] * month
    assert result.cost_of_delay.value == pytest.approx(now - late)
    assert result.cost_of_delay.value == pytest.approx(14_000 / 12 * month - 30_000 * (1 - month))


def test_a_purchase_due_in_the_first_month_is_made_when_the_start_is_late():
    bought = stated(
        regime="owned",
        purchase_amount=Decimal(10_000),
        purchase_date="2027-01-31",
        deferred_to="2028-01-31",
    )
    result = business_case(DEMO, golden(savings=(bought,), one_offs=()))
    assert result.cost_of_delay.value == pytest.approx(10_000 * (1.08 ** (-1 / 12) - 1.08 ** (-13 / 12)))


@settings(max_examples=20, deadline=None)
@given(
    paid=st.integers(1, 10**6), rate=st.floats(0, 1), months=st.integers(1, 60), running=st.integers(0, 50)
)
def test_npv_is_zero_at_the_break_even_volume(paid, rate, months, running):
    costs = (RunningCost(name="r", amount_per_month=Decimal(running)),)
    case = golden(
        one_offs=(OneOff(name="w", amount=Decimal(paid)),),
        discount_rate=rate,
        horizon_months=months,
        running_costs=costs,
    )
    even = business_case(DEMO, case).break_even.units.value
    again = replace(case, volume={"expected": Scenario(units_per_month=even)})
    assert business_case(DEMO, again).expected.npv.value == pytest.approx(
        0, abs=1e-6 * (paid + running * months)
    )


def test_nothing_paid_breaks_even_at_once():
    result = business_case(DEMO, golden(one_offs=()))
    assert result.break_even.units.value == 0
    assert result.expected.payback_years == 0
    assert result.expected.rates.outcome == "none"
    assert "CL852" in codes(result)


def test_a_loss_breaks_even_at_no_volume_though_nothing_was_paid():
    result = business_case(DEMO, golden(savings=(stated(unit_cost=Decimal(-1)),), one_offs=()))
    assert result.expected.npv.value < 0
    assert result.break_even.outcome == "never"
    assert result.break_even.units.value is None


def test_an_unknown_saving_has_an_unknown_break_even_though_nothing_was_paid():
    bare = demo_comparison(with_vector=vector(electricity=None, machine=None))
    even = business_case(bare, measured(one_offs=(), compute_effort="stated")).break_even
    assert even.outcome == "unknown"
    assert even.units.value is None


def test_a_horizon_shorter_than_the_payback_is_said():
    result = business_case(DEMO, golden(horizon_months=12))
    assert result.expected.payback_years is None
    assert "CL847" in codes(result)


# Risk ----------------------------------------------------------------------------


def test_the_tornado_moves_one_input_at_a_time_and_ranks_them():
    case = measured(electricity_price=Trajectory(change_per_year=0.02, low=-0.05, high=0.10))
    result = business_case(DEMO, case)
    bars = {b.key: b for b in result.tornado}
    swings = [b.swing for b in result.tornado]
    assert swings == sorted(swings, reverse=True)
    assert set(bars) >= {
        "volume",
        "rate",
        "electricity",
        "one_off_1",
        "source_scatter",
        "source_cpu_model:example",
    }
    low = business_case(DEMO, replace(case, volume={"expected": case.volume["low"]}))
    assert bars["volume"].npv_low == pytest.approx(low.expected.npv.value)
    dear = business_case(DEMO, replace(case, discount_rate=0.12, discount_high=0.12))
    assert bars["rate"].npv_high == pytest.approx(dear.expected.npv.value)
    assert bars["one_off_1"].npv_high == pytest.approx(result.expected.npv.value - 60 * 95)
    npv = result.expected.npv
    model = bars["source_cpu_model:example"]
    assert model.npv_high - model.npv_low == pytest.approx(
        2 * 1.959964 * npv.u_by_source["cpu_model:example"], rel=1e-6
    )


def test_what_has_no_range_is_named():
    result = business_case(DEMO, golden())
    assert result.unranged == ("volume", "discount rate", "work")
    assert result.tornado == ()


def test_draws_come_again_with_their_seed_and_differ_with_another():
    one, again, other = (business_case(DEMO, measured(seed=s)).monte_carlo for s in (1, 1, 2))
    assert one == again
    assert one.low != other.low
    assert (one.seed, one.generator, one.draws) == (1, "PCG64", 2_000)


def test_draws_without_ranges_are_the_normal_interval():
    volume = {"expected": Scenario(units_per_month=1e12)}
    case = measured(volume=volume, one_offs=(), discount_low=None, discount_high=None, draws=100_000)
    result = business_case(DEMO, case)
    npv, drawn = result.expected.npv, result.monte_carlo
    assert drawn.median == pytest.approx(npv.value, rel=1e-3)
    assert drawn.high - drawn.low == pytest.approx(npv.high - npv.low, rel=0.02)


def test_draws_of_a_range_stay_within_it_with_the_expected_in_the_middle():
    case = golden(
        volume={
            "low": Scenario(units_per_month=1000.0),
            "expected": Scenario(units_per_month=14_000 / 12),
            "high": Scenario(units_per_month=3000.0),
        },
        draws=20_000,
    )
    result = business_case(DEMO, case)
    drawn, by = result.monte_carlo, result.scenarios
    assert by["low"].npv.value < drawn.low < drawn.high < by["high"].npv.value
    assert drawn.median == pytest.approx(by["expected"].npv.value, abs=150)


def test_one_error_of_saving_and_effort_cancels_in_the_draws():
    # The effort is priced with the same electricity as the saving: its error is drawn once.
    result = business_case(DEMO, measured())
    effort = next(o.amount for o in result.one_offs if o.kind == "compute")
    assert effort.u_by_source["power:example"] > 0
    saving = sum(w.unit_cost.u_by_source.get("power:example", 0.0) for w in result.streams)
    assert saving > 0
    net = result.expected.npv.u_by_source["power:example"]
    assert net < result.expected.cash_value.u_by_source["power:example"]


# What is not known -------------------------------------------------------------------


def test_a_rejected_or_undetermined_step_gives_no_cash():
    for decision in ("reject", "undetermined"):
        result = business_case(replace(DEMO, total_decision=decision), measured())
        assert result.adopted == ()
        assert result.expected.cash.value == 0
        assert result.expected.energy_j.value == 0
        assert "CL840" in codes(result)
    nothing = replace(DEMO, total=None, path=(DEMO.study.baseline,), accepted_effort=None)
    result = business_case(nothing, golden(compute_effort="ledger"))
    assert result.expected.npv.value == pytest.approx(-30_000)
    assert not result.is_at_most


def test_only_steps_of_the_path_are_counted():
    result = business_case(DEMO, measured())
    assert result.adopted == ("onnx", "pruned", "static-int8")
    rejected = [s.step for s in DEMO.steps if s.status != "accepted"]
    assert rejected
    assert not set(rejected) & set(result.adopted)


def test_a_missing_price_leaves_cash_unknown_and_carbon_known():
    unpriced = demo_comparison(with_vector=vector(electricity=None, machine=None))
    result = business_case(unpriced, measured())
    one = result.expected
    assert one.npv.value is None
    assert one.cash.value is None
    assert one.rates is None
    assert one.payback_years is None
    assert one.flows == ()
    assert result.monte_carlo is None
    assert result.tornado == ()
    assert result.year_end.npv is None
    assert one.emissions_location_kg.value > 0
    assert "CL842" in codes(result)
    assert "CL850" not in codes(result)


def test_one_missing_price_of_two_is_no_smaller_saving():
    result = business_case(demo_comparison(with_vector=vector(machine=None)), measured())
    assert result.expected.npv.value is None
    assert "CL842" in codes(result)


def test_a_part_that_is_not_told_apart_is_unknown():
    unpriced = demo_comparison(with_vector=vector(electricity=None, machine=None))
    total = replace(unpriced.total, cost=Estimate(value=1e-9, unit="EUR", u_random=1e-11, signed=True))
    stated_by_runs = replace(unpriced, total=total)
    whole = business_case(stated_by_runs, measured())
    assert [s.what for s in whole.streams] == ["cost"]
    assert whole.expected.npv.value is not None
    for rule in (replace(ON_DEMAND, of="electricity"), replace(ON_DEMAND, of="machine")):
        result = business_case(stated_by_runs, measured(savings=(rule,)))
        assert result.expected.npv.value is None
        assert "CL851" in codes(result)
    moved = business_case(stated_by_runs, measured(machine_price=Trajectory(change_per_year=-0.1)))
    assert "CL851" in codes(moved)
    assert moved.expected.npv.value == whole.expected.npv.value
    owned = business_case(stated_by_runs, measured(savings=(replace(ON_DEMAND, regime="owned"),)))
    assert owned.expected.cash.value == 0
    assert "CL851" in codes(owned)


def test_effort_that_nobody_recorded_makes_npv_at_most():
    silent = business_case(replace(DEMO, accepted_effort=None), measured())
    known = business_case(DEMO, measured())
    assert silent.is_at_most
    assert not known.is_at_most
    assert "CL841" in codes(silent)
    assert silent.one_off.state == "unbounded"
    assert silent.expected.npv.value > known.expected.npv.value
    part = replace(DEMO.accepted_effort, cost=replace(DEMO.accepted_effort.cost, state="unbounded"))
    assert business_case(replace(DEMO, accepted_effort=part), measured()).is_at_most


def test_what_making_the_steps_took_is_counted_as_measured():
    result = business_case(DEMO, measured())
    compute = next(o for o in result.one_offs if o.kind == "compute")
    assert compute.amount == DEMO.accepted_effort.cost
    assert result.one_off.value == pytest.approx(60 * 95 + compute.amount.value)


def test_a_saving_without_an_interval_gives_npv_without_one():
    cost = replace(DEMO.total.cost, bounds=(None, None))
    total = replace(DEMO.total, cost=cost, energy_j=replace(DEMO.total.energy_j, bounds=(None, None)))
    result = business_case(replace(DEMO, total=total), measured())
    npv = result.expected.npv
    assert npv.value is not None
    assert (npv.low, npv.high) == (None, None)
    assert result.monte_carlo is None
    assert "CL850" in codes(result)
    assert {b.key for b in result.tornado} == {"volume", "rate", "one_off_1"}


def test_mixed_currencies_are_refused():
    with pytest.raises(IncomparableError, match=r"EUR.*USD"):
        business_case(DEMO, measured(currency="USD"))
    with pytest.raises(IncomparableError, match="making the steps"):
        business_case(DEMO, golden(currency="USD", compute_effort="ledger"))


def test_engineering_is_stated_once():
    study = replace(
        DEMO.study,
        steps=tuple(Step(name=s.name, engineering_hours=5.0) for s in DEMO.study.steps),
        engineering=Engineering(amount_per_hour=Decimal(90), currency="EUR", source="payroll"),
    )
    twice = replace(DEMO, study=study)
    with pytest.raises(ConfigError, match="stated by the study and as a one-off"):
        business_case(twice, measured())
    assert business_case(twice, measured(compute_effort="stated")).one_off.value == 60 * 95
