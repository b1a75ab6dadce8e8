"""A cost in the reporting currency: each line at a rate that the user dated, and at one year's prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.cost import Cost
from carbonlens.accounting.exchange import at_prices, exchanged, in_prices_of, rate_id
from carbonlens.accounting.propagation import through
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.pricing import ExchangeRate, PriceIndex


class Reporting(msgspec.Struct, frozen=True, kw_only=True):
    """In which money a cost is reported.

    Attributes:
        currency: ISO 4217 code; ``None`` leaves each line in its own.
        date: Day of the rates: the last of the period.
        rates: The user's.
        by_year: Share of each calendar year in the period's days: of lines that tell no other.
        price_year: Year to whose prices it is brought; ``None`` leaves it nominal.
        indices: The user's price indices.
    """

    currency: str | None = None
    date: str = ""
    rates: tuple[ExchangeRate, ...] = ()
    by_year: Mapping[int, float] = {}
    price_year: int | None = None
    indices: tuple[PriceIndex, ...] = ()


class ReportedCost(msgspec.Struct, frozen=True, kw_only=True):
    """A cost in one currency.

    Attributes:
        lines: Each line of the cost, in its order.
        total: Their sum; a lower bound where one of them is unknown.
        how: Each rate that was used, in words.
        rates: The same as figures on which the lines rest.
        inputs: Ids of the rates that each line rests on.
        price_year: Year of ``real``.
        real: The total at the prices of the price year; ``None`` where none was asked for.
        real_how: How it was made.
    """

    currency: str
    lines: tuple[Estimate, ...]
    total: Estimate
    how: tuple[str, ...]
    rates: tuple[Figure, ...]
    inputs: tuple[tuple[str, ...], ...]
    price_year: int | None = None
    real: Estimate | None = None
    real_how: str = ""
    findings: tuple[Finding, ...] = ()

    def figures(self, prefix: str, cost: Cost) -> tuple[Figure, ...]:
        """Return lines, total and rates as figures.

        Args:
            prefix: Of the figures of the cost itself.
            cost: What was converted.
        """
        at = f"{prefix}.in_{self.currency}"
        found = [
            Figure(
                figure_id=f"{at}.{n}.{line.name}",
                estimate=estimate,
                label=f"{line.label}, in {self.currency}",
                formula="amount in its own currency, at the rate",
                inputs=(f"{prefix}.{n}.{line.name}", *inputs),
            )
            for n, (line, estimate, inputs) in enumerate(
                zip(cost.lines, self.lines, self.inputs, strict=True), 1
            )
        ]
        names = tuple(f.figure_id for f in found)
        found.append(
            Figure(
                figure_id=f"{at}.total",
                estimate=self.total,
                label=f"cost in {self.currency}",
                formula="sum of the lines",
                inputs=names,
            )
        )
        if self.real is not None:
            found.append(
                Figure(
                    figure_id=f"{at}.total_{self.price_year}",
                    estimate=self.real,
                    label=f"cost in {self.currency}, {self.real_how}",
                    formula="sum over lines and their years of amount * index / index of the year",
                    inputs=names,
                )
            )
        return *found, *self.rates


def reported(cost: Cost, terms: Reporting) -> ReportedCost | None:
    """Return a cost in the reporting currency; ``None`` where none is declared or nothing costs.

    Args:
        cost: Lines, each in its own currency.
        terms: Currency, rates and price year.
    """
    currency = terms.currency
    if currency is None or not cost.lines:
        return None
    changed = [
        None if line.currency == NO_CURRENCY else exchanged(line.amount, currency, terms.date, terms.rates)
        for line in cost.lines
    ]
    lines = tuple(unknown(currency) if c is None else c.estimate for c in changed)
    known = [c for c in changed if c is not None]
    used = dict.fromkeys(i for c in known for i in c.input_ids)
    total = add(lines, currency)
    real, how, said = _at_prices(cost, lines, terms)
    return ReportedCost(
        currency=currency,
        lines=lines,
        total=total,
        how=tuple(dict.fromkeys(c.how for c in known if c.input_ids)),
        rates=tuple(_rate_figure(r) for r in terms.rates if rate_id(r) in used),
        inputs=tuple(() if c is None else c.input_ids for c in changed),
        price_year=terms.price_year if real is not None else None,
        real=real,
        real_how=how,
        findings=(*dict.fromkeys(f for c in known for f in c.findings), *said),
    )


def _at_prices(
    cost: Cost, amounts: Sequence[Estimate], terms: Reporting
) -> tuple[Estimate | None, str, tuple[Finding, ...]]:
    """Return the total at the prices of the price year, each line by the years of its own money.

    ``None`` where all of it is of that year, or an index lacks.
    """
    wanted, currency = terms.price_year, terms.currency or ""
    shares = [line.by_year or terms.by_year for line in cost.lines]
    years = sorted({year for held in shares for year in held} - {wanted})
    if wanted is None or not years:
        return None, "", ()
    index = _index(terms.indices, currency)
    said = [in_prices_of(Estimate(value=1.0, unit=currency), year, wanted, index) for year in years]
    lacking = tuple(f for one in said for f in one.findings)
    if lacking:
        return None, "", lacking
    real = [
        through(at_prices, amount, index[wanted], blended_index(held, index), unit=currency)
        if set(held) - {wanted}
        else amount
        for amount, held in zip(amounts, shares, strict=True)
    ]
    how = said[0].how
    if len(years) > 1:
        parts = (f"{index[wanted]:g} / {index[year]:g} ({year})" for year in years)
        how = f"at prices of {wanted}: index {', '.join(parts)}"
    return add(real, currency), how, ()


def blended_index(shares: Mapping[int, float], index: Mapping[int, float]) -> float:
    """Return the index of an amount that is of several years: harmonic, as indices divide amounts.

    Args:
        shares: Share of each year in the amount; they sum to 1.
        index: By year.
    """
    return 1 / sum(share / index[year] for year, share in shares.items())


def _index(indices: Sequence[PriceIndex], currency: str) -> Mapping[int, float]:
    return {i.year: float(i.index) for i in indices if i.currency == currency}


def _rate_figure(rate: ExchangeRate) -> Figure:
    return Figure(
        figure_id=rate_id(rate),
        estimate=Estimate(value=float(rate.rate), unit=f"{rate.quote}/{rate.base}"),
        label=f"1 {rate.base} in {rate.quote} on {rate.date}; {rate.source}",
    )
