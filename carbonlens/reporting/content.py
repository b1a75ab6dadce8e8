"""Content: what a report says, as frozen records that templates only lay out.

A text is a row of parts. A part that prints a number carries the id of its
figure; a part that repeats foreign text is marked as quoted; fixed words that
hold digits (``P95``, ``95 %``) are labels. Anything else may not hold a digit,
which the renderer checks on the finished page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from carbonlens.domain.figure import Figure
from carbonlens.domain.units import Verdict
from carbonlens.reporting.names import listed_id

if TYPE_CHECKING:
    from carbonlens.reporting.power_content import PowerTraces

Aspect = Literal["text", "number", "interval", "index"]
"""Printed forms of a figure; ``index`` is the line in the annex, with the id."""
Mark = Literal["", "good", "bad", "open", "muted"]
BarKind = Literal["baseline", "accepted", "rejected", "undetermined", "failed", "final"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of text.

    Attributes:
        text: What is printed.
        figure_id: Figure the number belongs to.
        aspect: Which of the figure's printed forms this is.
        quoted: Foreign text (a name, a source), repeated as given.
        label: Fixed wording that may hold digits.
    """

    text: str
    figure_id: str | None = None
    aspect: Aspect = "text"
    quoted: bool = False
    label: bool = False

    @property
    def is_long(self) -> bool:
        """Whether it has a word that a narrow column must be free to break wherever it likes.

        To look for the narrowest form of a text that may break anywhere, a layout engine sets each of its
        letters by itself: sentences in tables would take most of the time of a report.
        """
        return len(self.text) > _LONG_WORD and any(len(word) > _LONG_WORD for word in self.text.split())


_LONG_WORD: Final = 24
"""Letters of the longest word that a column is made wide enough for."""

Phrase = tuple[Part, ...]


def phrase(*items: str | Part | Phrase) -> Phrase:
    """Return one phrase from words, parts and phrases."""
    parts: list[Part] = []
    for item in items:
        if isinstance(item, str):
            parts.append(Part(text=item))
        elif isinstance(item, Part):
            parts.append(item)
        else:
            parts.extend(item)
    return tuple(p for p in parts if p.text)


def plain_text(content: Phrase) -> str:
    """Return the phrase as plain text."""
    return "".join(part.text for part in content)


def quoted(text: str) -> Part:
    """Return foreign text, already cleaned, as a part."""
    return Part(text=text, quoted=True)


def label(text: str) -> Part:
    """Return fixed wording that may hold digits."""
    return Part(text=text, label=True)


class PrintedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure and the only ways in which it may be printed."""

    figure: Figure
    text: str
    number: str
    interval: str

    def form(self, aspect: Aspect) -> str:
        """Return the printed form of that aspect."""
        index = f"{listed_id(self.figure.figure_id)} {self.text} {self.interval}".rstrip()
        return {"text": self.text, "number": self.number, "interval": self.interval, "index": index}[aspect]


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A table column; ``unit`` stands under the name."""

    name: Phrase
    unit: str = ""
    numeric: bool = True


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A table row: its head and its cells; a ``total`` stays in its place when rows are sorted."""

    head: Phrase
    cells: tuple[tuple[Phrase, ...], ...]
    mark: Mark = ""
    total: bool = False


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table; a cell holds one or more lines.

    Attributes:
        caption: What the table shows.
        head: Name of the first column.
        note: A remark under the table.
    """

    caption: Phrase
    head: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: Phrase = ()


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """One of the four headline figures."""

    label: str
    value: Phrase
    interval: Phrase = ()
    lines: tuple[Phrase, ...] = ()
    mark: Mark = ""


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One bar of the waterfall, in percent of the baseline.

    Attributes:
        start, end: Where the bar begins and ends.
        low, high: Interval of the end; ``None`` without one.
        figure_id: Figure printed beside the bar; ``None`` for a failed step.
        text: What is printed beside the bar.
        interval: The figure's interval as printed.
    """

    name: str
    kind: BarKind
    start: float | None
    end: float | None
    low: float | None
    high: float | None
    figure_id: str | None
    text: str
    interval: str = ""

    @property
    def tip(self) -> str:
        """What a pointer at the bar is told."""
        return f"{self.name}: {self.text} {self.interval}".rstrip()


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """A figure as a chart draws it: its value times ``factor``, in the axis's unit."""

    value: float
    figure_id: str
    text: str
    factor: float = 1.0
    low: float | None = None
    high: float | None = None


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """One change with its interval in a forest plot, in percent."""

    name: str
    change: float
    low: float
    high: float
    verdict: Verdict
    figure_id: str
    text: str

    @property
    def label(self) -> str:
        """What is printed beside the mark: the verdict's sign and the figure."""
        glyph = {"better": "▼", "worse": "▲", "same": "=", "inconclusive": "?"}[self.verdict]
        return f"{glyph} {self.text}"


class ParetoMark(msgspec.Struct, frozen=True, kw_only=True):
    """One arm by two measures; ``beaten_by`` names the arm that is better in all.

    One that is not ``is_named`` has no name beside its mark, as there are too many.
    """

    name: str
    x: Spot
    y: Spot
    on_front: bool
    beaten_by: str = ""
    is_named: bool = True

    @property
    def suffix(self) -> str:
        """What stands after the name beside the mark."""
        return "" if self.on_front else " (beaten)"

    @property
    def tip(self) -> str:
        """What a pointer at the mark is told."""
        beaten = f", beaten by {self.beaten_by}" if self.beaten_by else ""
        return f"{self.name}: {self.x.text}, {self.y.text}{beaten}"


