"""A quarter's report as a page, out of statements made by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

from carbonlens.render.blocks import document_variables
from carbonlens.reporting.document_view import DocumentView
from tests.accounting.test_periods_compared import WHOLE, of_parts
from tests.reporting import sustainability_case as case

FIGURE = "statement.2026Q3.total.facility_kwh"
"""One of its headline figures."""


@cache
def quarter() -> DocumentView:
    """Return the report."""
    return case.view({case.BEFORE: of_parts(case.BEFORE, WHOLE), case.QUARTER: of_parts(case.QUARTER, WHOLE)})


@cache
def _variables() -> dict[str, Any]:
    return document_variables(quarter(), "screen", b"{}")


def variables() -> dict[str, Any]:
    """Return what its templates take; its charts are drawn once."""
    return dict(_variables())
