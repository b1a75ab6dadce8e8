"""The JSON shape of a run that outside scripts rely on."""

from __future__ import annotations

from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.run import Run

_USUAL_COMPONENTS = ("cpu", "gpu", "ram")


def run_json(run: Run) -> dict[str, object]:
    """Return a run in the shape of ``runs --json``.

    Energies are estimates in joules: ``total`` and one a component, ``null``
    for a component that nothing read. ``energy_dynamic_j`` leaves out the share
    of idle power; ``null`` where a source does not tell it apart.
    """
    return {
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
