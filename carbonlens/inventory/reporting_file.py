"""``reporting.toml``: how periods are cut, who reports, in which money."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.inventory import ReportingTerms
from carbonlens.inventory import toml_entries
from carbonlens.inventory.faults import Fault
from carbonlens.inventory.records import Kind, build
from carbonlens.inventory.toml_entries import Entry
from carbonlens.inventory.values import a_calendar_month, a_currency, a_share, a_time_zone, a_year

NAME: Final = "reporting.toml"

KIND: Final = Kind(
    name="reporting",
    table="",
    type=ReportingTerms,
    rules={
        "timezone": a_time_zone,
        "fiscal_year_start": a_calendar_month,
        "base_year": a_year,
        "recalculation_threshold": a_share,
        "currency": a_currency,
        "price_year": a_year,
    },
)
"""How the terms stand in their file: keys at its top, no blocks."""


def read(text: str, faults: list[Fault]) -> tuple[ReportingTerms, bool]:
    """Return the terms, and whether the file states a time zone.

    Args:
        text: Content of the file.
        faults: Takes what is wrong; the terms are the usual ones then.
    """
    values = toml_entries.tables(text, NAME, faults)
    entry = Entry(values, NAME, 0, toml_entries.key_lines(text))
    terms = build(KIND, entry, faults)
    return terms or ReportingTerms(), "timezone" in values
