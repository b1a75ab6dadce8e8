"""A business case of a comparison: what the adopted steps are worth in cash, and how sure that is.

NPV holds cash alone. What is saved and is no cash (capacity that is paid for anyway), the internal
carbon price and embodied emissions stand beside it, each as a line of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.propagation import stated
from carbonlens.compare import finance
from carbonlens.compare.break_even import break_even
from carbonlens.compare.business_flows import (
    Plan,
    Weights,
    about_indices,
    flows_of,
    inputs_of,
    summed,
    volume_weights,
    weights,
    whole,
)
from carbonlens.compare.business_risk import Case, monte_carlo, tornado, unranged
from carbonlens.compare.business_streams import Saved, dated_flows, month_number, saved_per_unit, streams_of
from carbonlens.compare.embedded import PerDevice, per_device
from carbonlens.domain.business import SCENARIOS, Business, OneOff, Scenario, ScenarioName
from carbonlens.domain.business_result import (
    BusinessResult,
    OneOffLine,
    ScenarioResult,
    YearEnd,
)
from carbonlens.domain.comparison import BreakEven, Comparison
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add, not_applicable, unknown
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.money import Money
from carbonlens.errors import ConfigError, IncomparableError

COMPUTE: Final = "making the steps"
"""Name of the one-off that the ledger holds."""


def business_case(comparison: Comparison, business: Business) -> BusinessResult:
    """Return what a comparison's adopted steps are worth under a business case.

    Args:
        comparison: Of a study; its own uncertainty is that of the case.
        business: What its owner states.

    Raises:
        IncomparableError: If the comparison, or what making the steps took, is priced in another
            currency.
        ConfigError: If engineering is stated both by the study and by the case.
    """
    saved = saved_per_unit(comparison)
    devices = None
    if business.embedded is not None:
        devices = per_device(comparison, business, business.embedded, saved)
        saved = devices.saved
    streams, findings = streams_of(comparison, business, saved)
    if devices is not None:
        streams, findings = (*streams, *devices.streams), (*findings, *devices.findings)
    dated, of_dates = dated_flows(business) if saved.adopted else ([], ())
    running = float(sum(c.amount_per_month for c in business.running_costs)) if saved.adopted else 0.0
    plan = Plan(business=business, streams=streams, dated=tuple(dated), running=running)
    one_offs, of_effort = _one_offs(comparison, business, is_adopted=bool(saved.adopted))
    found = (*saved.findings, *findings, *of_dates, *of_effort, *about_indices(business))
    return _result(comparison, plan, one_offs, saved, devices, found)


def _result(
    comparison: Comparison,
    plan: Plan,
    one_offs: tuple[OneOffLine, ...],
    saved: Saved,
    devices: PerDevice | None,
    findings: tuple[Finding, ...],
) -> BusinessResult:
    business = plan.business
    known = [o.amount for o in one_offs if o.amount.value is not None]
    nothing = Estimate(value=0.0, unit=business.currency, bounds=(0.0, 0.0))
    one_off = add(known, business.currency) if known else nothing
    is_at_most = one_off.state == "unbounded" or len(known) < len(one_offs)
    one_off = replace(one_off, state="known")
    scenarios = {
        name: _scenario(name, business.volume[name], plan, one_off, saved)
        for name in SCENARIOS
        if name in business.volume
    }
    expected = scenarios["expected"]
    case = Case(plan=plan, one_offs=one_offs, one_off=one_off, npv=expected.npv)
    is_known = expected.npv.value is not None
    drawn = monte_carlo(case) if is_known else None
    found = (*findings, *_about(expected, business, one_off, has_interval=drawn is not None or not is_known))
    return BusinessResult(
        business=business,
        study=comparison.study.name,
        unit=comparison.study.unit if devices is None else "device",
        adopted=saved.adopted,
        is_at_most=is_at_most,
        streams=plan.streams,
        one_offs=one_offs,
        one_off=replace(one_off, state="unbounded") if is_at_most else one_off,
        scenarios=scenarios,
        year_end=_year_end(expected, business),
        tornado=tornado(case) if is_known else (),
        unranged=unranged(business, one_offs),
        monte_carlo=drawn,
        cost_of_delay=_cost_of_delay(plan, one_off),
        break_even=_break_even(plan, one_off, comparison.study.unit if devices is None else "device"),
        embedded=None if devices is None else devices.result,
        findings=found,
    )


def _scenario(
    name: ScenarioName, scenario: Scenario, plan: Plan, one_off: Estimate, saved: Saved
) -> ScenarioResult:
    business, amounts = plan.business, saved.amounts
    inputs, currency = inputs_of(business, scenario), business.currency
    by = weights(plan, inputs)
    npv = _npv(plan, by, one_off)
    flows = flows_of(plan, inputs, one_off.value or 0.0) if npv.value is not None else ()
    rate = business.discount_rate
    counts = volume_weights(business, scenario)
    priced = business.carbon_price is not None
    value = {
        "carbon_location": amounts.emissions_location_kg.scale(counts["location_priced"], currency),
        "carbon_market": amounts.emissions_market_kg.scale(counts["market_priced"], currency),
        "carbon_embodied": amounts.embodied_kg.scale(counts["embodied_priced"], currency),
    }
    return ScenarioResult(
        name=name,
        units=counts["units"],
        cash=summed(plan.streams, by.cash[0], currency),
        cash_value=summed(plan.streams, by.cash_now[0], currency),
        non_cash_value=summed(plan.streams, by.all_now[0] - by.cash_now[0], currency),
        npv=npv,
        flows=flows,
        rates=finance.internal_rates(flows) if flows else None,
        payback_years=finance.payback(flows) if flows else None,
        discounted_payback_years=finance.discounted_payback(rate, flows) if flows else None,
        energy_j=amounts.energy_j.scale(counts["units"], "J"),
        emissions_location_kg=amounts.emissions_location_kg.scale(counts["location"], "kg"),
        emissions_market_kg=amounts.emissions_market_kg.scale(counts["market"], "kg"),
        embodied_kg=amounts.embodied_kg.scale(counts["units"], "kg"),
        **(value if priced else {}),
    )


def _npv(plan: Plan, by: Weights, one_off: Estimate) -> Estimate:
    currency = plan.business.currency
    cash = summed(plan.streams, by.cash_now[0], currency)
    fixed = Estimate(value=float(by.fixed_now[0]), unit=currency, signed=True)
    return whole([cash, fixed, one_off.scale(-1.0, currency)], currency)


def _year_end(expected: ScenarioResult, business: Business) -> YearEnd:
    flows = finance.year_end(expected.flows)
    if not flows:
        return YearEnd(npv=None, rates=None, payback_years=None, discounted_payback_years=None)
    rate = business.discount_rate
    return YearEnd(
        npv=finance.net_present_value(rate, flows, 1),
        rates=finance.internal_rates(flows, 1),
        payback_years=finance.payback(flows, 1),
        discounted_payback_years=finance.discounted_payback(rate, flows, 1),
    )


def _cost_of_delay(plan: Plan, one_off: Estimate) -> Estimate:
    """Return what starting a month later costs: the first month's cash, less a month's interest.

    The horizon still ends when it ended, and the one-offs are paid a month later. A purchase that was
    due in the first month is made then, so that it is not made later either.
    """
    business = plan.business
    first = replace(plan, business=replace(business, horizon_months=1), dated=())
    by = weights(first, inputs_of(business, business.expected))
    later = finance.discount_factor(business.discount_rate, 1 / finance.MONTHLY)
    currency = business.currency
    kept = one_off.scale(later - 1.0, currency)
    fixed = Estimate(value=float(by.fixed_now[0]) + _made_after_all(plan), unit=currency, signed=True)
    return whole([summed(plan.streams, by.cash_now[0], currency), fixed, kept], currency)


def _made_after_all(plan: Plan) -> float:
    """Return the worth now of the purchases that are saved or put off only if the start is not delayed."""
    business = plan.business
    due = [r for r in business.savings if r.purchase_date is not None]
    due = [r for r in due if month_number(str(r.purchase_date), business.start) == 1]
    if not plan.dated or not due:
        return 0.0
    lost, _ = dated_flows(replace(business, savings=tuple(due)))
    return sum(a * finance.discount_factor(business.discount_rate, m / finance.MONTHLY) for m, a in lost)


def _break_even(plan: Plan, one_off: Estimate, unit: str) -> BreakEven:
    """Return the units of the first month at which the NPV is zero, growth and prices as expected."""
    business = plan.business
    by = weights(plan, inputs_of(business, business.expected))
    per_unit = by.cash_now[0] / business.expected.units_per_month
    saving = summed(plan.streams, per_unit, business.currency)
    fixed = Estimate(value=-float(by.fixed_now[0]), unit=business.currency)
    effort = replace(add([one_off, fixed], business.currency), signed=False)
    if effort.value is not None and effort.value <= 0 and saving.value is not None:
        if saving.value < 0:
            # Without an effort to earn back, more units only lose more.
            outcome = "never" if effort.value == 0 else "unknown"
            return BreakEven(
                measure="cost",
                effort=effort,
                saving_per_unit=saving,
                units=not_applicable(unit),
                outcome=outcome,
            )
        unit_count = Estimate(value=0.0, unit=unit, bounds=(0.0, 0.0))
        return BreakEven(
            measure="cost", effort=effort, saving_per_unit=saving, units=unit_count, outcome="reached"
        )
    if saving.value == 0 and not saving.u_total:
        return BreakEven(
            measure="cost", effort=effort, saving_per_unit=saving, units=not_applicable(unit), outcome="never"
        )
    return break_even("cost", effort, saving, unit)


# One-offs --------------------------------------------------------------------


def _one_offs(
    comparison: Comparison, business: Business, *, is_adopted: bool
) -> tuple[tuple[OneOffLine, ...], tuple[Finding, ...]]:
    lines = [_one_off(o, business.currency) for o in business.one_offs]
    if business.compute_effort == "stated":
        return tuple(lines), ()
    study, effort = comparison.study, comparison.accepted_effort
    in_study = bool(study.optimization_hours) or any(s.engineering_hours for s in study.steps)
    if in_study and study.engineering is not None and any(o.is_of_hours for o in business.one_offs):
        raise ConfigError(
            "engineering hours are stated by the study and as a one-off of the business case",
            where=study.name,
            mend='state them once; compute_effort = "stated" leaves out what the study and the ledger hold',
        )
    if not is_adopted and effort is None:
        return tuple(lines), ()
    cost = unknown(business.currency) if effort is None else effort.cost
    if cost.unit not in (NO_CURRENCY, business.currency):
        raise IncomparableError(
            f"making the steps is priced in {cost.unit}, the business case in {business.currency}",
            where=study.name,
            mend="state both in one currency; rates are never guessed",
        )
    if cost.unit == NO_CURRENCY:
        cost = unknown(business.currency)
    lines.append(OneOffLine(name=COMPUTE, kind="compute", amount=cost))
    if cost.value is not None and cost.state == "known":
        return tuple(lines), ()
    text = "what making the steps took is not recorded or not priced" + (
        " in full" if cost.value is not None else ""
    )
    mend = 'record it as runs with role effort, or state it as one-offs with compute_effort = "stated"'
    found = _finding("CL841", f"{text}: NPV is at most what is stated", mend, "warning", study.name)
    return tuple(lines), (found,)


def _one_off(one: OneOff, currency: str) -> OneOffLine:
    rate = float(one.rate or 0)
    source = f"one_off:{one.name}"
    amount = stated(float(one.total), one.u_relative, source, currency)
    return OneOffLine(
        name=one.name,
        kind="hours" if one.is_of_hours else "stated",
        amount=replace(amount, grade="E"),
        exact=Money(one.total, currency),
        low=None if one.hours_low is None else float(one.hours_low) * rate,
        high=None if one.hours_high is None else float(one.hours_high) * rate,
        source=one.source,
    )


# What is to be said -------------------------------------------------------------


def _about(
    expected: ScenarioResult, business: Business, one_off: Estimate, *, has_interval: bool
) -> Sequence[Finding]:
    found: list[Finding] = []
    rates, invested = expected.rates, (one_off.value or 0.0) > 0
    if rates is not None and invested and expected.payback_years is None:
        text = f"the money is not back within the horizon of {counted(business.horizon_months, 'month')}"
        found.append(_finding("CL847", text, "look at more months, or do not adopt", "warning", "payback"))
    if rates is not None and rates.outcome != "one":
        mend = "decide by NPV, which always exists"
        words = (
            "no internal rate of return" if rates.outcome == "none" else "several internal rates of return"
        )
        found.append(_finding("CL852", f"{words}: {rates.reason}", mend, "info", "irr"))
    if not has_interval:
        text = "how sure the saving is nobody says: NPV has no interval, and nothing can be drawn"
        found.append(_finding("CL850", text, "measure more rounds, or state the errors", "warning", "npv"))
    return found


def _finding(code: str, message: str, mend: str, severity: Severity, subject: str) -> Finding:
    return Finding(code=code, severity=severity, message=message, mend=mend, subject=subject)
