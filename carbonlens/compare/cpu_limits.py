"""CPU limits: arms that could use differing parts of one machine.

Affinity, a cpuset or a quota set how many CPUs the work may use. Fewer of them change how long
it takes, and with that the idle power that it is billed: the machine was another one in part.
It may also be the step itself, so that it is said and spoils nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from carbonlens.compare.arms import Arm
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run

_MEND = "measure all variants under one limit (affinity, quota), unless the limit is the step"


def differing_limits(arms: Sequence[Arm]) -> tuple[Finding, ...]:
    """Say where the runs of one machine could use differing numbers of its CPUs.

    Nothing is said where no run states a limit: records of older versions and of other
    tools tell none.

    Args:
        arms: The usable arms, baseline first.
    """
    runs = [r for a in arms for r in a.runs]
    by_machine: dict[str | None, set[float]] = {}
    for run in runs:
        cpus = _cpus(run)
        if cpus is not None:
            by_machine.setdefault(run.machine_id or run.host_id, set()).add(cpus)
    if any(len(told) > 1 for told in by_machine.values()):
        named = "; ".join(f"{a.name} {_told(a.runs)}" for a in arms)
        return (_finding(f"the work could use differing numbers of CPUs of one machine: {named}"),)
    silent = [a.name for a in arms if any(_cpus(r) is None for r in a.runs)]
    if silent and any(r.allowance is not None and r.allowance.cpu_limit is not None for r in runs):
        named = ", ".join(silent)
        return (_finding(f"some runs had a CPU limit, and runs of {named} do not state theirs"),)
    return ()


def _cpus(run: Run) -> float | None:
    return None if run.allowance is None else run.allowance.cpus


def _told(runs: Iterable[Run]) -> str:
    """Return what the runs of an arm could use: ``2 of 8``, ``unknown``."""
    return ", ".join(sorted({_of(r) for r in runs}))


def _of(run: Run) -> str:
    cpus = _cpus(run)
    if cpus is None or run.allowance is None:
        return "unknown"
    whole = run.allowance.machine_cpus
    return f"{cpus:.4g}" if whole is None else f"{cpus:.4g} of {whole}"


def _finding(message: str) -> Finding:
    return Finding(code="CL452", severity="warning", message=message, subject="allowance.cpus", mend=_MEND)
