"""Software boundary of a score: which recorded runs it holds, at which stage, and how much work they did.

Runs that count another unit are another functional unit's: their energy would be charged to work
that they did not do, so they are left out, and said so. Who trains a model counts all of it,
whatever a run counts. A run's stage is that of its role, or of its tag ``stage``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.accounting.formulas import energy_kwh
from carbonlens.accounting.propagation import exactly
from carbonlens.accounting.sci import FunctionalUnit
from carbonlens.accounting.sci_ai import STAGES, UNITS, Role
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.finding import Finding

ROLE_STAGES: Final[Mapping[str, str]] = {
    "serving": "operation",
    "variant": "operation",
    "idle": "operation",
    "training": "development",
    "effort": "development",
    "evaluation": "development",
}
"""Stage of the life cycle in which a run of a role stands, where no tag says another."""

_WORKING: Final = frozenset({"variant", "serving", "other"})
"""Roles that do the work of a functional unit, so that runs of them must say how much."""

_USUAL: Final = (
    *("request", "query", "prompt", "call", "user", "session", "message", "conversation"),
    *("sample", "example", "document", "sentence", "word", "frame", "video", "clip", "picture", "question"),
    *("step", "epoch", "transaction", "prediction", "classification", "answer"),
    *("second of video", "minute of audio", "minute of video", "hour of audio", "hour of video", "item"),
)
"""Further units whose plural follows the rule."""

_NAMED: Final = 3


class RunGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Root runs that are alike, as a ledger counts them.

    Attributes:
        stage: Of the life cycle, as a tag states it.
        runs: How many; ``without_units`` of them state no number of units, ``untimed`` neither an
            end nor a duration.
        units: Work done in the period; ``None`` where no run states it.
        energy_j: Known joules; ``None`` where nothing is known.
    """

    role: str
    stage: str | None = None
    unit: str | None = None
    step: str | None = None
    study: str | None = None
    runs: int
    without_units: int = 0
    untimed: int = 0
    units: Decimal | None = None
    energy_j: Decimal | None = None


class SoftwareBoundary(msgspec.Struct, frozen=True, kw_only=True):
    """What a score holds.

    Attributes:
        parts: Groups by name of the part: a role, or a stage in SCI for AI.
        count: Functional units (R); unknown where a run that works does not say how much.
        how: Where the count comes from, in words.
        is_stated: Whether somebody stated the count, instead of the runs.
        missing: What keeps the count from dividing: it is unknown or 0; empty where it does.
    """

    parts: Mapping[str, tuple[RunGroup, ...]]
    count: Estimate
    how: str
    is_stated: bool
    missing: str = ""
    findings: tuple[Finding, ...] = ()


def unit_of(text: str, per: float = 1.0, rationale: str = "") -> FunctionalUnit:
    """Return the functional unit that a text names: ``token`` and ``tokens`` alike.

    Only words whose other number is known are turned. Any other is kept as the user wrote it: by
    rule ``movies`` would be ``movy``, and ``axes`` nobody can tell.

    Args:
        text: One or several of it.
        per: How many of it the score is per.
        rationale: Why this unit.
    """
    names = (*(name for held in UNITS.values() for name in held), *_USUAL)
    known = {_plural(name): name for name in names}
    name = known.get(text, text)
    plural = _plural(name) if name in names else text
    return FunctionalUnit(name=name, plural=plural, per=per, rationale=rationale)


def software_boundary(
    groups: Sequence[RunGroup], unit: FunctionalUnit, role: Role | None = None, units: float | None = None
) -> SoftwareBoundary:
    """Return what a score holds of the runs there are.

    Args:
        groups: All of the study or the period.
        unit: What the score is per.
        role: Whose score in SCI for AI; ``None`` for SCI.
        units: The count where somebody states it, for what runs do not count (FLOP, parameters).
    """
    parts: dict[str, list[RunGroup]] = {}
    others: list[RunGroup] = []
    shared: list[RunGroup] = []
    elsewhere: list[RunGroup] = []
    own = [g for g in groups if role is None or _stage(g) in STAGES[role]]
    for group in groups:
        stage = _stage(group)
        if role is not None and stage not in STAGES[role]:
            elsewhere.append(group)
        elif role != "provider" and not _may_count(group, unit, own):
            others.append(group)
        else:
            if role != "provider" and group.unit is None and _has_other(group, unit, own):
                shared.append(group)
            parts.setdefault(stage or "" if role is not None else group.role, []).append(group)
    held = [g for part in parts.values() for g in part]
    count, how, missing = _count(held, unit, role, units)
    findings = [_other_unit(others, unit)] if others else []
    findings += [_no_unit(shared, unit)] if shared else []
    findings += [_other_stage(elsewhere, role)] if elsewhere and role is not None else []
    steps = sorted({g.step for g in held if g.step is not None})
    findings += [_steps(steps)] if len(steps) > 1 else []
    return SoftwareBoundary(
        parts={name: tuple(part) for name, part in sorted(parts.items())},
        count=count,
        how=how,
        is_stated=units is not None,
        missing=missing,
        findings=tuple(findings),
    )


