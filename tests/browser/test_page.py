"""The HTML report in a real browser: readable, self-contained, quiet."""

from __future__ import annotations

import pytest

from carbonlens.render.html import render_html
from carbonlens.reporting.view import build_view
from tests.browser.chromium import BROWSER, Browser
from tests.reporting.comparisons import comparison, hostile_comparison

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine"),
]

_HIDDEN_TEXT = """
[...document.querySelectorAll('main h1, main p, main li, main .tile')].filter(e => {
  const r = e.getBoundingClientRect();
  return r.width > 0 && (r.left < -1 || r.right > document.documentElement.clientWidth + 1);
}).map(e => e.textContent.slice(0, 60))
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, made_of in (("demo", comparison()), ("hostile", hostile_comparison())):
        made[name] = folder / f"{name}.html"
        made[name].write_text(render_html(build_view(made_of)), encoding="utf-8")
    return made


@pytest.mark.parametrize("name", ["demo", "hostile"])
@pytest.mark.parametrize("width", [375, 1280])
def test_nothing_sticks_out_of_the_window(browser, pages, name, width):
    browser.open(pages[name], width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(_HIDDEN_TEXT) == []


@pytest.mark.parametrize("name", ["demo", "hostile"])
def test_no_request_leaves_and_no_script_runs(browser, pages, name):
    browser.open(pages[name], width=1280)
    browser.evaluate("document.fonts.ready.then(() => 1)")
    requests = [
        e["params"]["request"]["url"]
        for e in browser.events
        if e.get("method") == "Network.requestWillBeSent"
    ]
    assert [u for u in requests if not u.startswith(("data:", pages[name].as_uri()))] == []
    assert [e for e in browser.events if e.get("method") == "Log.entryAdded"] == []
    assert [e for e in browser.events if e.get("method") == "Runtime.consoleAPICalled"] == []
    assert browser.evaluate("document.scripts.length") == 0


def test_the_page_uses_its_own_font(browser, pages):
    browser.open(pages["demo"], width=1280)
    browser.evaluate("document.fonts.ready.then(() => 1)")
    loaded = browser.evaluate("[...document.fonts].map(f => [f.family, f.status])")
    assert [(family.strip('"'), status) for family, status in loaded] == [("Carbonlens Inter", "loaded")] * 2


def test_a_phone_shows_the_narrow_charts_only(browser, pages):
    shown = "[...document.querySelectorAll('.chart svg')].filter(s => s.getBoundingClientRect().width).length"
    narrow = (
        "[...document.querySelectorAll('.narrow svg')].filter(s => s.getBoundingClientRect().width).length"
    )
    browser.open(pages["demo"], width=375)
    assert browser.evaluate(shown) == browser.evaluate(narrow) == 3
    browser.open(pages["demo"], width=1280)
    assert (browser.evaluate(shown), browser.evaluate(narrow)) == (3, 0)


def test_text_keeps_its_contrast_in_the_dark(browser, pages):
    browser.open(pages["demo"], width=1280, dark=True)
    assert browser.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(236, 236, 236)"
    assert (
        browser.evaluate("getComputedStyle(document.querySelector('main > section')).backgroundColor")
        == "rgb(28, 30, 32)"
    )
    # Charts are drawn for white paper.
    assert (
        browser.evaluate("getComputedStyle(document.querySelector('.chart .wide')).backgroundColor")
        == "rgb(255, 255, 255)"
    )
