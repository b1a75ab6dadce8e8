"""Drivers of change: why a quantity is another one in a period than in the one before."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding

Measure = Literal["energy", "carbon-location", "carbon-market", "cost"]
Method = Literal["lmdi", "shapley"]
Driver = Literal["volume", "mix", "place", "energy", "pue", "grid", "price"]
Kind = Literal["new", "vanished", "retagged", "counting_began", "counting_ended"]

MEASURES: Final[tuple[Measure, ...]] = ("energy", "carbon-location", "carbon-market", "cost")
NO_UNIT: Final = "(none)"
"""Stands for the unit of runs that count no work."""


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What one driver, or one thing beside the drivers, changes.

    Attributes:
        name: A ``Driver``; ``uncounted``: energy of runs that count no work; ``basis``: what is known in
            one period only; ``unattributed``: what meters counted beyond runs; ``other:<name>``: a
            line of cost that is no electricity of runs.
        change: In the bridge's unit, the later period less the earlier one.
    """

    name: str
    change: Estimate


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one functional unit, or of one class of it, in both periods.

    Attributes:
        unit: Functional unit; ``(none)`` for runs that count no work.
        name: Class of work; ``None`` for the whole unit.
        volumes: Units of work, before and after; ``None`` where none are counted.
        before, after: Of the quantity that is explained.
        effects: By driver; they sum to the change.
    """

    unit: str
    name: str | None = None
    volumes: tuple[float | None, float | None]
    before: Estimate
    after: Estimate
    effects: tuple[Effect, ...]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Work that stands in one period only, or under another name.

    Attributes:
        name: Class of work, as it was called before where that is another name.
        to: Its name after; ``None`` where it has but one.
        evidence: What tells that it is the same work, for ``retagged``.
        before, after: Of the quantity that is explained.
    """

    kind: Kind
    unit: str
    name: str
    to: str | None = None
    evidence: str = ""
    before: Estimate
    after: Estimate


class Bridge(msgspec.Struct, frozen=True, kw_only=True):
    """The way from one period's figure to another's.

    Attributes:
        unit: ``kWh``, ``kg`` or a currency.
        is_least: Whether it is over energies that are known as lower bounds only.
        method: How the change was split.
        before, after: Figures of the statements of both periods.
        change: The later less the earlier one; what errors share is gone.
        effects: Of all units together, then what stands beside the drivers.
        remainder: What these leave of the change, by rounding.
        parts: By functional unit.
        classes: By unit and class of work.
        changes: Of the work's names.
    """

    measure: Measure
    unit: str
    is_least: bool = False
    method: Method
    before: Estimate
    after: Estimate
    change: Estimate
    effects: tuple[Effect, ...]
    remainder: float
    parts: tuple[Part, ...]
    classes: tuple[Part, ...]
    changes: tuple[Change, ...]

    @property
    def key(self) -> str:
        """What it is called in figure ids: ``energy``, ``cost.EUR``, ``energy.at_least``."""
        name = f"{self.measure}.{self.unit}" if self.measure == "cost" else self.measure
        return f"{name}.at_least" if self.is_least else name


class Drivers(msgspec.Struct, frozen=True, kw_only=True):
    """All bridges between two periods.

    Attributes:
        period, against: The later and the earlier one, as they were named.
        by: Label that classes of work are told apart by.
        figures: All numbers.
    """

    period: str
    against: str
    by: str
    bridges: tuple[Bridge, ...]
    figures: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def prefix(self) -> str:
        """What the ids of its figures begin with."""
        return f"drivers.{self.period}.{self.against}.{self.by}"