def _count(
    groups: Sequence[RunGroup], unit: FunctionalUnit, role: Role | None, units: float | None
) -> tuple[Estimate, str, str]:
    """Return R, where it comes from, and what keeps it unknown."""
    if units is not None:
        return exactly(units), "as stated", ""
    working = frozenset({"training"}) if role == "provider" else _WORKING
    counting = [g for g in groups if _is_of(g, unit)]
    silent = sum(
        g.without_units if _is_of(g, unit) else g.runs for g in groups if _is_of(g, unit) or g.role in working
    )
    if silent:
        told = counted(silent, "run does", "runs do")
        return unknown("1"), "", f"{told} not say how many {unit.plural}"
    if not counting:
        return unknown("1"), "", f"no run counts {unit.plural}"
    total = sum((g.units for g in counting if g.units is not None), Decimal(0))
    runs = sum(g.runs for g in counting)
    if not total:
        told = counted(runs, "run counts", "runs count")
        return exactly(0.0), f"counted by {counted(runs, 'run')}", f"R is 0: {told} 0 {unit.plural}"
    return exactly(float(total)), f"counted by {counted(runs, 'run')}", ""


def _may_count(group: RunGroup, unit: FunctionalUnit, groups: Sequence[RunGroup]) -> bool:
    """Tell whether a group may belong to a unit: what counts none is of the units of its own study."""
    if group.unit is not None:
        return _is_of(group, unit)
    of_study = _counting_beside(group, groups)
    if not of_study or not any(_is_of(g, unit) for g in groups):
        return True
    return any(_is_of(g, unit) for g in of_study)


def _stage(group: RunGroup) -> str | None:
    return group.stage or ROLE_STAGES.get(group.role)


def _has_other(group: RunGroup, unit: FunctionalUnit, groups: Sequence[RunGroup]) -> bool:
    """Tell whether runs that count no unit may as well belong to another unit than the one asked for."""
    beside = _counting_beside(group, groups) or [g for g in groups if g.unit is not None]
    return any(not _is_of(g, unit) for g in beside)


def _counting_beside(group: RunGroup, groups: Sequence[RunGroup]) -> list[RunGroup]:
    """Return the groups of the same study that count a unit."""
    if group.study is None:
        return []
    return [g for g in groups if g.study == group.study and g.unit is not None]


def _is_of(group: RunGroup, unit: FunctionalUnit) -> bool:
    return group.unit in (unit.name, unit.plural)


def _plural(name: str) -> str:
    """Return several of a unit that is known: its words follow the rule."""
    if name == "FLOP":
        return name
    first, *rest = name.split(" of ")
    if first.endswith("y") and first[-2:-1] not in "aeiou":
        return " of ".join([f"{first[:-1]}ies", *rest])
    return " of ".join([first if first.endswith("s") else f"{first}s", *rest])


def _energy(groups: Iterable[RunGroup]) -> str:
    held = [g.energy_j for g in groups if g.energy_j is not None]
    return f"{float(energy_kwh(sum(held, Decimal(0)))):.4g} kWh" if held else "unknown energy"


def _names(names: Iterable[str]) -> str:
    held = sorted(set(names))
    more = f" and {len(held) - _NAMED} more" if len(held) > _NAMED else ""
    return ", ".join(held[:_NAMED]) + more


def _other_unit(groups: Sequence[RunGroup], unit: FunctionalUnit) -> Finding:
    runs = counted(sum(g.runs for g in groups), "run belongs", "runs belong")
    units = _names(g.unit or f"those of study {g.study}" for g in groups)
    return Finding(
        code="CL329",
        severity="warning",
        message=f"{runs} to another unit ({units}) than {unit.plural}: "
        f"{_energy(groups)} are not in the score",
        mend="ask for a score per that unit too, or correct the unit with carbonlens runs supersede",
    )


def _no_unit(groups: Sequence[RunGroup], unit: FunctionalUnit) -> Finding:
    runs = counted(sum(g.runs for g in groups), "run counts", "runs count")
    return Finding(
        code="CL329",
        severity="warning",
        message=f"{runs} no unit (role {_names(g.role for g in groups)}), beside runs of other units: all "
        f"their {_energy(groups)} are in the score per {unit.name}",
        mend="give runs of a service a study of their own, or ask for one study with --study",
    )


def _other_stage(groups: Sequence[RunGroup], role: Role) -> Finding:
    runs = counted(sum(g.runs for g in groups), "run is", "runs are")
    return Finding(
        code="CL329",
        severity="info",
        message=f"{runs} of no stage of the {role}'s score (role {_names(g.role for g in groups)}): "
        f"{_energy(groups)} are not in it",
        mend=f"tag the runs that belong there: stage=NAME, one of {', '.join(STAGES[role])}",
    )


def _steps(steps: Sequence[str]) -> Finding:
    return Finding(
        code="CL329",
        severity="info",
        message=f"one score over {counted(len(steps), 'step')} together: {_names(steps)}",
        mend="give --step for the score of one of them",
    )
