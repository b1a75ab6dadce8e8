"""Page text: what a finished page says to a reader, for pages that cannot be made again here."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

import msgspec

from carbonlens.render.attachments import DATA_TYPE

_SPOKEN: Final = frozenset(
    {"alt", "title", "aria-label", "aria-description", "placeholder", "value", "label"}
)
"""Attributes that a browser shows or reads out."""

_FOREIGN: Final = frozenset(
    {"iframe", "object", "embed", "applet", "frame", "base", "link", "form", "template", "portal"}
)
"""Elements that bring something from elsewhere, or another page; no report has one."""

_PICTURES: Final = frozenset({"img", "image", "picture", "video", "audio", "canvas", "foreignobject"})
_CONTENT: Final = re.compile(r"content\s*:\s*([^;}]*)", re.IGNORECASE)
_NOT_WORDS: Final = frozenset({"style", "script"})
_APART: Final = frozenset(
    {"p", "div", "td", "th", "tr", "li", "ul", "ol", "table", "caption", "section", "header", "footer",
     "main", "figure", "figcaption", "br", "hr", "title", "text", "tspan", "h1", "h2", "h3", "h4", "h5", "h6",
     "dt", "dd", "details", "summary"}
)  # fmt: skip
"""Elements whose text stands apart from what is before it; in any other a number may go on."""


class PageText(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says.

    Attributes:
        words: Its text, blanks as one, without that of charts.
        charts: That of its charts.
        spoken: Attributes that are shown or read out.
        figure_ids: Figures that it prints elsewhere than in its index.
        styled: What its style sheets write into the page (``content``).
        scripts: Its scripts that a browser runs.
        pictures: How many pictures it has beside drawn charts.
        foreign: What no report has, each as it stands there.
    """

    words: str
    charts: str
    spoken: tuple[str, ...]
    figure_ids: frozenset[str]
    styled: tuple[str, ...]
    scripts: tuple[str, ...]
    pictures: int
    foreign: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """All that may hold a number."""
        return (self.words, self.charts, *self.spoken, *self.styled)


def page_text(page: str) -> PageText:
    """Return what a page says.

    Args:
        page: The HTML.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return PageText(
        words=_one_blank(reader.words),
        charts=_one_blank(reader.charts),
        spoken=tuple(reader.spoken),
        figure_ids=frozenset(reader.figure_ids),
        styled=tuple(one.strip() for text in reader.styles for one in _CONTENT.findall(text)),
        scripts=tuple(reader.scripts),
        pictures=reader.pictures,
        foreign=tuple(reader.foreign),
    )


def _one_blank(texts: list[str]) -> str:
    # Not str.split(): the narrow space that groups digits must stay.
    return re.sub(r"[ \t\r\n\f]+", " ", "".join(texts)).strip(" ")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.charts: list[str] = []
        self.spoken: list[str] = []
        self.styles: list[str] = []
        self.figure_ids: set[str] = set()
        self.scripts: list[str] = []
        self.pictures = 0
        self.foreign: list[str] = []
        self._charts = 0
        self._unread = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.spoken += [value for name, value in given.items() if name in _SPOKEN]
        if tag == "meta" and given.get("name") == "description":
            self.spoken.append(given.get("content", ""))
        if "style" in given:
            self.styles.append(given["style"])
        if "data-figure" in given and given.get("data-aspect") != "index":
            self.figure_ids.add(given["data-figure"])
        runs = any(name.startswith("on") for name in given)
        leads_away = tag == "meta" and given.get("http-equiv", "").lower() == "refresh"
        if tag in _FOREIGN or runs or leads_away:
            self.foreign.append(f"<{tag}>")
        self.pictures += tag in _PICTURES
        if tag in _NOT_WORDS:
            self._unread = tag
            if tag == "script" and given.get("type") != DATA_TYPE:
                self.scripts.append(given.get("src", ""))
                self._unread = "a script that runs"
        elif tag == "svg":
            self._charts += 1
        elif tag in _APART:
            (self.charts if self._charts else self.words).append(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag == "svg":
            self._charts -= 1

    def handle_endtag(self, tag: str) -> None:
        if tag in _NOT_WORDS:
            self._unread = ""
        elif tag == "svg":
            self._charts = max(self._charts - 1, 0)

    def handle_data(self, data: str) -> None:
        if self._unread == "style":
            self.styles.append(data)
        elif self._unread == "a script that runs":
            self.scripts[-1] += data
        elif not self._unread:
            (self.charts if self._charts else self.words).append(data)

    def handle_comment(self, data: str) -> None:
        # Readers of HTML do not agree where a broken comment ends: what one hides another shows.
        self.foreign.append(f"<!--{data[:20]}")

    def unknown_decl(self, data: str) -> None:
        self.foreign.append(f"<![{data[:20]}")

    def handle_pi(self, data: str) -> None:
        self.foreign.append(f"<?{data[:20]}")
