"""Sustainability desk: what the parts of a quarter's report share while it is put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from carbonlens.accounting.periods_compared import COST, in_one_key
from carbonlens.accounting.scopes import Place
from carbonlens.accounting.statement import Statement
from carbonlens.domain.drivers import Bridge
from carbonlens.domain.figure import Figure
from carbonlens.reporting.block_charts import Plot
from carbonlens.reporting.columns import Column as ColumnOfSum
from carbonlens.reporting.content import Column, Phrase, Row, Table, label, phrase, quoted
from carbonlens.reporting.document import Block, Heading, Paragraph, Picture, TableBlock
from carbonlens.reporting.drivers_lines import least_places
from carbonlens.reporting.names import clip
from carbonlens.reporting.statement_columns import Columns, columns_of, more_places, of
from carbonlens.reporting.sustainability_input import Given
from carbonlens.reporting.sustainability_prints import Prints, by_id
from carbonlens.reporting.sustainability_sums import cost_columns

MOST_ROWS = 300
"""Of a table on a page: WeasyPrint lays out each cell at a cost, and nobody reads more."""

MOST_GROUPS: Final = 12
"""Groups with a line of their own: the rest share one, and XLSX, JSON and the annex have all."""

NAME = 60

_AMOUNTS: Final[Mapping[str, str]] = {
    "energy": "facility_kwh",
    "carbon-location": "location_kg",
    "carbon-market": "market_kg",
}
"""Amounts of a statement's lines by the measure of the bridge that ends in their total."""


class Desk:
    """The material, the book of figures and the charts made so far."""

    def __init__(self, given: Given) -> None:
        """Start with an empty book."""
        self.given = given
        self.prints = Prints()
        self.plots: dict[str, Plot] = {}
        self._columns: Columns | None = None

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """Figures of the statements of all periods, of drivers and of the register, by id."""
        held = self.given
        every = [f for q in held.quarters if q.statement is not None for f in q.statement.figures]
        every += [f for s in held.splits.values() for f in s.figures]
        every += held.drivers.figures if held.drivers is not None else ()
        every += held.register.figures if held.register is not None else ()
        return by_id([*held.compared.figures, *every])

    def of_line(self, key: str, name: str, period: str | None = None) -> Figure | None:
        """Return the figure of an amount of a statement's line.

        Args:
            key: Of the line.
            name: Of the amount.
            period: The quarter of the report when ``None``.
        """
        return self.figures.get(f"statement.{period or self.given.period}.{key}.{name}")

    def columns(self, statement: Statement) -> Columns:
        """Return the columns of the quarter's energy and its emissions, of one number of places in all.

        A line that another table has too, as a site with one kind of hardware, has one number in both.

        Args:
            statement: Of the quarter, or a split of it.
        """
        self._columns = columns_of(statement, self._least, self._columns, MOST_GROUPS)
        return self._columns

    @cached_property
    def _least(self) -> Mapping[str, int]:
        """Decimals of columns: what drivers need, and more where a line of a table would be rough.

        The total is printed alike in every table: what one of them needs, all have.
        """
        statement = self.given.current
        every = [statement, *self.given.splits.values()]
        return more_places(every, self._for_drivers(statement), MOST_GROUPS)

    def _for_drivers(self, statement: Statement) -> dict[str, int]:
        """Return the decimals with which the drivers of each amount say something, within reason."""
        held = [(b, _AMOUNTS[b.measure]) for b in self._bridges if b.measure in _AMOUNTS]
        return {name: least_places(b, of(name, statement.total)) for b, name in held}

    @property
    def _bridges(self) -> list[Bridge]:
        drivers = self.given.drivers
        return [] if drivers is None else [b for b in drivers.bridges if not b.is_least]

    @cached_property
    def costs(self) -> Mapping[str, ColumnOfSum]:
        """Columns of the quarter's cost by currency: its lines by their number, and the total."""
        cost = self.given.current.cost
        bridges = [b for b in self._bridges if b.measure == "cost" and b.unit in cost.totals]
        return cost_columns(cost, {b.unit: least_places(b, cost.totals[b.unit]) for b in bridges})

    def picture(self, plot: Plot | None) -> Iterator[Block]:
        """Yield the block of a chart, and keep the chart."""
        if plot is not None:
            self.plots[plot.name] = plot
            yield Picture(name=plot.name, title=plot.title, alt=plot.alt)


def cost_keys(desk: Desk) -> list[str]:
    """Return the lines of the quarter's whole cost: that in the reporting currency, else one a currency.

    A currency in which only another quarter has a cost is none of them.
    """
    statement = desk.given.current
    held, in_one = sorted(statement.cost.totals), statement.reported_cost
    if in_one is not None and held != [in_one.currency] and in_one.total.state == "known":
        return [in_one_key(in_one.currency)]
    return [f"{COST}{currency}" for currency in held]


def currency_of(key: str) -> str:
    """Return the currency of a line of cost."""
    return key.removeprefix(COST).removeprefix("cost.in_").removesuffix(".total")


def head_of(desk: Desk, name: str) -> Phrase:
    """Return the head of a quarter's column: other quarters than the report's say here what they are.

    Args:
        desk: Of the report.
        name: Of the quarter.
    """
    held = desk.given.quarter(name)
    if held is None or not held.label or name == desk.given.period:
        return phrase(label(name))
    return phrase(label(name), f" {held.label}")


def undrawn(desk: Desk, lines: Sequence[tuple[str, str]], periods: Sequence[str]) -> Paragraph | None:
    """Return which totals a chart leaves out for the lower bounds beside them; ``None`` where none.

    Args:
        desk: Of the report.
        lines: Words and key of each that the chart draws.
        periods: Quarters that it draws them of.
    """
    left: list[Phrase] = []
    for words, key in lines:
        names = [p for p in periods if desk.given.compared.has_least(key, p)]
        if names:
            left.append(phrase("; " if left else "", words, " of ", label(", ".join(names))))
    if not left:
        return None
    return Paragraph(text=phrase("Not drawn, as lower bounds or with such beside them: ", *left, "."))


def heading(text: str) -> Heading:
    """Return the heading of a part."""
    return Heading(text=phrase(text))


def foreign(text: str, width: int = NAME) -> Phrase:
    """Return foreign text, cleaned and clipped."""
    return phrase(quoted(clip(text, width)))


def words_of(place: Place) -> str:
    """Return what is reported under a scope and category, in words."""
    return {
        "scope_2": "electricity",
        "scope_3_category_1": "purchased services",
        "scope_3_category_2": "hardware bought",
        "scope_3_category_3": "fuel supply and grid losses",
        "scope_3_category_8": "leased places",
        "scope_3_category_11": "devices at customers",
    }.get(place.key, "")


def table(
    name: str,
    caption: str | Phrase,
    head: str,
    columns: Sequence[str | Phrase | Column],
    rows: Sequence[Row],
    note: str | Phrase = (),
) -> TableBlock:
    """Return a table of a part; columns given as words hold numbers.

    Args:
        name: Unique in the report.
        caption: What it shows.
        head: Name of the first column.
        columns: The others.
        rows: With as many cells each.
        note: A remark under it.
    """
    made = [c if isinstance(c, Column) else Column(name=phrase(c)) for c in columns]
    return TableBlock(
        name=name,
        table=Table(
            caption=phrase(caption),
            head=head,
            columns=tuple(made),
            rows=tuple(rows),
            note=phrase(note) if note else (),
        ),
    )


def text_column(name: str) -> Column:
    """Return a column of words."""
    return Column(name=phrase(name), numeric=False)
