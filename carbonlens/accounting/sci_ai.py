"""SCI for AI: a consumer's and a provider's score (Green Software Foundation, SCI for AI).

Who uses a model counts its operation and monitoring per token, image or request; who makes
one counts its inception, development, deployment and retirement per operation, per token of
training or per parameter. Training counts all of it: every epoch, and runs that were
stopped or thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from carbonlens.accounting.sci import Component, FunctionalUnit, Sci, sci
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.errors import UsageError

Role = Literal["consumer", "provider"]
Normalisation = Literal["gross", "effective"]
"""Whether units count as they were made, or only those that were of use."""

STAGES: Final[dict[Role, tuple[str, ...]]] = {
    "consumer": ("operation", "monitoring"),
    "provider": ("inception", "development", "deployment", "retirement"),
}
UNITS: Final[dict[Role, tuple[str, ...]]] = {
    "consumer": ("token", "image", "inference", "workflow", "page", "second of audio"),
    "provider": ("FLOP", "training token", "parameter"),
}


class SciAi(msgspec.Struct, frozen=True, kw_only=True):
    """A score of one role, with how its units were counted."""

    role: Role
    normalisation: Normalisation
    sci: Sci
    findings: tuple[Finding, ...]


def sci_ai(
    role: Role,
    components: Sequence[Component],
    count: Estimate,
    unit: FunctionalUnit,
    normalisation: Normalisation = "gross",
) -> SciAi:
    """Return a consumer's or a provider's score.

    Args:
        role: Whose.
        components: Each with its stage of the life cycle.
        count: Functional units (R).
        unit: One of ``UNITS`` of the role.
        normalisation: How the units were counted.

    Raises:
        UsageError: If the unit, or a component's stage, is not the role's; or as ``sci``.
    """
    if unit.name not in UNITS[role]:
        raise UsageError(
            f"{unit.name!r} is no functional unit of a {role}'s score",
            mend=f"use one of {', '.join(UNITS[role])}",
        )
    for component in components:
        if component.stage not in STAGES[role]:
            raise UsageError(
                f"stage {component.stage!r} is not in a {role}'s score",
                where=component.name,
                mend=f"use one of {', '.join(STAGES[role])}, or the other score",
            )
    score = sci(components, count, unit)
    missing = [s for s in STAGES[role] if s not in {c.stage for c in components}]
    findings = (*score.findings, *([_not_covered(role, missing)] if missing else []))
    return SciAi(role=role, normalisation=normalisation, sci=score, findings=findings)


def _not_covered(role: Role, missing: Sequence[str]) -> Finding:
    return Finding(
        code="CL399",
        severity="warning",
        message=f"the {role}'s score holds no {' and no '.join(missing)}: it is lower than the whole",
        mend="add their components, or say that the score does not cover them",
    )
