"""Savings that last: what an initiative claims, and what is found of it in a later period."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.initiative import Initiative

SavingVerdict = Literal["confirmed", "not confirmed", "undetermined"]
"""Of a claim, by measurement. Verified is what the register says that somebody verified."""


class Adjustment(msgspec.Struct, frozen=True, kw_only=True):
    """A non-routine adjustment: what changed for another reason than the initiative or the work.

    Attributes:
        initiative_id: Whose baseline it is added to.
        kwh: Facility energy of the period, added to the adjusted baseline.
        why: In words.
    """

    initiative_id: str
    kwh: float
    why: str


class Scatter(msgspec.Struct, frozen=True, kw_only=True):
    """How well energy per unit tells the energy of a day of the baseline.

    Attributes:
        days: Of the baseline with work; ``reporting_days`` of the period.
        classes: Of work, each with an energy per unit of its own.
        autocorrelation: Of what the days leave, from one day with work to the next.
        cv: Coefficient of variation of what the days leave, CV(RMSE).
    """

    days: int
    reporting_days: int
    classes: int
    autocorrelation: float
    cv: float


class SavingFound(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one initiative in one period.

    Attributes:
        baseline: Period before the initiative began; ``None`` where there is none with runs.
        days: Of the period in which it was in effect, and of the whole period.
        adjusted_kwh: Energy of the baseline at the period's volume, mix, place and PUE, adjustments in it.
        measured_kwh: Facility energy of the same work in the period.
        savings: Of the period, by the names of ``Saving``; money by ``money``.
        claimed: What the owner claims of a year, for the days in effect.
        verdict: ``confirmed``: a saving is shown, precisely enough, and the claim is not above it.
        reason: Of the verdict, in words.
        events: What else changed: told, and in no figure unless an adjustment states it.
    """

    initiative: Initiative
    period: str
    baseline: str | None = None
    days: tuple[int, int] = (0, 0)
    adjusted_kwh: Estimate
    measured_kwh: Estimate
    adjustments: tuple[Adjustment, ...] = ()
    savings: Mapping[str, Estimate] = {}
    claimed: Mapping[str, Estimate] = {}
    scatter: Scatter | None = None
    verdict: SavingVerdict
    reason: str
    events: tuple[str, ...] = ()


class Register(msgspec.Struct, frozen=True, kw_only=True):
    """Every initiative in effect in a period, with what was found of it.

    Attributes:
        by: Label that classes of work are told apart by.
    """

    period: str
    by: str
    found: tuple[SavingFound, ...]
    figures: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()
