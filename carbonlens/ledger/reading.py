"""Reading a ledger through its one view: opened for a period, or as a pandas table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from carbonlens.errors import MissingExtraError
from carbonlens.ledger import queries
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.frames import View


def open_view(ledger: Path, period: str | None = None, calendar: Calendar | None = None) -> View:
    """Open the view of a period; use it in a ``with`` block.

    Args:
        ledger: The ledger's folder.
        period: As of ``Calendar.period``; everything when ``None``.
        calendar: In whose zone and fiscal year the period is meant; UTC and
            calendar years when ``None``.

    Raises:
        UsageError: If the text is no period.
        MissingExtraError: If DuckDB or narwhals is not installed.
        RecordError: If the folder cannot be read.
    """
    hours = None if period is None else (calendar or Calendar()).period(period)
    return View(ledger, hours)


def to_pandas(ledger: Path, period: str | None = None, calendar: Calendar | None = None) -> Any:  # noqa: ANN401 - pandas brings no types
    """Return a ``DataFrame``: a row a run and boundary, parts of others too (see ``parent_run_id``).

    Exact columns hold ``Decimal``; what is unknown is empty, never 0. The
    Findings of the view are in the table's ``attrs["findings"]``.

    Args:
        ledger: The ledger's folder.
        period: As of ``open_view``.
        calendar: As of ``open_view``.

    Raises:
        MissingExtraError: If pandas, DuckDB or narwhals is not installed.
        UsageError, RecordError: As ``open_view``.
    """
    try:
        import pandas as pd  # type: ignore[import-untyped]  # brings no types
    except ImportError as error:
        raise MissingExtraError("analysis", "pandas") from error
    with open_view(ledger, period, calendar) as view:
        names, rows = view.fetch(queries.run_table(view.parts))
        table = pd.DataFrame(rows, columns=names)
        table.attrs["findings"] = tuple(view.findings)
    return table
