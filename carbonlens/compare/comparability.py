"""Comparability: may these arms stand beside each other at all, and how quiet was it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from carbonlens.compare.arms import Arm
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.study import Study
from carbonlens.errors import IncomparableError

_STEAL_SHARE: Final = 0.10
_LOAD_RATIO: Final = 2.0

_FIELDS: Final[tuple[tuple[str, Callable[[Run], str | None], str], ...]] = (
    ("unit", lambda r: r.unit, "state the same functional unit in all runs"),
    ("boundary", lambda r: r.boundary, "measure all arms at one boundary (device, it or facility)"),
    ("workload", lambda r: r.workload, "run the same workload in all arms"),
    ("hardware", lambda r: r.hardware, "run all arms on the same hardware"),
    ("host", lambda r: r.machine_id or r.host_id, "run all arms on the same hosts"),
    ("currency", lambda r: None if r.cost is None else r.cost.currency, "state all costs in one currency"),
)
_ONE_VALUE: Final = frozenset({"unit", "boundary", "currency"})
_OPTIONAL: Final = frozenset({"currency"})


def check(arms: Sequence[Arm], study: str) -> tuple[Finding, ...]:
    """Refuse arms that differ in what must be equal; say what nobody states.

    Args:
        arms: The usable arms, baseline first.
        study: Name of the study, for the message.

    Raises:
        IncomparableError: If two arms differ in unit, boundary, currency,
            workload, hardware or host.
    """
    findings: list[Finding] = []
    for field, read, mend in _FIELDS:
        values = [frozenset(v for v in map(read, a.runs) if v is not None) for a in arms]
        _refuse_differing(field, values, arms, study, mend)
        findings.extend(_unstated(field, read, values, arms, study, mend))
    return (*findings, *_components(arms))


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


def noise(arms: Sequence[Arm]) -> tuple[Finding, ...]:
    """Say which rounds ran on a disturbed host.

    Steal above 10 % of the elapsed time, or a load above twice what the run
    itself used, is reported; nothing is dropped.

    Args:
        arms: The usable arms.
    """
    runs = [r for a in arms for r in a.runs]
    stolen = [s for s in map(_steal_share, runs) if s is not None and s > _STEAL_SHARE]
    loaded = [r.conditions.load_1m for r in runs if _is_loaded(r) and r.conditions and r.conditions.load_1m]
    findings: list[Finding] = []
    if stolen:
        findings.append(
            Finding(
                code="CL408",
                severity="warning",
                message=f"the hypervisor took CPU time in {len(stolen)} of {len(runs)} runs "
                f"(up to {max(stolen) * 100:.0f} % of the elapsed time)",
                mend="repeat on a quieter host, or judge by CPU time",
            )
        )
    if loaded:
        findings.append(
            Finding(
                code="CL409",
                severity="info",
                message=f"{len(loaded)} of {len(runs)} runs shared the host with other work "
                f"(load up to {max(loaded):.1f})",
                mend="repeat on a quieter host",
            )
        )
    return tuple(findings)


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
    field: str,
    read: Callable[[Run], str | None],
    values: Sequence[frozenset[str]],
    arms: Sequence[Arm],
    study: str,
    mend: str,
) -> list[Finding]:
    if field in _OPTIONAL:
        return []
    if not any(values):
        message = f"no run states its {field}: whether the arms agree in it is not known"
        return [Finding(code="CL407", severity="info", message=message, subject=field, mend=mend)]
    silent = [a.name for a in arms if any(read(r) is None for r in a.runs)]
    if not silent:
        return []
    if field == "boundary":
        # Joules of an unknown boundary beside joules of a known one: no ratio may be made.
        raise IncomparableError(
            f"some runs do not state their boundary ({', '.join(silent)}) while others do",
            where=study,
            mend="state the boundary of all runs",
        )
    message = f"some runs do not state their {field}: {', '.join(silent)}"
    return [Finding(code="CL420", severity="warning", message=message, subject=field, mend=mend)]


def _components(arms: Sequence[Arm]) -> list[Finding]:
    """Say so when arms were measured in different parts of the machine."""
    sets = {frozenset(x.component for r in a.runs for x in r.energy) for a in arms}
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


def _steal_share(run: Run) -> float | None:
    seen = run.conditions
    if seen is None or seen.steal_s is None or seen.wall_s <= 0:
        return None
    return seen.steal_s / seen.wall_s


def _is_loaded(run: Run) -> bool:
    seen = run.conditions
    if seen is None or seen.load_1m is None or seen.cpu_s is None or seen.wall_s <= 0:
        return False
    own = max(1.0, math.ceil(seen.cpu_s / seen.wall_s))
    return seen.load_1m > _LOAD_RATIO * own
