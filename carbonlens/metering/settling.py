"""Settling: how long a load must have lasted until a sensor's readings tell of it alone.

A reading is the mean over some time before it, was true a while ago, and is as old as the
sensor's last update on top. A window that begins with its work therefore begins with
readings of what was before: averaged over 1 s, a window of 1 s after idleness reads an
eighth of the step too little. Work that is repeated can have begun before its window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from carbonlens.metering.sensors import SensorInfo

LONGEST_S: Final = 3.0
"""Nobody waits longer for a slow meter; what its lag leaves stands in the interval."""

LONGEST_WINDOW_S: Final = 10.0
"""No window is made longer for a slow meter: one that reads once a minute would make a bench of
hours, which the user has not asked for. What that leaves open stands in the interval, and CL127 tells."""

_LEAST_PERIODS: Final = 2
"""A window of as many has a whole update period in it wherever it begins; of a shorter one CL127 tells."""


def settle_s(infos: Iterable[SensorInfo]) -> float:
    """Return the seconds after which every sensor's readings tell of a steady load alone.

    Args:
        infos: The sensors of a window.
    """
    each = (
        (i.window_s or 0.0) + i.lag_s + 2 * (i.lag_sigma_s or 0.0) + i.update_period_s
        for i in infos
        if i.kind != "use"
    )
    return min(max(each, default=0.0), LONGEST_S)


def least_window_s(infos: Iterable[SensorInfo]) -> float:
    """Return the seconds that a window of repeated work has to last to be longer than every update period.

    Args:
        infos: The sensors of a window.

    Returns:
        At most ``LONGEST_WINDOW_S``, which is too short for a meter of longer periods.
    """
    longest_s = max((i.update_period_s for i in infos if i.kind != "use"), default=0.0)
    return min(_LEAST_PERIODS * longest_s, LONGEST_WINDOW_S)
