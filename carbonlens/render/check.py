"""Check: a finished page prints the figures of its view, and no other number.

Law 9: every number on the page carries the id of its figure and reads exactly
as that figure is printed. Numbers may also stand in quoted foreign text (names,
sources, messages) and in fixed labels (``P95``), which are marked as such.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Protocol

from carbonlens.errors import VerificationError
from carbonlens.reporting.chart_marks import spots
from carbonlens.reporting.content import Aspect, PrintedFigure, ReportView, Spot, TornadoEnd
from carbonlens.reporting.document_view import DocumentView

_VOID = frozenset({"meta", "br", "link", "img", "hr", "input", "wbr", "col"})
_UNREAD = frozenset({"style", "head", "script"})
_NUMBER = re.compile(r"[0-9]")
_TOLERANCE = 1e-9


class _Element:
    """An open element, with what its text counts as."""

    def __init__(self, tag: str, attributes: dict[str, str | None], inside: str | None) -> None:
        self.tag = tag
        self.figure_id = attributes.get("data-figure")
        self.aspect = attributes.get("data-aspect") or "text"
        self.text: list[str] = []
        if inside is not None:
            self.role: str | None = inside
        elif tag in _UNREAD:
            self.role = "unread"
        elif tag == "svg":
            self.role = "chart"
        elif self.figure_id is not None:
            self.role = "figure"
        elif "data-quoted" in attributes or "data-label" in attributes:
            self.role = "quoted"
        else:
            self.role = None


class _Reader(HTMLParser):
    """Collects printed figures, stray numbers and the text of charts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[_Element] = []
        self.printed: list[tuple[str, str, str]] = []
        self.stray: list[str] = []
        self.charts: list[str] = []
        self.titles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        inside = self.open[-1].role if self.open else None
        self.open.append(_Element(tag, dict(attrs), inside))

    def handle_endtag(self, tag: str) -> None:
        if not any(e.tag == tag for e in self.open):
            return
        while self.open:
            element = self.open.pop()
            self._close(element)
            if element.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        if not self.open:
            return
        element = self.open[-1]
        if element.role in ("figure", "chart") or element.tag == "title":
            element.text.append(data)
        elif element.role is None and _NUMBER.search(data):
            self.stray.append(data.strip())

    def _close(self, element: _Element) -> None:
        text = "".join(element.text)
        if element.tag == "title" and element.role != "chart":
            self.titles.append(text)
        elif element.figure_id is not None:
            self.printed.append((element.figure_id, element.aspect, text))
        elif element.role == "chart" and text.strip():
            self.charts.append(text.strip())


def check_page(page: str, view: ReportView) -> None:
    """Refuse a page that disagrees with its view.

    Args:
        page: The finished HTML.
        view: What it was made from.

    Raises:
        VerificationError: If a printed number differs from its figure, has no
            figure, or if a chart draws another value than its figure has.
    """
    drawn = check_printed(page, view)
    _check_charts(view)
    for name, label in _chart_labels(view, page):
        if label not in drawn:
            raise _refusal(f"the chart does not show {label!r}", name)


class Printable(Protocol):
    """What a page is made from, as far as every kind of report has it."""

    @property
    def title(self) -> str:
        """The document's title."""

    @property
    def figures(self) -> Mapping[str, PrintedFigure]:
        """Every printed number by its id."""


