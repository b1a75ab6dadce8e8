"""Plausible: the power that no device of a class draws, not even for a moment.

The bounds are wide on purpose: they tell a reading at fault (a counter that was set
back and taken for one that wrapped, a torn number), not a device that is busy.
"""

from __future__ import annotations

import math
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.metering.sensors import Channel, SensorInfo

AT_FAULT: Final = "CL118"
"""Code of the finding that readings cannot be true."""

TICK_S: Final = 1.0
"""What a counter gains at once may have been drawn over this time: it moves in ticks."""

MACHINE_W: Final = 50_000.0
"""A machine at the plug: an NVIDIA DGX B200 takes 14.3 kW at most (its datasheet, 2024)."""

_CLASS_W: Final = {
    # Twice and more what the largest take: AMD EPYC 9965 500 W (data sheet, 2024), turbo included.
    "cpu": 2_000.0,
    # 12 TB at the 0.3725 W/GB of Cloud Carbon Footprint.
    "ram": 5_000.0,
    # NVIDIA B300 1.4 kW, AMD Instinct MI355X 1.4 kW (data sheets, 2025), and what is announced.
    "gpu": 5_000.0,
    "npu": 5_000.0,
}

_DECLARED: Final = ("external:", "datasheet:")
"""Sources by hand: they may hold several devices, whatever component they are named for."""


def most_w(info: SensorInfo, channel: Channel) -> float:
    """Return the watts that a channel cannot exceed.

    Args:
        info: The sensor.
        channel: The device.
    """
    if channel.most_w is not None:
        return channel.most_w
    if info.name.startswith(_DECLARED):
        return MACHINE_W
    return _CLASS_W.get(channel.component, MACHINE_W)


def least_w(channel: Channel) -> float:
    """Return the watts that a channel does not go below.

    A device may sleep at 0 W. A machine or module that runs this program does not: what
    tells 0 of it tells nothing.

    Args:
        channel: The device.
    """
    return math.ulp(0.0) if channel.component in {"wall", "total"} else 0.0


def impossible(joules: float, covered_s: float, bound_w: float) -> Finding | None:
    """Return a Finding when energy is less than none, or more than any such device can draw.

    Args:
        joules: Energy of the device.
        covered_s: Seconds it was drawn in.
        bound_w: As ``most_w`` tells.
    """
    if joules < 0:
        message = f"{joules:.4g} J in {covered_s:g} s is less than nothing: the reading is at fault"
    elif not joules <= bound_w * max(covered_s, TICK_S):
        message = (
            f"{joules:.4g} J in {covered_s:g} s is more than the {bound_w:g} W that nothing of its kind "
            "exceeds: the reading is at fault"
        )
    else:
        return None
    return _at_fault(message)


def no_possible_reading(refused: int) -> Finding:
    """None of a device's readings is one that such a device can give.

    Args:
        refused: How many there were.
    """
    return _at_fault(
        f"{counted(refused, 'reading')}, none of them what a device of its kind can draw: they are at fault"
    )


def _at_fault(message: str) -> Finding:
    return Finding(
        code=AT_FAULT,
        severity="error",
        message=message,
        mend="`carbonlens doctor` shows what the source tells; correct its unit, or leave it out",
    )
