"""The JSON shape of a run that outside scripts rely on."""

from __future__ import annotations

from carbonlens.accounting.allocation_totals import BoundaryTotal, Totals
from carbonlens.accounting.job_runs import JobRun
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.phase import Phase
from carbonlens.domain.run import Run
from carbonlens.reporting.allowance import allowance_json
from carbonlens.reporting.run_tokens import tokens_json

_USUAL_COMPONENTS = ("cpu", "gpu", "ram")


def run_json(run: Run, billed: Run | None = None) -> dict[str, object]:
    """Return a run in the shape of ``runs --json``.

    Energies are estimates in joules: ``total`` and one a component, ``null``
    for a component that nothing read. ``energy_dynamic_j`` leaves out the share
    of idle power; ``null`` where a source does not tell it apart. ``execution`` says what
    each execution provider of a runtime did, with ``null`` for what no profile tells.
    ``phases`` are parts of the run, which may hold more than they sum to. ``cost`` is what the
    source itself states, ``null`` where it states none. ``allowance`` is what the work could use
    of its machine as it began, ``null`` where nobody says.

    Args:
        run: The run as it was measured.
        billed: The same run with its part of shared devices; its total becomes
            ``energy_billed``, which is left out without it.
    """
    shape: dict[str, object] = {
        "run_id": run.run_id,
        "study": run.study,
        "step": run.step,
        "status": run.status,
        "role": run.role,
        "job_id": run.job_id,
        "attempt": run.attempt,
        "rank": run.rank,
        "start_us": run.start_us,
        "duration_s": run.duration_s,
        "energy": {
            "total": run.total_energy.as_json(),
            **dict.fromkeys(_USUAL_COMPONENTS),
            **_components(run),
        },
        "energy_dynamic_j": _dynamic_j(run),
        "boundary": run.boundary,
        "units": None if run.units is None else float(run.units),
        "unit": run.unit,
        "cost": run.cost,
        "coverage": run.coverage,
        "covered_s": run.covered_s,
        "exit_code": run.exit_code,
        "error": run.error,
        "parent_run_id": run.parent_run_id,
        "allowance": None if run.allowance is None else allowance_json(run.allowance),
        "execution": list(run.execution),
        "phases": [_phase(p) for p in run.phases],
        "tokens": tokens_json(run),
        "artefacts": list(run.artefacts),
        "tags": dict(run.tags),
        "findings": list(run.findings),
    }
    if billed is not None:
        shape["energy_billed"] = billed.total_energy.as_json()
    return shape


def totals_json(totals: Totals) -> dict[str, object]:
    """Return the ``totals`` of ``runs --json``.

    ``energy_billed`` and ``energy_unattributed`` are unknown where runs are of
    several boundaries, which are not summed; ``by_boundary`` has each then.

    Args:
        totals: What the listed runs add up to.
    """
    return {
        "runs": totals.runs,
        "runs_nested": totals.nested,
        "runs_unknown": list(totals.unknown),
        "energy_billed": totals.billed.as_json(),
        "energy_unattributed": None if totals.unattributed is None else totals.unattributed.as_json(),
        "by_boundary": {part.boundary or "unstated": _part(part) for part in totals.parts},
    }


def job_json(job: JobRun, billed: Estimate | None) -> dict[str, object]:
    """Return one of the ``jobs`` of ``runs --json``: what several ranks recorded together.

    Args:
        job: The ranks' runs.
        billed: Joules they are billed together; ``None`` where nobody added up.
    """
    return {
        "job_id": job.first.job_id,
        "attempt": job.first.attempt,
        "ranks": [r.rank for r in job.parts],
        "run_ids": [r.run_id for r in job.parts],
        "hosts": job.hosts,
        "study": job.first.study,
        "step": job.first.step,
        "status": job.status,
        "role": job.first.role,
        "start_us": job.start_us,
        "duration_s": job.duration_s,
        "energy_billed": None if billed is None else billed.as_json(),
        "units": None if job.units is None else float(job.units),
        "unit": job.first.unit,
    }


def _part(part: BoundaryTotal) -> dict[str, object]:
    return {
        "runs": part.runs,
        "energy_billed": part.billed.as_json(),
        "energy_unattributed": None if part.unattributed is None else part.unattributed.as_json(),
    }


def _phase(phase: Phase) -> dict[str, object]:
    return {
        "name": phase.name,
        "entries": phase.entries,
        "duration_s": phase.duration_s,
        "energy": phase.energy.as_json(),
        "units": None if phase.units is None else float(phase.units),
    }


def _dynamic_j(run: Run) -> float | None:
    parts = [r.dynamic_j for r in run.energy]
    return float(sum(p for p in parts if p is not None)) if parts and None not in parts else None


def _components(run: Run) -> dict[str, object]:
    """Return one estimate a component; readings of one component add up."""
    grouped: dict[str, list[Estimate]] = {}
    for reading in run.energy:
        if reading.component != "total":
            grouped.setdefault(reading.component, []).append(reading.estimate)
    return {
        name: add(parts, "J").as_json() if len(parts) > 1 else parts[0].as_json()
        for name, parts in grouped.items()
    }
