"""Comparability: may these arms stand beside each other at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from carbonlens.compare.arms import Arm
from carbonlens.compare.cpu_limits import differing_limits
from carbonlens.compare.mixes import other_mixes
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.study import Study
from carbonlens.errors import IncomparableError

_Reader = Callable[[Run], str | None]


def _stated(values: Iterable[str | None]) -> frozenset[str]:
    return frozenset(v for v in values if v is not None)


def _tag(name: str) -> _Reader:
    """Return a reader of a tag that holds a number: 1 and 1.0 are one."""

    def read(run: Run) -> str | None:
        text = run.tags.get(name)
        try:
            number = None if text is None else float(text)
        except ValueError:
            number = None
        return text if number is None or not math.isfinite(number) else f"{number:.12g}"

    return read


def _idle(run: Run) -> str | None:
    """Return the idle convention of all readings; a meter of this package reserves, and need not say so."""
    stated = {reading.idle for reading in run.energy}
    if "dynamic" not in stated:
        return "reserved" if "reserved" in stated else None
    return "dynamic" if stated == {"dynamic"} else "mixed"


_FIELDS: Final[tuple[tuple[str, _Reader, str], ...]] = (
    ("unit", lambda r: r.unit, "state the same functional unit in all runs"),
    ("boundary", lambda r: r.boundary, "measure all arms at one boundary (device, it or facility)"),
    ("workload", lambda r: r.workload, "run the same workload in all arms"),
    ("hardware", lambda r: r.hardware, "run all arms on the same hardware"),
    ("host", lambda r: r.machine_id or r.host_id, "run all arms on the same hosts"),
    ("currency", lambda r: None if r.cost is None else r.cost.currency, "state all costs in one currency"),
)
_ONE_VALUE: Final = frozenset({"unit", "boundary", "currency"})
_OPTIONAL: Final = frozenset({"currency"})

ROUTINE: Final = ("batch", "sequence_length", "volume")
"""Tags of runs that must be equal, or be adjusted as the study declares."""


def check(arms: Sequence[Arm], study: Study, failed: Collection[str] = ()) -> tuple[Finding, ...]:
    """Refuse arms that differ in what must be equal; say what nobody states.

    Args:
        arms: The usable arms, baseline first.
        study: Declares which routine variables are adjusted.
        failed: Names of steps that failed: of them the rounds that are left need not be alike.

    Raises:
        IncomparableError: If two arms differ in unit, boundary, currency,
            workload, hardware, host or idle convention, or in a routine variable
            for which no adjustment is declared; or if one ran more of its rounds, or another
            round, on one of several workloads, hardwares or hosts.
    """
    findings: list[Finding] = []
    runs = [a.runs for a in arms]
    judged = [a for a in arms if a.name not in failed]
    for field, read, mend in _FIELDS:
        found = [frozenset(map(read, some)) for some in runs]
        every = frozenset[str | None]().union(*found)
        if len(every) == 1 and None not in every:
            continue  # the usual case: all of them state one value
        values = [_stated(v) for v in found]
        _refuse_differing(field, values, arms, study.name, mend)
        silent = [a.name for a, v in zip(arms, found, strict=True) if None in v]
        findings.extend(_unstated(field, values, silent, study.name, mend))
        if field not in _ONE_VALUE:
            findings += other_mixes(field, read, judged, study.name, mend, margin=study.margin)
    findings.extend(_routine(arms, judged, study))
    findings += (*_components(runs), *differing_limits(judged))
    return (*findings, *_idle_convention(arms, runs, study.name))


def refuse_other_unit(arms: Sequence[Arm], study: Study) -> None:
    """Refuse runs that count in another unit than the study says.

    Raises:
        IncomparableError: If a run states a unit other than the study's.
    """
    for arm in arms:
        for run in arm.runs:
            if run.unit is not None and run.unit != study.unit:
                raise IncomparableError(
                    f"the study counts in {study.unit!r}, run {run.run_id} of {arm.name!r} in {run.unit!r}",
                    where=study.name,
                    mend="state one functional unit in the study and the runs",
                )


def _refuse_differing(
    field: str, values: Sequence[frozenset[str]], arms: Sequence[Arm], study: str, mend: str
) -> None:
    if field in _ONE_VALUE:
        every = sorted(frozenset().union(*values))
        if len(every) > 1:
            raise IncomparableError(f"the runs differ in {field}: {', '.join(every)}", where=study, mend=mend)
        return
    stated = [(a.name, v) for a, v in zip(arms, values, strict=True) if v]
    for name, value in stated[1:]:
        first, reference = stated[0]
        if value != reference:
            raise IncomparableError(
                f"steps {first!r} and {name!r} differ in {field}: "
                f"{', '.join(sorted(reference))} and {', '.join(sorted(value))}",
                where=study,
                mend=mend,
            )


def _unstated(
    field: str, values: Sequence[frozenset[str]], silent: Sequence[str], study: str, mend: str
) -> list[Finding]:
    if field in _OPTIONAL or not silent:
        return []
    if not any(values):
        message = f"no run states its {field}: whether the arms agree in it is not known"
        return [Finding(code="CL407", severity="info", message=message, subject=field, mend=mend)]
    if field == "boundary":
        # Joules of an unknown boundary beside joules of a known one: no ratio may be made.
        raise IncomparableError(
            f"some runs do not state their boundary ({', '.join(silent)}) while others do",
            where=study,
            mend="state the boundary of all runs",
        )
    message = f"some runs do not state their {field}: {', '.join(silent)}"
    return [Finding(code="CL420", severity="warning", message=message, subject=field, mend=mend)]


def _routine(arms: Sequence[Arm], judged: Sequence[Arm], study: Study) -> list[Finding]:
    """Refuse arms of other batch, sequence length or volume unless the study says how to adjust.

    Whether an arm that does not state one agrees in it is not known, which is said.
    """
    if not any(run.tags for arm in arms for run in arm.runs):
        return []
    declared = {a.tag for a in study.adjustments}
    findings: list[Finding] = []
    for tag in ROUTINE:
        if tag in declared:
            continue
        read = _tag(tag)
        found = [frozenset(map(read, arm.runs)) for arm in arms]
        values = [_stated(v) for v in found]
        mend = (
            f"measure all arms at one {tag}, or declare it in the study file: [[adjustment]] with "
            f'tag = "{tag}" and an exponent, 0 where it is part of the step'
        )
        _refuse_differing(tag, values, arms, study.name, mend)
        findings += other_mixes(tag, read, judged, study.name, mend, margin=study.margin)
        silent = [a.name for a, v in zip(arms, found, strict=True) if None in v]
        if any(values):
            findings += _unstated(tag, values, silent, study.name, f"state the tag {tag} everywhere")
    return findings


def _idle_convention(arms: Sequence[Arm], runs: Sequence[tuple[Run, ...]], study: str) -> tuple[Finding, ...]:
    """Refuse energy with and without its idle share side by side (DESIGN, law 10)."""
    found = [frozenset(map(_idle, some)) for some in runs]
    every = frozenset[str | None]().union(*found)
    if "dynamic" not in every and "mixed" not in every:
        return ()
    if every == {"dynamic"}:
        message = "the energy of all arms leaves out idle power: savings of time are not in it"
        mend = "measure the device's whole energy over the window"
        return (Finding(code="CL436", severity="warning", message=message, mend=mend),)
    names = [a.name for a, v in zip(arms, found, strict=True) if v & {"dynamic", "mixed"}]
    raise IncomparableError(
        f"the energy of {', '.join(names)} leaves out idle power and that of others does not",
        where=study,
        mend="state one idle convention for all runs: reserved (idle power included) or dynamic",
    )


def _components(runs: Sequence[tuple[Run, ...]]) -> list[Finding]:
    """Say so when arms were measured in different parts of the machine."""
    sets = {frozenset(x.component for r in some for x in r.energy) for some in runs}
    if len(sets) < 2:
        return []
    named = "; ".join(" + ".join(sorted(s)) for s in sorted(sets, key=sorted))
    return [
        Finding(
            code="CL410",
            severity="warning",
            message=f"the arms were measured in different components: {named}",
            mend="measure the same components in all arms",
        )
    ]
