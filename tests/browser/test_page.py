"""The HTML report in a real browser: readable, self-contained, quiet, sortable, without barriers."""

from __future__ import annotations

import re

import pytest

from carbonlens.reporting.chart_theme import DARK, LIGHT
from tests.browser.chromium import HIDDEN_TEXT, IN_A_BROWSER, LOUD
from tests.browser.pages import PAGES

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, make in PAGES.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(make(), encoding="utf-8")
    return made


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [375, 800, 1100, 1280])
def test_nothing_sticks_out_of_the_window(browser, pages, name, width):
    browser.open(pages[name], width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(HIDDEN_TEXT) == []


_WIDE_TABLES = """
[...document.querySelectorAll('.scroll')].map(box => {
  const hint = getComputedStyle(box, '::before');
  const last = () => [...box.querySelectorAll('tr > :last-child')].map(c => c.getBoundingClientRect().right);
  const window = box.getBoundingClientRect();
  const wide = box.scrollWidth > box.clientWidth + 1;
  box.scrollLeft = 1e6;
  const first = box.querySelector('tbody th').getBoundingClientRect();
  const found = {
    wide, hint: hint.content.includes('scroll') && hint.display === 'block',
    reached: last().every(right => right <= window.right + 1), named: first.left >= window.left - 1,
  };
  box.scrollLeft = 0;
  return found;
})
"""


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [375, 800, 1100, 1280])
def test_a_table_wider_than_the_window_says_so_and_shows_all_of_itself(browser, pages, name, width):
    browser.open(pages[name], width=width)
    browser.evaluate("document.fonts.ready.then(() => 1)")
    tables = browser.evaluate(_WIDE_TABLES)
    assert len(tables) >= 7
    for table in tables:
        assert table["hint"] == table["wide"]
        assert table["reached"]
        assert table["named"]
    if name == "demo" and width >= 1100:
        assert not any(table["wide"] for table in tables)


def test_a_table_that_becomes_too_wide_says_so_then(browser, pages):
    browser.open(pages["demo"], width=1280)
    told = "document.querySelectorAll('.scroll.more').length"
    assert browser.evaluate(told) == 0
    browser.page(
        "Emulation.setDeviceMetricsOverride", width=375, height=900, deviceScaleFactor=1, mobile=False
    )
    assert browser.evaluate(f"new Promise(done => requestAnimationFrame(() => done({told})))") == 7


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_barrier(has_no_barrier, pages, name, width, dark):
    has_no_barrier(pages[name], width=width, dark=dark)


@pytest.mark.parametrize("name", PAGES)
def test_no_request_leaves_and_the_console_is_silent(browser, pages, name):
    browser.open(pages[name], width=1280)
    browser.evaluate("document.fonts.ready.then(() => 1)")
    for head in range(browser.evaluate("document.querySelectorAll('.sort').length")):
        browser.evaluate(f"document.querySelectorAll('.sort')[{head}].click()")
    requests = [
        e["params"]["request"]["url"]
        for e in browser.events
        if e.get("method") == "Network.requestWillBeSent"
    ]
    assert [u for u in requests if not u.startswith(("data:", pages[name].as_uri()))] == []
    assert [e for e in browser.events if e.get("method") in LOUD] == []


def test_the_policy_lets_no_other_script_run(browser, pages):
    browser.open(pages["demo"], width=1280)
    browser.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s); })()"
    )
    assert browser.evaluate("window.ran === undefined")
    refused = [e for e in browser.events if e.get("method") == "Log.entryAdded"]
    assert "Content Security Policy" in refused[0]["params"]["entry"]["text"]


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
    assert browser.evaluate(shown) == browser.evaluate(narrow) == 6
    browser.open(pages["demo"], width=1280)
    assert (browser.evaluate(shown), browser.evaluate(narrow)) == (6, 0)


# Sorting -------------------------------------------------------------------

_COLUMN = """
[...document.querySelectorAll('table')].find(t => t.caption.textContent.startsWith('{caption}'))
"""


