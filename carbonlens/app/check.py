"""Use case: check a study's changes against what is tolerated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from carbonlens.app.compare import prepare
from carbonlens.compare.checking import Checked, check_conditions, parse_condition
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.errors import UsageError


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """All conditions on all steps.

    Attributes:
        study: Name of the study.
        unit: Functional unit.
        checked: One entry per condition and step.
    """

    study: str
    unit: str
    checked: tuple[Checked, ...]
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[Checked, ...]:
        """What exceeds its limit for sure."""
        return tuple(c for c in self.checked if c.outcome == "fail")

    @property
    def undetermined(self) -> tuple[Checked, ...]:
        """What nothing can be said about."""
        return tuple(c for c in self.checked if c.outcome == "undetermined")


def check(
    fail_if: Sequence[str],
    study: str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    vector: Vector | None = None,
    baseline: str | None = None,
    steps: Sequence[str] = (),
) -> CheckResult:
    """Check conditions on every step of a study, each against the baseline.

    Args:
        fail_if: Conditions such as ``energy:>+3%@95%``.
        study: As in ``compare``.
        ledger: As in ``compare``.
        vector: As in ``compare``.
        baseline: As in ``compare``.
        steps: As in ``compare``.

    Raises:
        UsageError: If there is no condition, or one is malformed.
        SelectionError: If the study, a step, the baseline or a quality has no runs.
        IncomparableError: If the arms may not be compared.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    if not fail_if:
        raise UsageError("nothing to check", mend='give --fail-if "energy:>+3%@95%"')
    conditions = [parse_condition(text) for text in fail_if]
    given = prepare(study, ledger=ledger, vector=vector, baseline=baseline, steps=steps)
    from carbonlens.compare.study import material_of

    material, findings = material_of(given.study, given.runs, given.vector, given.outcomes)
    return CheckResult(
        study=given.study.name,
        unit=given.study.unit,
        checked=check_conditions(material, conditions),
        findings=tuple(dict.fromkeys((*findings, *given.notes))),
    )
