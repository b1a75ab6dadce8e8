"""Use case: why a period's energy, carbon or cost is another one than that of the period before."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.accounting.statement_lines import PAID
from carbonlens.app.drivers_findings import about, maybe_renamed, of_bridge
from carbonlens.app.drivers_reading import (
    AMOUNTS,
    Given,
    Work,
    leads,
    read_work,
)
from carbonlens.app.drivers_totals import bridges_of, is_other
from carbonlens.app.inventory import Kept, calendar_of, load_inventory
from carbonlens.app.statement import Made, make_statement
from carbonlens.compare.drivers_figures import drivers_figures
from carbonlens.compare.drivers_names import alike
from carbonlens.domain.drivers import Bridge, Drivers, Measure
from carbonlens.errors import SelectionError, UsageError
from carbonlens.factors.store import FactorSet, open_factors
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.queries import TAG
from carbonlens.ledger.store import Ledger

LABELS: Final = (
    "workload",
    "model",
    "team",
    "site",
    "hardware",
    "study",
    "step",
    "role",
    "job_id",
    "host_id",
)
"""What classes of work may be told apart by, beside ``tag:NAME``."""

_NAMED: Final = 5


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Drivers, and what they were made with.

    Attributes:
        before, after: Statements of both periods.
        works: What the ledger holds of each.
        same: Names after of work that goes under another one, by the names before.
    """

    drivers: Drivers
    before: Made
    after: Made
    works: tuple[Work, Work]
    same: Mapping[str, str] = {}


def make_drivers(  # noqa: PLR0913 - each is a choice of the one who asks
    period: str | None = None,
    against: str | None = None,
    *,
    by: str = "workload",
    measures: Sequence[Measure] = ("energy",),
    same: Mapping[str, str] = {},
    inventory: str | Path | None = None,
    factors: str | Path | FactorSet | None = None,
    ledger: str | Path | None = None,
    listed: bool = False,
    now_us: int | None = None,
) -> Explained:
    """Return what drove the change from one period to another.

    Args:
        period: ``2026Q3``, ``2026-08`` or ``2026``, fiscal; the last quarter with runs when ``None``.
        against: The earlier one; the one just before, as long, when ``None``.
        by: What classes of work are told apart by: one of ``LABELS``, or ``tag:NAME``.
        measures: What is explained.
        same: Names after of work that goes under another one, by the names before.
        inventory: The inventory folder; found as the command line finds it when ``None``.
        factors: The user's own factors, found likewise, or a whole set.
        ledger: The ledger's folder; found likewise.
        listed: Whether the runs are listed too, for ``explain``.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If a period holds no runs, ``by`` is no label, or nothing of a measure is known.
        UsageError: If a period is none, both overlap, or the other one is later.
        ConfigError, InputFileError: If inventory or factors cannot be read.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    if by not in LABELS and not (by.startswith(TAG) and by != TAG):
        raise SelectionError(f"no label {by!r}", where="--by", mend=f"known: {', '.join(LABELS)}, tag:NAME")
    kept = load_inventory(inventory)
    held = factors if isinstance(factors, FactorSet) else open_factors(factors)
    present = time.time_ns() // 1000 if now_us is None else now_us
    source = Source(kept=kept, factors=held, ledger=ledger, inventory=inventory, now_us=present)
    works = source.works(period, against, by, listed=listed)
    refuse_unknown_names(works, same)
    return explained(works, by, measures, same=same, now_us=present)


def explained(
    works: tuple[Work, Work],
    by: str,
    measures: Sequence[Measure],
    *,
    same: Mapping[str, str] = {},
    now_us: int,
) -> Explained:
    """Return what drove the change between two works that were read.

    Args:
        works: Of the earlier and the later period.
        by: What their classes are told apart by.
        measures: What is explained.
        same: Names after of work that goes under another one, by the names before.
        now_us: The present, UTC microseconds.

    Raises:
        SelectionError: If nothing of a measure is known.
    """
    drivers = _drivers(works, by, measures, same, now_us)
    return Explained(drivers=drivers, before=works[0].made, after=works[1].made, works=works, same=same)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where works are read: a ledger, an inventory and factors, opened once.

    Attributes:
        held: Statements that were made already, by period.
    """

    kept: Kept
    factors: FactorSet
    ledger: str | Path | None
    inventory: str | Path | None
    now_us: int
    held: Mapping[str, Made] = {}

    @property
    def calendar(self) -> Calendar:
        """Of the inventory."""
        return calendar_of(self.kept.inventory.terms)

    def statement(self, period: str | None) -> Made:
        """Return the statement of a period."""
        if period is not None and period in self.held:
            return self.held[period]
        return make_statement(
            period,
            inventory=self.inventory,
            factors=self.factors,
            ledger=self.ledger,
            now_us=self.now_us,
        )

    def works(
        self, period: str | None, against: str | None, by: str, *, listed: bool = False
    ) -> tuple[Work, Work]:
        """Return the work of two periods, the earlier first.

        Args:
            period: The later one; the last quarter with runs when ``None``.
            against: The earlier one; the one just before when ``None``.
            by: What classes of work are told apart by.
            listed: Whether the runs are listed too.

        Raises:
            SelectionError: If one holds no runs.
            UsageError: If both overlap, or stand in the wrong order.
        """
        if period is not None and against is not None:
            refuse_overlap(period, against, self.calendar)
        last = self.statement(period)
        earlier = against or before(last.period.text, self.calendar)
        refuse_overlap(last.period.text, earlier, self.calendar)
        try:
            first = self.statement(earlier)
        except SelectionError as error:
            raise _one_period_only(error, last.period.text, earlier) from error
        with open_ledger(self.ledger) as store:
            return self._work(first, store, by, listed=listed), self._work(last, store, by, listed=listed)

    def _work(self, made: Made, store: Ledger, by: str, *, listed: bool) -> Work:
        given = Given(
            store=store, inventory=self.kept.inventory, factors=self.factors, calendar=self.calendar
        )
        return read_work(made, given, by, listed=listed)


