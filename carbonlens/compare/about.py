"""What a reader must know about the runs and their quality figures, as Findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from carbonlens.compare.arms import Arm
from carbonlens.compare.grouping import StepRuns
from carbonlens.compare.material import Material
from carbonlens.compare.quality import disagreement, is_binary
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run

_MOST_MESSAGES: Final = 3


def of_runs(groups: Mapping[str, StepRuns], arms: Sequence[Arm]) -> tuple[Finding, ...]:
    """Return the distinct findings of the runs that figures are made of.

    What was found while measuring (a component that nothing read, a sensor
    that stalled) qualifies the comparison as well. A code with many messages,
    which differ in their figures, is told once.

    Args:
        groups: The runs by step, for the effort.
        arms: The usable arms.
    """
    used = {r.run_id: r for r in (*(r for a in arms for r in a.runs), *_efforts(groups))}
    by_code: dict[str, dict[str, list[Finding]]] = {}
    runs_of: dict[str, int] = {}
    for run in used.values():
        for code in dict.fromkeys(f.code for f in run.findings):
            runs_of[code] = runs_of.get(code, 0) + 1
        for finding in {(f.code, f.message): f for f in run.findings}.values():
            by_code.setdefault(finding.code, {}).setdefault(finding.message, []).append(finding)
    merged: list[Finding] = []
    for code, messages in by_code.items():
        if len(messages) <= _MOST_MESSAGES:
            merged += [_counted(same[0], "in", len(same), len(used)) for same in messages.values()]
        else:
            first = next(iter(messages.values()))[0]
            merged.append(_counted(first, "and alike, in", runs_of[code], len(used)))
    return tuple(merged)


def about_quality(material: Material) -> tuple[Finding, ...]:
    """Say where rounds disagree in quality, and where outcomes cannot be used.

    Args:
        material: The study's material.
    """
    findings: list[Finding] = []
    for step, arm in material.arms.items():
        measured = material.measured(step)
        recorded = () if measured is None else measured.recorded
        figures = [*(q for r in arm.runs for q in r.quality), *recorded]
        for name in dict.fromkeys(q.name for q in figures):
            ends = disagreement(arm, recorded, name)
            if ends is not None:
                findings.append(_disagrees(step, name, ends))
            hashes = {q.outcomes_sha256 for q in figures if q.name == name}
            if not all(is_binary(material.outcomes.get(h or "", ())) for h in hashes):
                findings.append(_not_binary(step, name))
    return tuple(findings)


def _counted(finding: Finding, how: str, count: int, total: int) -> Finding:
    return replace(
        finding, message=f"{finding.message} ({how} {count} of {counted(total, 'run')})", line=None
    )


def _disagrees(step: str, name: str, ends: tuple[float, float]) -> Finding:
    return Finding(
        code="CL424",
        severity="warning",
        message=f"rounds of step {step!r} disagree in {name} ({ends[0]:.4g} to {ends[1]:.4g}): "
        "their pooled value is judged, and outcomes are not paired",
        mend="find out why it changes from round to round",
        subject=step,
    )


def _not_binary(step: str, name: str) -> Finding:
    return Finding(
        code="CL425",
        severity="warning",
        message=f"per-example outcomes of {name} in step {step!r} are not 0 or 1 and are not used",
        mend="record 1 for a right and 0 for a wrong example",
        subject=step,
    )


def _efforts(groups: Mapping[str, StepRuns]) -> list[Run]:
    return [r for g in groups.values() for r in g.effort]
