"""One browser for the tests of a module, and what axe-core says of a page in it."""

import pytest

from tests.browser.chromium import AXE, BARRIERS, NEEDED, Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def has_no_barrier(browser):
    """Open a page, and find no serious barrier in it."""

    def judged(page, *, width, dark):
        if not AXE.is_file() and not NEEDED:
            pytest.skip("no axe-core here: scripts/setup.sh installs it")
        browser.open(page, width=width, dark=dark)
        browser.evaluate("document.fonts.ready.then(() => 1)")
        browser.evaluate(AXE.read_text(encoding="utf-8"))
        found = browser.evaluate(BARRIERS)
        assert found["passes"] > 15
        assert found["barriers"] == [], found["others"]

    return judged
