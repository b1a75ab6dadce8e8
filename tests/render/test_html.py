"""HTML: self-contained, escaped, with every number under its figure's id."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser

import pytest

from carbonlens.render.charts import draw
from carbonlens.render.environment import template_file
from carbonlens.render.html import SECTIONS, compose, render_html
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
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(tags.names())
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


@pytest.mark.parametrize("name", ["demo", "hostile"])
def test_the_one_script_is_ours_and_the_only_one_that_may_run(name):
    page = html(name)
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert scripts == [("", template_file("sort.js").read_text(encoding="utf-8"))]
    policy = next(a["content"] for t, a in Tags(page).found if t == "meta" and "http-equiv" in a)
    digest = b64encode(hashlib.sha256(scripts[0][1].encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; ")
    assert not [k for _, attrs in Tags(page).found for k in attrs if k.startswith("on")]


def test_paper_carries_no_script():
    page = compose(
        view("demo"), SECTIONS, medium="paper", charts=draw(view("demo"), sections=SECTIONS, narrow=False)
    )
    assert "<script" not in page
    assert "script-src 'none';" in page
    # Nor tool tips: a picture in a tagged PDF has one description.
    assert page.count("<title>") == 1 + 6


def test_names_are_text_and_never_markup_or_template():
    page = html("hostile")
    assert page.count("<script") == 1
    assert "<script>alert" not in page
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
    assert (names.count("h1"), names.count("main")) == (1, 1)
    outside = re.sub(r"<svg.*?</svg>", "", html("demo"), flags=re.DOTALL)
    assert outside.count("<title>") == 1
    assert len(re.findall(r"<svg[^>]*><title>[^<]", html("demo"))) == html("demo").count("<svg") == 2 * 6
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
