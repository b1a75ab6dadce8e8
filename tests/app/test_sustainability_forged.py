"""A quarter's report that says another maker, or had its pages altered, is no report that holds."""

from __future__ import annotations

import json

import msgspec
import pytest

from carbonlens.app.sustainability import gather
from carbonlens.app.sustainability_report import Material, carrying_shape_of, material, rendered
from carbonlens.app.verify import verify
from carbonlens.render.attachments import as_data_block
from tests.app import company_case

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return company_case.make(tmp_path_factory.mktemp("c"), begin="2026-09-28")["ledger"]


@pytest.fixture(scope="module")
def made(ledger) -> Material:
    return material(gather("2026Q3", ledger=ledger, now_us=company_case.NOW_US))


@pytest.fixture(scope="module")
def page(made) -> str:
    return rendered(made, "html").decode("utf-8")


def verified(page, ledger, tmp_path):
    (tmp_path / "r.html").write_text(page, "utf-8")
    return verify(tmp_path / "r.html", ledger=ledger)


def by_another(made, page, name="carbonlens", version="9.9.9"):
    """The same page with another version named in its data."""
    data = msgspec.json.encode(carrying_shape_of(made))
    shape = json.loads(data)
    part = shape["basis"]["made_with"]
    (part if name in part else part["libraries"])[name] = version
    forged = page.replace(as_data_block(data), as_data_block(msgspec.json.encode(shape)))
    assert forged != page
    return forged


ADDED = ("<p>cut by <span data-quoted>99 %</span></p>", '<p title="99 %">x</p>', "<iframe></iframe>")


@pytest.mark.parametrize("added", ADDED)
def test_a_number_or_an_element_that_was_added_is_found_whatever_made_the_page(
    added, made, page, ledger, tmp_path
):
    forged = by_another(made, page).replace("</main>", f"{added}</main>")
    found = verified(forged, ledger, tmp_path)
    assert not found.holds
    assert found.rebuilt is None


def test_what_cannot_be_held_against_anything_is_said(made, page, ledger, tmp_path):
    forged = by_another(made, page).replace("</main>", "<p>Assured.</p><script>x()</script></main>")
    found = verified(forged, ledger, tmp_path)
    assert set(found.versions) == {"carbonlens"}
    assert "words of its data" in found.unchecked
    assert "words and layout of the page" in found.unchecked
    assert "scripts of the page, which may change what it shows" in found.unchecked


def test_words_of_the_same_carbonlens_are_the_same_whatever_libraries_are_named(made, page, ledger, tmp_path):
    forged = by_another(made, page, "numpy", "0.0.1")
    assert verified(forged, ledger, tmp_path).holds
    found = verified(forged.replace("</main>", "<p>Assured.</p></main>"), ledger, tmp_path)
    assert [m.said.split()[-1] for m in found.mismatches] == ["Assured."]


def test_only_what_decides_the_bytes_of_the_format_counts(made, page, ledger, tmp_path):
    found = verified(by_another(made, page, "weasyprint", "0.0.1"), ledger, tmp_path)
    assert (found.versions, found.rebuilt, found.unchecked) == ({}, "same", ())
