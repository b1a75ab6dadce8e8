"""Runs that read shared devices: plain functions for several tests."""

from __future__ import annotations

from decimal import Decimal

from carbonlens.domain.run import Conditions, Reading, Run
from carbonlens.domain.units import US_PER_S

START_US = 1_790_000_000 * US_PER_S


def gpu(joules: object, device: str = "GPU-a", *, share: float | None = None, **fields: object) -> Reading:
    """Return what a run read of one GPU."""
    given: dict[str, object] = {
        "component": "gpu",
        "energy_j": None if joules is None else Decimal(str(joules)),
        "boundary": "device",
        "grade": "B",
        "method": "counter",
        "devices": (device,),
        "own_share": share,
        "u_by_source_j": {f"sensor:{device}": 0.02 * float(joules)} if joules is not None else {},
    }
    return Reading(**{**given, **fields})  # type: ignore[arg-type]  # fields are checked by the record itself


def run(
    run_id: str,
    window_s: tuple[float, float],
    *readings: Reading,
    cpu_s: float | None = None,
    **fields: object,
) -> Run:
    """Return a run of host ``h`` over a window in seconds after ``START_US``."""
    start, end = (START_US + round(t * US_PER_S) for t in window_s)
    length = window_s[1] - window_s[0]
    given: dict[str, object] = {
        "run_id": run_id,
        "host_id": "h",
        "start_us": start,
        "end_us": end,
        "duration_s": length,
        "energy": readings,
        "conditions": None if cpu_s is None else Conditions(wall_s=length, cpu_s=cpu_s),
    }
    return Run(**{**given, **fields})  # type: ignore[arg-type]  # fields are checked by the record itself
