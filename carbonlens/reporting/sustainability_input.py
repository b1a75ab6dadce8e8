"""Sustainability input: all that a quarter's report is made of, as records of the rooms below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from carbonlens.accounting.base_year import Recalculation
from carbonlens.accounting.periods_compared import Compared
from carbonlens.accounting.restatement import PriorPeriod, Restated
from carbonlens.accounting.statement import Statement
from carbonlens.domain.drivers import Drivers
from carbonlens.domain.drivers_savings import Register
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.initiative import Delivery

NOT_TAKEN_UP: Final = "not taken up yet"
"""Stands among the periods in which late records were found, where nothing says when one came."""


class Quarter(msgspec.Struct, frozen=True, kw_only=True):
    """One period of the report.

    Attributes:
        name: ``2026Q3``.
        statement: ``None`` where the ledger holds nothing of it.
        label: ``DRAFT``, ``ADJUSTED`` or empty.
        why_none: Why there is no statement, in words.
    """

    name: str
    statement: Statement | None
    label: str = ""
    why_none: str = ""


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What the work of a period in one functional unit took, per unit.

    Attributes:
        figures: ``count``; per unit ``energy`` in J, ``location`` and ``market`` in g; ``sci_score``
            and ``sci_at_least`` where SCI was made.
    """

    period: str
    unit: str
    figures: Mapping[str, Figure] = {}


class Closed(msgspec.Struct, frozen=True, kw_only=True):
    """A close that covers the period or a part of it.

    Attributes:
        manifest_sha256: Hash of its manifest, to which the next one is chained.
        closed_on: UTC date.
        runs: Records of runs that its manifest holds.
    """

    period: str
    manifest_sha256: str
    closed_on: str
    by: str
    runs: int
    factor_set_sha256: str | None = None


class Restating(msgspec.Struct, frozen=True, kw_only=True):
    """A restatement that the ledger keeps.

    Attributes:
        old, new: What its figures were made with, in words.
        made_on: UTC date.
        base_year: What it does to the base year by method, where its period is it.
    """

    period: str
    old: str
    new: str
    made_on: str
    reason: str | None
    why: str
    rows: tuple[Restated, ...]
    base_year: Mapping[str, Recalculation] = {}


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the report of a quarter is made of.

    Attributes:
        period: The quarter.
        quarters: Those of the trend, oldest first, the quarter itself last.
        previous, last_year: Names of the quarter before and of the same one a year before.
        to_date: Names of the quarters of the fiscal year up to the quarter.
        splits: The quarter's statement by team, model and hardware.
        drivers: ``None`` where there are none; ``no_drivers`` says why.
        register: Likewise.
        scores: By unit and period, periods as in ``quarters``.
        prior: What records that came after a close change in closed periods that touch any of
            ``quarters``, and what of others was found in them.
        factors: Rows that the quarter's figures rest on.
        own_factors: Ids of those that are the user's own.
        snapshots: Files of the inventory with the id of their content.
        deliveries: Expected in months of the quarter.
        runs: Root runs of the quarter.
        attached: What travels inside the file, in words.
        findings: Beside those of the statements.
    """

    period: str
    quarters: tuple[Quarter, ...]
    previous: str
    last_year: str
    to_date: tuple[str, ...]
    compared: Compared
    splits: Mapping[str, Statement] = {}
    drivers: Drivers | None = None
    no_drivers: str = ""
    register: Register | None = None
    no_register: str = ""
    scores: tuple[Score, ...] = ()
    closes: tuple[Closed, ...] = ()
    restatements: tuple[Restating, ...] = ()
    prior: tuple[PriorPeriod, ...] = ()
    factors: tuple[FactorRow, ...] = ()
    own_factors: frozenset[str] = frozenset()
    factors_sha256: str = ""
    inventory_sha256: str | None = None
    snapshots: Mapping[str, str] = {}
    deliveries: tuple[Delivery, ...] = ()
    example: bool = False
    calendar: str = ""
    runs: int = 0
    attached: str = ""
    findings: tuple[Finding, ...] = ()

    def quarter(self, name: str) -> Quarter | None:
        """Return a period of the report; ``None`` where it is none of them."""
        return next((q for q in self.quarters if q.name == name), None)

    @property
    def current(self) -> Statement:
        """The statement of the quarter."""
        found = self.quarters[-1].statement
        assert found is not None  # noqa: S101 - a report without it is never made
        return found

    @property
    def label(self) -> str:
        """``DRAFT``, ``ADJUSTED`` or empty."""
        return self.quarters[-1].label


def findings_of(given: Given) -> tuple[Finding, ...]:
    """Return every Finding of a report once: of its statement, its scores, its drivers, its register."""
    every = [*given.current.findings, *given.findings]
    every += given.drivers.findings if given.drivers is not None else ()
    every += given.register.findings if given.register is not None else ()
    return tuple(dict.fromkeys(every))
