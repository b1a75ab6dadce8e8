"""Assumption rows: where the money comes from, when no price makes it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from carbonlens.reporting.content import plain_text
from carbonlens.reporting.view import build_view
from tests.reporting.comparisons import EXAMPLE_VECTOR, comparison

UNPRICED = replace(EXAMPLE_VECTOR, electricity=None, machine=None)


def rows(made):
    table = build_view(made).business_case.assumptions
    return {plain_text(r.head): " ".join(plain_text(p) for c in r.cells for p in c) for r in table.rows}


@pytest.mark.parametrize("price", ["Electricity", "Machine"])
def test_costs_that_runs_state_need_no_price_and_that_is_said(price):
    """Such a comparison has money in its amounts and no price in its vector."""
    said = rows(replace(comparison(), vector=UNPRICED))[price]
    assert "not used" in said
    assert "the cost is what the runs themselves state" in said
    assert "unknown" not in said


@pytest.mark.parametrize("price", ["Electricity", "Machine"])
def test_without_costs_the_price_is_unknown(price):
    assert "its part of the cost is unknown" in rows(comparison(vector=UNPRICED))[price]


def test_one_price_that_is_lacking_is_unknown_beside_one_that_is_there():
    made = rows(replace(comparison(), vector=replace(EXAMPLE_VECTOR, machine=None)))
    assert "unknown" in made["Machine"]
