"""Use case: hold the pages of a report against its figures, where its bytes are not to be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.app.report import Material
from carbonlens.app.verify_data import NUMBER, Mismatch, numbers, ungrouped
from carbonlens.app.verify_reading import Held

if TYPE_CHECKING:
    from carbonlens.render.page_text import PageText

PAGE_NUMBER: Final = re.compile(r"page\s+\d+\s+of\s+\d+")
_SHORTEST_PART: Final = 4
"""Letters of a number that may be a part of a longer one, whose digits a line broke."""


class Pages(msgspec.Struct, frozen=True, kw_only=True):
    """What came of reading the pages.

    Attributes:
        mismatches: What they say that does not follow.
        unchecked: What could not be held against anything, in words.
    """

    mismatches: tuple[Mismatch, ...] = ()
    unchecked: tuple[str, ...] = ()


def misprinted(held: Held, given: Material) -> tuple[Mismatch, ...]:
    """Return the first figure that a page prints otherwise: what tells most where bytes differ.

    Args:
        held: The report.
        given: What follows from its evidence.
    """
    from carbonlens.errors import VerificationError
    from carbonlens.render.attachments import text_of_pdf
    from carbonlens.render.check import check_page

    if held.kind == "html":
        try:
            check_page(held.content.decode("utf-8"), given.printed)
        except VerificationError as error:
            where = error.where or "page"
            return (Mismatch(figure_id=where, said=error.what, computed="see the figure"),)
        return ()
    if held.kind == "pdf":
        return tuple(_not_in_pdf(text_of_pdf(held.content, held.file), given))
    return ()


def compare_pages(held: Held, given: Material, *, same_layout: bool) -> Pages:
    """Return what the pages say that does not follow.

    Args:
        held: The report.
        given: What follows from its evidence.
        same_layout: Whether its pages were laid out by these templates of this carbonlens, so that
            their words must be the same.
    """
    if held.kind == "html":
        return _html(held, given, same_layout=same_layout)
    return _pdf(held, given) if held.kind == "pdf" else Pages()


def _html(held: Held, given: Material, *, same_layout: bool) -> Pages:
    from carbonlens.app.report import rendered
    from carbonlens.render.page_text import page_text

    there = page_text(held.content.decode("utf-8"))
    here = page_text(rendered(given, "html").decode("utf-8"))
    found = list(misprinted(held, given))
    for name in sorted(here.figure_ids - there.figure_ids):
        found.append(Mismatch(figure_id=name, said="not printed on the page", computed=_text(given, name)))
    texts = compare_texts(there, here, same_layout=same_layout)
    return Pages(mismatches=tuple(dict.fromkeys((*found, *texts.mismatches))), unchecked=texts.unchecked)


def compare_texts(there: PageText, here: PageText, *, same_layout: bool) -> Pages:
    """Return what a page says beside its figures that the page made here does not.

    Args:
        there: The page that is verified.
        here: The same made here.
        same_layout: As of ``compare_pages``.
    """
    found: list[Mismatch] = []
    for strange in dict.fromkeys(there.foreign):
        if strange not in here.foreign:
            found.append(_on_page(strange, "no page of carbonlens has this"))
    found += (_on_page(f"content: {one[:60]}", "no number, no escape") for one in there.styled if "\\" in one)
    found += strange_numbers(there.texts, here.texts)
    unchecked = []
    if there.pictures > here.pictures:
        unchecked.append("pictures on the page")
    if set(there.scripts) - set(here.scripts):
        unchecked.append("scripts of the page, which may change what it shows")
    if not same_layout:
        unchecked.append("words and layout of the page")
    else:
        unchecked.append("layout of the page")
        found += _first_other_word(there.words, here.words)
    return Pages(mismatches=tuple(dict.fromkeys(found)), unchecked=tuple(unchecked))


def _pdf(held: Held, given: Material) -> Pages:
    from carbonlens.app.report import rendered
    from carbonlens.render.attachments import text_of_pdf

    there = text_of_pdf(held.content, held.file)
    here = text_of_pdf(rendered(given, "pdf"), held.file)
    # Another layout may have another number of pages.
    texts = [PAGE_NUMBER.sub("", text) for text in (there, here)]
    found = [*_not_in_pdf(there, given), *strange_numbers(texts[:1], texts[1:], broken=True)]
    return Pages(mismatches=tuple(found), unchecked=("words, pictures and layout of the pages",))


def _not_in_pdf(text: str, given: Material) -> Iterator[Mismatch]:
    """Yield the figures that its pages do not print, or its index does not list."""
    from carbonlens.reporting.view import figure_ids

    rest = "".join(text.split())
    view = given.printed
    listed = view.figures if "engineering" in given.sections else {}
    for name in sorted(listed, key=lambda name: -len(name)):
        line = "".join(view.figures[name].form("index").split())
        if line not in rest:
            yield Mismatch(figure_id=name, said="not listed in the PDF", computed=view.figures[name].text)
        # What the index says of a figure does not print it on the page of its section.
        rest = rest.replace(line, " ", 1)
    parts = {"business-case": view.business_case, "engineering": view.engineering}
    printed = (name for section in given.sections for name in figure_ids(parts[section]))
    for name in dict.fromkeys(printed):
        figure = view.figures[name]
        if not any("".join(form.split()) in rest for form in (figure.text, figure.number)):
            yield Mismatch(figure_id=name, said="not printed in the PDF", computed=figure.text)


def strange_numbers(there: Iterable[str], here: Iterable[str], *, broken: bool = False) -> Iterator[Mismatch]:
    """Yield the numbers that stand on a page and on none that follows from the evidence.

    Args:
        there: Texts of the page.
        here: Texts of the page as it is made here.
        broken: Whether lines may break a number, as they do an id's or a hash's digits.
    """
    known = {number for text in here for number in numbers(text)}
    whole = "".join("".join(text.split()) for text in here) if broken else ""
    said: set[str] = set()
    for text in there:
        for number in numbers(text):
            is_known = number in known or (len(number) >= _SHORTEST_PART and number in whole)
            if not is_known and number not in said:
                said.add(number)
                yield _on_page(_around(text, number), f"no page of this evidence prints {number}")


def _first_other_word(there: str, here: str) -> Iterator[Mismatch]:
    one, other = there.split(" "), here.split(" ")
    if one == other:
        return
    pairs = zip((*one, ""), (*other, ""), strict=False)
    place = next((n for n, (a, b) in enumerate(pairs) if a != b), 0)
    start = max(place - 3, 0)
    said, found = (" ".join(words[start : place + 5]) for words in (one, other))
    yield _on_page(said or "nothing", found or "nothing")


def _around(text: str, number: str) -> str:
    """Return the words about a number."""
    plain = ungrouped(text)
    place = next((m.start() for m in NUMBER.finditer(plain) if "".join(m[0].split()) == number), 0)
    return " ".join(plain[max(place - 40, 0) : place + 40].split())


def _text(given: Material, name: str) -> str:
    figure = given.printed.figures.get(name)
    return "a figure" if figure is None else figure.text


def _on_page(said: str, computed: str) -> Mismatch:
    return Mismatch(figure_id="page", said=said, computed=computed)
