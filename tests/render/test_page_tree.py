"""Pages of our own templates are read as XML: the same tree that a reader of HTML makes of them."""

import pytest
import tinyhtml5

from carbonlens.render import page_tree
from carbonlens.render.charts import draw
from carbonlens.render.environment import template_environment
from carbonlens.render.html import SECTIONS, compose
from carbonlens.render.pdf import paper
from tests.render.pages import view

_NOTHING = ("html", "head", "body", "main")
"""Around these a reader of HTML leaves out or moves spaces, which nothing is made of."""


def flat(element, inside=""):
    """Yield what pages are made of, element by element."""
    place = f"{inside}/{element.tag}"
    attributes = sorted((k, v) for k, v in element.attrib.items() if "xmlns" not in k)
    spaced = element.tag in _NOTHING
    text, tail = element.text or "", element.tail or ""
    yield place, attributes, text.strip() if spaced else text, tail.strip() if spaced else tail
    for child in element:
        if isinstance(child.tag, str):  # a reader of HTML keeps comments
            yield from flat(child, place)


def as_html(page):
    return tinyhtml5.parse(page, namespace_html_elements=False)


def made(name, medium="paper"):
    charts = draw(view(name), sections=SECTIONS, narrow=False)
    return compose(view(name), SECTIONS, medium=medium, charts=charts)


@pytest.mark.parametrize("name", ["demo", "hostile"])
def test_the_tree_is_that_of_a_reader_of_html(name):
    page = made(name)
    read = page_tree.read(page)
    assert read is not None, "read as HTML, which takes many times as long"
    assert list(flat(read)) == list(flat(as_html(page)))


def rendered(text):
    """Return a page with a text of somebody's in it, as templates write it."""
    source = (
        "<!DOCTYPE html>\n<html><head><meta charset='utf-8'></head><body>"
        "<p><bdi data-quoted>{{ text }}</bdi><br>after</p></body></html>"
    )
    return template_environment().from_string(source).render(text=text)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "<br>", '" data-quoted "', "a & b &amp; &nbsp;", "]]>", "<!-- x -->",
        "<bdi data-quoted>", "\u202eright to left", "\U0001f600", "a\r\nb", "x" * 10_000,
    ],
)  # fmt: skip
def test_text_of_others_reads_as_a_reader_of_html_reads_it(text):
    page = rendered(text)
    assert list(flat(page_tree.read(page))) == list(flat(as_html(page)))


@pytest.mark.parametrize("text", ["\x00", "\x0b", "\ud800", "\ufffe"])
def test_what_is_no_xml_is_left_to_a_reader_of_html(text):
    assert page_tree.read(rendered(text)) is None


@pytest.mark.parametrize("page", ["<p>0", "<!DOCTYPE html><p>0", "<!DOCTYPE html><html>&nbsp;</html>"])
def test_what_our_templates_never_write_is_left_to_a_reader_of_html(page):
    assert page_tree.read(page) is None
    assert paper(page).pages
