"""Rehearsal: a small report made and thrown away, so that the first one asked for finds all at hand.

Much of what a first page costs is paid once a process: code that is read when it is first run, the
parser of the foreign functions, the fonts that are cut, the engine that draws compiling what it runs.
"""

from __future__ import annotations

from collections import defaultdict

from carbonlens.render.attachments import Enclosed
from carbonlens.render.blocks import document_variables
from carbonlens.render.environment import template_environment
from carbonlens.render.pdf import paper, written
from carbonlens.reporting.block_charts import Bars, Mark, Panel, Plot, Trend
from carbonlens.reporting.content import Column, Row, Table, Tile, phrase
from carbonlens.reporting.document import (
    Block,
    Bullets,
    Document,
    Heading,
    Paragraph,
    Picture,
    Section,
    TableBlock,
    Tiles,
)
from carbonlens.reporting.document_view import DocumentView

_WORDS = "what it says, and says again, until it takes more than the one line that a cell of it has"


def rehearse() -> None:
    """Make a report with one of everything, up to its bytes.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
    """
    environment = template_environment()
    for name in environment.list_templates(filter_func=_is_ours):
        environment.get_template(name)
    variables = document_variables(_view(), "paper", None)
    variables["parts"] = defaultdict(tuple, variables["parts"])  # it has one section, not those of a quarter
    page = environment.get_template("report.html.j2").render(variables)
    enclosed = Enclosed(name="words.csv", content=_WORDS.encode(), description=_WORDS)
    written(paper(page), page, (enclosed,), None)


def _is_ours(name: str) -> bool:
    return name.endswith(".j2") and not name.startswith("starter/")


def _view() -> DocumentView:
    plots = {plot.name: plot for plot in _plots()}
    blocks: tuple[Block, ...] = (
        Heading(text=phrase(_WORDS), level=1),
        Tiles(tiles=(Tile(label="tile", value=phrase(_WORDS), lines=(phrase(_WORDS),)),)),
        Heading(text=phrase("heading")),
        Paragraph(text=phrase(_WORDS)),
        Bullets(items=(phrase(_WORDS),)),
        *(Picture(name=p.name, title=p.title, alt=p.alt) for p in plots.values()),
        TableBlock(name="table", table=_table()),
    )
    sections = (Section(name="statement", blocks=blocks),)
    return DocumentView(
        kind="rehearsal",
        title=_WORDS,
        subject=phrase("rehearsal"),
        badges=("rehearsal",),
        document=Document(title=_WORDS, subject=phrase("rehearsal"), example=True, sections=sections),
        plots=plots,
        figures={},
    )


def _table() -> Table:
    columns = (Column(name=phrase("words"), numeric=False), Column(name=phrase("numbers"), unit="unit"))
    cells = ((phrase(_WORDS),), (phrase("one"), phrase("two")))
    rows = tuple(Row(head=phrase("row"), cells=cells) for _ in range(4))
    return Table(caption=phrase("table"), head="name", columns=columns, rows=rows, note=phrase(_WORDS))


def _plots() -> tuple[Plot, ...]:
    marks = tuple(
        Mark(name=kind, kind=kind, value=1.0, figure_id=kind, text=kind, low=0.5, high=1.5)
        for kind in ("actual", "earlier", "end", "rise", "fall")
    )
    return (
        Bars(name="bars", title=phrase("bars"), alt=_WORDS, marks=marks, axis="unit"),
        Trend(
            name="trend",
            title=phrase("trend"),
            alt=_WORDS,
            panels=tuple(Panel(name=name, marks=marks[:2]) for name in ("one", "other")),
        ),
    )
