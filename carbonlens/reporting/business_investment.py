"""Investment: the money side of the business case, for the page that a manager decides on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from carbonlens.domain.business import MONTHS_PER_YEAR
from carbonlens.domain.business_result import BusinessResult, ScenarioResult
from carbonlens.domain.figure import Figure
from carbonlens.reporting import format as fmt
from carbonlens.reporting.business_figures import bar_ids, business_figures, figure_id
from carbonlens.reporting.business_words import SIGMAS, bar_ends, years
from carbonlens.reporting.content import (
    Column,
    Investment,
    Part,
    Phrase,
    Row,
    Table,
    Tornado,
    TornadoEnd,
    TornadoRow,
    label,
    phrase,
    quoted,
)
from carbonlens.reporting.figures import Entry, FigureBook, exact
from carbonlens.reporting.names import clip, plural

_MOST_BARS: Final = 8
_NAME_WIDTH: Final = 40
_WORDS: Final = {"low": "Low", "expected": "Expected", "high": "High"}


def investment(book: FigureBook, result: BusinessResult) -> Investment:
    """Return the content, its figures entered in the book.

    Args:
        book: Of the report.
        result: The business case.
    """
    return _Writer(book, result).content()


class _Writer:
    """Enters figures by their ids, each printed in one way."""

    def __init__(self, book: FigureBook, result: BusinessResult) -> None:
        self._book = book
        self._result = result
        self._figures: Mapping[str, Figure] = {f.figure_id: f for f in business_figures(result)}
        values = [abs(s.npv.value) for s in result.scenarios.values() if s.npv.value is not None]
        self._scale = fmt.money_scale(max(values, default=None), result.business.currency)

    def content(self) -> Investment:
        """Return title, tables, sentences and chart."""
        drawn = self._tornado()
        return Investment(
            title=self._title(),
            lead=self._lead(),
            scenarios=self._scenarios(),
            lines=tuple(self._lines()),
            tornado=drawn,
            savings=self._savings(),
            one_offs=self._one_offs(),
            ranges=None if drawn is None else self._ranges(drawn),
        )

    def _enter(self, name: str, show: object = None) -> Entry:
        """Enter a figure of the case; money unless it is shown otherwise."""
        figure = self._figures[name]
        estimate = figure.estimate
        if isinstance(show, fmt.Printed):
            printed = show
        elif callable(show):
            printed = show(estimate)
        else:
            printed = fmt.money(estimate)
        return self._book.enter(
            name, figure.label, estimate, printed, formula=figure.formula, inputs=figure.inputs
        )

    def _scaled(self, name: str) -> Entry:
        return self._enter(name, lambda e: fmt.money(e, self._scale))

    def _title(self) -> Phrase:
        npv = self._scaled(figure_id("npv", "expected"))
        if not self._result.adopted:
            return phrase("No step is adopted: nothing is earned")
        if not npv.known:
            return phrase("What it is worth is unknown")
        most = "at most " if self._result.is_at_most else ""
        value = self._result.expected.npv.value or 0.0
        said = "Worth " if value >= 0 else "Not worth it: net present value of "
        return phrase(said, most, npv.text, " over ", self._span(), self._doubt())

    def _doubt(self) -> Phrase:
        """Say what all ranges give, where some of it is a loss and some a gain."""
        drawn = self._result.monte_carlo
        if drawn is None or not drawn.low < 0 < drawn.high:
            return ()
        low, high = (self._enter(figure_id(f"monte_carlo.{end}")) for end in ("low", "high"))
        return phrase("; all ranges together give ", low.text, " to ", high.text)

    def _span(self) -> Phrase:
        months = self._result.business.horizon_months
        return self._number(figure_id("horizon"), years(months / MONTHS_PER_YEAR))

    def _number(self, name: str, printed: fmt.Printed) -> Phrase:
        return phrase(self._enter(name, printed).text)

    def _lead(self) -> Phrase:
        b = self._result.business
        rate = self._enter(figure_id("discount_rate"), fmt.percent)
        spent = self._enter(figure_id("one_off"))
        return phrase(
            "Paid before the first month, ", quoted(b.start), ": ", spent.text, ". Monthly flows, each at ",
            "the end of its month, at ", rate.text, " a year, effective, real and before tax. Cash alone; ",
            "brackets are ", label("95 %"), " intervals.",
        )  # fmt: skip

    def _scenarios(self) -> Table:
        unit = plural(self._result.unit)
        columns = (
            Column(name=phrase(quoted(clip(unit, 16)), " a month")),
            Column(name=phrase("Cash saved")),
            Column(name=phrase("NPV, at most" if self._result.is_at_most else "NPV")),
            Column(name=phrase("Payback"), unit="discounted below"),
            Column(name=phrase("IRR"), unit="a year"),
            Column(name=phrase("CO₂e avoided"), unit="location, market"),
        )
        rows = tuple(self._row(one) for one in self._result.scenarios.values())
        return Table(caption=phrase("By expected volume"), head="Volume", columns=columns, rows=rows)

    def _row(self, one: ScenarioResult) -> Row:
        name = one.name
        cells = (
            (phrase(self._enter(figure_id("volume", name), fmt.count).text),),
            self._cell(self._scaled(figure_id("cash", name))),
            self._cell(self._scaled(figure_id("npv", name))),
            tuple(self._paybacks(one)),
            (self._rate(one),),
            tuple(phrase(self._mass(figure_id(f"emissions_{m}", name)).text) for m in ("location", "market")),
        )
        return Row(head=phrase(_WORDS[name]), cells=cells, mark="" if name == "expected" else "muted")

    def _cell(self, entry: Entry) -> tuple[Phrase, ...]:
        return tuple(line for line in (phrase(entry.text), phrase(entry.interval)) if line)

    def _paybacks(self, one: ScenarioResult) -> Iterator[Phrase]:
        told = (("payback", one.payback_years), ("discounted_payback", one.discounted_payback_years))
        for name, value in told:
            if not one.flows:
                yield phrase(fmt.UNKNOWN)
            elif value is None:
                yield phrase("none within the horizon")
            else:
                yield self._number(figure_id(name, one.name), years(value))

    def _rate(self, one: ScenarioResult) -> Phrase:
        if one.rates is None:
            return phrase(fmt.UNKNOWN)
        if one.rates.rate is None:
            return phrase(one.rates.outcome)
        return phrase(self._enter(figure_id("irr", one.name), fmt.percent).text)

    def _mass(self, name: str) -> Entry:
        return self._enter(name, fmt.mass)

    # Sentences ----------------------------------------------------------------

    def _lines(self) -> Iterator[Phrase]:
        yield from self._drawn()
        yield from self._even()
        yield from self._outside()
        yield from self._devices()
        if self._result.is_at_most:
            yield phrase(
                "A cost is not known in full: NPV, cash and returns are at most, paybacks at least, these."
            )
        if self._result.unranged:
            names = quoted(clip(", ".join(self._result.unranged), 120))
            yield phrase("Without a stated range, and so in no interval: ", names, ".")

    def _drawn(self) -> Iterator[Phrase]:
        drawn = self._result.monte_carlo
        if drawn is None:
            return
        low, high = (self._enter(figure_id(f"monte_carlo.{end}")) for end in ("low", "high"))
        share = self._enter(figure_id("monte_carlo.positive"), fmt.percent)
        seed = quoted(f"{drawn.draws} draws, seed {drawn.seed}")
        yield phrase(
            "All ranges together put the expected NPV between ", low.text, " and ", high.text, " (",
            label("95 %"), "); it is above zero in ", share.text, " of the draws (", seed, ").",
        )  # fmt: skip

    def _even(self) -> Iterator[Phrase]:
        even, unit = self._result.break_even, plural(self._result.unit)
        if even.outcome == "never":
            yield phrase("No volume breaks even.")
        elif even.outcome != "unknown":
            name = figure_id("break_even_volume")
            count = self._enter(name, lambda e: fmt.count(e, no_bound="never"))
            per = phrase(" ", quoted(clip(unit, 24)), " in the first month")
            yield phrase("Breaks even at ", count.text, per, " ", count.interval, ".")
        cost = self._result.cost_of_delay
        if cost.value is not None and cost.value > 0:
            entry = self._enter(figure_id("cost_of_delay"))
            yield phrase("A month's delay costs ", entry.full, ".")

    def _outside(self) -> Iterator[Phrase]:
        one = self._result.expected
        if one.non_cash_value.value:
            entry = self._enter(figure_id("non_cash_value", "expected"))
            yield phrase("Saved but no cash within the horizon, and not in NPV: ", entry.full, ".")
        kinds = (
            ("location-based", one.carbon_location, "carbon_location"),
            ("market-based", one.carbon_market, "carbon_market"),
        )
        priced = [
            phrase(self._enter(figure_id(name, "expected")).text, f" {words}")
            for words, value, name in kinds
            if value is not None and value.value is not None
        ]
        if priced:
            joined = priced[0] if len(priced) == 1 else phrase(priced[0], ", ", priced[1])
            yield phrase("Carbon at the internal price, not in NPV: ", joined, ".")
        if one.embodied_kg.value is not None:
            entry = self._mass(figure_id("embodied", "expected"))
            yield phrase("Embodied emissions saved, not in NPV: ", entry.full, ".")

    def _devices(self) -> Iterator[Phrase]:
        devices = self._result.embedded
        if devices is None:
            return
        scale = fmt.energy_scale(devices.before.energy_per_day_j.value)
        ends = [
            self._enter(figure_id(f"embedded.{kind}.energy_per_day"), lambda e: fmt.energy(e, scale))
            for kind in ("before", "after")
        ]
        gain = ""
        said: Phrase = ()
        if devices.battery_gain.value is not None:
            entry = self._enter(figure_id("embedded.battery_gain"), lambda e: fmt.percent(e, plus=True))
            gain = " (of this part alone)" if devices.is_of_part else ""
            said = phrase("; battery life ", entry.text, gain)
        yield phrase(
            "A device uses ", ends[0].text, " a day before and ", ends[1].text, " after", said,
            ". What devices use at customers is use of sold products (", label("scope 3 category 11"), ").",
        )  # fmt: skip

    # Tables and chart -----------------------------------------------------------

    def _savings(self) -> Table:
        unit = self._result.unit
        columns = (
            Column(name=phrase("Part"), numeric=False),
            Column(name=phrase("Bought"), numeric=False),
            Column(name=phrase("Saved by a million ", quoted(clip(plural(unit), 16)))),
            Column(name=phrase("Cash"), numeric=False),
        )
        rows = []
        for number, one in enumerate(self._result.streams, 1):
            entry = self._enter(figure_id(f"saving.{number}.per_million"))
            when = phrase("none within the horizon")
            if one.cash_from == 1:
                when = phrase("all")
            elif one.cash_from is not None:
                when = phrase("from month ", quoted(str(one.cash_from)))
            cells = (
                (phrase(quoted(one.what)),),
                (phrase((one.regime or "by customers").replace("_", " ")),),
                self._cell(entry),
                (when,),
            )
            rows.append(Row(head=phrase(quoted(clip(one.name, _NAME_WIDTH))), cells=cells))
        return Table(
            caption=phrase("What is saved, and what of it is cash"),
            head="Saving",
            columns=columns,
            rows=tuple(rows),
        )

    def _one_offs(self) -> Table:
        columns = (Column(name=phrase("Amount")), Column(name=phrase("Source"), numeric=False))
        rows = []
        for number, one in enumerate(self._result.one_offs, 1):
            entry = self._enter(figure_id(f"one_off.{number}"))
            source = one.source or ("ledger" if one.kind == "compute" else "not stated")
            cells = (self._cell(entry), (phrase(quoted(clip(source, 60))),))
            rows.append(Row(head=phrase(quoted(clip(one.name, _NAME_WIDTH))), cells=cells))
        return Table(
            caption=phrase("Paid once, at the start"), head="One-off", columns=columns, rows=tuple(rows)
        )

    def _tornado(self) -> Tornado | None:
        result, ids = self._result, bar_ids(self._result)
        middle = result.expected.npv.value
        if not result.tornado or middle is None:
            return None
        rows = []
        for bar in result.tornado[:_MOST_BARS]:
            low, high = bar_ends(result, bar)
            rows.append(
                TornadoRow(
                    name=clip(bar.label if SIGMAS in low else f"{bar.label}: {low} to {high}", 60),
                    low=self._end(f"{ids[bar.key]}.low", bar.npv_low),
                    high=self._end(f"{ids[bar.key]}.high", bar.npv_high),
                )
            )
        unit = f"{self._scale.unit} {self._scale.suffix}".strip()
        return Tornado(
            title=phrase("What NPV hangs on: one input at a time, the others as expected"),
            alt=f"Tornado of net present value. It moves most with {rows[0].name}: {rows[0].text}.",
            rows=tuple(rows),
            middle=middle * self._scale.factor,
            factor=self._scale.factor,
            axis=f"net present value, {unit}; dashed: all as expected",
        )

    def _ranges(self, drawn: Tornado) -> Table:
        """Return the bars as a table, for formats that draw nothing."""
        columns = (Column(name=phrase("NPV at the low end")), Column(name=phrase("NPV at the high end")))
        rows = tuple(
            Row(
                head=phrase(quoted(row.name)),
                cells=tuple((phrase(Part(text=e.text, figure_id=e.figure_id)),) for e in (row.low, row.high)),
            )
            for row in drawn.rows
        )
        return Table(caption=drawn.title, head="Input", columns=columns, rows=rows)

    def _end(self, name: str, npv: float) -> TornadoEnd:
        digits = exact(float(f"{npv:.3g}"), self._result.business.currency)
        entry = self._enter(name, fmt.money(digits, self._scale))  # as many digits as a chart needs
        return TornadoEnd(value=npv * self._scale.factor, figure_id=name, text=entry.text.text)
