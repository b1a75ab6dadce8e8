"""Own page: what a page made with a user's templates may have beside what ours has.

The page is held against the one that our own templates make of the same: the same head, the same
scripts, and of anything else no more than a list of elements and attributes that print words. What
is on no list is refused, so that a way to load or to hide that nobody thought of is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from html.parser import HTMLParser
from typing import Final

from carbonlens.render.own_styles import Fault, elsewhere, no_figure, style_faults
from carbonlens.render.page_text import page_text

_WORDS: Final = frozenset(
    {"section", "header", "footer", "article", "aside", "nav", "div", "p", "h1", "h2", "h3", "h4", "h5", "h6",
     "span", "a", "em", "strong", "b", "i", "u", "small", "sub", "sup", "code", "pre", "kbd", "samp",
     "blockquote", "cite", "abbr", "dfn", "time", "address", "mark", "bdi", "br", "hr", "wbr", "ul", "ol",
     "li", "dl", "dt", "dd", "figure", "figcaption", "img", "table", "caption", "colgroup", "col", "thead",
     "tbody", "tfoot", "tr", "th", "td"}
)  # fmt: skip
_ONCE: Final = frozenset({"html", "head", "title", "style", "body", "main"})
_VOID: Final = frozenset({"br", "hr", "wbr", "img", "col", "meta"})
_ATTRIBUTES: Final = frozenset(
    {"class", "id", "lang", "dir", "title", "role", "tabindex", "style", "rel", "alt", "width", "height",
     "colspan", "rowspan", "scope", "headers", "span", "datetime"}
)  # fmt: skip
_LEADS: Final = ("https://", "http://", "mailto:", "#")
_MARKED: Final = ("data-figure", "data-quoted", "data-label")
_SWITCHED: Final = frozenset({"narrow", "wide"})
"""Classes of ours that are shown on some screens only: they hold a chart and nothing else."""

_TURNS: Final = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of a text, and a number's digits with it."""

_CODE: Final = re.compile(r"[^\W\d_]+[0-9]+(?![0-9.,]*[0-9])(?!\s?[%‰])")
_LONGEST_CODE: Final = 8
_CURRENCY: Final = re.compile(r"\b[A-Z]{3}[0-9]")


def page_faults(
    page: str, ours: str, *, drawings: Collection[str], pictures: Collection[str], texts: Collection[str]
) -> Iterator[Fault]:
    """Yield what a page has that it may not have.

    Args:
        page: The page that a user's templates made.
        ours: What our own templates make of the same.
        drawings: Our charts.
        pictures: Addresses of the pictures that it may show.
        texts: Whatever texts the report has, which may be quoted.
    """
    reader, known = _read(page, drawings), _read(ours, drawings)
    yield from reader.faults
    if reader.head != known.head:
        strange = [one for one in reader.head if one not in known.head]
        yield elsewhere(strange[0] if strange else "a head that is not ours")
    if reader.scripts != known.scripts:
        strange = [one for one in reader.scripts if one not in known.scripts]
        yield elsewhere(f"<script{strange[0]}" if strange else "<script")
    if reader.once != known.once:
        yield elsewhere("</" + next((tag for tag in reader.once if tag not in known.once), "body"))
    for css in reader.styles:
        yield from style_faults(css, pictures)
    yield from (elsewhere(address) for address in reader.addresses if address not in pictures)
    spoken = page_text(ours).spoken
    for text in reader.spoken:
        if any(c.isdigit() for c in text) and text not in spoken and not _is_label(text):
            yield no_figure(text)
    for text in reader.marked:
        if any(c.isdigit() for c in text) and text not in texts and not _is_label(text):
            yield no_figure(text)


def own_css(page: str, *ours: str) -> str:
    """Return the rules of a page's style element that are not ours.

    Args:
        page: The page.
        *ours: Rules that are.
    """
    css = page.partition("<style>")[2].partition("</style>")[0]
    for one in sorted((o for o in ours if o), key=len, reverse=True):
        css = css.replace(one, "\n")
    return css


def _is_label(text: str) -> bool:
    """Return whether every number in a text is a part of a code such as ``P95``: letters, then digits."""
    if _CURRENCY.search(text) or any(len(m[0]) > _LONGEST_CODE for m in _CODE.finditer(text)):
        return False
    return not any(c.isdecimal() for c in _CODE.sub("", text))


class _Element:
    def __init__(self, tag: str, attributes: dict[str, str], inside: str) -> None:
        self.tag = tag
        self.role = inside
        self.text: list[str] = []
        if not inside:
            if "data-figure" in attributes:
                self.role = "figure"
            elif "data-quoted" in attributes or "data-label" in attributes:
                self.role = "marked"
            elif _SWITCHED & set(attributes.get("class", "").split()):
                self.role = "switched"


