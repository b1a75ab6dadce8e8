"""Power over time: one run an arm, which stands for the others."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from carbonlens.compare.grouping import StepRuns
from carbonlens.compare.material import Material
from carbonlens.domain.comparison import ArmPower, PhasePower
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.run import Run
from carbonlens.domain.trace import PowerTrace

_ALIKE: Final = 0.1
"""Part of the power a run is billed by which its curve's may differ from it: sums of short stretches."""


def powers(material: Material, runs: Sequence[Run]) -> tuple[ArmPower, ...]:
    """Return the power over time of one run an arm; arms without a run that keeps it are left out.

    Args:
        material: The arms with their runs.
        runs: All runs of the study, those that measure idle power too.
    """
    idle = [r for r in runs if r.role == "idle" and r.status == "complete" and r.duration_s]
    alone = _left_alone(idle, [r for r in runs if r.role != "idle"]) if idle else ()
    made = (_of_arm(one, alone) for one in material.groups.values())
    return tuple(p for p in made if p is not None)


def _of_arm(one: StepRuns, idle: Sequence[Run]) -> ArmPower | None:
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
        idle_w=_idle(run, idle),
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
    """Tell whether a run's curve is of the energy that it is billed, not of a device that others used too.

    Mean power is compared, each over the time that is known: what lies in a gap is in neither.
    """
    drawn, billed = _drawn_w(run), billed_w(run)
    return drawn is not None and billed is not None and math.isclose(drawn, billed, rel_tol=_ALIKE)


def _drawn_w(run: Run) -> float | None:
    told = [w for w in run.power.power_w if w is not None] if run.power is not None else []
    return math.fsum(told) / len(told) if told else None


def billed_w(run: Run) -> float | None:
    """Return the mean power of a run by its energy, of each reading over the time that it covers.

    Args:
        run: Any; ``None`` comes of one whose energy or time is not known.
    """
    if run.total_energy.value is None:
        return None
    spans = [run.duration_s if r.covered_s is None else r.covered_s for r in run.energy]
    if not all(spans):
        return None
    return math.fsum(float(r.energy_j or 0) / (s or 1.0) for r, s in zip(run.energy, spans, strict=True))


def _over(energy: Estimate, seconds: float) -> Estimate:
    return unknown("W") if energy.value is None or seconds <= 0 else energy.scale(1 / seconds, "W")


def _peak(trace: PowerTrace) -> float:
    return max((w for w in trace.high_w if w is not None), default=0.0)


def _idle(run: Run, idle: Sequence[Run]) -> Estimate | None:
    """Return what the same devices draw without work, at the same boundary; ``None`` where unmeasured.

    Neither a processor alone is idle power of a machine whose accelerator was read too, nor is the
    time of an idle process that of a machine.
    """
    held = _held(run)
    alike = [
        r
        for r in idle
        if held is not None
        and _held(r) == held
        and _machine(r) == _machine(run)
        and r.boundary == run.boundary
        and r.total_energy.value
    ]
    if not alike or run.boundary is None or _machine(run) is None:
        return None
    return _over(add((r.total_energy for r in alike), "J"), sum(r.duration_s or 0.0 for r in alike))


def _machine(run: Run) -> str | None:
    return run.machine_id or run.host_id


def _held(run: Run) -> frozenset[tuple[str, tuple[str, ...]]] | None:
    """Return the components that were read, with their devices; ``None`` where one is of a process alone."""
    if not run.energy or any(not r.devices or r.divided for r in run.energy):
        return None
    return frozenset((r.component, tuple(sorted(r.devices))) for r in run.energy)


def _left_alone(idle: Sequence[Run], working: Sequence[Run]) -> tuple[Run, ...]:
    """Return the idle runs while which no other work ran, or may have run, on their machine.

    Work that does not tell its time may have run at any, and such that does not tell its machine on any.
    """
    by_machine: dict[str | None, list[tuple[float, float]]] = {}
    for run in working:
        by_machine.setdefault(_machine(run), []).append(_window(run))
    busy = {machine: _Busy(windows) for machine, windows in by_machine.items()}
    everywhere = busy.get(None, _NEVER)
    at_rest = []
    for run in idle:
        machine = _machine(run)
        here = [busy.get(machine, _NEVER), everywhere] if machine is not None else busy.values()
        if not any(one.meets(_window(run)) for one in here):
            at_rest.append(run)
    return tuple(at_rest)


class _Busy:
    """Times at which work ran, sorted once: whether one of many windows meets any is then soon told."""

    def __init__(self, windows: Sequence[tuple[float, float]]) -> None:
        ordered = sorted(windows)
        self._starts = [start for start, _ in ordered]
        self._latest_end = list(accumulate((end for _, end in ordered), max))

    def meets(self, window: tuple[float, float]) -> bool:
        """Tell whether any of the work ran, or may have run, within a window."""
        start, end = window
        begun = bisect_left(self._starts, end)
        return begun > 0 and self._latest_end[begun - 1] > start


_NEVER: Final = _Busy(())


def _window(run: Run) -> tuple[float, float]:
    """Return when a run began and ended, in UTC microseconds; for ever where it does not say."""
    start = -math.inf if run.start_us is None else run.start_us
    return start, math.inf if run.end_us is None else run.end_us
