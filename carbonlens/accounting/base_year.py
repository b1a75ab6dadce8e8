"""Base year: whether changes recalculate it (GHG Protocol Corporate Standard, chapter 5).

Structural change, changed methods or factors, errors and work brought in or given out
count against a threshold that the reporting entity declared beforehand; growth or decline
of its own work never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import through
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding

Reason = Literal["structure", "method", "factor", "error", "sourcing", "organic"]
"""Why a figure changed; ``sourcing`` is work brought in or given out, ``organic`` is growth or decline."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of base-year emissions, as they are and as they would be.

    Attributes:
        reason: Why; only ``organic`` never counts.
        detail: In words: which factor, which site.
        old_kg, new_kg: What of the base year it touches, before and after.
        input_ids: Factors or records behind the two.
    """

    reason: Reason
    detail: str
    old_kg: Estimate
    new_kg: Estimate
    input_ids: tuple[str, ...] = ()

    @property
    def delta_kg(self) -> Estimate:
        """New less old; what both rest on cancels."""
        return self.new_kg.minus(self.old_kg)


class Recalculation(msgspec.Struct, frozen=True, kw_only=True):
    """What changes do to a base year.

    Attributes:
        year: The base year.
        base_kg: As it was stated.
        recalculated_kg: As it is to be stated: recalculated, or as it was.
        change: Of all counted changes together, relative to the base; ``None`` when unknown.
        threshold: Declared significance, relative.
        is_needed: ``None`` when no threshold was declared, or a change is unknown.
        counted, left_out: Changes that count, and those that never do.
    """

    year: int
    base_kg: Estimate
    recalculated_kg: Estimate
    change: float | None
    threshold: float | None
    is_needed: bool | None
    counted: tuple[Change, ...]
    left_out: tuple[Change, ...]
    findings: tuple[Finding, ...]

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return the base year before and after, and each counted change."""
        parts = tuple(
            Figure(
                figure_id=f"{prefix}.change_{n}_kg",
                estimate=change.delta_kg,
                label=f"{change.reason}: {change.detail}",
                formula="delta_kg = new_kg - old_kg",
                inputs=change.input_ids,
            )
            for n, change in enumerate(self.counted, start=1)
        )
        before = Figure(figure_id=f"{prefix}.base_kg", estimate=self.base_kg, label=f"base year {self.year}")
        after = Figure(
            figure_id=f"{prefix}.recalculated_kg",
            estimate=self.recalculated_kg,
            label=f"base year {self.year}, restated" if self.is_needed else f"base year {self.year}, kept",
            formula="recalculated_kg = base_kg + sum of changes" if self.is_needed else "as it was stated",
            inputs=(before.figure_id, *(p.figure_id for p in parts if self.is_needed)),
        )
        return before, *parts, after


def relative_change(delta: Quantity, base: Quantity) -> Quantity:
    """Return a change relative to the base (Corporate Standard, chapter 5)."""
    return delta / base


def restated_kg(base: Quantity, delta: Quantity) -> Quantity:
    """Return a base year with its changes (Corporate Standard, chapter 5)."""
    return base + delta


def recalculation(
    year: int, base_kg: Estimate, changes: Sequence[Change], threshold: float | None
) -> Recalculation:
    """Return whether and to what a base year is recalculated.

    Changes count one by one and all together, so that neither many small ones nor two
    large ones that happen to cancel stay unsaid.

    Args:
        year: The base year.
        base_kg: Its emissions as stated.
        changes: Since then.
        threshold: Declared relative significance; reached is enough.
    """
    held = tuple(c for c in changes if c.reason != "organic")
    left_out = tuple(c for c in changes if c.reason == "organic")
    deltas = [c.delta_kg for c in held]
    total = add(deltas, "kg") if deltas else Estimate(value=0.0, unit="kg", signed=True)
    together = through(relative_change, total, base_kg, unit="1", signed=True)
    largest = _largest(deltas, base_kg, together)
    needed = None if threshold is None or largest is None else largest >= threshold
    if not held:
        needed = False
    return Recalculation(
        year=year,
        base_kg=base_kg,
        recalculated_kg=through(restated_kg, base_kg, total, unit="kg") if needed else base_kg,
        change=together.value if together.state == "known" else None,
        threshold=threshold,
        is_needed=needed,
        counted=held,
        left_out=left_out,
        findings=_findings(held, left_out, threshold, largest),
    )


def _largest(deltas: Sequence[Estimate], base: Estimate, together: Estimate) -> float | None:
    """Return the largest relative size of a change or of all; ``None`` where one is unknown."""
    each = [through(relative_change, d, base, unit="1", signed=True) for d in deltas]
    sizes = [abs(e.value) for e in (*each, together) if e.value is not None and e.state == "known"]
    return max(sizes) if len(sizes) == len(each) + 1 else None


def _findings(
    held: Sequence[Change], left_out: Sequence[Change], threshold: float | None, largest: float | None
) -> tuple[Finding, ...]:
    found = []
    if held and threshold is None:
        found.append(_NO_THRESHOLD)
    if held and largest is None:
        found.append(_UNKNOWN_CHANGE)
    if left_out:
        found.append(
            Finding(
                code="CL386",
                severity="info",
                message=f"{counted(len(left_out), 'change is', 'changes are')} growth or decline of the "
                "entity's own work, which never recalculates a base year",
                mend="nothing; it is shown beside the changes that count",
            )
        )
    return tuple(found)


_NO_THRESHOLD: Final = Finding(
    code="CL385",
    severity="warning",
    message="no threshold of significance was declared: whether the base year must be recalculated is open",
    mend="declare recalculation_threshold in the reporting terms",
)
_UNKNOWN_CHANGE: Final = Finding(
    code="CL385",
    severity="warning",
    message="a change of the base year is unknown or only bounded: whether it must be recalculated is open",
    mend="account the base year with the old and with the new factor or method",
)
