"""The JSON shape of a run that outside scripts rely on."""

from __future__ import annotations

from carbonlens.accounting.allocation_totals import BoundaryTotal, Totals
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.run import Run

_USUAL_COMPONENTS = ("cpu", "gpu", "ram")


def run_json(run: Run, billed: Run | None = None) -> dict[str, object]:
    """Return a run in the shape of ``runs --json``.

    Energies are estimates in joules: ``total`` and one a component, ``null``
    for a component that nothing read. ``energy_dynamic_j`` leaves out the share
    of idle power; ``null`` where a source does not tell it apart.

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
        "coverage": run.coverage,
        "exit_code": run.exit_code,
        "error": run.error,
        "parent_run_id": run.parent_run_id,
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


def _part(part: BoundaryTotal) -> dict[str, object]:
    return {
        "runs": part.runs,
        "energy_billed": part.billed.as_json(),
        "energy_unattributed": None if part.unattributed is None else part.unattributed.as_json(),
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
