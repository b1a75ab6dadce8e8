"""Every code of the package stands in the table, and the page is made of it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from carbonlens.domain.finding_codes import CODES, FAMILIES
from scripts.write_findings import PAGE, page

PACKAGE = Path(__file__).parents[2] / "carbonlens"
TABLE = PACKAGE / "domain" / "finding_codes"
CODE = re.compile(r"CL\d{3}")
SEVERITIES = {"error", "warning", "info"}


@cache
def used_codes() -> dict[str, str]:
    """Return the codes that stand as a text of their own in the source, each with a place."""
    used: dict[str, str] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        if TABLE in file.parents:
            continue
        text = file.read_text("utf-8")
        if not CODE.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                used.setdefault(node.value, f"{file.relative_to(PACKAGE)}:{node.lineno}")
    return used


def test_every_code_in_use_is_in_the_table():
    known = {c.code for c in CODES}
    missing = {code: place for code, place in used_codes().items() if code not in known}
    assert not missing, f"not in carbonlens/domain/finding_codes: {missing}"


def test_every_code_in_the_table_is_in_use():
    unused = sorted({c.code for c in CODES} - set(used_codes()))
    assert not unused, f"in the table, and nowhere in the package: {unused}"


def test_codes_are_unique_and_in_order():
    codes = [c.code for c in CODES]
    assert [code for code, n in Counter(codes).items() if n > 1] == []
    assert all([c.code for c in family] == sorted(c.code for c in family) for _, family in FAMILIES)


@pytest.mark.parametrize("entry", CODES, ids=[c.code for c in CODES])
def test_an_entry_is_complete(entry):
    assert CODE.fullmatch(entry.code)
    assert set(entry.severity.split(" or ")) <= SEVERITIES
    for text in (entry.title, entry.meaning, entry.mend, entry.example):
        assert text.strip() == text != ""
    assert not entry.title.endswith(".")
    assert entry.meaning.endswith(".")


def test_the_page_is_what_the_table_gives():
    assert PAGE.read_text("utf-8") == page(), "run: python -m scripts.write_findings"
