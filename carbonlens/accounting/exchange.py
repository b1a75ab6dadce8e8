"""Money of one currency in another, and of one year in another's prices: only as the user says.

A rate is one the user dated. Where there is none of the day, the nearest earlier one is taken
and said; where there is none at all the amount is unknown, never taken one for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import through
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.pricing import ExchangeRate


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """An amount in another currency or another year's prices.

    Attributes:
        estimate: The amount.
        how: What was done, in words.
        input_ids: The rate it rests on.
    """

    estimate: Estimate
    how: str
    input_ids: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


class _Rate(NamedTuple):
    date: str
    is_direct: bool
    rate: ExchangeRate


def bought(amount: Quantity, rate: Quantity) -> Quantity:
    """Return an amount in the quote currency of a rate."""
    return amount * rate


def sold(amount: Quantity, rate: Quantity) -> Quantity:
    """Return an amount of the quote currency in the base currency of a rate."""
    return amount / rate


def at_prices(amount: Quantity, index: Quantity, index_then: Quantity) -> Quantity:
    """Return an amount at the prices of another year, by a price index of both years."""
    return amount * index / index_then


def rate_id(rate: ExchangeRate) -> str:
    """Return the id of a rate: ``exchange:USD/EUR/2026-01-02``."""
    return f"exchange:{rate.base}/{rate.quote}/{rate.date}"


def exchanged(amount: Estimate, currency: str, date: str, rates: Iterable[ExchangeRate]) -> Changed:
    """Return an amount in another currency at the rate of a day.

    Args:
        amount: Its unit is its currency.
        currency: The one wanted.
        date: Day of the charge, ``2026-03-14``.
        rates: The user's. One of the other direction is used as its inverse.
    """
    if amount.unit == currency:
        return Changed(estimate=amount, how=f"in {currency}")
    held = [
        _Rate(r.date, r.base == amount.unit, r)
        for r in rates
        if (r.base, r.quote) in {(amount.unit, currency), (currency, amount.unit)} and r.date <= date
    ]
    if not held:
        text = (
            f"no rate of {amount.unit} in {currency} on {date} or before: the amount in {currency} is unknown"
        )
        mend = f"add it to exchange_rates.csv: {amount.unit},{currency},{date},RATE,SOURCE"
        return Changed(
            estimate=unknown(currency, signed=amount.signed),
            how="no rate",
            findings=(_finding("CL333", "warning", text, mend, f"{amount.unit}/{currency}"),),
        )
    found = max(held, key=lambda r: r[:2])
    rate, formula = found.rate, bought if found.is_direct else sold
    findings: tuple[Finding, ...] = ()
    if rate.date != date:
        text = f"no rate of {amount.unit} in {currency} on {date}: that of {rate.date} was taken"
        findings = (_finding("CL334", "info", text, "add the rate of the day", rate_id(rate)),)
    return Changed(
        estimate=through(formula, amount, float(rate.rate), unit=currency),
        how=f"1 {rate.base} = {rate.rate:f} {rate.quote} on {rate.date} ({rate.source})",
        input_ids=(rate_id(rate),),
        findings=findings,
    )


def in_prices_of(
    amount: Estimate, year: int, price_year: int | None, index: Mapping[int, float] | None = None
) -> Changed:
    """Return an amount at the prices of the price year.

    Args:
        amount: At the prices of ``year``.
        year: Year in which it was spent.
        price_year: Year wanted; ``None`` leaves amounts nominal.
        index: The user's price index by year; without both years the amount stays nominal,
            and that is said.
    """
    if price_year is None or price_year == year:
        return Changed(estimate=amount, how=f"prices of {year}")
    then, now = (None if index is None else index.get(y) for y in (year, price_year))
    if then is None or now is None:
        text = f"no price index of {year} and {price_year}: money of {year} is left at its own prices"
        mend = "give a price index of both years, or no price year"
        return Changed(
            estimate=amount,
            how=f"nominal, prices of {year}",
            findings=(_finding("CL335", "warning", text, mend, str(year)),),
        )
    return Changed(
        estimate=through(at_prices, amount, float(now), float(then), unit=amount.unit),
        how=f"at prices of {price_year}: index {now:g} / {then:g}",
    )


def _finding(code: str, severity: Severity, message: str, mend: str, subject: str) -> Finding:
    return Finding(code=code, severity=severity, message=message, mend=mend, subject=subject)
