"""Sustainability report: the view of a quarter, from which every format is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from carbonlens.reporting.content import label, phrase, plain_text, quoted
from carbonlens.reporting.document import Block, Document, Section
from carbonlens.reporting.document_view import DocumentView
from carbonlens.reporting.names import clip
from carbonlens.reporting.sustainability_annex import (
    assurance_blocks,
    finding_blocks,
    method_blocks,
    standards_blocks,
)
from carbonlens.reporting.sustainability_changes import driver_blocks, register_blocks, trend_blocks
from carbonlens.reporting.sustainability_desk import Desk
from carbonlens.reporting.sustainability_energy import energy_blocks
from carbonlens.reporting.sustainability_input import Given
from carbonlens.reporting.sustainability_records import (
    embodied_blocks,
    meter_blocks,
    quality_blocks,
    restatement_blocks,
)
from carbonlens.reporting.sustainability_statement import statement_blocks
from carbonlens.reporting.view import figure_ids

EXAMPLE: Final = "example: invented figures"


def build_sustainability(given: Given) -> DocumentView:
    """Return everything that the report of a quarter prints.

    Args:
        given: What it is made of.
    """
    desk = Desk(given)
    sections = tuple(Section(name=name, blocks=tuple(blocks)) for name, blocks in _parts(desk))
    title = plain_text(sections[0].blocks[0].text)  # type: ignore[union-attr]  # the first block is the heading
    badges = [b for b in (given.label, EXAMPLE if given.example else "") if b]
    entity = given.current.entity
    subject = phrase(
        quoted(clip(entity, 60)) if entity else "entity not named",
        " ",
        label(given.period),
        *(phrase(" · ", quoted(b)) for b in badges),
    )
    document = Document(title=title, subject=subject, example=given.example, sections=sections)
    used = {*figure_ids(document), *(m.figure_id for p in desk.plots.values() for m in p.marks)}
    figures = {name: f for name, f in desk.prints.book.figures.items() if name in used}
    return DocumentView(
        kind="Sustainability report",
        title=title,
        subject=subject,
        badges=tuple(badges),
        document=document,
        plots=desk.plots,
        figures=figures,
    )


def _parts(desk: Desk) -> Iterator[tuple[str, Iterator[Block]]]:
    """Yield the sections in order; what an earlier one prints of a figure, a later one prints alike."""
    yield "statement", statement_blocks(desk)
    yield "energy", energy_blocks(desk)
    yield "trends", trend_blocks(desk)
    yield "drivers", driver_blocks(desk)
    yield "initiatives", register_blocks(desk)
    yield "embodied", embodied_blocks(desk)
    yield "quality", quality_blocks(desk)
    yield "meters", meter_blocks(desk)
    yield "restatements", restatement_blocks(desk)
    yield "method", method_blocks(desk)
    yield "assurance", assurance_blocks(desk)
    yield "standards", standards_blocks()
    yield "findings", finding_blocks(desk)
