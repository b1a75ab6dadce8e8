"""View: the one object from which every format of a report is made."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from carbonlens.domain.business_result import BusinessResult
from carbonlens.domain.comparison import Comparison
from carbonlens.reporting.business_case import build_business_case
from carbonlens.reporting.business_investment import investment
from carbonlens.reporting.content import PrintedFigure, ReportView, plain_text
from carbonlens.reporting.engineering import build_engineering
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.figures import FigureBook


def build_view(comparison: Comparison, business: BusinessResult | None = None) -> ReportView:
    """Return everything a report of the comparison prints.

    Args:
        comparison: A study's result.
        business: What it is worth, where that was asked for.
    """
    book = FigureBook()
    facts = Facts(comparison, book)
    business_case = build_business_case(facts)
    if business is not None:
        business_case = msgspec.structs.replace(business_case, investment=investment(book, business))
    engineering = build_engineering(facts)
    return ReportView(
        title=plain_text(business_case.title),
        subject=facts.subject,
        example=comparison.vector.example,
        business_case=business_case,
        engineering=engineering,
        figures=_printed(book, business_case, engineering),
    )


def _printed(book: FigureBook, *sections: msgspec.Struct) -> dict[str, PrintedFigure]:
    """Return the figures that the sections print, in order of entry."""
    used: set[str] = set()
    for section in sections:
        used.update(figure_ids(section))
    return {name: figure for name, figure in book.figures.items() if name in used}


def figure_ids(node: object) -> Iterator[str]:
    """Yield the ids of the figures that a part of a report prints, some more than once.

    Args:
        node: A section, a table, a phrase.
    """
    if isinstance(node, msgspec.Struct):
        figure_id = getattr(node, "figure_id", None)
        if figure_id is not None:
            yield figure_id
        for field in node.__struct_fields__:
            yield from figure_ids(getattr(node, field))
    elif isinstance(node, tuple):
        for item in node:
            yield from figure_ids(item)
