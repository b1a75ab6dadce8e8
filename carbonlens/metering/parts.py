"""Parts: what each sensor says of each device, before it is decided which to believe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import MODEL_FACTOR_95
from carbonlens.domain.run import Reading
from carbonlens.domain.units import Z_95
from carbonlens.metering import findings
from carbonlens.metering.gained import WHOLE_SHARE, Gained, Step
from carbonlens.metering.plausible import MACHINE_W, impossible, most_w
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.signals.agreement import implausible
from carbonlens.signals.cpu_model import MICROJOULE, CpuCurve, cpu_energy

_IDLE_OF_RATED = 0.17
"""Idle power of a GPU with a context open, as a share of its limit: 120 W of 700 W on an
H100 (measured by this project, 2026-11-28)."""

_LEAST_OF_RATED = 0.05
"""A share of its limit that no GPU idles below by much: on purpose far below the one above, which is of a
board that is held ready."""

_DIVIDED_SIGMA = math.log(MODEL_FACTOR_95) / Z_95
"""A share of a divided device's energy is a model (grade D)."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One device as one sensor saw it.

    Attributes:
        component, device: What was read.
        reading: At the sensor's boundary.
        at_device: The same on the curve of the package alone, where there is one.
        steps: Where in the window it was gained.
    """

    info: SensorInfo
    component: str
    device: str
    reading: Reading
    at_device: Reading | None = None
    steps: tuple[Step, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def covered_s(self) -> float:
        """Seconds of the window that the reading covers."""
        return self.reading.covered_s or 0.0


def parts_of(
    info: SensorInfo, gained: Sequence[Gained], window_s: float, shares: Mapping[str, float]
) -> list[Part]:
    """Return one part a channel of which something is known.

    Args:
        info: The sensor.
        gained: One a channel.
        window_s: Length of the window.
        shares: The work's share of the activity of a device, by its id.
    """
    made = []
    for channel, gain in zip(info.channels, gained, strict=True):
        if gain.amount is None:
            continue
        if _fault(info, channel, gain) is not None:
            reading, at_device = _nothing_known(info, channel, gain), None
        elif info.unit == "s":
            reading, at_device = _modelled(info, channel, gain)
        else:
            reading, at_device = _measured(info, channel, gain, window_s, shares.get(channel.device)), None
        made.append(_part(info, channel, gain, reading, at_device, window_s))
    return made


def shares_of(infos: Sequence[SensorInfo], gained: Sequence[Sequence[Gained]]) -> dict[str, float]:
    """Return the work's share of each device's activity, from readings of who used it.

    A device that was not active at all is nobody's: it has no share.
    """
    own: dict[str, float] = {}
    everybody: dict[str, float] = {}
    for info, mine in zip(infos, gained, strict=True):
        if info.kind != "use":
            continue
        for channel, gain in zip(info.channels, mine, strict=True):
            if gain.amount is not None:
                (own if channel.who == "own" else everybody)[channel.device] = gain.amount
    return {d: min(own[d] / total, 1.0) for d, total in everybody.items() if total > 0 and d in own}


def _part(  # the pieces of one record
    info: SensorInfo,
    channel: Channel,
    gain: Gained,
    reading: Reading,
    at_device: Reading | None,
    window_s: float,
) -> Part:
    said = [_named(f, channel.device) for f in gain.findings]
    fault = _fault(info, channel, gain)
    if fault is not None:
        said.append(_named(fault, channel.device))
    elif gain.covered_s < WHOLE_SHARE * window_s:
        said.append(findings.reading_incomplete(channel.device, gain.covered_s, window_s))
        reading = msgspec.structs.replace(reading, state="unbounded")
        if at_device is not None:
            at_device = msgspec.structs.replace(at_device, state="unbounded")
    return Part(
        info=info,
        component=channel.component,
        device=channel.device,
        reading=reading,
        at_device=at_device,
        steps=gain.steps,
        findings=tuple(said),
    )


def _fault(info: SensorInfo, channel: Channel, gain: Gained) -> Finding | None:
    """Return why what was gained is no figure; ``None`` if it is one."""
    amount = gain.amount or 0.0
    if info.unit != "s":
        fault = impossible(amount, gain.covered_s, most_w(info, channel))
        if fault is None and channel.rated_w is not None:
            joules = Estimate(value=amount, unit="J")
            fault = implausible(joules, gain.covered_s, channel.rated_w)
        return fault
    if info.curve is None:
        return None
    if not amount and info.scope == "process":
        return findings.no_time_used()
    watts = max(c.full_w_per_thread for c in (info.curve, info.device_curve) if c is not None)
    return impossible(amount * watts, gain.covered_s, MACHINE_W)


def _nothing_known(info: SensorInfo, channel: Channel, gain: Gained) -> Reading:
    return Reading(
        component=channel.component,
        energy_j=None,
        boundary=info.boundary,
        grade=None,
        method=info.method,
        state="unknown",
        devices=(channel.device,) if info.scope != "process" else (),
        covered_s=gain.covered_s,
    )


def _modelled(info: SensorInfo, channel: Channel, gain: Gained) -> tuple[Reading, Reading | None]:
    """Return the energy of seconds in use on the sensor's curves."""
    if info.curve is None:
        return _nothing_known(info, channel, gain), None
    at_device = None
    if info.device_curve is not None:
        at_device = _on_curve(info, channel, gain, info.device_curve)
        at_device = msgspec.structs.replace(
            at_device,
            boundary="device",
            method=f"CPU time on the package curve ({info.device_curve.family}; {info.device_curve.source})",
        )
    return _on_curve(info, channel, gain, info.curve), at_device


