"""Observation: what one arm used in one round, per functional unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import formulas
from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.job_runs import wholes
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import Z_95


class Observation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One arm in one round.

    Attributes:
        repeat: Number of the round; ``None`` when the runs have none.
        runs: The runs of the round, nearly always one.
        units: Functional units of work done.
        energy_j: What one unit takes.
        core_hours: What one unit takes; ``None`` when a run does not tell.
        stated_cost: What the runs themselves say that one unit costs; ``None``
            when one of them does not.
    """

    repeat: int | None
    runs: tuple[Run, ...]
    units: float
    energy_j: Estimate
    core_hours: float | None
    stated_cost: Estimate | None

    def scaled(self, factor: float, u_by_source: Mapping[str, float]) -> Observation:
        """Return the observation with all that one unit takes times a factor.

        Args:
            factor: Positive.
            u_by_source: Relative sigma of the factor by its source.
        """
        energy = self.energy_j.scale(factor, self.energy_j.unit)
        if energy.value is not None:
            sources = dict(energy.u_by_source)
            for name, u in u_by_source.items():
                sources[name] = sources.get(name, 0.0) + u * energy.value
            energy = replace(energy, u_by_source=sources)
        return replace(
            self,
            energy_j=energy,
            core_hours=None if self.core_hours is None else self.core_hours * factor,
            stated_cost=None
            if self.stated_cost is None
            else self.stated_cost.scale(factor, self.stated_cost.unit),
        )


def observe(runs: Sequence[Run], energies: Sequence[Estimate], *, per_run: bool) -> Observation:
    """Return what one unit takes in one round.

    Args:
        runs: Usable runs of one arm in one round.
        energies: ``measured_energy`` of each.
        per_run: The unit is the run itself.
    """
    # What the ranks of a job recorded is one run.
    units = float(len(wholes(runs))) if per_run else math.fsum(float(r.units or 0) for r in runs)
    energy = energies[0] if len(energies) == 1 else add(energies, "J")
    seconds = [None if r.conditions is None else r.conditions.cpu_s for r in runs]
    known = [s for s in seconds if s is not None]
    all_known = len(known) == len(seconds)
    return Observation(
        repeat=runs[0].repeat,
        runs=tuple(runs),
        units=units,
        energy_j=energy if units == 1 else energy.scale(1 / units, "J"),
        core_hours=float(formulas.core_hours(math.fsum(known))) / units if all_known else None,
        stated_cost=_stated_cost(runs, units),
    )


def measured_energy(run: Run) -> Estimate:
    """Return a run's energy in joules, with a stated interval as a named error.

    An interval that a source states without saying what it is made of is taken
    as one common error of the instrument (component, method and place): it widens
    the absolute figure and cancels where the same instrument measured both arms.
    Runs of one machine share a meter; where none is stated, runs of one kind of
    hardware, and else of one study, are taken to.
    """
    if all(r.low_j is None and r.high_j is None for r in run.energy):
        return run.total_energy
    return replace(run, energy=tuple(_with_source(r, _place(run)) for r in run.energy)).total_energy


def core_hours(run: Run) -> Estimate | None:
    """Return a run's core hours from its CPU time; ``None`` when unknown."""
    if run.conditions is None or run.conditions.cpu_s is None:
        return None
    return core_hours_of(float(formulas.core_hours(run.conditions.cpu_s)))


def core_hours_of(value: float) -> Estimate:
    """Return core hours as an estimate: the kernel's own count of CPU time is a device counter."""
    return Estimate(value=value, unit="core_hour", grade="B")


def _stated_cost(runs: Sequence[Run], units: float) -> Estimate | None:
    costs = [r.cost for r in runs if r.cost is not None]
    if len(costs) < len(runs):
        return None
    total = float(sum(c.amount for c in costs))
    return Estimate(value=total / units, unit=costs[0].currency if costs else NO_CURRENCY)


def _place(run: Run) -> str:
    """Return where the meter stands: two of them err apart."""
    return run.machine_id or run.host_id or run.hardware or run.study or ""


def _with_source(reading: Reading, place: str) -> Reading:
    if reading.low_j is None and reading.high_j is None:
        return reading
    plain = replace(reading, low_j=None, high_j=None)
    if reading.energy_j is None or reading.u_random_j or any(reading.u_by_source_j.values()):
        return plain
    u = _sigma_of(float(reading.energy_j), reading.low_j, reading.high_j)
    return replace(plain, u_by_source_j={f"stated:{reading.component}:{reading.method}:{place}": u})


def _sigma_of(value: float, low: float | None, high: float | None) -> float:
    """Return one sigma of a stated 95 % interval, in log space where it can be."""
    if value <= 0:
        return max(abs(end - value) for end in (low, high) if end is not None) / Z_95
    spans = []
    if low is not None and low > 0:
        spans.append(math.log(value / low))
    if high is not None:
        spans.append(math.log(high / value))
    # A lower end of zero says nothing in log space; it is as wide as the value.
    if not spans:
        return value / Z_95
    return value * math.fsum(spans) / len(spans) / Z_95
