"""A quarter's report in a real browser: readable, self-contained, quiet, without barriers."""

import pytest

from tests.browser.chromium import HIDDEN_TEXT, IN_A_BROWSER, LOUD

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def page(company_report):
    return company_report.file("html")


@pytest.mark.parametrize("width", [375, 1280])
def test_nothing_sticks_out_of_the_window(browser, page, width):
    browser.open(page, width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(HIDDEN_TEXT) == []
    # A table that is wider than a phone is moved in a frame of its own, which the keyboard reaches.
    frames = "[...document.querySelectorAll('main table')].filter(t => !t.closest('.scroll[tabindex]'))"
    assert browser.evaluate(f"{frames}.length") == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_axe_finds_no_serious_barrier(has_no_barrier, page, width, dark):
    has_no_barrier(page, width=width, dark=dark)


def test_no_request_leaves_and_the_console_is_silent(browser, page):
    browser.open(page, width=1280)
    browser.evaluate("document.fonts.ready.then(() => 1)")
    sorters = "document.querySelectorAll('.sort')"
    assert browser.evaluate(f"{sorters}.length") > 40
    browser.evaluate(f"{sorters}.forEach(head => head.click())")
    requests = [
        e["params"]["request"]["url"]
        for e in browser.events
        if e.get("method") == "Network.requestWillBeSent"
    ]
    assert [u for u in requests if not u.startswith(("data:", page.as_uri()))] == []
    assert [e for e in browser.events if e.get("method") in LOUD] == []


def test_a_phone_shows_the_narrow_charts_only(browser, page):
    shown = "[...document.querySelectorAll('.chart svg')].filter(s => s.getBoundingClientRect().width).length"
    narrow = shown.replace(".chart svg", ".narrow svg")
    browser.open(page, width=375)
    assert browser.evaluate(shown) == browser.evaluate(narrow) >= 8
    browser.open(page, width=1280)
    assert browser.evaluate(narrow) == 0