def _on_curve(info: SensorInfo, channel: Channel, gain: Gained, curve: CpuCurve) -> Reading:
    energy = cpu_energy(gain.amount or 0.0, curve)
    return Reading(
        component=channel.component,
        energy_j=energy.energy_j,
        dynamic_j=energy.dynamic_j,
        idle="reserved",
        boundary=info.boundary,
        grade=info.grade,
        method=info.method,
        u_by_source_j={curve.source_id: energy.u_j},
        devices=(channel.device,) if info.scope != "process" else (),
        covered_s=gain.covered_s,
    )


def _measured(
    info: SensorInfo, channel: Channel, gain: Gained, window_s: float, share: float | None
) -> Reading:
    """Return the energy a counter gained or power amounts to; of a divided device, the work's share."""
    joules = gain.amount or 0.0
    source = f"sensor:{info.name}:{channel.device}"
    gap_s = max(window_s - gain.covered_s, 0.0)
    # Small gaps hold anything from none to twice the mean power, and count as none.
    gap_j = joules / gain.covered_s * gap_s * 2 / math.sqrt(3) if gain.covered_s else 0.0
    random_j = _random(gain, gap_j if gap_s < (1 - WHOLE_SHARE) * window_s else 0.0, info)
    reading = Reading(
        component=channel.component,
        energy_j=_exact(joules),
        boundary=info.boundary,
        grade=info.grade,
        method=info.method,
        u_random_j=min(random_j, _widest_j(info, channel, gain)),
        u_by_source_j={source: gain.u_common} if gain.u_common and info.width_known else {},
        devices=(channel.device,),
        covered_s=gain.covered_s,
        own_share=share,
        idle="reserved",
    )
    return reading if channel.part is None else _divided(reading, channel, channel.part, share)


def _random(gain: Gained, gap_j: float, info: SensorInfo) -> float:
    # A meter that states no accuracy has no width; its tick alone would be a false one.
    return math.hypot(gain.u_random, gap_j) if info.width_known else 0.0


def _widest_j(info: SensorInfo, channel: Channel, gain: Gained) -> float:
    """Return the sigma from which on the interval would reach beyond what the device can have drawn.

    In a window shorter than a sensor's step it may have drawn anything between idling and its limit.
    As one sigma of a positive figure (``domain.estimate``) that is a factor of e to the power of
    many: 47 kJ of a board of 700 W in 0.05 s, which draws 35 J at most.
    """
    joules, limit_w = gain.amount or 0.0, channel.rated_w or most_w(info, channel)
    if joules <= 0 or not gain.covered_s:
        return math.inf
    # A counter's step was drawn over more time than such a window has: it may have idled in it.
    idle = _LEAST_OF_RATED if info.kind == "cumulative" else _IDLE_OF_RATED
    most_j, least_j = limit_w * gain.covered_s, idle * limit_w * gain.covered_s
    widest_j = joules * math.log(max(most_j / joules, joules / least_j)) / Z_95
    return math.sqrt(max(widest_j**2 - gain.u_common**2, 0.0))


def _divided(reading: Reading, channel: Channel, part: float, share: float | None) -> Reading:
    """Return what one instance of a divided device is billed: idle by size, the rest by activity.

    So the instances of a device sum to its energy, and one that only waits is billed
    what it keeps awake.
    """
    joules = float(reading.energy_j or 0)
    idle_j = min(joules, _IDLE_OF_RATED * (channel.rated_w or 0.0) * (reading.covered_s or 0.0))
    if share is None or (share == 0 and not idle_j):
        billed_j, how = joules * part, f"its {part:.0%} of the device by size"
    else:
        billed_j = idle_j * part + (joules - idle_j) * share
        how = f"its {part:.0%} of idle by size and {share:.1%} of the activity"
    used = billed_j / joules if joules else 0.0
    return msgspec.structs.replace(
        reading,
        energy_j=_exact(billed_j),
        grade="D",
        method=f"{reading.method}; instance billed {how} (model)",
        u_random_j=reading.u_random_j * used,
        u_by_source_j={f"share:{reading.devices[0]}": billed_j * _DIVIDED_SIGMA},
        divided=True,
    )


def _exact(joules: float) -> Decimal:
    return Decimal(str(joules)).quantize(MICROJOULE)


def _named(finding: Finding, device: str) -> Finding:
    return msgspec.structs.replace(finding, message=f"{device}: {finding.message}")
