"""Power over time: one run an arm, which stands for the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from carbonlens.compare.grouping import StepRuns
from carbonlens.compare.material import Material
from carbonlens.domain.comparison import ArmPower, PhasePower
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.run import Run
from carbonlens.domain.trace import PowerTrace

_ALIKE: Final = 0.1
"""Part of its energy by which the area under a run's curve may differ from it: sums of short stretches."""


def powers(material: Material, runs: Sequence[Run]) -> tuple[ArmPower, ...]:
    """Return the power over time of one run an arm; arms without a run that keeps it are left out.

    Args:
        material: The arms with their runs.
        runs: All runs of the study, those that measure idle power too.
    """
    idle = [r for r in runs if r.role == "idle" and r.status == "complete" and r.duration_s]
    working = [r for r in runs if r.role != "idle"]
    made = (_of_arm(one, idle, working) for one in material.groups.values())
    return tuple(p for p in made if p is not None)


def _of_arm(one: StepRuns, idle: Sequence[Run], working: Sequence[Run]) -> ArmPower | None:
    kept = [r for r in one.all if r.status == "complete" and r.duration_s and _is_its_own(r)]
    if not kept:
        return None
    alike = _most_telling([r for r in kept if r.run_id not in one.spoilt] or kept)
    # The lower of two middle ones: a run that was measured, and no mean of two.
    run = sorted(alike, key=lambda r: (_energy(r), r.run_id))[(len(alike) - 1) // 2]
    trace, duration_s = run.power, run.duration_s
    if trace is None or not duration_s:
        return None
    return ArmPower(
        step=one.step,
        run_id=run.run_id,
        role=run.role,
        kept=len(kept),
        alike=len(alike),
        boundary=run.boundary,
        duration_s=duration_s,
        trace=trace,
        power_w=_over(run.total_energy, duration_s),
        peak_w=_peak(trace),
        phases=tuple(
            PhasePower(name=p.name, duration_s=p.duration_s, power_w=_over(p.energy, p.duration_s))
            for p in {p.name: p for p in reversed(run.phases)}.values()
        )[::-1],
        idle_w=_idle(run, idle, working),
    )


def _most_telling(runs: Sequence[Run]) -> Sequence[Run]:
    """Return the runs that tell phases, where any does; of these the measured rounds, where any is one."""
    phased = [r for r in runs if r.phases] or runs
    return [r for r in phased if r.role == "variant"] or phased


def _energy(run: Run) -> float:
    """Return what runs are ordered by: energy per unit of work, else per second."""
    joules = run.total_energy.value or 0.0
    return joules / (float(run.units) if run.units else run.duration_s or 1.0)


def _is_its_own(run: Run) -> bool:
    """Tell whether a run's curve is of the energy that it is billed, not of a device that others used too."""
    trace, seconds = run.power, run.duration_s
    if trace is None or not seconds:
        return False
    told = [w for w in trace.power_w if w is not None]
    energy_j = run.total_energy.value
    if len(told) < len(trace.power_w) or energy_j is None:
        return True  # of one with gaps nobody can tell
    return math.isclose(math.fsum(told) * trace.bin_s, energy_j, rel_tol=_ALIKE)


def _over(energy: Estimate, seconds: float) -> Estimate:
    return unknown("W") if energy.value is None or seconds <= 0 else energy.scale(1 / seconds, "W")


def _peak(trace: PowerTrace) -> float:
    return max((w for w in trace.high_w if w is not None), default=0.0)


def _idle(run: Run, idle: Sequence[Run], runs: Sequence[Run]) -> Estimate | None:
    """Return what the same machine draws without work, at the same boundary; ``None`` where unmeasured."""
    alike = [
        r
        for r in idle
        if (r.machine_id or r.host_id) == (run.machine_id or run.host_id)
        and r.boundary == run.boundary
        and r.total_energy.value
        and not any(_overlap(r, other) for other in runs)
    ]
    if not alike or run.boundary is None or (run.machine_id or run.host_id) is None:
        return None
    return _over(add((r.total_energy for r in alike), "J"), sum(r.duration_s or 0.0 for r in alike))


def _overlap(idle: Run, other: Run) -> bool:
    """Tell whether other work ran while a machine was taken to be idle."""
    return (
        other.start_us is not None
        and other.end_us is not None
        and idle.start_us is not None
        and idle.end_us is not None
        and other.start_us < idle.end_us
        and idle.start_us < other.end_us
    )