class _Reader(HTMLParser):
    """Reads a page; our own charts in it are passed over where they stand letter by letter."""

    def __init__(self, page: str, drawings: Collection[str]) -> None:
        super().__init__(convert_charrefs=True)
        self._page, self._drawings = page, drawings
        self._starts = [0, *(m.end() for m in re.finditer("\n", page))]
        self._until = 0
        self.open: list[_Element] = []
        self.faults: list[Fault] = []
        self.head: list[str] = []
        self.once: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.addresses: list[str] = []
        self.spoken: list[str] = []
        self.marked: list[str] = []
        self._in_head = True
        self._raw = ""

    def _is_ours(self) -> bool:
        line, column = self.getpos()
        return self._starts[line - 1] + column < self._until

    def _begins_drawing(self) -> bool:
        line, column = self.getpos()
        place = self._starts[line - 1] + column
        ends = [place + len(one) for one in self._drawings if self._page.startswith(one, place)]
        self._until = max(ends, default=self._until)
        return bool(ends)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # A browser takes no notice of the slash.
        self.handle_starttag(tag, attrs)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._is_ours() or (tag == "svg" and self._begins_drawing()):
            return
        said = self.get_starttag_text() or f"<{tag}"
        if self._in_head:
            self._in_head = tag != "body"
            self.head.append(said)
        if tag in _ONCE:
            self.once.append(tag)
        if tag == "script":
            self._raw = "script"
            self.scripts.append(said.removeprefix("<script"))
        elif tag == "style":
            self._raw = "style"
            if not self._in_head:
                self.faults.append(elsewhere(said))
        elif tag not in _WORDS and not (tag in _ONCE or (tag == "meta" and self._in_head)):
            self.faults.append(elsewhere(said))
        if tag not in _ONCE and tag not in ("script", "meta"):
            self._attributes(said, attrs)
        inside = self.open[-1].role if self.open else ""
        if inside == "figure":
            # Text of its own within a figure would read on as the figure.
            self.faults.append(elsewhere(said))
        if tag not in _VOID and tag not in ("script", "style"):
            given = {name: value or "" for name, value in attrs}
            self.open.append(_Element(tag, given, inside))

    def _attributes(self, said: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.faults.append(elsewhere(said))
        for name, given in attrs:
            value = given or ""
            if name == "style":
                self.styles.append(value)
            elif name == "src":
                self.addresses.append(value)
            elif name == "href":
                if not value.lower().startswith(_LEADS):
                    self.faults.append(elsewhere(said))
            elif name == "aria-hidden" or not (name in _ATTRIBUTES or name.startswith(("data-", "aria-"))):
                self.faults.append(elsewhere(name))
            elif name in ("title", "alt") or name.startswith("aria-"):
                self.spoken.append(value)

    def handle_endtag(self, tag: str) -> None:
        if self._is_ours():
            return
        if self._in_head:
            self.head.append(f"</{tag}>")
        if tag in _ONCE:
            self.once.append(f"/{tag}")
        if tag in ("script", "style"):
            self._raw = ""
        if not any(e.tag == tag for e in self.open):
            return
        while self.open:
            element = self.open.pop()
            if element.role == "marked":
                self.marked.append("".join(element.text))
            if element.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._is_ours():
            return
        if self._raw == "script":
            self.scripts[-1] += data
            return
        if self._raw == "style":
            if "<" in data:
                self.faults.append(elsewhere(data[data.index("<") :]))
            return
        if self._in_head and data.strip():
            self.head.append(data)
        self._said(data)

    def _said(self, data: str) -> None:
        role = self.open[-1].role if self.open else ""
        if role == "switched" and data.strip():
            self.faults.append(Fault(what=f"hides {data.strip()[:80]!r} on some screens", text=data.strip()))
        elif role == "marked":
            self.open[-1].text.append(data)
        elif role != "figure" and any(c.isdecimal() and not c.isascii() for c in data):
            self.faults.append(no_figure(data))
        if role != "marked" and _TURNS.search(data):
            self.faults.append(Fault(what="turns the direction of its text", text=data.strip()))

    def handle_comment(self, data: str) -> None:
        self.faults.append(elsewhere(f"<!--{data}"))

    def unknown_decl(self, data: str) -> None:
        self.faults.append(elsewhere(f"<![{data}"))

    def handle_pi(self, data: str) -> None:
        self.faults.append(elsewhere(f"<?{data}"))


def _read(page: str, drawings: Collection[str]) -> _Reader:
    reader = _Reader(page, drawings)
    reader.feed(page)
    reader.close()
    return reader