def check_printed(page: str, view: Printable) -> frozenset[str]:
    """Refuse a page with a number that is not that of its figure, and return the texts that its charts draw.

    Args:
        page: The finished HTML.
        view: What it was made from.

    Raises:
        VerificationError: If a printed number differs from its figure, or has none.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    for figure_id, aspect, text in reader.printed:
        _check_printed(view, figure_id, aspect, text)
    if reader.stray:
        raise _refusal(f"the number in {reader.stray[0][:80]!r} belongs to no figure", "page")
    if reader.titles[:1] != [view.title]:
        raise _refusal("the document's title is not the view's", "title")
    return frozenset(reader.charts)


def check_document(page: str, view: DocumentView) -> None:
    """Refuse a page that disagrees with the document it was made from.

    Args:
        page: The finished HTML.
        view: The report.

    Raises:
        VerificationError: As of ``check_page``.
    """
    drawn = check_printed(page, view)
    for name, mark in view.marks:
        figure = view.figures.get(mark.figure_id)
        value = figure.figure.estimate.value if figure else None
        if figure is None or value is None:
            raise _refusal("drawn, but not among the report's figures", mark.figure_id)
        if not math.isclose(mark.value, value * mark.factor, rel_tol=1e-6, abs_tol=_TOLERANCE):
            raise _refusal(
                f"the chart draws {mark.value}, the figure is {value * mark.factor}", mark.figure_id
            )
        if mark.text != figure.text:
            raise _refusal(f"the chart's label {mark.text!r} is not that of its figure", mark.figure_id)
        if mark.label not in drawn:
            raise _refusal(f"the chart does not show {mark.label!r}", name)


def check_view(page: str, view: ReportView | DocumentView) -> None:
    """Refuse a page that disagrees with what it was made from, of whatever kind.

    Args:
        page: The finished HTML.
        view: The report.

    Raises:
        VerificationError: As of ``check_page``.
    """
    if isinstance(view, ReportView):
        check_page(page, view)
    else:
        check_document(page, view)


def _check_printed(view: Printable, figure_id: str, aspect: str, text: str) -> None:
    figure = view.figures.get(figure_id)
    if figure is None:
        raise _refusal("printed, but not among the report's figures", figure_id)
    known: Aspect = aspect if aspect in ("number", "interval", "index") else "text"  # type: ignore[assignment]  # narrowed above in a way mypy does not follow
    if text != figure.form(known):
        raise _refusal(f"printed as {text!r}, computed as {figure.form(known)!r}", figure_id)


def _check_charts(view: ReportView) -> None:
    """Hold the charts' data against the figures they claim to draw."""
    waterfall = view.business_case.waterfall
    for bar in waterfall.bars if waterfall else ():
        if bar.figure_id is None or bar.start is None or bar.end is None:
            continue
        _check_drawn(view, bar.figure_id, bar.end - bar.start, bar.text)
        if bar.interval and bar.interval != view.figures[bar.figure_id].interval:
            raise _refusal(f"the interval {bar.interval!r} is not that of its figure", bar.figure_id)
    forest = view.engineering.forest
    for mean in forest.means if forest else ():
        _check_drawn(view, mean.figure_id, mean.change, mean.text)
    for spot in spots(view.engineering):
        _check_end(view, spot, spot.factor)
    money = view.business_case.investment
    tornado = None if money is None else money.tornado
    for row in tornado.rows if tornado else ():
        for end in (row.low, row.high):
            _check_end(view, end, tornado.factor if tornado else 1.0)


def _check_end(view: ReportView, end: TornadoEnd | Spot, factor: float) -> None:
    """Hold an end of a bar, or a mark, against its figure."""
    figure = view.figures.get(end.figure_id)
    value = figure.figure.estimate.value if figure else None
    if figure is None or value is None:
        raise _refusal("drawn, but not among the report's figures", end.figure_id)
    if not math.isclose(end.value, value * factor, rel_tol=1e-6, abs_tol=_TOLERANCE):
        raise _refusal(f"the chart draws {end.value}, the figure is {value * factor}", end.figure_id)
    if end.text != figure.text:
        raise _refusal(f"the chart's label {end.text!r} is not that of its figure", end.figure_id)


def _check_drawn(view: ReportView, figure_id: str, percent: float, text: str) -> None:
    figure = view.figures.get(figure_id)
    value = figure.figure.estimate.value if figure else None
    if figure is None or not text.startswith(figure.text):
        raise _refusal(f"the chart's label {text!r} is not that of its figure", figure_id)
    if value is not None and not math.isclose(percent, 100 * value, rel_tol=1e-6, abs_tol=_TOLERANCE):
        raise _refusal(f"the chart draws {percent} %, the figure is {100 * value} %", figure_id)


def _chart_labels(view: ReportView, page: str) -> list[tuple[str, str]]:
    labels: list[tuple[str, str]] = []
    waterfall, forest = view.business_case.waterfall, view.engineering.forest
    if waterfall and 'id="business-case"' in page:
        labels.extend(("waterfall", bar.text) for bar in waterfall.bars)
    money = view.business_case.investment
    if money is not None and money.tornado is not None and 'id="business-case"' in page:
        labels.extend(("tornado", row.text) for row in money.tornado.rows)
    if forest and 'id="engineering"' in page:
        labels.extend(("forest", mean.label) for mean in forest.means)
    latencies = view.engineering.latencies
    if latencies and 'id="engineering"' in page:
        labels.extend(("latencies", spread.label) for spread in latencies.spreads)
    power = view.engineering.power
    if power and 'id="engineering"' in page:
        labels.extend(("power", line) for arm in power.arms for line in arm.lines)
    return labels


def _refusal(what: str, where: str) -> VerificationError:
    return VerificationError(
        what, where=where, mend="this is a fault of carbonlens, not of your data; please report it"
    )
