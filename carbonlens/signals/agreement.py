"""Agreement: whether two ways of measuring one window, or a figure and a device, fit together."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding

PLAUSIBLE_TIMES_RATING: Final = 1.5
"""Mean power above this multiple of a device's rating is a fault of the reading.

Boards overshoot their limit for milliseconds, not on average; virtual machines
have reported 9e14 J (sustainable-computing-io/kepler#897).
"""


def disagreement(one: tuple[str, Estimate], other: tuple[str, Estimate]) -> Finding | None:
    """Return a Finding when two measurements of one window exclude each other.

    Args:
        one: Name and energy of the measurement that is used.
        other: Name and energy of the other one.

    Returns:
        ``None`` if their 95 % intervals overlap, or one of them is unknown.
    """
    (name, a), (other_name, b) = one, other
    if a.value is None or b.value is None or not a.value:
        return None
    below = a.high is not None and b.low is not None and a.high < b.low
    above = b.high is not None and a.low is not None and b.high < a.low
    if not below and not above:
        return None
    return Finding(
        code="CL128",
        severity="warning",
        message=f"methods disagree: {name} says {a.value:.6g} {a.unit} and is used, {other_name} says "
        f"{b.value:.6g} {b.unit}, {b.value / a.value - 1:+.1%}, and their 95 % intervals do not meet",
        mend="measure a steady load with both; report the device and its driver version",
    )


def implausible(energy: Estimate, covered_s: float, rated_w: float) -> Finding | None:
    """Return a Finding when a device is said to have drawn more than it can.

    Args:
        energy: Joules of the device.
        covered_s: Seconds they were drawn in.
        rated_w: The device's highest power in watts.
    """
    if energy.value is None or energy.value <= PLAUSIBLE_TIMES_RATING * rated_w * covered_s:
        return None
    return Finding(
        code="CL130",
        severity="error",
        message=f"{energy.value:.4g} J in {covered_s:g} s is more than {PLAUSIBLE_TIMES_RATING} times "
        f"what a device of {rated_w:g} W can draw: the reading is at fault",
        mend="read another sensor of the device; a virtual machine may pass on nonsense",
    )
