"""Noise: rounds that ran on a disturbed machine are left out, and said.

What counts depends on how the energy was made. A meter (grades A to C) counts
the time in which the work waits, and on the host what others do meanwhile;
energy modelled from the work's own CPU time (grades D and E) does neither, so
there only throttling disqualifies and the rest is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from carbonlens.compare.arms import ROUNDS_NEEDED, Arm, with_observations
from carbonlens.compare.observation import Observation
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Conditions, Run

STEAL_SHARE: Final = 0.10
"""CPU time the hypervisor took of each CPU that the work kept busy, above which a run is disturbed."""

LOAD_RATIO: Final = 2.0
"""Load above this many times the CPUs that the study itself keeps busy disturbs."""

CLOCK_GAP: Final = 0.15
"""Share of the elapsed time by which a run's CPU time may fall short of its arm's median."""

THROTTLED_SHARE: Final = 0.10
"""Share of the elapsed time under a heat or fault limit above which a run is disturbed."""

_MODELLED: Final = frozenset({"D", "E"})
_BESIDE_THE_HOST: Final = frozenset({"gpu", "npu"})


def without_disturbed(arms: Sequence[Arm]) -> tuple[tuple[Arm, ...], tuple[Finding, ...]]:
    """Leave out the observations that a disturbance spoils; the rounds are incomplete then.

    An arm that would keep none keeps all, marked so that no verdict rests on it.

    Args:
        arms: The usable arms, before incomplete rounds are dropped.
    """
    if not any(r.conditions is not None for a in arms for r in a.runs):
        return tuple(arms), ()  # a table tells nothing of the machine
    busy = max((_busy_cpus(r) for a in arms for r in a.runs), default=1.0)
    kept: list[Arm] = []
    findings: list[Finding] = []
    for arm in arms:
        usual = _usual_cpu_share(arm)
        reasons = [_disturbance(o, busy, usual) for o in arm.observations]
        quiet = [o for o, why in zip(arm.observations, reasons, strict=True) if why is None]
        if len(quiet) == len(reasons):
            kept.append(arm)
            continue
        findings.append(_left_out(arm, reasons, len(quiet)))
        kept.append(with_observations(arm, quiet) if quiet else replace(arm, is_disturbed=True))
    return tuple(kept), (*findings, *_reported(arms, busy))


def _disturbance(observation: Observation, busy: float, usual: float | None) -> str | None:
    """Return what spoils an observation, ``None`` if nothing does."""
    for run in observation.runs:
        throttled = _share(run, lambda c: c.throttled_s)
        if throttled is not None and throttled > THROTTLED_SHARE:
            return f"throttled for {throttled * 100:.0f} % of the time"
        if not _is_metered(run):
            continue
        stolen = _stolen(run)
        if stolen is not None and stolen > STEAL_SHARE:
            return f"the hypervisor took {stolen * 100:.0f} % of the CPU time"
        load = _load(run) if _counts_the_host(run) else None
        if load is not None and load > LOAD_RATIO * busy:
            return f"load {load:.1f} where the work keeps {busy:.0f} CPU busy"
        own = _share(run, lambda c: c.cpu_s)
        if own is not None and usual is not None and usual - own > CLOCK_GAP * max(1.0, usual):
            return f"CPU time is {own * 100:.0f} % of wall time, usually {usual * 100:.0f} %"
    return None


def _left_out(arm: Arm, reasons: Sequence[str | None], quiet: int) -> Finding:
    told = [_round(o, why) for o, why in zip(arm.observations, reasons, strict=True) if why is not None]
    shown = "; ".join(told[:3]) + (f"; and {len(told) - 3} more" if len(told) > 3 else "")
    what = f"{len(told)} of {counted(len(reasons), 'round')} of step {arm.name!r} ran on a disturbed machine"
    if quiet == 0:
        how = "no quiet round is left, so its figures stand without a verdict"
    else:
        how = f"they are left out, and {quiet} remain"
        if quiet < ROUNDS_NEEDED:
            how += f" where a verdict needs {ROUNDS_NEEDED}"
    return Finding(
        code="CL434",
        severity="warning",
        message=f"{what} and {how} ({shown})",
        subject=arm.name,
        mend="repeat those rounds on a quieter machine",
    )


def _round(observation: Observation, why: str) -> str:
    return why if observation.repeat is None else f"round {observation.repeat}: {why}"


def _reported(arms: Sequence[Arm], busy: float) -> tuple[Finding, ...]:
    """Say what disturbed runs whose energy does not count it."""
    runs = [r for a in arms for r in a.runs if not _is_metered(r)]
    shares = map(_stolen, runs)
    stolen = [s for s in shares if s is not None and s > STEAL_SHARE]
    loads = [load for load in map(_load, runs) if load is not None and load > LOAD_RATIO * busy]
    findings: list[Finding] = []
    if stolen:
        findings.append(
            Finding(
                code="CL408",
                severity="warning",
                message=f"the hypervisor took CPU time in {len(stolen)} of {counted(len(runs), 'run')} "
                f"(up to {max(stolen) * 100:.0f} % of the time of the CPUs that the work kept busy)",
                mend="repeat on a quieter host, or judge by CPU time",
            )
        )
    if loads:
        findings.append(
            Finding(
                code="CL409",
                severity="info",
                message=f"{len(loads)} of {counted(len(runs), 'run')} shared the host with other work "
                f"(load up to {max(loads):.1f})",
                mend="repeat on a quieter host",
            )
        )
    return tuple(findings)


def _is_metered(run: Run) -> bool:
    """Return whether a part of the energy is counted over the window, not modelled from CPU time."""
    return any(x.grade not in _MODELLED for x in run.energy)


def _counts_the_host(run: Run) -> bool:
    """Return whether other work on the host is in the run's energy."""
    return any(x.grade not in _MODELLED and x.component not in _BESIDE_THE_HOST for x in run.energy)


def _share(run: Run, read: Callable[[Conditions], float | None]) -> float | None:
    """Return a time over the run's elapsed time."""
    seen = run.conditions
    if seen is None or seen.wall_s <= 0:
        return None
    part = read(seen)
    return None if part is None else part / seen.wall_s


def _stolen(run: Run) -> float | None:
    """Return the share of its time that the hypervisor took from the work; at most 1.

    Steal is told of all CPUs of the machine, so that it stands against the CPU time of the work,
    and that not less than the elapsed time: work that waits on one CPU was delayed by no more.
    """
    seen = run.conditions
    if seen is None or seen.steal_s is None or seen.wall_s <= 0:
        return None
    return seen.steal_s / max(seen.wall_s, seen.cpu_s or 0.0, seen.steal_s)


def _load(run: Run) -> float | None:
    """Return the load where CPU time tells how much of it is the run's own."""
    own = _share(run, lambda c: c.cpu_s)
    return None if own is None or run.conditions is None else run.conditions.load_1m


def _busy_cpus(run: Run) -> float:
    """Return how many CPUs a run keeps busy, at least one."""
    return max(1.0, math.ceil(_share(run, lambda c: c.cpu_s) or 0.0))


def _usual_cpu_share(arm: Arm) -> float | None:
    """Return the arm's median of CPU time over wall time; a few rounds have no usual."""
    shares = sorted(s for r in arm.runs if (s := _share(r, lambda c: c.cpu_s)) is not None)
    if len(shares) < ROUNDS_NEEDED:
        return None
    middle = len(shares) // 2
    return shares[middle] if len(shares) % 2 else (shares[middle - 1] + shares[middle]) / 2