def before(text: str, calendar: Calendar) -> str:
    """Return the period just before one, of the same kind: ``2026Q2`` before ``2026Q3``.

    Args:
        text: A period.
        calendar: In which it is meant.
    """
    name = text.strip()
    if "Q" in name:
        year, quarter = int(name[:4]), int(name[5])
        return f"{year}Q{quarter - 1}" if quarter > 1 else f"{year - 1}Q4"
    parts = name.split("-")
    if len(parts) == 1:
        return f"{int(name) - 1:04}"
    last = calendar.period(name).first_hour - 1
    (row,) = calendar.rows(last, last + 1)
    month = f"{row.month // 100:04}-{row.month % 100:02}"
    return month if len(parts) == 2 else f"{month}-{row.date % 100:02}"


def refuse_overlap(period: str, against: str, calendar: Calendar) -> None:
    """Refuse two periods that share hours, or stand in the wrong order.

    Args:
        period: The later one.
        against: The earlier one.
        calendar: In which they are meant.

    Raises:
        UsageError: If they do, or one of them is no period.
    """
    after, first = calendar.period(period), calendar.period(against)
    if first.first_hour < after.end_hour and after.first_hour < first.end_hour:
        raise UsageError(
            f"{period} and {against} overlap: runs of both would explain themselves",
            where="--against",
            mend="give a period that ends before the other begins",
        )
    if first.first_hour > after.first_hour:
        raise UsageError(
            f"{against} lies after {period}",
            where="--against",
            mend=f"ask for --period {against} --against {period}",
        )


def _one_period_only(error: SelectionError, period: str, against: str) -> SelectionError:
    if not error.what.startswith("no runs in"):
        return error
    return SelectionError(
        f"no runs in {against}, so there is nothing that {period} could have changed from",
        where=error.where,
        mend="give --against a period that holds runs, or import them",
    )


def _drivers(
    works: tuple[Work, Work], by: str, measures: Sequence[Measure], same: Mapping[str, str], present_us: int
) -> Drivers:
    first, last = works
    bridges: list[Bridge] = []
    findings = list(about(first, last, by, present_us))
    for measure in measures:
        found = bridges_of(first, last, measure, same)
        if not found:
            raise _nothing_known(measure, first, last)
        for made, cells in found:
            findings += of_bridge(made, cells, first.made.period.text, last.made.period.text)
        bridges += (made for made, _ in found)
    likely = alike((c for b in bridges[:1] for c in b.changes), first.marks, last.marks)
    drivers = Drivers(
        period=last.made.period.text,
        against=first.made.period.text,
        by="+".join([by, *(f"{a}={b}" for a, b in sorted(same.items()))]),
        bridges=tuple(bridges),
        findings=tuple(dict.fromkeys((*findings, *map(maybe_renamed, likely)))),
    )
    totals = {b.key: statement_inputs(b, first, last) for b in bridges}
    names = {b.key: amount_of(b) for b in bridges}
    rests = {key: leads(first, last, same, name) for key, name in names.items()}
    return msgspec.structs.replace(drivers, figures=drivers_figures(drivers, totals, rests))


def amount_of(made: Bridge) -> str:
    """Return the name in a statement of what a bridge explains."""
    return f"{PAID}{made.unit}" if made.measure == "cost" else AMOUNTS[made.measure][0]


def refuse_unknown_names(works: tuple[Work, Work], same: Mapping[str, str]) -> None:
    """Refuse to join names that no work has: a mistyped one would join nothing, and be believed.

    Args:
        works: Of the earlier and the later period.
        same: Names after, by the names before.

    Raises:
        SelectionError: If one is not there.
    """
    for work, names in zip(works, (tuple(same), tuple(same.values())), strict=True):
        held = {name for _, name, _ in work.shares}
        gone = [n for n in names if n not in held]
        if gone:
            raise SelectionError(
                f"no work is named {gone[0]!r} in {work.made.period.text}",
                where="--same",
                mend=f"write OLD=NEW; there are {', '.join(sorted(held)[:_NAMED])}",
            )


def _nothing_known(measure: Measure, first: Work, last: Work) -> SelectionError:
    name = {"energy": "energy", "cost": "cost"}.get(measure, measure.replace("-", " of ", 1))
    periods = f"{first.made.period.text} and {last.made.period.text}"
    mend = "state prices of electricity in the inventory" if measure == "cost" else "state zones of the sites"
    return SelectionError(
        f"the {name} is not known in both of {periods}",
        where="--measure",
        mend=f"{mend}; carbonlens account says what is missing",
    )


def statement_inputs(made: Bridge, first: Work, last: Work) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the figures of both statements that a bridge leads from and to.

    Args:
        made: The bridge.
        first: The earlier period.
        last: The later one.
    """
    total = "total.at_least" if made.is_least else "total"
    name, found = amount_of(made), []
    for work in (first, last):
        at = f"statement.{work.made.period.text}"
        known = {f.figure_id for f in work.statement.figures}
        ids = [f"{at}.{total}.{name}"] if f"{at}.{total}.{name}" in known else []
        if made.measure == "cost" and not made.is_least:
            lines = enumerate(work.statement.cost.lines, 1)
            ids += [f"{at}.cost.{n}.{x.name}" for n, x in lines if is_other(x, made.unit)]
        found.append(tuple(ids))
    return found[0], found[1]