class Pareto(msgspec.Struct, frozen=True, kw_only=True):
    """Arms by energy and by another measure; shape and label tell which no other beats.

    ``name`` is that of the chart, unique in the report; ``hidden`` is how many arms find no room.
    """

    name: str
    title: Phrase
    alt: str
    marks: tuple[ParetoMark, ...]
    x_axis: str
    y_axis: str
    note: Phrase = ()
    hidden: int = 0


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How the latencies of one arm's calls are spread.

    Attributes:
        bins: From and to in milliseconds, and the share of the calls in between.
        marks: P50, P95 and P99, as far as they are known, each with its name.
    """

    name: str
    bins: tuple[tuple[float, float, float], ...]
    marks: tuple[tuple[str, Spot], ...]

    @property
    def label(self) -> str:
        """What is printed beside the row."""
        return " · ".join(f"{name} {spot.text}" for name, spot in self.marks)


class Latencies(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of all calls by arm, out of the merged sketches of their rounds.

    ``hidden`` is how many arms find no room.
    """

    title: Phrase
    alt: str
    spreads: tuple[Spread, ...]
    axis: str
    hidden: int = 0


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Energy per unit of one arm by round, in percent off the arm's median."""

    name: str
    values: tuple[float, ...]


class Waterfall(msgspec.Struct, frozen=True, kw_only=True):
    """Energy from the baseline to the end of the accepted path."""

    title: Phrase
    alt: str
    bars: tuple[Bar, ...]
    axis: str


class Forest(msgspec.Struct, frozen=True, kw_only=True):
    """Change of each step against the step it was measured on.

    ``margin`` is the change regarded as none, in percent; ``hidden`` is how many steps find no room.
    """

    title: Phrase
    alt: str
    means: tuple[Mean, ...]
    margin: float
    axis: str
    hidden: int = 0


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds in run order, one small panel per arm; ``hidden`` is how many arms find no room."""

    title: Phrase
    alt: str
    traces: tuple[Trace, ...]
    axis: str
    hidden: int = 0


class TornadoEnd(msgspec.Struct, frozen=True, kw_only=True):
    """NPV with an input at one end of its range, in the printed unit, and its figure."""

    value: float
    figure_id: str
    text: str


class TornadoRow(msgspec.Struct, frozen=True, kw_only=True):
    """One input: NPV at its one end and at its other."""

    name: str
    low: TornadoEnd
    high: TornadoEnd

    @property
    def text(self) -> str:
        """What is printed beside the bar."""
        return f"{self.low.text} to {self.high.text}"


class Tornado(msgspec.Struct, frozen=True, kw_only=True):
    """NPV with one input at a time at either end of its range, the widest first.

    Attributes:
        middle: NPV with all of them as expected, in the printed unit.
        factor: From an amount to the printed unit.
    """

    title: Phrase
    alt: str
    rows: tuple[TornadoRow, ...]
    middle: float
    factor: float
    axis: str


class Investment(msgspec.Struct, frozen=True, kw_only=True):
    """What the adopted steps are worth in cash; ``ranges`` is the chart as a table."""

    title: Phrase
    lead: Phrase
    scenarios: Table
    lines: tuple[Phrase, ...]
    tornado: Tornado | None
    savings: Table
    one_offs: Table
    ranges: Table | None = None


class BusinessCase(msgspec.Struct, frozen=True, kw_only=True):
    """The page a manager decides on."""

    title: Phrase
    lead: Phrase
    basis: Phrase
    tiles: tuple[Tile, ...]
    waterfall: Waterfall | None
    waterfall_note: Phrase
    break_even: tuple[Phrase, ...]
    decision: tuple[Phrase, ...]
    risks: tuple[Phrase, ...]
    not_counted: tuple[Phrase, ...]
    assumptions: Table
    investment: Investment | None = None


class Engineering(msgspec.Struct, frozen=True, kw_only=True):
    """The tables an engineer checks; ``left_out`` says which charts are not there, and why."""

    title: Phrase
    lead: Phrase
    measured: Table
    used: Table
    attribution: Table | None
    effects: Table
    forest: Forest | None
    drift: Drift | None
    effort: Table
    break_even: Table | None
    failures: tuple[tuple[Phrase, Phrase], ...]
    findings: Table | None
    assumptions: Table
    environment: tuple[tuple[Phrase, Phrase], ...]
    pareto: tuple[Pareto, ...] = ()
    latencies: Latencies | None = None
    power: PowerTraces | None = None
    left_out: tuple[Phrase, ...] = ()


class ReportView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a report prints, from which all formats are made.

    Attributes:
        title: Message of the report, as document title.
        subject: Study and place, for the running head.
        example: True when any factor or price is an example assumption.
        figures: Every printed number by its id, in order of first use.
    """

    title: str
    subject: Phrase
    example: bool
    business_case: BusinessCase
    engineering: Engineering
    figures: Mapping[str, PrintedFigure]
