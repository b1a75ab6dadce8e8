"""What of a comparison's saving is money, per functional unit, and from which month on it is cash.

Less use is less money out only where use is paid for: at once on demand, after its end under a
commitment or reservation, and on owned hardware in its electricity alone. What takes more instead
is cash in every regime: nobody is favoured by an expense that is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.amounts import NO_CURRENCY, facility_energy
from carbonlens.accounting.cost import priced_cost
from carbonlens.accounting.propagation import stated, through
from carbonlens.compare.contrast import no_change, scaled
from carbonlens.domain.business import MONTHS_PER_YEAR, Business, SavingRule
from carbonlens.domain.business_result import Stream
from carbonlens.domain.comparison import Amounts, Comparison
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.finding import Finding, Severity
from carbonlens.errors import IncomparableError

_OPEN: Final = ("unknown", "unbounded")
_What = Literal["electricity", "machine", "cost"]
Flow = tuple[int, float]
"""Month, from 1, and amount."""


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """What one functional unit saves, all of it from adopted steps.

    Attributes:
        adopted: Names of the steps; empty where none is adopted, and the amounts are exactly zero.
        amounts: Per unit.
    """

    adopted: tuple[str, ...]
    amounts: Amounts
    findings: tuple[Finding, ...] = ()


def month_number(day: str, start: str) -> int:
    """Return the month in which a day lies, counted from the first month, which is 1.

    Args:
        day: ``2026-03-14``, or a month.
        start: First month, ``2026-01``.
    """
    years = int(day[:4]) - int(start[:4])
    return years * MONTHS_PER_YEAR + int(day[5:7]) - int(start[5:7]) + 1


def saved_per_unit(comparison: Comparison) -> Saved:
    """Return what one unit saves on the accepted path; nothing where it is not adopted as a whole.

    Args:
        comparison: A rejected or undetermined step is on no accepted path, and gives no cash.
    """
    total, study = comparison.total, comparison.study
    steps = tuple(s.step for s in comparison.steps if s.step in comparison.path and s.status == "accepted")
    refused = comparison.total_decision in ("reject", "undetermined")
    if total is not None and steps and not refused:
        count = study.volume_units if comparison.basis == "volume" and study.volume_units else 1.0
        return Saved(adopted=steps, amounts=scaled(total, 1.0 / count))
    like = total or comparison.baseline_amounts
    if like is None:
        nothing = Estimate(value=0.0, unit="", signed=True, bounds=(0.0, 0.0))
        like = Amounts(
            energy_j=replace(nothing, unit="J"),
            emissions_location_kg=replace(nothing, unit="kg"),
            emissions_market_kg=replace(nothing, unit="kg"),
            embodied_kg=replace(nothing, unit="kg"),
            cost=replace(nothing, unit=NO_CURRENCY),
        )
    text = "no step is adopted, so no saving is counted: NPV is what would be spent without a return"
    found = _finding("CL840", text, "measure until a step is adopted", "warning", study.name)
    return Saved(adopted=(), amounts=no_change(like), findings=(found,))


def streams_of(
    comparison: Comparison, business: Business, saved: Saved
) -> tuple[tuple[Stream, ...], tuple[Finding, ...]]:
    """Return the parts of what a unit saves in money, each with the month from which it is cash.

    Args:
        comparison: Gives energy, boundary and prices.
        business: Gives the regimes.
        saved: What one unit saves.

    Raises:
        IncomparableError: If the comparison is priced in another currency.
    """
    parts, findings = _parts(comparison, business, saved)
    streams: list[Stream] = []
    for rule in business.savings:
        if rule.of == "stated":
            streams += _stated_streams(rule, business, is_adopted=bool(saved.adopted))
            continue
        wanted = tuple(parts) if rule.of == "cost" else (rule.of,)
        for what in wanted:
            cost = parts.get(what)
            if cost is None:
                cost = unknown(business.currency, signed=True)
                text = f"[[saving]] {rule.name!r}: the {what} in what is saved is not known apart"
                mend = 'state both prices in the assumptions, or of = "cost"'
                findings += (_finding("CL851", text, mend, "warning", rule.name),)
            streams.append(_stream(rule, what, cost, business))
    findings += tuple(_about(streams, business))
    left_out, told = _without_rule(parts, business)
    return (*streams, *left_out), (*findings, *told)


def _without_rule(
    parts: Mapping[str, Estimate], business: Business
) -> tuple[tuple[Stream, ...], tuple[Finding, ...]]:
    """Return what no rule is about: an expense is cash all the same, a gain is told and not counted."""
    ruled = {r.of for r in business.savings}
    if not ruled & {"electricity", "machine"}:
        return (), ()
    streams, findings = [], []
    for what, cost in parts.items():
        if what in ruled or not cost.value:
            continue
        if cost.value < 0:
            rule = SavingRule(name=f"{what}, without a rule", regime="on_demand")
            streams.append(_stream(rule, what, cost, business))
            text = f"no [[saving]] is about the {what}, which costs more than before: it is counted as cash"
        else:
            text = f"no [[saving]] is about the {what} that is saved: none of it is counted"
        mend = f'add a [[saving]] with of = "{what}", or write of = "cost"'
        findings.append(_finding("CL846" if cost.value < 0 else "CL854", text, mend, "warning", what))
    return tuple(streams), tuple(findings)


def dated_flows(business: Business) -> tuple[list[Flow], tuple[Finding, ...]]:
    """Return purchases that are not made, or made later: money in the month of the day, and back.

    What is only put off beyond the horizon is paid in its last month: it is owed, and a horizon that
    ends before must not turn a deferral into a purchase that is never made.

    Args:
        business: With its saving rules.
    """
    flows: list[Flow] = []
    findings: list[Finding] = []
    for rule in business.savings:
        if rule.purchase_amount is None or rule.purchase_date is None:
            continue
        amount = float(rule.purchase_amount)
        dated = [(rule.purchase_date, amount), (rule.deferred_to, -amount)]
        for day, flow in dated:
            if day is None:
                continue
            month = month_number(day, business.start)
            if 1 <= month <= business.horizon_months:
                flows.append((month, flow))
                continue
            text = f"the purchase of {rule.name!r} on {day} lies outside the horizon and is "
            text += "not counted" if flow > 0 else "counted in its last month"
            found = _finding("CL845", text, "check the date, or look at more months", "warning", rule.name)
            findings.append(found)
            if flow > 0:
                break  # what is not saved within the horizon is not paid back there either
            flows.append((business.horizon_months, flow))
    return flows, tuple(findings)


def _parts(
    comparison: Comparison, business: Business, saved: Saved
) -> tuple[Mapping[str, Estimate], tuple[Finding, ...]]:
    """Return the money a unit saves by part: electricity and machine hours where they are told apart."""
    cost, vector = saved.amounts.cost, comparison.vector
    wanted = any(r.of != "stated" for r in business.savings)
    if cost.unit not in (NO_CURRENCY, business.currency) and wanted:
        raise IncomparableError(
            f"the comparison is priced in {cost.unit}, the business case in {business.currency}",
            where=comparison.study.name,
            mend="state both in one currency; rates are never guessed",
        )
    if not saved.adopted:
        return {"cost": replace(cost, unit=business.currency)}, ()
    if cost.value is None or cost.state in _OPEN or cost.unit == NO_CURRENCY:
        if not wanted:
            return {}, ()
        text = "what a unit saves in money is unknown, as a price or an overhead is missing: so is its cash"
        mend = "state the prices and the facility with --assumptions, or unit_cost in [[saving]]"
        found = _finding("CL842", text, mend, "error", comparison.study.name)
        return {"cost": unknown(business.currency, signed=True)}, (found,)
    electricity = _electricity(comparison, saved)
    if electricity is None or electricity.value is None:
        return {"cost": cost}, _unsplit(business)
    if vector.machine is None or not vector.machine.amount:
        return {"electricity": electricity}, ()
    return {"electricity": electricity, "machine": cost.minus(electricity)}, ()


def _electricity(comparison: Comparison, saved: Saved) -> Estimate | None:
    """Return the money for electricity that a unit saves; ``None`` where it is not told apart."""
    price, base = comparison.vector.electricity, comparison.baseline_metrics
    if price is None or base is None:
        return None
    rate = stated(float(price.amount), price.u_relative, price.price_id, f"{price.currency}/kWh")
    facility, _ = facility_energy(saved.amounts.energy_j, base.boundary, comparison.vector)
    cost = through(priced_cost, facility, rate, unit=price.currency, signed=True)
    # A difference of lower bounds bounds nothing.
    return None if cost.state in _OPEN else cost


def _unsplit(business: Business) -> tuple[Finding, ...]:
    moving = [t for t in (business.electricity_price, business.machine_price) if t != type(t)()]
    owned = any(r.of == "cost" and r.regime == "owned" for r in business.savings)
    if not moving and not owned:
        return ()
    text = "electricity and machine hours in what is saved are not told apart: " + (
        "none of it counts as the electricity of owned hardware"
        if owned
        else "their price trajectories are not used"
    )
    mend = "state both prices and the facility in the assumptions"
    return (_finding("CL851", text, mend, "warning", "cost"),)


def _stream(rule: SavingRule, what: str, cost: Estimate, business: Business) -> Stream:
    kind: _What = "electricity" if what == "electricity" else "machine" if what == "machine" else "cost"
    return Stream(
        name=rule.name,
        what=kind,
        regime=rule.regime,
        unit_cost=cost,
        price="own" if kind == "cost" else "electricity_price" if kind == "electricity" else "machine_price",
        cash_from=_cash_from(rule, business, cost, is_electricity=kind == "electricity"),
    )


def _stated_streams(rule: SavingRule, business: Business, *, is_adopted: bool) -> Iterator[Stream]:
    """Yield a stated amount: in one, or for owned hardware its electricity apart from the rest."""
    whole = float(rule.unit_cost or 0)
    electricity = float(rule.electricity_cost or 0) if rule.regime == "owned" else 0.0
    for amount, is_electricity in ((electricity, True), (whole - electricity, False)):
        if not amount and (is_electricity or electricity):
            continue
        cost = stated(amount, rule.u_relative, f"saving:{rule.name}", business.currency)
        cost = replace(cost, grade="E", signed=True)
        if not is_adopted:
            cost = Estimate(value=0.0, unit=business.currency, signed=True, bounds=(0.0, 0.0))
        yield Stream(
            name=rule.name,
            what="electricity" if is_electricity else "stated",
            regime=rule.regime,
            unit_cost=cost,
            price="own",
            change_per_year=rule.change_per_year,
            cash_from=_cash_from(rule, business, cost, is_electricity=is_electricity),
        )


def _cash_from(rule: SavingRule, business: Business, cost: Estimate, *, is_electricity: bool) -> int | None:
    if rule.regime == "on_demand" or (cost.value or 0.0) < 0:
        return 1
    if rule.regime == "owned":
        return 1 if is_electricity else None
    return None if rule.until is None else max(month_number(rule.until, business.start) + 1, 1)


def _about(streams: list[Stream], business: Business) -> Iterator[Finding]:
    """Yield what is to be said of commitments and of what costs more."""
    for rule in business.savings:
        own = [s for s in streams if s.name == rule.name]
        if any((s.unit_cost.value or 0.0) < 0 for s in own):
            text = f"{rule.name!r} costs more than before: it is counted as cash in every regime"
            yield _finding("CL846", text, "check prices and machine hours", "warning", rule.name)
        if rule.until is None:
            continue
        month = month_number(rule.until, business.start)
        if month < 1:
            text = f"the commitment of {rule.name!r} ended on {rule.until}, before the start: all is cash"
            yield _finding("CL843", text, "check until", "info", rule.name)
        elif month >= business.horizon_months:
            text = f"the commitment of {rule.name!r} lasts until {rule.until}, to the end of the horizon: "
            mend = "look at more months, or check until"
            yield _finding("CL844", text + "none of it is cash", mend, "warning", rule.name)


def _finding(code: str, message: str, mend: str, severity: Severity, subject: str) -> Finding:
    return Finding(code=code, severity=severity, message=message, mend=mend, subject=subject)
