"""Power that no device draws, and energy that no device could use in the time."""

from __future__ import annotations

from typing import Final

from carbonlens.accounting.power import energy_of_power_kwh
from carbonlens.audit.finding import about
from carbonlens.audit.quantities import KWH, Span, figure, span
from carbonlens.domain.claim import Claim
from carbonlens.domain.finding import Finding

DEVICE_W: Final = {
    "a100": 400,
    "v100": 300,
    "p100": 250,
    "p40": 250,
    "k80": 300,
    "t4": 70,
    "titan rtx": 280,
    "rtx 2080": 250,
    "rtx 3080": 350,
    "rtx 3090": 350,
    "rtx a6000": 300,
    "h100": 700,
}
"""Thermal design power of the largest variant, in W.

All but the last as mlco2/impact data/gpus.csv (commit 025b988) gives them with the makers'
data sheets; the H100 as the model cards of Llama 3 state it.
"""

MOST_DEVICE_W: Final = 2_000
"""No accelerator draws more; for a device that is not in the table."""

MOST_MACHINE_W: Final = 50_000
"""No server draws more; where nobody says how many devices a figure is of."""

_OVER: Final = 1.1
"""Short peaks, and the board around the chip."""


def bound_w(hardware: str | None, *, per_device: bool) -> tuple[float, str]:
    """Return the most power in W, and whose it is.

    Args:
        hardware: As stated.
        per_device: Whether the figure is of one device; else of a machine.
    """
    if not per_device:
        return MOST_MACHINE_W, "a server"
    words = f" {(hardware or '').lower().replace('-', ' ').replace('/', ' ')} "
    for name, watts in DEVICE_W.items():
        if f" {name} " in words or f"nvidia {name}" in words:
            return watts * _OVER, name.upper()
    return MOST_DEVICE_W, "an accelerator"


def check_power(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where the power stated, or implied by energy and hours, is beyond a device's."""
    per_device = claim.device_hours or claim.devices is not None
    most, whose = bound_w(claim.hardware, per_device=per_device)
    watts = span(claim.watts)
    if claim.watts is not None and watts is not None and watts.low > most:
        text = f"states {figure(claim.watts.value)} W for {whose}, which draws at most {figure(most)} W"
        return (about(claim, "CL709", text, "check the unit and what it is the power of"),)
    implied = _implied_w(claim)
    if implied is None or implied.low <= most:
        return ()
    text = f"energy over hours is {figure(implied.value)} W, and {whose} draws at most {figure(most)} W"
    return (about(claim, "CL709", text, "check the units of energy and hours, and the number of devices"),)


def _implied_w(claim: Claim) -> Span | None:
    """Return the power in W of stated energy over stated hours, without the PUE."""
    energy, hours, pue = span(claim.energy, KWH), span(claim.hours), span(claim.pue)
    if energy is None or hours is None or hours.low <= 0 or energy.value <= 0:
        return None
    devices = None if claim.device_hours else span(claim.devices)
    devices = devices if devices is not None and devices.low > 0 else Span(1, 1, 1)
    over = pue if pue is not None and pue.low > 0 else Span(1, 1, 1)
    each = [
        kwh / energy_of_power_kwh(1, h * n * p)
        for kwh, h, n, p in (
            (energy.low, hours.high, devices.high, over.high),
            (energy.value, hours.value, devices.value, over.value),
            (energy.high, hours.low, devices.low, over.low),
        )
    ]
    return Span(*each)
