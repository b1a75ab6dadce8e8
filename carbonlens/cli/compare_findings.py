"""Which findings of a comparison or a check are worth a line on the terminal, the weightiest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding

OF_BOUNDARY: Final = frozenset({"CL302", "CL303", "CL304"})
"""What stands around the meter is not known."""

OF_CARBON: Final = OF_BOUNDARY | {"CL305", "CL306"}
"""That, or a factor is missing."""

OF_COST: Final = frozenset({"CL309"})
"""No price."""

_FIRST: Final = (
    *("CL412", "CL418", "CL403", "CL405", "CL413", "CL441", "CL401", "CL443", "CL402", "CL404", "CL451"),
    *("CL406", "CL424", "CL428", "CL449", "CL450", "CL454", "CL166", "CL167", "CL168"),
)
"""Findings that change how table and sums must be read."""

_RAISED: Final = frozenset({"CL405", "CL406", "CL412"})
"""Notes that are warnings here: what was left out, pooled, or adopted and not in the sum."""


def worth_showing(findings: Sequence[Finding], *, told: frozenset[str] = frozenset()) -> list[Finding]:
    """Return the findings for the terminal: those on the comparison itself before those on its surroundings.

    Args:
        findings: What was found.
        told: Codes that other lines say already, or that nothing printed rests on.
    """
    kept = [f for f in findings if f.code not in told]
    raised = [msgspec.structs.replace(f, severity="warning") if f.code in _RAISED else f for f in kept]
    return sorted(raised, key=lambda f: (f.code.startswith("CL3"), f.code not in _FIRST))
