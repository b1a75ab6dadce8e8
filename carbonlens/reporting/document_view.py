"""Document view: a report that is a document with charts, from which every format is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from carbonlens.reporting.block_charts import Mark, Plot
from carbonlens.reporting.content import Phrase, PrintedFigure
from carbonlens.reporting.document import Document


class DocumentView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything such a report prints.

    Attributes:
        kind: What it is, ``Sustainability report``.
        title: Its message, as document title.
        badges: What stands on every page, such as ``DRAFT``.
        plots: Charts by the name of their picture in the document.
        figures: Every printed number by its id, in order of first use.
    """

    kind: str
    title: str
    subject: Phrase
    badges: tuple[str, ...]
    document: Document
    plots: Mapping[str, Plot]
    figures: Mapping[str, PrintedFigure]

    @property
    def marks(self) -> Iterator[tuple[str, Mark]]:
        """Every mark of every chart, with the name of the chart."""
        for name, plot in self.plots.items():
            for mark in plot.marks:
                yield name, mark
