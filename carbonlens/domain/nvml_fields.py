"""NVML fields: their ids and what a reading of them means, by architecture.

Live sensors and importers of logged values both need them. Ids and scopes are those
of nvidia-ml-py 13.615 (``pynvml.py``), stable since the fields exist. What a field
means is from NVIDIA's NVML documentation; how a board samples its power is from
Yang, Adamek and Armour (SC24, DOI 10.1109/SC41406.2024.00028).
"""

from __future__ import annotations

from typing import Final, Literal

POWER_AVERAGE: Final = 185
"""NVML_FI_DEV_POWER_AVERAGE: milliwatts, mean over ``AVERAGE_WINDOW_S``."""

POWER_INSTANT: Final = 186
"""NVML_FI_DEV_POWER_INSTANT: milliwatts now."""

SCOPE_GPU: Final = 0
"""NVML_POWER_SCOPE_GPU: the GPU's own board."""

SCOPE_MODULE: Final = 1
"""NVML_POWER_SCOPE_MODULE: the superchip, its processor and memory included (GH200)."""

GPM_GRAPHICS_UTIL: Final = 1
"""NVML_GPM_METRIC_GRAPHICS_UTIL: percent of the time that any work was active."""

AVERAGE_WINDOW_S: Final = 1.0
"""Time that averaged power is the mean of (NVML documentation, nvmlDeviceGetPowerUsage)."""

UPDATE_PERIOD_S: Final = 0.1
"""How often counter and power change: 100 ms on an H100 (measured for this project);
20 to 100 ms by model elsewhere (alumet, PETSc): the longest is assumed."""

INSTANT_DUTY: Final = 0.25
"""Share of each period an instantaneous reading looks at: 25 of 100 ms on A100 and
H100 (SC24), the least published for a board that stands alone."""

MODULE_DUTY: Final = 0.2
"""The same on a GH200: 20 of 100 ms (SC24)."""

INSTANT_LAG_S: Final = 0.08
"""Mean age of an instantaneous reading: half a period until it is read (50 ms), half
of the 25 ms it looks at, and the board's delay. Bursts of 0.1 to 1 s on an H100 came
out 60 to 67 ms of full power short when held from their readings, and 24 to 38 ms
when shifted by 50 ms: 76 to 85 ms after allowing for idle power (measured for this
project, driver 580)."""

INSTANT_LAG_SIGMA_S: Final = 0.04
"""Age of a reading within its period (0.1 / sqrt 12) and the spread between boards."""

COUNTER_LAG_S: Final = 0.05
"""Mean age of a counter: half a period. The same bursts came out 40 to 44 ms of full
power short by the counter."""

COUNTER_LAG_SIGMA_S: Final = 0.06
"""A counter's differences are not shifted: its mean age (50 ms) counts as error beside
the age within its period (0.1 / sqrt 12 = 29 ms)."""

AVERAGE_LAG_SIGMA_S: Final = 0.1
"""Of the lag of averaged power beyond its window; not measured, so one period."""

PowerMeaning = Literal["instant", "average"]

_LAST_INSTANT: Final = (8, 0)
"""Compute capability of GA100, the last whose ``PowerUsage`` is instantaneous."""


def power_usage_meaning(compute_capability: tuple[int, int] | None) -> PowerMeaning | None:
    """Return what ``nvmlDeviceGetPowerUsage`` tells on an architecture.

    "On Ampere (except GA100) or newer GPUs, the API returns power averaged over 1 sec
    interval. On GA100 and older architectures, instantaneous power is returned" (NVML
    documentation). GA100 is compute capability 8.0, the other Ampere chips 8.6 and 8.7.

    Args:
        compute_capability: Major and minor; ``None`` when the device does not say.

    Returns:
        ``None`` when it cannot be told.
    """
    if compute_capability is None:
        return None
    return "instant" if compute_capability <= _LAST_INSTANT else "average"
