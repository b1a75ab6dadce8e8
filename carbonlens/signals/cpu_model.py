"""Energy of CPU time on a linear idle-to-full curve of a whole server.

With ``T`` hardware threads, a server draws ``P = P_idle + load (P_full - P_idle)``.
Work that held ``cpu_s`` seconds of CPU time is charged its dynamic part
``cpu_s (P_full - P_idle) / T`` and, of the idle power, the share its CPU time
reserved, ``cpu_s P_idle / T``: together ``cpu_s P_full / T``. Idle power of
threads that it did not use belongs to others.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.grades import MODEL_FACTOR_95
from carbonlens.domain.units import Z_95

MIN_FACTOR_95: Final = MODEL_FACTOR_95
"""Grade D is never stated better than ``x/ 1.8`` at 95 %, whatever a table's spread says."""

MICROJOULE: Final = Decimal("0.000001")
"""Resolution of stored energy."""


class CpuCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Idle and full-load power of a CPU family, per hardware thread, at the plug.

    Attributes:
        family: Name of the family, part of the error source's name.
        idle_w_per_thread: Watts of the idle server over its threads.
        full_w_per_thread: Watts of the fully loaded server over its threads.
        spread: One sigma of the logarithm of ``full_w_per_thread`` for a
            machine not in the table.
        n: Published results the figures rest on.
        source: Where the figures come from.
        known: False for the class default of an unknown family.
        measured: True for a curve through the machine's own idle and full power,
            whose ``spread`` is all there is; the floor below is for tables.
        component: What draws the power; another unit than ``cpu`` has "busy
            seconds" instead of CPU seconds and counts as one thread.
    """

    family: str
    idle_w_per_thread: float
    full_w_per_thread: float
    spread: float
    n: int
    source: str
    known: bool = True
    component: str = "cpu"
    measured: bool = False

    @property
    def source_id(self) -> str:
        """Name of the common error of all figures made with this curve."""
        return f"{self.component}_model:{self.family}"

    @property
    def relative_sigma(self) -> float:
        """One sigma of the energy, relative; unmeasured, its 95 % factor is at least ``MIN_FACTOR_95``."""
        return self.spread if self.measured else max(self.spread, math.log(MIN_FACTOR_95) / Z_95)


class CpuEnergy(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of some CPU time, split by what would have been drawn anyway.

    Attributes:
        energy_j: The sum, exact to a microjoule.
        dynamic_j: The part above idle.
        idle_share_j: The part of idle power the CPU time reserved.
        u_j: One sigma of the sum, an error common to all figures of the curve.
    """

    energy_j: Decimal
    dynamic_j: Decimal
    idle_share_j: Decimal
    u_j: float


def cpu_energy(cpu_s: float, curve: CpuCurve) -> CpuEnergy:
    """Return the energy of ``cpu_s`` seconds of CPU time.

    Args:
        cpu_s: CPU seconds, user and system.
        curve: Power per hardware thread of the machine.

    Raises:
        ValueError: If the CPU time is negative or not a number.
    """
    if not cpu_s >= 0 or math.isinf(cpu_s):
        raise ValueError(f"CPU time must be a number of seconds from 0, not {cpu_s}")
    total = _joules(cpu_s, curve.full_w_per_thread)
    idle = _joules(cpu_s, curve.idle_w_per_thread)
    return CpuEnergy(
        energy_j=total,
        dynamic_j=total - idle,
        idle_share_j=idle,
        u_j=float(total) * curve.relative_sigma,
    )


def _joules(cpu_s: float, watts: float) -> Decimal:
    # str() keeps the digits that are meant: Decimal(1.95) is 1.9499999...
    return (Decimal(str(cpu_s)) * Decimal(str(watts))).quantize(MICROJOULE)
