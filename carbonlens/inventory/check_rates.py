"""Exchange rates and price indices stated twice: alike they count once, different ones not at all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from carbonlens.domain.finding import Finding
from carbonlens.domain.pricing import ExchangeRate, PriceIndex


def settled(rates: Iterable[ExchangeRate]) -> tuple[tuple[ExchangeRate, ...], list[Finding]]:
    """Return one rate a pair and day, and a CL377 for each that is stated with two figures.

    Args:
        rates: In any order.
    """
    kept: list[ExchangeRate] = []
    findings: list[Finding] = []
    for (base, quote, day), group in groupby(sorted(rates, key=_order), key=lambda r: _order(r)[:3]):
        same = list(group)
        figures = sorted({r.rate for r in same})
        if len(figures) == 1:
            kept.append(same[0])
            continue
        stated = " and ".join(f"{f:f}" for f in figures)
        findings.append(
            Finding(
                code="CL377",
                severity="error",
                message=f"{base} in {quote} on {day} is {stated}: none of them is taken",
                file="exchange_rates.csv",
                subject=rate_name(same[0]),
                mend="keep the right one",
            )
        )
    return tuple(kept), findings


def settled_indices(indices: Iterable[PriceIndex]) -> tuple[tuple[PriceIndex, ...], list[Finding]]:
    """Return one index a currency and year, and a CL377 for each that is stated with two figures.

    Args:
        indices: In any order.
    """
    kept: list[PriceIndex] = []
    findings: list[Finding] = []
    ordered = sorted(indices, key=lambda i: (i.currency, i.year, i.index, i.source))
    for (currency, year), group in groupby(ordered, key=lambda i: (i.currency, i.year)):
        same = list(group)
        if len({i.index for i in same}) == 1:
            kept.append(same[0])
            continue
        stated = " and ".join(f"{i.index:f}" for i in same)
        findings.append(
            Finding(
                code="CL377",
                severity="error",
                message=f"the price index of {currency} in {year} is {stated}: none of them is taken",
                file="price_index.csv",
                subject=f"{currency} {year}",
                mend="keep the right one",
            )
        )
    return tuple(kept), findings


def rate_name(rate: ExchangeRate) -> str:
    """Return the words that tell a rate from others."""
    return f"{rate.base}/{rate.quote} {rate.date}"


def _order(rate: ExchangeRate) -> tuple[str, str, str, str, str]:
    return rate.base, rate.quote, rate.date, f"{rate.rate:f}", rate.source
