"""Restyled: a report's view with numbers, money and days written as a theme wants them.

Only signs change, never digits: a page in another style is checked against figures in that
style, and the data that travel with it stay in ours.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import msgspec

from carbonlens.domain.number_style import NumberStyle
from carbonlens.reporting.content import Part, PrintedFigure, plain_text
from carbonlens.reporting.format import GROUP

_NUMBER: Final = re.compile(rf"−?(?<![\w.])\d[\d{GROUP}]*(?:\.\d+)?")
_ENDS: Final = re.compile(r"\[([^\[\],]*), (?=[^\[\],]*\])")
"""An interval up to its second end."""

_MONEY: Final = re.compile(r"(?<!\w)(EUR|USD|GBP|JPY)(?!\w)")
_SIGNS: Final = {"EUR": "€", "USD": "US$", "GBP": "£", "JPY": "¥"}
_DAY: Final = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_FORMS: Final = frozenset({"text", "interval", "number"})
"""Fields of a record with a figure's id that hold its printed forms."""

_TEXTS: Final = frozenset({"alt", "title", "text", "label"})
"""Fields that hold words and figures in one string."""


View = TypeVar("View", bound=msgspec.Struct)


def restyled(view: View, style: NumberStyle) -> View:
    """Return a view whose printed figures are written in a style.

    Args:
        view: Any record of phrases, figures and charts.
        style: How to write.
    """
    if style == NumberStyle():
        return view
    writer = _Writer(style)
    made: View = writer.node(view)
    return made


class _Writer:
    def __init__(self, style: NumberStyle) -> None:
        self.style = style
        self.phrases: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    def node(self, node: Any) -> Any:  # noqa: ANN401  # any record
        if isinstance(node, PrintedFigure):
            return self.figure(node)
        if isinstance(node, Part):
            return self.part(node)
        if isinstance(node, msgspec.Struct):
            return self.record(node)
        if isinstance(node, tuple):
            made = tuple(self.node(item) for item in node)
            if node and all(isinstance(item, Part) for item in node):
                self.phrases[plain_text(node)] = plain_text(made)
            return made
        if isinstance(node, dict):
            return {key: self.node(value) for key, value in node.items()}
        return node

    def record(self, node: msgspec.Struct) -> msgspec.Struct:
        figures = getattr(node, "figures", None)
        if isinstance(figures, dict):
            # Words with figures in them are written after the figures that they repeat.
            self._learn(figures)
        made = {name: self.node(getattr(node, name)) for name in node.__struct_fields__}
        is_figure = any(name.startswith("figure_id") for name in made)
        for name, value in made.items():
            if isinstance(value, str) and is_figure and name in _FORMS:
                made[name] = self.number(value)
            elif isinstance(value, str) and name in _TEXTS:
                made[name] = self.phrases.get(value) or self.words(value)
        return msgspec.structs.replace(node, **made)

    def _learn(self, figures: dict[str, PrintedFigure]) -> None:
        for figure in figures.values():
            for said in (figure.text, figure.interval, figure.number):
                if said and self.number(said) != said:
                    self.texts[said] = self.number(said)

    def figure(self, node: PrintedFigure) -> PrintedFigure:
        written = {name: self.number(getattr(node, name)) for name in ("text", "number", "interval")}
        return msgspec.structs.replace(node, **written)

    def part(self, node: Part) -> Part:
        if node.figure_id is not None:
            return msgspec.structs.replace(node, text=self.number(node.text))
        if node.quoted:
            return node
        return msgspec.structs.replace(node, text=_DAY.sub(self._day, node.text))

    def number(self, said: str) -> str:
        """Return a figure's printed form in the style."""
        if self.style.decimal == ",":
            # [0,7, 2,3] may be read as three numbers.
            said = _ENDS.sub(r"[\1; ", said)
        said = _NUMBER.sub(self._digits, said)
        if self.style.currency == "sign":
            said = _MONEY.sub(lambda found: _SIGNS[found[1]], said)
        return said

    def words(self, said: str) -> str:
        """Return words with the figures in them in the style."""
        if not self.texts:
            return said
        known = sorted((t for t in self.texts if t in said), key=len, reverse=True)
        if not known:
            return said
        pattern = "|".join(rf"(?<![\w.,−]){re.escape(one)}(?!\w|[.,]\d)" for one in known)
        return re.sub(pattern, lambda found: self.texts[found[0]], said)

    def _digits(self, found: re.Match[str]) -> str:
        whole, point, part = found[0].partition(".")
        whole = whole.replace("−", self.style.minus).replace(GROUP, self.style.group)
        return f"{whole}{self.style.decimal if point else ''}{part}"

    def _day(self, found: re.Match[str]) -> str:
        return self.style.dates.replace("YYYY", found[1]).replace("MM", found[2]).replace("DD", found[3])
