"""The machine-readable shape of a business case: money as exact text, statistics as floats.

What is unknown is null; no number is ever NaN or infinite. Every amount holds the id that
``explain`` takes.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Final

import msgspec

from carbonlens.domain.business_result import (
    BusinessResult,
    DeviceUse,
    InternalRates,
    OneOffLine,
    ScenarioResult,
    Stream,
)
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import J_PER_KWH
from carbonlens.reporting.business_figures import bar_ids, figure_id

SCHEMA: Final = "carbonlens/business/1"
CONVENTION: Final = "flows at the end of each month; rates effective a year, real, before tax"

_CENTS: Final = Decimal("0.01")
_DIGITS: Final = 6


def money_text(amount: float | Decimal | None) -> str | None:
    """Return an amount as decimal text: exact as stated, else to cents, small ones to six digits.

    Args:
        amount: A Decimal is exact; a float was computed.
    """
    if amount is None or not math.isfinite(amount):
        return None
    if isinstance(amount, Decimal):
        return f"{amount:f}"
    if amount == 0 or abs(amount) >= 1:
        return f"{Decimal(repr(amount)).quantize(_CENTS):f}"
    return f"{Decimal(f'{amount:.{_DIGITS}g}'):f}"


def business_json(result: BusinessResult) -> dict[str, Any]:
    """Return a business case as ``compare --business --json`` prints it below ``business``.

    Args:
        result: The case.
    """
    b = result.business
    end = result.year_end
    return {
        "schema": SCHEMA,
        "study": result.study,
        "unit": result.unit,
        "currency": b.currency,
        "convention": CONVENTION,
        "start": b.start,
        "horizon_months": b.horizon_months,
        "discount_rate": b.discount_rate,
        "discount_range": [b.discount_low, b.discount_high],
        "adopted": list(result.adopted),
        "is_at_most": result.is_at_most,
        "savings": [_stream(s, n) for n, s in enumerate(result.streams, 1)],
        "one_offs": [_one_off(o, n) for n, o in enumerate(result.one_offs, 1)],
        "one_off": _money(result.one_off, figure_id("one_off")),
        "running_costs": [
            {
                "name": c.name,
                "per_month": {"amount": f"{c.amount_per_month:f}", "currency": b.currency},
                "id": figure_id(f"running_cost.{n}"),
            }
            for n, c in enumerate(b.running_costs, 1)
        ],
        "scenarios": {name: _scenario(one, result) for name, one in result.scenarios.items()},
        "year_end": {
            "npv": _plain_money(end.npv, b.currency, figure_id("year_end.npv")),
            "irr": _rates(end.rates, figure_id("year_end.irr")),
            "payback_years": _finite(end.payback_years),
            "discounted_payback_years": _finite(end.discounted_payback_years),
        },
        "cost_of_delay_per_month": _money(result.cost_of_delay, figure_id("cost_of_delay")),
        "break_even": {
            "outcome": result.break_even.outcome,
            "units_per_month": _estimate(result.break_even.units, figure_id("break_even_volume")),
        },
        "monte_carlo": _drawn(result),
        "tornado": _tornado(result),
        "without_range": list(result.unranged),
        "embedded": _devices(result),
        "findings": [msgspec.to_builtins(f) for f in result.findings],
    }


def _stream(stream: Stream, number: int) -> dict[str, Any]:
    return {
        "name": stream.name,
        "what": stream.what,
        "regime": stream.regime,
        "unit_cost": _money(stream.unit_cost, figure_id(f"saving.{number}.unit_cost")),
        "cash_realisable": "none"
        if stream.cash_from is None
        else "all"
        if stream.cash_from == 1
        else "later",
        "cash_from_month": stream.cash_from,
    }


def _one_off(one: OneOffLine, number: int) -> dict[str, Any]:
    shape = _money(one.amount, figure_id(f"one_off.{number}"))
    if one.exact is not None:
        shape["amount"] = money_text(one.exact.amount)
    return {
        "name": one.name,
        "kind": one.kind,
        "cost": shape,
        "stated_range": [money_text(one.low), money_text(one.high)],
        "source": one.source,
    }


def _scenario(one: ScenarioResult, result: BusinessResult) -> dict[str, Any]:
    stated = result.business.volume[one.name]

    def money(name: str, estimate: Estimate | None) -> dict[str, Any] | None:
        return None if estimate is None else _money(estimate, figure_id(name, one.name))

    def amount(name: str, estimate: Estimate) -> dict[str, Any]:
        return _estimate(estimate, figure_id(name, one.name))

    return {
        "units_per_month": stated.units_per_month,
        "growth_per_year": stated.growth,
        "units": one.units,
        "cash": money("cash", one.cash),
        "cash_value": money("cash_value", one.cash_value),
        "non_cash_value": money("non_cash_value", one.non_cash_value),
        "npv": money("npv", one.npv),
        "irr": _rates(one.rates, figure_id("irr", one.name)),
        "payback_years": _finite(one.payback_years),
        "discounted_payback_years": _finite(one.discounted_payback_years),
        "energy_saved_kwh": amount("energy", one.energy_j.scale(1 / J_PER_KWH, "kWh")),
        "emissions_avoided_location_kg": amount("emissions_location", one.emissions_location_kg),
        "emissions_avoided_market_kg": amount("emissions_market", one.emissions_market_kg),
        "outside_npv": {
            "carbon_value_location": money("carbon_location", one.carbon_location),
            "carbon_value_market": money("carbon_market", one.carbon_market),
            "embodied_kg": amount("embodied", one.embodied_kg),
            "embodied_value": money("carbon_embodied", one.carbon_embodied),
        },
        "cash_flows": [_finite(f) for f in one.flows],
    }


def _drawn(result: BusinessResult) -> dict[str, Any] | None:
    drawn, currency = result.monte_carlo, result.business.currency
    if drawn is None:
        return None
    return {
        "npv_low": _plain_money(drawn.low, currency, figure_id("monte_carlo.low")),
        "npv_median": _plain_money(drawn.median, currency, figure_id("monte_carlo.median")),
        "npv_high": _plain_money(drawn.high, currency, figure_id("monte_carlo.high")),
        "confidence": 0.95,
        "share_positive": drawn.positive,
        "seed": drawn.seed,
        "draws": drawn.draws,
        "generator": drawn.generator,
    }


def _tornado(result: BusinessResult) -> list[dict[str, Any]]:
    currency, ids = result.business.currency, bar_ids(result)
    return [
        {
            "input": bar.label,
            "at_low": bar.at_low,
            "at_high": bar.at_high,
            "npv_low": _plain_money(bar.npv_low, currency, f"{ids[bar.key]}.low"),
            "npv_high": _plain_money(bar.npv_high, currency, f"{ids[bar.key]}.high"),
            "swing": _plain_money(bar.swing, currency, f"{ids[bar.key]}.swing"),
        }
        for bar in result.tornado
    ]


def _devices(result: BusinessResult) -> dict[str, Any] | None:
    devices = result.embedded
    if devices is None:
        return None
    return {
        "scope": "scope 3 category 11, use of sold products",
        "before": _use(devices.before, "before"),
        "after": _use(devices.after, "after"),
        "saved_per_day_j": _estimate(devices.saved_per_day_j, figure_id("embedded.saved_per_day")),
        "saved_per_device_j": _estimate(devices.saved_per_device_j, figure_id("embedded.saved_per_device")),
        "battery_gain": _estimate(devices.battery_gain, figure_id("embedded.battery_gain")),
        "battery_is_of_part_alone": devices.is_of_part,
    }


def _use(use: DeviceUse, kind: str) -> dict[str, Any]:
    at = f"embedded.{kind}"
    return {
        "name": use.name,
        "energy_per_day_j": _estimate(use.energy_per_day_j, figure_id(f"{at}.energy_per_day")),
        "duty_cycle": use.duty_cycle,
        "battery_days": _estimate(use.battery_days, figure_id(f"{at}.battery_days")),
    }


def _rates(rates: InternalRates | None, name: str) -> dict[str, Any]:
    if rates is None:
        return {"rate": None, "outcome": "unknown", "reason": "the cash is unknown", "rates": [], "id": name}
    return {
        "rate": _finite(rates.rate),
        "outcome": rates.outcome,
        "reason": rates.reason or None,
        "rates": list(rates.rates),
        "id": name,
    }


def _money(estimate: Estimate, name: str) -> dict[str, Any]:
    shape = _estimate(estimate, name)
    return {
        "amount": money_text(shape["value"]),
        "currency": estimate.unit,
        "low": money_text(shape["low"]),
        "high": money_text(shape["high"]),
        "state": shape["state"],
        "grade": estimate.grade,
        "id": name,
    }


def _plain_money(value: float | None, currency: str, name: str) -> dict[str, Any]:
    return {"amount": money_text(value), "currency": currency, "id": name}


def _estimate(estimate: Estimate, name: str) -> dict[str, Any]:
    shape = estimate.as_json()
    value = estimate.value
    if value is None or estimate.state == "unknown" or not math.isfinite(value):
        state = "not_applicable" if estimate.state == "not_applicable" else "unknown"
        shape |= {"value": None, "low": None, "high": None, "state": state}
    ends = {end: _finite(shape[end]) for end in ("low", "high")}  # type: ignore[arg-type]  # numbers or None
    return {**shape, **ends, "id": name}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
