"""Integrate: joules of a window from readings, the pure functions of ``carbonlens.signals``."""

from __future__ import annotations

from carbonlens.signals.integrate import (
    counter_energy,
    integrate_counter,
    integrate_power,
    power_energy,
    without_idle_tail,
)

__all__ = ["counter_energy", "integrate_counter", "integrate_power", "power_energy", "without_idle_tail"]
