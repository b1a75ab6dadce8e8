"""A register of initiatives as JSON, and as lines that a report prints: claimed beside measured."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from carbonlens.compare.drivers_savings_figures import prefix_of
from carbonlens.domain.drivers_savings import Register, SavingFound
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting.statement_json import figure_json

SCHEMA: Final = "carbonlens/initiatives/1"


class RegisterLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a report: what an initiative claims of the period beside what was found.

    Attributes:
        figures: Ids of ``claimed`` and ``found``; ``None`` where there is none.
        claimed, found: Of one unit; ``None`` where nobody claims, or nothing was found.
    """

    initiative_id: str
    title: str
    name: str
    claimed: Estimate | None
    found: Estimate | None
    figures: tuple[str | None, str | None]
    verdict: str
    reason: str


def register_lines(register: Register) -> tuple[RegisterLine, ...]:
    """Return the lines of a register, one for each quantity that is claimed or found.

    Args:
        register: Of a period.
    """
    return tuple(
        RegisterLine(
            initiative_id=one.initiative.initiative_id,
            title=one.initiative.title,
            name=name,
            claimed=one.claimed.get(name),
            found=one.savings.get(name),
            figures=(
                f"{prefix_of(one, register.by)}.claimed.{name}" if name in one.claimed else None,
                f"{prefix_of(one, register.by)}.saving.{name}" if name in one.savings else None,
            ),
            verdict=one.verdict,
            reason=one.reason,
        )
        for one in register.found
        for name in dict.fromkeys((*one.claimed, *one.savings))
    )


def register_json(register: Register) -> dict[str, Any]:
    """Return a register as a mapping that JSON can hold.

    Args:
        register: Of a period.
    """
    return {
        "schema": SCHEMA,
        "period": register.period,
        "by": register.by,
        "initiatives": [_found(one, register.by) for one in register.found],
        "figures": [figure_json(f) for f in register.figures],
        "findings": register.findings,
    }


def _found(one: SavingFound, by: str) -> dict[str, Any]:
    initiative = one.initiative
    return {
        "initiative": initiative.initiative_id,
        "title": initiative.title,
        "owner": initiative.owner,
        "tags": initiative.tags,
        "baseline": one.baseline,
        "days_in_effect": one.days[0],
        "days": one.days[1],
        "adjusted_kwh": one.adjusted_kwh.as_json(),
        "measured_kwh": one.measured_kwh.as_json(),
        "adjustments": one.adjustments,
        "saving": {name: e.as_json() for name, e in one.savings.items()},
        "claimed": {name: e.as_json() for name, e in one.claimed.items()},
        "scatter": one.scatter,
        "verdict": one.verdict,
        "reason": one.reason,
        "events": one.events,
        "figures_at": prefix_of(one, by),
    }
