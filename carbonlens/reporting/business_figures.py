"""Figures of a business case: every number with its id, formula and what it rests on.

Ids begin with ``business.``; those of scenarios end in their name. The figures of the comparison
beneath are those that ``comparison_figures`` names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from carbonlens.domain.business_result import (
    BusinessResult,
    DeviceUse,
    InternalRates,
    ScenarioResult,
    TornadoBar,
)
from carbonlens.domain.counting import with_article
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.figure import Figure
from carbonlens.reporting.business_words import bar_ends, share_above_zero
from carbonlens.reporting.figures import exact
from carbonlens.reporting.names import slugs

AT: Final = "business"
"""Begin of all ids."""

_WORTH: Final = "sum over months of flow / (1 + rate) ** (month / 12)"
_COST: Final = {
    "electricity": ("saved kWh of the facility * price", "energy", ("pue", "electricity_price")),
    "machine": ("saved cost - saved cost of electricity", "cost", ("machine_price",)),
    "cost": ("cost that the accepted path saves", "cost", ()),
    "customers": ("saved kWh of a device's life * price", "", ("electricity_price",)),
}


def figure_id(name: str, scenario: str = "") -> str:
    """Return the id of a figure of the case.

    Args:
        name: What it is.
        scenario: Of which volume, where it is of one.
    """
    return f"{AT}.{name}.{scenario}" if scenario else f"{AT}.{name}"


def bar_ids(result: BusinessResult) -> dict[str, str]:
    """Return the begin of the ids of each bar, by its key."""
    names = slugs(bar.key for bar in result.tornado)
    return {key: f"{AT}.tornado.{name}" for key, name in names.items()}


def business_figures(result: BusinessResult, known: Collection[str] = ()) -> tuple[Figure, ...]:
    """Return every figure of a case.

    Args:
        result: The case.
        known: Ids of the comparison beneath; inputs that are none of them are left out.
    """
    found = tuple(
        f
        for part in (_stated(result), _streams(result), _one_offs(result), _scenarios(result), _rest(result))
        for f in part
    )
    own = {f.figure_id for f in found}
    return tuple(_with_known(f, own, known) for f in found)


def _with_known(figure: Figure, own: Collection[str], known: Collection[str]) -> Figure:
    from carbonlens.reporting.comparison_figures import PER_UNIT  # which needs the view, that needs this

    kept = []
    for name in figure.inputs:
        # Amounts of a unit have an id of their own where a report states them for more.
        near = next((i for i in (f"{name}{PER_UNIT}", name) if i in own or i in known), None)
        if near is not None:
            kept.append(near)
    return Figure(
        figure_id=figure.figure_id,
        estimate=figure.estimate,
        label=figure.label,
        formula=figure.formula,
        inputs=tuple(dict.fromkeys(kept)),
    )


def _figure(
    name: str, estimate: Estimate, label: str, formula: str = "", inputs: tuple[str, ...] = ()
) -> Figure:
    return Figure(figure_id=f"{AT}.{name}", estimate=estimate, label=label, formula=formula, inputs=inputs)


def _number(name: str, value: float | None, unit: str, label: str) -> Figure:
    return _figure(name, exact(value, unit), label, "as the business case states it")


def _stated(result: BusinessResult) -> Iterator[Figure]:
    """Yield what the case states."""
    b = result.business
    currency = b.currency
    yield _number("horizon", b.horizon_months, "month", "months that are looked at")
    yield _number("discount_rate", b.discount_rate, "1", "discount rate a year, real, before tax")
    if b.discount_low is not None and b.discount_high is not None:
        yield _number("discount_rate.low", b.discount_low, "1", "least discount rate a year")
        yield _number("discount_rate.high", b.discount_high, "1", "most discount rate a year")
    for name, one in b.volume.items():
        yield _number(f"volume.{name}", one.units_per_month, result.unit, f"units in the first month, {name}")
        yield _number(f"growth.{name}", one.growth, "1", f"change of the volume a year, {name}")
    for number, cost in enumerate(b.running_costs, 1):
        yield _number(
            f"running_cost.{number}", float(cost.amount_per_month), currency, f"{cost.name}, a month"
        )
    if b.carbon_price is not None:
        amount = float(b.carbon_price.amount_per_tonne)
        yield _number("carbon_price", amount, currency, "internal price of a tonne of CO2e")
    for what in ("electricity_price", "machine_price", "grid", "market"):
        change = getattr(b, what).change_per_year
        if change:
            yield _number(f"trajectory.{what}", change, "1", f"change of {what.replace('_', ' ')} a year")
    devices = b.embedded
    if devices is not None:
        yield _number("embedded.units_per_day", devices.units_per_day, "1", "units of a device a day")
        yield _number("embedded.life", devices.life_years, "year", "years that a device is used")
        for way in (devices.before, devices.after):
            if way is not None:
                kind = "before" if way is devices.before else "after"
                yield _number(f"embedded.{kind}.power", way.power_w, "W", f"power of {way.name}")
                yield _number(
                    f"embedded.{kind}.seconds", way.seconds_per_unit, "s", f"time of a unit by {way.name}"
                )


def _streams(result: BusinessResult) -> Iterator[Figure]:
    for number, one in enumerate(result.streams, 1):
        formula, amount, prices = _COST.get(one.what, ("as the business case states it", "", ()))
        inputs = [f"total.savings.{amount}"] if amount else []
        inputs += [f"assumption.{p}" for p in prices]
        if one.what == "customers":
            inputs.append(f"{AT}.embedded.saved_per_device")
        label = f"{one.name}: {one.what} that {with_article(result.unit)} saves"
        yield _figure(f"saving.{number}.unit_cost", one.unit_cost, label, formula, tuple(inputs))
        million = one.unit_cost.scale(1e6, one.unit_cost.unit)
        of_one = (figure_id(f"saving.{number}.unit_cost"),)
        words = f"{label}, a million of them"
        yield _figure(f"saving.{number}.per_million", million, words, "unit cost * 1e6", of_one)


def _one_offs(result: BusinessResult) -> Iterator[Figure]:
    ids = []
    for number, one in enumerate(result.one_offs, 1):
        is_compute = one.kind == "compute"
        inputs = ("effort.accepted.cost",) if is_compute else ()
        formula = {"compute": "cost of making the accepted steps", "hours": "hours * rate"}.get(one.kind)
        words = formula or "as the business case states it"
        ids.append(f"{AT}.one_off.{number}")
        yield _figure(f"one_off.{number}", one.amount, one.name, words, inputs)
    yield _figure("one_off", result.one_off, "paid before the first month", "sum of the one-offs", tuple(ids))


def _scenarios(result: BusinessResult) -> Iterator[Figure]:
    for name, one in result.scenarios.items():
        for figure in _scenario(result, one):
            words = f"{figure.label}, {name} volume"
            yield Figure(
                figure_id=f"{figure.figure_id}.{name}",
                estimate=figure.estimate,
                label=words,
                formula=figure.formula,
                inputs=figure.inputs,
            )


def _scenario(result: BusinessResult, one: ScenarioResult) -> Iterator[Figure]:
    name, streams = one.name, range(1, len(result.streams) + 1)
    costs = tuple(f"{AT}.saving.{n}.unit_cost" for n in streams)
    volume = (f"{AT}.volume.{name}", f"{AT}.growth.{name}", f"{AT}.horizon")
    rate = f"{AT}.discount_rate"
    running = tuple(f"{AT}.running_cost.{n}" for n in range(1, len(result.business.running_costs) + 1))
    moved = tuple(f"{AT}.trajectory.{t}" for t in ("electricity_price", "machine_price"))
    grid = {"location": f"{AT}.trajectory.grid", "market": f"{AT}.trajectory.market"}
    units = f"{AT}.units.{name}"
    yield _figure("units", exact(one.units, result.unit), "units over the horizon", "sum of months", volume)
    words = "sum over months of units * unit cost * price level, where it is cash"
    yield _figure("cash", one.cash, "saved in cash", words, (*costs, *volume, *moved))
    worth = (*costs, *volume, *moved, rate)
    yield _figure("cash_value", one.cash_value, "worth now of the cash saved", _WORTH, worth)
    label = "worth now of what is saved and is no cash"
    yield _figure("non_cash_value", one.non_cash_value, label, _WORTH, worth)
    inputs = (f"{AT}.cash_value.{name}", f"{AT}.one_off", *running, rate)
    formula = "worth now of cash saved, dated purchases and running costs - one-offs"
    yield _figure("npv", one.npv, "net present value", formula, inputs)
    flows = (f"{AT}.cash.{name}", f"{AT}.one_off", *running)
    yield _figure("irr", _rate(one.rates), "internal rate of return a year", "rate at which NPV is 0", flows)
    years = exact(one.payback_years, "year")
    yield _figure("payback", years, "years until the money is back", "last rise of the sum to 0", flows)
    years = exact(one.discounted_payback_years, "year")
    formula = "last rise of the discounted sum to 0"
    yield _figure("discounted_payback", years, "the same, discounted", formula, (*flows, rate))
    per_unit = ("total.savings.energy",) if result.embedded is None else (f"{AT}.embedded.saved_per_device",)
    yield _figure("energy", one.energy_j, "energy saved", "energy a unit * units", (*per_unit, units))
    for method in ("location", "market"):
        kg: Estimate = getattr(one, f"emissions_{method}_kg")
        inputs = (f"total.savings.emissions_{method}", units, grid[method])
        if result.embedded is not None:
            inputs = (f"{AT}.embedded.saved_per_device", f"assumption.grid_{method}", units, grid[method])
        label = f"emissions avoided, {method}-based"
        yield _figure(f"emissions_{method}", kg, label, "kg a unit * units * grid level", inputs)
        value: Estimate | None = getattr(one, f"carbon_{method}")
        if value is not None:
            inputs = (f"{AT}.emissions_{method}.{name}", f"{AT}.carbon_price", rate)
            label = f"worth now of emissions avoided, {method}-based, no part of NPV"
            yield _figure(f"carbon_{method}", value, label, "kg * price / 1000, discounted", inputs)
    inputs = ("total.savings.embodied", units)
    yield _figure("embodied", one.embodied_kg, "embodied emissions saved", "kg a unit * units", inputs)
    if one.carbon_embodied is not None:
        inputs = (f"{AT}.embodied.{name}", f"{AT}.carbon_price", rate)
        label = "worth now of embodied emissions saved, no part of NPV"
        formula = "kg * price / 1000, discounted"
        yield _figure("carbon_embodied", one.carbon_embodied, label, formula, inputs)


def _rest(result: BusinessResult) -> Iterator[Figure]:
    currency, flows = result.business.currency, (f"{AT}.cash.expected", f"{AT}.one_off")
    rate, end = f"{AT}.discount_rate", result.year_end
    npv = unknown(currency, signed=True) if end.npv is None else exact(end.npv, currency)
    words = "flows of a year at its end"
    yield _figure("year_end.npv", npv, "NPV with yearly flows", words, (*flows, rate))
    yield _figure("year_end.irr", _rate(end.rates), "internal rate with yearly flows", words, flows)
    years = exact(end.payback_years, "year")
    yield _figure("year_end.payback", years, "payback with yearly flows", words, flows)
    years = exact(end.discounted_payback_years, "year")
    label = "discounted payback with yearly flows"
    yield _figure("year_end.discounted_payback", years, label, words, (*flows, rate))
    formula = "worth now of the first month's net cash - a month's interest on the one-offs"
    label = "cost of starting a month later"
    yield _figure("cost_of_delay", result.cost_of_delay, label, formula, (*flows, rate))
    formula = "(one-offs + worth of running costs) / worth now of a unit a month"
    label = "units in the first month at which NPV is 0"
    inputs = (f"{AT}.one_off", f"{AT}.cash_value.expected", f"{AT}.volume.expected")
    yield _figure("break_even_volume", result.break_even.units, label, formula, inputs)
    yield from _drawn(result)
    names = bar_ids(result)
    for bar in result.tornado:
        yield from _bar(bar, names[bar.key].removeprefix(f"{AT}."), result)
    yield from _devices(result)


def _drawn(result: BusinessResult) -> Iterator[Figure]:
    drawn, currency = result.monte_carlo, result.business.currency
    if drawn is None:
        return
    inputs = (f"{AT}.npv.expected",)
    formula = f"quantile of {drawn.draws} draws, {drawn.generator} with seed {drawn.seed}"
    for name, value in (("low", drawn.low), ("median", drawn.median), ("high", drawn.high)):
        words = {"low": "2.5 % of draws lie below", "high": "97.5 % of draws lie below"}
        label = f"NPV: {words.get(name, 'half of the draws lie below')}"
        yield _figure(f"monte_carlo.{name}", exact(value, currency), label, formula, inputs)
    share = share_above_zero(drawn)
    yield _figure("monte_carlo.positive", share, "share of draws with an NPV above 0", formula, inputs)


def _bar(bar: TornadoBar, name: str, result: BusinessResult) -> Iterator[Figure]:
    expected, currency = (f"{AT}.npv.expected",), result.business.currency
    low, high = bar_ends(result, bar)
    for end, value, at in (("low", bar.npv_low, low), ("high", bar.npv_high, high)):
        label = f"NPV with {bar.label} at {at}"
        yield _figure(f"{name}.{end}", exact(value, currency), label, "all others as expected", expected)
    label = f"how far NPV moves with {bar.label}"
    inputs = (f"{AT}.{name}.low", f"{AT}.{name}.high")
    yield _figure(f"{name}.swing", exact(bar.swing, currency), label, "high - low", inputs)


def _devices(result: BusinessResult) -> Iterator[Figure]:
    devices = result.embedded
    if devices is None:
        return
    for kind in ("before", "after"):
        yield from _use(getattr(devices, kind), f"embedded.{kind}", kind)
    ends = (f"{AT}.embedded.before.energy_per_day", f"{AT}.embedded.after.energy_per_day")
    label = "energy a device saves a day"
    yield _figure("embedded.saved_per_day", devices.saved_per_day_j, label, "before - after", ends)
    inputs = (f"{AT}.embedded.saved_per_day", f"{AT}.embedded.life")
    label = "energy from the grid that a device saves over its life"
    formula = "a day * 365.2425 * years / charging efficiency"
    yield _figure("embedded.saved_per_device", devices.saved_per_device_j, label, formula, inputs)
    label = "change of the days that a battery lasts"
    yield _figure("embedded.battery_gain", devices.battery_gain, label, "days after / days before - 1", ends)


def _use(use: DeviceUse, at: str, kind: str) -> Iterator[Figure]:
    inputs: tuple[str, ...] = (f"{AT}.{at}.power", f"{AT}.{at}.seconds", f"{AT}.embedded.units_per_day")
    if use.duty_cycle is None:
        inputs = (f"{'baseline' if kind == 'before' else 'final'}.energy", f"{AT}.embedded.units_per_day")
    label = f"energy of a device a day, {use.name}"
    formula = "power * active seconds + idle power * the rest of the day"
    if use.duty_cycle is None:
        formula = "energy per unit * units a day"
    yield _figure(f"{at}.energy_per_day", use.energy_per_day_j, label, formula, inputs)
    if use.duty_cycle is not None:
        words = "seconds per unit * units a day / 86400"
        yield _figure(
            f"{at}.duty_cycle", exact(use.duty_cycle), f"share of the day, {use.name}", words, inputs[1:]
        )
    days = (f"{AT}.{at}.energy_per_day",)
    label = f"days that a battery lasts, {use.name}"
    formula = "battery energy * usable share / energy a day"
    yield _figure(f"{at}.battery_days", use.battery_days, label, formula, days)


def _rate(rates: InternalRates | None) -> Estimate:
    return exact(None if rates is None else rates.rate)
