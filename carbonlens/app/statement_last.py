"""Use case part: the last quarter that a ledger holds runs of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.errors import SelectionError
from carbonlens.ledger.calendar import FIRST_HOUR, LAST_HOUR, Calendar
from carbonlens.ledger.store import Ledger

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View

_ASKED: Final = "ends of the runs"
"""Name of the answer among what a view keeps."""


def last_quarter(store: Ledger, calendar: Calendar) -> tuple[str, tuple[Finding, ...]]:
    """Return the quarter of the last runs, and what must be said of runs later than any date.

    Args:
        store: The ledger.
        calendar: In which quarters are meant.

    Raises:
        SelectionError: If no run has a start.
    """
    with store.query() as view:
        # Of the whole ledger, whichever calendar asks: a report asks again for every quarter without runs.
        if _ASKED not in view.kept:
            view.kept[_ASKED] = _ends(view)
        last, stray = view.kept[_ASKED]
    if last is None:
        raise SelectionError(
            "holds no run with a start", where=store.shown, mend="measure or import runs, or give --ledger"
        )
    return calendar.rows(last, last + 1)[0].fiscal_quarter, _undatable(stray)


def _ends(view: View) -> tuple[int | None, int]:
    """Return the last UTC hour that a calendar has, and how many runs have none of these."""
    import narwhals as nw

    hour = nw.col("hour_utc")
    dated = view.parts.filter(hour >= FIRST_HOUR, hour <= LAST_HOUR)
    (row,) = view.rows(dated.select(last=hour.max()))
    stray = view.rows(view.parts.filter((hour < FIRST_HOUR) | (hour > LAST_HOUR)).select("run_id").unique())
    return row["last"], len(stray)


def _undatable(runs: int) -> tuple[Finding, ...]:
    if not runs:
        return ()
    text = f"{counted(runs, 'run')} with a time that no calendar has: in no quarter, perhaps nanoseconds"
    mend = (
        "find them: carbonlens ledger verify; correct each: carbonlens runs supersede RUN --by start_us=..."
    )
    return (Finding(code="CL512", severity="warning", message=text, mend=mend),)
