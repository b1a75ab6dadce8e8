"""Devices at customers: energy a day, duty cycle, battery life, and a fleet over its life.

What the devices use is the use of sold products (GHG Protocol Scope 3 standard, category 11:
emissions of the whole expected life are reported in the year of sale). Customers pay the
electricity, so that none of it is the maker's cash.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.cost import priced_cost
from carbonlens.accounting.formulas import Quantity, emissions_kg
from carbonlens.accounting.propagation import stated, through
from carbonlens.compare.business_flows import life_levels
from carbonlens.compare.business_streams import Saved
from carbonlens.domain.business import Business, Embedded, Powered
from carbonlens.domain.business_result import DeviceUse, EmbeddedResult, Stream
from carbonlens.domain.comparison import Amounts, Comparison
from carbonlens.domain.estimate import Estimate, not_applicable, unknown
from carbonlens.domain.factor import Factor
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import J_PER_KWH

S_PER_DAY: Final = 86_400
DAYS_PER_YEAR: Final = 365.2425
J_PER_WH: Final = 3_600


class PerDevice(msgspec.Struct, frozen=True, kw_only=True):
    """What one device changes over its life.

    Attributes:
        saved: Energy from the grid and emissions of category 11; money is the customers'.
        streams: What customers save, which is no cash of the maker.
    """

    result: EmbeddedResult
    saved: Saved
    streams: tuple[Stream, ...]
    findings: tuple[Finding, ...]


def energy_per_day(
    power_w: Quantity, seconds_per_unit: Quantity, units_per_day: Quantity, idle_w: Quantity
) -> Quantity:
    """Return the joules of a part a day: those of its units, and idle power for the rest of the day.

    Args:
        power_w: While it computes.
        seconds_per_unit: Time of one unit.
        units_per_day: Units a day.
        idle_w: Power for the rest of the day.
    """
    active_s = seconds_per_unit * units_per_day
    return power_w * active_s + idle_w * (S_PER_DAY - active_s)


def battery_days(battery_wh: Quantity, usable_share: Quantity, per_day_j: Quantity) -> Quantity:
    """Return the days that a full battery lasts.

    Args:
        battery_wh: Of a full battery.
        usable_share: Share of it that is used before it is charged.
        per_day_j: Joules a day of all that it feeds.
    """
    return battery_wh * J_PER_WH * usable_share / per_day_j


def over_life(per_day_j: Quantity, life_years: Quantity, charging_efficiency: Quantity) -> Quantity:
    """Return the joules from the grid that a device takes over its life.

    Args:
        per_day_j: Joules a day.
        life_years: For which it is used.
        charging_efficiency: Energy in the battery per energy from the grid.
    """
    return per_day_j * DAYS_PER_YEAR * life_years / charging_efficiency


def duty_cycle(way: Powered, units_per_day: float) -> float:
    """Return the share of the day for which a part computes."""
    return way.seconds_per_unit * units_per_day / S_PER_DAY


def per_device(comparison: Comparison, business: Business, embedded: Embedded, saved: Saved) -> PerDevice:
    """Return what one device saves over its life.

    Args:
        comparison: Gives energy per unit where no powers are stated, and the grid's factors.
        business: Gives the trajectory of the grid.
        embedded: The devices.
        saved: What one functional unit saves; nothing where no step is adopted.
    """
    before_j, after_j = _per_day(comparison, embedded, saved)
    day = before_j.minus(after_j)
    if embedded.before is None or embedded.after is None:
        day = saved.amounts.energy_j.scale(embedded.units_per_day, "J")
    if not saved.adopted:
        day = Estimate(value=0.0, unit="J", signed=True, bounds=(0.0, 0.0))
    efficiency = 1.0 if embedded.charging_efficiency is None else embedded.charging_efficiency
    life = through(over_life, day, embedded.life_years, efficiency, unit="J", signed=True)
    before = _use(embedded.before, "before", before_j, embedded)
    after = _use(embedded.after, "after", after_j, embedded)
    result = EmbeddedResult(
        before=before,
        after=after,
        saved_per_day_j=day,
        saved_per_device_j=life,
        battery_gain=_gain(embedded, before_j, after_j),
        is_of_part=embedded.rest_power_w is None,
    )
    kwh = life.scale(1.0 / J_PER_KWH, "kWh")
    vector = comparison.vector
    amounts = Amounts(
        energy_j=life,
        emissions_location_kg=_emitted(kwh, vector.location, _mean_level(business, embedded, "grid")),
        emissions_market_kg=_emitted(kwh, vector.market, _mean_level(business, embedded, "market")),
        embodied_kg=unknown("kg", signed=True),
        cost=unknown(NO_CURRENCY, signed=True),
    )
    return PerDevice(
        result=result,
        saved=replace(saved, amounts=amounts),
        streams=_customers(comparison, business, kwh),
        findings=(*_about(embedded), *_uses_more(life)),
    )


def _uses_more(saved: Estimate) -> tuple[Finding, ...]:
    if saved.value is None or saved.value >= 0:
        return ()
    found = Finding(
        code="CL855",
        severity="warning",
        message="a device uses more energy after than before: customers pay more, and emissions rise",
        mend="check power_w and seconds_per_unit of [embedded.before] and [embedded.after]",
        subject="embedded",
    )
    return (found,)


def _per_day(comparison: Comparison, embedded: Embedded, saved: Saved) -> tuple[Estimate, Estimate]:
    """Return the joules of a device a day before and after: by stated powers, else as measured."""
    if embedded.before is not None and embedded.after is not None:
        return _of_powers(embedded.before, embedded), _of_powers(embedded.after, embedded)
    base = comparison.baseline_metrics
    before = unknown("J") if base is None else base.energy_per_unit_j
    after = before.minus(saved.amounts.energy_j)
    n = embedded.units_per_day
    return before.scale(n, "J"), replace(after, signed=False, bounds=None).scale(n, "J")


def _of_powers(way: Powered, embedded: Embedded) -> Estimate:
    source = f"power:{way.name}"
    power = stated(way.power_w, way.u_relative, source, "W")
    idle = stated(way.idle_power_w, way.u_relative, source, "W")
    used = through(energy_per_day, power, way.seconds_per_unit, embedded.units_per_day, idle, unit="J")
    return replace(used, grade="E")


def _use(way: Powered | None, name: str, per_day: Estimate, embedded: Embedded) -> DeviceUse:
    return DeviceUse(
        name=name if way is None else way.name,
        energy_per_day_j=per_day,
        duty_cycle=None if way is None else duty_cycle(way, embedded.units_per_day),
        battery_days=_battery(embedded, per_day),
    )


def _all_of(embedded: Embedded, per_day: Estimate) -> Estimate:
    """Return the joules a day of all that the battery feeds, as far as it is stated."""
    rest = (embedded.rest_power_w or 0.0) * S_PER_DAY
    return through(lambda j: j + rest, per_day, unit="J")


def _battery(embedded: Embedded, per_day: Estimate) -> Estimate:
    if embedded.battery_wh is None:
        return not_applicable("day")
    used = _all_of(embedded, per_day)
    return through(battery_days, embedded.battery_wh, embedded.usable_share, used, unit="day")


def _gain(embedded: Embedded, before: Estimate, after: Estimate) -> Estimate:
    """Return battery days after over before, less 1: the battery itself cancels."""
    if embedded.battery_wh is None:
        return not_applicable("1")
    fed = _all_of(embedded, before), _all_of(embedded, after)
    return through(lambda b, a: b / a - 1.0, *fed, unit="1", signed=True)


def _mean_level(business: Business, embedded: Embedded, name: str) -> float:
    """Return the mean level of a grid over the life of a device that is sold in the first month."""
    trajectory = business.grid if name == "grid" else business.market
    return float(life_levels(trajectory, business.start, 1, embedded.life_years)[0])


def _emitted(kwh: Estimate, factor: Factor | None, level: float) -> Estimate:
    if factor is None:
        return unknown("kg", signed=True)
    rate = stated(factor.value_kg_per_kwh, factor.u_relative, factor.factor_id, "kg/kWh")
    return through(emissions_kg, kwh, rate.scale(level, rate.unit), unit="kg", signed=True)


def _customers(comparison: Comparison, business: Business, kwh: Estimate) -> tuple[Stream, ...]:
    price = comparison.vector.electricity
    if price is None or price.currency != business.currency:
        return ()
    rate = stated(float(price.amount), price.u_relative, price.price_id, f"{price.currency}/kWh")
    cost = through(priced_cost, kwh, rate, unit=price.currency, signed=True)
    return (
        Stream(
            name="customers' electricity",
            what="customers",
            regime=None,
            unit_cost=cost,
            price="electricity_price",
            cash_from=None,
        ),
    )


def _about(embedded: Embedded) -> list[Finding]:
    missing = []
    if embedded.charging_efficiency is None:
        missing.append("charging_efficiency, so that losses between grid and device are left out")
    if embedded.battery_wh is not None and embedded.rest_power_w is None:
        missing.append("rest_power_w, so that battery life is of the compared part alone")
    return [
        Finding(
            code="CL853",
            severity="warning",
            message=f"[embedded] does not state {what}",
            mend=f"state {what.partition(',')[0]}",
            subject="embedded",
        )
        for what in missing
    ]
