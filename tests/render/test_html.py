"""HTML: self-contained, escaped, with every number under its figure's id."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from carbonlens.render.html import render_html
from tests.render.pages import html, view

_ALLOWED_LINKS = re.compile(r"http://www\.w3\.org/(2000/svg|1999/xlink)")


class Tags(HTMLParser):
    """Collects start tags with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def names(self):
        return [tag for tag, _ in self.found]


@pytest.mark.parametrize("name", ["demo", "hostile"])
def test_nothing_is_loaded_from_anywhere(name):
    page = html(name)
    tags = Tags(page)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(tags.names())
    loads = [a for _, attrs in tags.found for a in attrs if a in ("src", "srcset", "background", "action")]
    assert loads == []
    links = [
        v for _, attrs in tags.found for k, v in attrs.items() if k.endswith("href") and not v.startswith("#")
    ]
    assert links == []
    assert not [u for u in re.findall(r"https?://[^\"'\s<]+", page) if not _ALLOWED_LINKS.match(u)]
    assert not [
        u for u in re.findall(r"url\(([^)]*)\)", page) if not u.strip("\"'").startswith(("data:font", "#"))
    ]
    policy = next(a["content"] for t, a in tags.found if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy


def test_names_are_text_and_never_markup_or_template():
    page = html("hostile")
    assert "<script" not in page
    assert "<i><i>" not in page
    assert "onerror=alert(1)&gt;" in page
    assert "{{7*7}}" in page
    assert "49 {% raw %}" not in page
    assert "\x00" not in page
    assert "\u202e" not in page
    # The style sheet ends where it should: a note cannot close it.
    assert page.count("</style>") == 1
    # A name of 10,000 letters is printed in 40.
    assert "A" * 41 not in page


def test_every_figure_of_the_view_is_in_the_index():
    page = html("demo")
    for figure_id in view("demo").figures:
        assert f'<li data-figure="{figure_id}" data-aspect="index">{figure_id} ' in page


def test_a_page_has_one_main_heading_and_its_landmark():
    names = Tags(html("demo")).names()
    assert (names.count("h1"), names.count("main"), names.count("title")) == (1, 1, 1 + 6)
    assert 'lang="en"' in html("demo")


def test_tables_have_captions_and_scopes():
    tags = Tags(html("demo"))
    assert tags.names().count("caption") == tags.names().count("table") == 7
    assert all("scope" in attrs for tag, attrs in tags.found if tag == "th")


def test_sections_are_chosen():
    only = render_html(view("demo"), ["engineering"])
    assert 'id="engineering"' in only
    assert 'id="business-case"' not in only
    # Alone it lists the assumptions itself; beside the business case they stand there.
    assert only.count("<caption>Assumptions, the same for every step") == 1
    assert html("demo").count("<caption>Assumptions, the same for every step") == 1
    assert Tags(only).names().count("h1") == 1


@pytest.mark.parametrize(
    "name", ["no_baseline", "unknown_factors", "lattice_one_round", "failed", "long_ladder"]
)
def test_odd_comparisons_render(name):
    assert view(name).title in html(name).replace("&#39;", "'")


def test_a_failed_step_shows_its_error():
    assert "RuntimeError: node Conv_3 has no kernel" in html("failed")