def column(browser, caption, number):
    """The texts of a table's column as shown, one a row, number and interval together."""
    table = _COLUMN.format(caption=caption)
    return browser.evaluate(f"[...{table}.tBodies[0].rows].map(r => r.cells[{number}].textContent)")


def press(browser, caption, number, key):
    """Press a column head's button by keyboard; returns what the head then says of the order."""
    table = _COLUMN.format(caption=caption)
    browser.evaluate(f"{table}.tHead.rows[0].cells[{number}].querySelector('button').focus()")
    for kind in ("keyDown", "keyUp"):
        text = {"text": "\r" if key == "Enter" else " "} if kind == "keyDown" else {}
        browser.page(
            "Input.dispatchKeyEvent",
            type=kind,
            key={"Enter": "Enter", "Space": " "}[key],
            code=key,
            windowsVirtualKeyCode={"Enter": 13, "Space": 32}[key],
            **text,
        )
    return browser.evaluate(f"{table}.tHead.rows[0].cells[{number}].getAttribute('aria-sort')")


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_column_sorts_by_its_unrounded_values_and_back(browser, pages, key):
    browser.open(pages["demo"], width=1280)
    written = column(browser, "Measured on", 0)
    assert press(browser, "Measured on", 1, key) == "ascending"
    rising = [float(re.match(r"[0-9]+", text)[0]) for text in column(browser, "Measured on", 1)]
    assert rising == sorted(rising) != [860.0]
    assert press(browser, "Measured on", 1, key) == "descending"
    assert [float(re.match(r"[0-9]+", t)[0]) for t in column(browser, "Measured on", 1)] == rising[::-1]
    assert press(browser, "Measured on", 1, key) is None
    assert column(browser, "Measured on", 0) == written


def test_amounts_in_several_units_sort_by_what_they_are(browser, pages):
    # By its text 2.5 MB would stand before 78.3 kB.
    browser.open(pages["units"], width=1280)
    press(browser, "Measured on", 7, "Enter")
    sizes = [text.replace("\u00a0", " ") for text in column(browser, "Measured on", 7)]
    assert sizes == ["78.3 kB", "589 kB", "2.5 MB"]


def test_a_total_keeps_its_place(browser, pages):
    browser.open(pages["demo"], width=1280)
    for _ in range(2):
        press(browser, "Attribution", 1, "Enter")
        assert column(browser, "Attribution", 0)[-1] == "Total"


def test_what_is_unknown_stands_last_either_way(browser, pages):
    browser.open(pages["no_baseline"], width=1280)
    for _ in range(2):
        press(browser, "Measured on", 1, "Enter")
        assert column(browser, "Measured on", 1)[-1] == "–"


# Looks ---------------------------------------------------------------------


def rgb(colour):
    """A colour as the browser tells it."""
    return "rgb({}, {}, {})".format(*(int(colour[i : i + 2], 16) for i in (1, 3, 5)))


@pytest.mark.parametrize(("dark", "theme"), [(False, LIGHT), (True, DARK)], ids=["light", "dark"])
def test_page_and_charts_follow_the_theme(browser, pages, dark, theme):
    browser.open(pages["demo"], width=1280, dark=dark)
    section = "getComputedStyle(document.querySelector('main > section'))"
    assert browser.evaluate(f"{section}.backgroundColor") == rgb(theme["paper"])
    for what in ("fill", "stroke"):
        for name, drawn in LIGHT.items():
            of_colour = f"document.querySelectorAll('.chart .wide svg [{what}=\"{drawn}\"]')"
            shown = browser.evaluate(f"[...new Set([...{of_colour}].map(e => getComputedStyle(e).{what}))]")
            assert shown in ([], [rgb(theme[name])])


def test_a_mark_tells_a_pointer_what_it_is(browser, pages):
    browser.open(pages["demo"], width=1280)
    under = """
    (() => { const bar = document.querySelector('.chart .wide .mark-rect path:has(title)');
      bar.scrollIntoView(); const r = bar.getBoundingClientRect();
      return document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2).textContent; })()
    """
    assert browser.evaluate(under) == "PyTorch eager fp32: 100\u00a0%"
