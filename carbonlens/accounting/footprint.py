"""Footprint: what selected runs took together, each joule once, under one vector of factors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from carbonlens.accounting.allocation_bills import Allocation
from carbonlens.accounting.allocation_totals import totals
from carbonlens.accounting.amounts import account, facility_energy
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import S_PER_HOUR


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """What runs took.

    Attributes:
        runs: How many count: those that lie in no other of them.
        energy_j: At the boundary they were measured at; unknown where there are several.
        boundary: That boundary, or all of them with commas; ``None`` where nobody says.
        facility_kwh: At the meter of the building; a lower bound where a part is unknown.
        emissions_location_kg, emissions_market_kg: Of ``facility_kwh``.
        wall_h: Hours of the runs added up, ranks and nested runs once; ``None`` where one is unknown.
        device_h: Hours of reserved accelerators; ``None`` where none is named.
        devices: How many different accelerators.
        hardware: What they ran on, each once.
        methods: How energy was read, each once.
        start_us, end_us: Of the first and the last run; ``None`` where unknown.
        vector: Factors used.
        findings: What is unknown or a lower bound.
    """

    runs: int
    energy_j: Estimate
    boundary: str | None
    facility_kwh: Estimate
    emissions_location_kg: Estimate
    emissions_market_kg: Estimate
    wall_h: float | None
    device_h: float | None
    devices: int
    hardware: tuple[str, ...]
    methods: tuple[str, ...]
    start_us: int | None
    end_us: int | None
    vector: Vector
    findings: tuple[Finding, ...]


def footprint(
    runs: Sequence[Run], allocation: Allocation, vector: Vector, chosen: Collection[str]
) -> Footprint:
    """Return what the chosen runs took together.

    Args:
        runs: All runs that ``allocation`` was made of.
        allocation: What each is billed.
        vector: Factors and prices.
        chosen: Ids of the runs.
    """
    held = [r for r in runs if r.run_id in chosen]
    # Devices' idle that no run is billed stays out: it is the machine's, not the model's.
    sums = totals(runs, allocation, chosen)
    parts = [(p.boundary, p.billed) for p in sums.parts]
    if sums.unknown or not parts:
        parts.append((None, unknown("J")))
    kwh: list[Estimate] = []
    location: list[Estimate] = []
    market: list[Estimate] = []
    findings: list[Finding] = []
    for boundary, joules in parts:
        amounts, found = account(joules, boundary, None, vector)
        kwh.append(facility_energy(joules, boundary, vector)[0])
        location.append(amounts.emissions_location_kg)
        market.append(amounts.emissions_market_kg)
        findings += [f for f in found if f.code not in _OF_OTHER_AMOUNTS]
    outer = _outermost(held, runs)
    # A run that names no device holds those of the runs inside it.
    reserving = _outermost([r for r in held if r.device_uuids], runs)
    return Footprint(
        runs=sums.runs,
        energy_j=parts[0][1] if len(parts) == 1 else unknown("J"),
        boundary=", ".join(b or "unstated" for b in dict.fromkeys(b for b, _ in parts)) or None,
        facility_kwh=add(kwh, "kWh"),
        emissions_location_kg=add(location, "kg"),
        emissions_market_kg=add(market, "kg"),
        wall_h=_hours(outer, by_device=False),
        device_h=_hours(reserving, by_device=True),
        devices=len({d for r in held for d in r.device_uuids}),
        hardware=_each(r.hardware for r in held),
        methods=_each(reading.method for r in held for reading in r.energy),
        start_us=min((r.start_us for r in held if r.start_us is not None), default=None),
        end_us=max((r.end_us for r in held if r.end_us is not None), default=None),
        vector=vector,
        findings=tuple(dict.fromkeys(findings)),
    )


_OF_OTHER_AMOUNTS = frozenset({"CL307", "CL308", "CL309", "CL312"})
"""Codes about embodied emissions and cost, which a footprint does not state."""


def _outermost(chosen: Sequence[Run], runs: Sequence[Run]) -> list[Run]:
    """Return the runs that lie in no other of the chosen, at any depth."""
    ids = {r.run_id for r in chosen}
    parents = {r.run_id: r.parent_run_id for r in runs}
    return [r for r in chosen if not ids & set(_around(r.run_id, parents))]


def _around(run_id: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the runs that a run lies in, the nearest first."""
    seen = {run_id}
    outer = parents.get(run_id)
    while outer is not None and outer not in seen:
        yield outer
        seen.add(outer)
        outer = parents.get(outer)


def _hours(runs: Sequence[Run], *, by_device: bool) -> float | None:
    """Return hours added up: of each job once, or of each accelerator that a run reserved."""
    jobs: dict[object, float] = {}
    devices: dict[object, set[str]] = {}
    for run in runs:
        if run.duration_s is None:
            return None
        # Ranks of one attempt run side by side: the job took as long as the longest of them, and
        # a GPU that several of them name is one.
        job = run.run_id if run.job_id is None or run.rank is None else (run.job_id, run.attempt)
        jobs[job] = max(jobs.get(job, 0.0), run.duration_s)
        devices.setdefault(job, set()).update(run.device_uuids)
    if not jobs:
        return None
    return math.fsum(s * (len(devices[job]) if by_device else 1) for job, s in jobs.items()) / S_PER_HOUR


def _each(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v for v in values if v))
