"""Document: a report as plain blocks in reading order, for formats without a layout of their own.

HTML and PDF are laid out by templates. Markdown, XLSX and JSON take this: the same records,
one after the other, so that no format says what another does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from carbonlens.reporting.content import (
    BusinessCase,
    Engineering,
    Investment,
    Phrase,
    ReportView,
    Table,
    Tile,
    phrase,
)
from carbonlens.reporting.power_content import PowerArm


class Heading(msgspec.Struct, frozen=True, kw_only=True, tag="heading"):
    """A heading; ``level`` 1 is the section's."""

    text: Phrase
    level: int = 2


class Paragraph(msgspec.Struct, frozen=True, kw_only=True, tag="paragraph"):
    """A sentence or more; ``strong`` where it must not be missed."""

    text: Phrase
    strong: bool = False


class Bullets(msgspec.Struct, frozen=True, kw_only=True, tag="bullets"):
    """A list."""

    items: tuple[Phrase, ...]


class Tiles(msgspec.Struct, frozen=True, kw_only=True, tag="tiles"):
    """The headline figures."""

    tiles: tuple[Tile, ...]


class TableBlock(msgspec.Struct, frozen=True, kw_only=True, tag="table"):
    """A table; ``name`` is unique in the document and fit for a sheet or an anchor."""

    name: str
    table: Table


class Picture(msgspec.Struct, frozen=True, kw_only=True, tag="picture"):
    """A chart, by its finding in words: what it draws stands in the tables."""

    name: str
    title: Phrase
    alt: str


class PowerSeries(msgspec.Struct, frozen=True, kw_only=True, tag="power"):
    """What the chart of power over time draws, for formats that hold data."""

    name: str
    arms: tuple[PowerArm, ...]


Block: TypeAlias = Heading | Paragraph | Bullets | Tiles | TableBlock | Picture | PowerSeries


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a report with its blocks."""

    name: str
    blocks: tuple[Block, ...]

    @property
    def tables(self) -> tuple[TableBlock, ...]:
        """Its tables in order."""
        return tuple(b for b in self.blocks if isinstance(b, TableBlock))


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A report in blocks.

    Attributes:
        title: Message of the report.
        subject: Study and place.
        example: Whether any factor or price is an example assumption.
        sections: In reading order.
    """

    title: str
    subject: Phrase
    example: bool
    sections: tuple[Section, ...]


def document(view: ReportView, sections: tuple[str, ...]) -> Document:
    """Return the chosen sections of a report in blocks.

    Args:
        view: The report.
        sections: Of ``business-case`` and ``engineering``; their order is the report's own.
    """
    made = []
    if "business-case" in sections:
        made.append(Section(name="business-case", blocks=tuple(_business_case(view.business_case))))
    if "engineering" in sections:
        alone = "business-case" not in sections
        blocks = tuple(_engineering(view.engineering, with_assumptions=alone))
        made.append(Section(name="engineering", blocks=blocks))
    return Document(title=view.title, subject=view.subject, example=view.example, sections=tuple(made))


def _business_case(page: BusinessCase) -> Iterator[Block]:
    yield Heading(text=page.title, level=1)
    yield Paragraph(text=page.lead)
    yield Tiles(tiles=page.tiles)
    yield Paragraph(text=page.basis)
    if page.waterfall is not None:
        yield Picture(name="waterfall", title=page.waterfall.title, alt=page.waterfall.alt)
        yield from _paragraph(page.waterfall_note)
    for words, items in (
        ("Decision asked", page.decision),
        ("Risks", page.risks),
        ("Break-even", page.break_even),
        ("Not counted", page.not_counted),
    ):
        yield from _listed(words, items)
    yield TableBlock(name="Assumptions", table=page.assumptions)
    if page.investment is not None:
        yield from _investment(page.investment)


def _investment(money: Investment) -> Iterator[Block]:
    yield Heading(text=money.title)
    yield Paragraph(text=money.lead)
    yield TableBlock(name="Volumes", table=money.scenarios)
    yield Bullets(items=money.lines)
    if money.tornado is not None:
        yield Picture(name="tornado", title=money.tornado.title, alt=money.tornado.alt)
    if money.ranges is not None:
        yield TableBlock(name="Ranges", table=money.ranges)
    yield TableBlock(name="Savings", table=money.savings)
    yield TableBlock(name="One-offs", table=money.one_offs)


def _engineering(page: Engineering, *, with_assumptions: bool) -> Iterator[Block]:
    yield Heading(text=page.title, level=1)
    yield Paragraph(text=page.lead)
    for name, error in page.failures:
        yield Paragraph(text=phrase(name, " failed: ", error), strong=True)
    yield TableBlock(name="Measured", table=page.measured)
    yield TableBlock(name="Used", table=page.used)
    if page.attribution is not None:
        yield TableBlock(name="Attribution", table=page.attribution)
    yield TableBlock(name="Effects", table=page.effects)
    charts = (("forest", page.forest), ("drift", page.drift), ("latencies", page.latencies))
    for kind, chart in (*charts, *((p.name, p) for p in page.pareto)):
        if chart is not None:
            yield Picture(name=kind, title=chart.title, alt=chart.alt)
    if page.power is not None:
        yield Picture(name="power", title=page.power.title, alt=page.power.alt)
        yield TableBlock(name="Power", table=page.power.table)
        yield PowerSeries(name="Power over time", arms=page.power.arms)
    for words in page.left_out:
        yield Paragraph(text=words)
    yield TableBlock(name="Effort", table=page.effort)
    if page.break_even is not None:
        yield TableBlock(name="Break-even", table=page.break_even)
    if with_assumptions:
        yield TableBlock(name="Assumptions", table=page.assumptions)
    if page.findings is not None:
        yield TableBlock(name="Findings", table=page.findings)
    yield from _environment(page.environment)


def _environment(facts: tuple[tuple[Phrase, Phrase], ...]) -> Iterator[Block]:
    yield Heading(text=phrase("Environment"))
    if facts:
        yield Bullets(items=tuple(phrase(name, ": ", value) for name, value in facts))
    else:
        yield Paragraph(text=phrase("No environment was recorded."))


def _listed(words: str, items: tuple[Phrase, ...]) -> Iterator[Block]:
    if items:
        yield Heading(text=phrase(words))
        yield Bullets(items=items)


def _paragraph(text: Phrase) -> Iterator[Block]:
    if text:
        yield Paragraph(text=text)
