"""Doctor's answer, part by part: the source of each figure, why not a better one, one mend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from carbonlens.app.doctor_probes import Look, Seen
from carbonlens.domain.units import Z_95, Boundary
from carbonlens.metering.control_group import this_group
from carbonlens.metering.cpu_device import package_threads
from carbonlens.metering.cpu_families import this_processor
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.reporting.allowance import cpu_words, memory_words
from carbonlens.reporting.doctor import Machine, Missing, Part, SourceView
from carbonlens.signals.cpu_model import CpuCurve

_PART_OF: Final = {
    "rapl": "cpu",
    "cpu_model": "cpu",
    "powermetrics": "cpu",
    "ram_model": "ram",
    "nvml": "gpu",
    "amd": "gpu",
    "hwmon:intel_gpu": "gpu",
    "hwmon:grace": "module",
    "hwmon:input": "module",
    "jetson": "module",
    "intel": "npu",
    "hwmon:machine": "wall",
    "ipmi": "wall",
    "redfish": "wall",
}
"""Which part a sensor without channels would be of, by its name or the beginning of it."""

_WHOLES: Final = ("wall", "module")
_NOT_NEEDED: Final = "not needed"
_RECORDINGS: Final = "tested on recordings"
_TESTED_ON_RECORDINGS: Final = (
    "amd_energy",
    "amd_power",
    "hwmon",
    "jetson",
    "intel_npu",
    "ipmi",
    "powermetrics",
    "redfish",
)
_CHECKED: Final = "CPU time is that of the process tree, checked against its control group"
_DECLARE: Final = "declare a meter of the machine, if it has one: see docs/measuring.md"
_CONTROLLER: Final = 'declare it in the sources file: [controller] kind = "ipmi"'
_GPU_HIDDEN: Final = "a driver that is not here, or a container that hides it"


def parts_of(found: Look, root: Path, machine: Machine) -> tuple[Part, ...]:
    """Return every part of the machine in the order of printing.

    Args:
        found: What was probed.
        root: The file system.
        machine: What is known of it.
    """
    used = [s for s in found.seen if s.used and s.info is not None and s.info.kind != "use"]
    at_device = _adds_devices(s.info for s in used if s.info is not None)
    return (
        _cpu(found, used, machine, root, at_device=at_device),
        _ram(found, used, machine, at_device=at_device),
        *_gpus(found, used),
        *_others(found, used, "npu", "NPU"),
        *_others(found, used, "module", "module"),
        _wall(found, used, root),
    )


def total_of(parts: Sequence[Part]) -> str | None:
    """Return what a run's total will be, by the rule of ``metering.choice``, in words.

    Args:
        parts: As ``parts_of`` returns them.
    """
    read = [(p, p.source) for p in parts if p.source is not None]
    inner = [(p, s) for p, s in read if p.part not in _WHOLES]
    worst = max((s.grade for _, s in inner), default="Z")
    beside = []
    for part, source in sorted((w for w in read if w[0].part in _WHOLES), key=lambda w: w[0].part != "wall"):
        if source.grade <= worst:
            others = [s.sensor for p, s in read if p is not part]
            rest = f"; read beside it: {', '.join(dict.fromkeys(others))}" if others else ""
            return f"{source.sensor} alone, where it covers 90 % of a run{rest}"
        beside.append(source.sensor)
    if not inner:
        return None
    names = " + ".join(p.name for p, _ in inner)
    boundaries = sorted({s.boundary for _, s in inner})
    rest = f"; read beside it: {', '.join(beside)}" if beside else ""
    return f"{names}, boundary {' and '.join(boundaries)}{rest}"


def _adds_devices(infos: Iterable[SensorInfo]) -> bool:
    """Tell whether a run's figure is a sum over devices, and not a whole server's."""
    return any(i.boundary == "device" and i.name != "ram_model" for i in infos)


def part_name(channel: Channel) -> str:
    """Return the part that a channel is of."""
    return {"total": "module"}.get(channel.component, channel.component)


def _sources(used: Sequence[Seen], part: str, device: str | None = None) -> list[tuple[Seen, Channel]]:
    """Return what reads a part, the best first."""
    pairs = [
        (seen, channel)
        for seen in used
        if seen.info is not None
        for channel in seen.info.channels
        if part_name(channel) == part and device in {None, channel.device}
    ]
    once: dict[str, tuple[Seen, Channel]] = {}
    for pair in pairs:
        once.setdefault(pair[0].name, pair)
    return sorted(once.values(), key=lambda pair: _grade(pair[0]))


def _grade(seen: Seen) -> str:
    return seen.info.grade if seen.info is not None else "Z"


def _view(seen: Seen, channel: Channel, *, at_device: bool = False) -> SourceView | None:
    info = seen.info
    if info is None or seen.probe is None:
        return None
    of_device = info.device_curve if at_device else None
    boundary: Boundary = "device" if of_device is not None else info.boundary
    curve = of_device or info.curve
    return SourceView(
        sensor=info.name,
        # The probe knows the table; what is used may be what was measured here.
        found=f"its own curve, {curve.source}" if curve is not None and curve.measured else seen.probe.found,
        method=info.method,
        grade=info.grade,
        factor_95=factor_95(info, channel, at_device=at_device),
        boundary=boundary,
        scope=info.scope,
        update_period_s=info.update_period_s,
        read_cost_s=seen.cost_s,
        on_recordings=is_from_recordings(info),
    )


def is_from_recordings(info: SensorInfo) -> bool:
    """Tell whether a sensor was never tried on hardware."""
    head = info.name.removeprefix("replay:").partition(":")[0]
    return head in _TESTED_ON_RECORDINGS or _RECORDINGS in info.method


def factor_95(info: SensorInfo, channel: Channel, *, at_device: bool = False) -> float | None:
    """Return the 95 % factor of a long run's figure, in which edges and duty do not matter.

    Args:
        info: The sensor.
        channel: The device.
        at_device: Whether the figure of a CPU model is that of the package alone.
    """
    if not info.width_known:
        return None
    if info.unit == "s":
        curve = info.device_curve if at_device and info.device_curve is not None else info.curve
        return None if curve is None else math.exp(Z_95 * curve.relative_sigma)
    line = channel.calibration
    if line is not None and line.usable and line.gain.value:
        return math.exp(Z_95 * line.gain.u_total / line.gain.value)
    return math.exp(Z_95 * info.gain_sigma)


def _cpu(found: Look, used: Sequence[Seen], machine: Machine, root: Path, *, at_device: bool) -> Part:
    read = _sources(used, "cpu")
    views = [v for s, c in read if (v := _view(s, c, at_device=at_device)) is not None]
    missing = _missing(found, "cpu", views)
    model = next((s for s in used if s.name == "cpu_model"), None)
    said = [model.probe.reason] if model is not None and model.probe is not None else []
    if model is not None and this_group(root) is not None:
        said.append(_CHECKED)
    allowed = cpu_words(machine.allowance)
    said += [] if allowed is None else [f"the work may use {allowed}"]
    said += [f"{s.name}: {device} {why}" for s in used for device, why in s.still.items()]
    note = "; ".join(filter(None, said)) or None
    mend = _first_mend(missing) or (model.probe.mend if model is not None and model.probe else None)
    curve = model.info.curve if model is not None and model.info is not None else None
    if mend is None and views and views[0].sensor == "cpu_model" and curve is not None:
        mend = _better_curve(curve, machine, root, has_meter=bool(_sources(used, "wall")))
    return _part("cpu", "CPU", views, missing, note=note, mend=mend)


def _better_curve(curve: CpuCurve, machine: Machine, root: Path, *, has_meter: bool) -> str | None:
    """Return what would narrow the width of modelled CPU energy."""
    if curve.measured:
        return None
    if has_meter:
        return "measure idle and full power once: carbonlens calibrate cpu"
    if not curve.known:
        watts = "..." if machine.tdp_w is None else f"{machine.tdp_w:g}"
        # A virtual machine does not tell how many threads the package's power is spread over.
        threads = package_threads(this_processor(root / "proc" / "cpuinfo"))
        more = "" if threads else " and cpu_threads = ... (of the whole package)"
        return f"state the CPU's TDP in the sources file: cpu_tdp_w = {watts}{more}"
    if machine.virtual:
        return None  # nobody who rents a part of a server can read its plug
    return "read the plug's watts, idle and busy: carbonlens calibrate cpu --idle-w W --full-w W"


def _ram(found: Look, used: Sequence[Seen], machine: Machine, *, at_device: bool) -> Part:
    views = [v for s, c in _sources(used, "ram") if (v := _view(s, c)) is not None]
    missing = _missing(found, "ram", views)
    if any(s.name == "rapl" for s in used) and not any(v.sensor == "rapl" for v in views):
        missing = (Missing(sensor="rapl", reason="no dram counter beside the package's"), *missing)
    note = None
    if not views and not at_device and any(s.name == "cpu_model" for s in used):
        note = "in the CPU figure, which is a whole server's"
        missing = ()
    allowed = memory_words(machine.allowance)
    if allowed is not None:
        held = f"the work may hold {allowed}"
        note = f"{note}; {held}" if note else held if views else f"not measured; {held}"
    return _part("ram", "RAM", views, missing, note=note, mend=_first_mend(missing))


def _gpus(found: Look, used: Sequence[Seen]) -> list[Part]:
    names: dict[str, str] = {}
    for gpu in found.nvidia.gpus if found.nvidia is not None else ():
        names[gpu.uuid] = gpu.label
    for seen in used:
        for channel in seen.info.channels if seen.info is not None else ():
            if channel.component == "gpu":
                names.setdefault(channel.device, channel.device)
    parts = [
        _gpu(found, used, device, label, f"GPU {k}" if len(names) > 1 else "GPU")
        for k, (device, label) in enumerate(names.items())
    ]
    for what in found.unmeasured:
        if what not in names.values():
            missing = _missing(found, "gpu", ())
            note = f"{what} present, not measured"
            parts.append(_part("gpu", "GPU", (), missing, note=note, mend=_first_mend(missing)))
    return parts or [_no_gpu(found)]


def _gpu(found: Look, used: Sequence[Seen], device: str, label: str, name: str) -> Part:
    views = [v for s, c in _sources(used, "gpu", device) if (v := _view(s, c)) is not None]
    unread = tuple(
        Missing(sensor=s.name, reason=s.unread[device], mend=s.probe.mend if s.probe else None)
        for s in found.seen
        if device in s.unread and not (s.info is not None and s.info.kind == "use")
    )
    missing = unread or (_missing(found, "gpu", views) if not views else ())
    note = label if views else f"{label} present, not measured"
    return _part("gpu", name, views, missing, note=note, device=device, mend=_first_mend(missing))


def _no_gpu(found: Look) -> Part:
    missing = _missing(found, "gpu", ())
    if found.nvidia is not None and found.nvidia.present:
        note = f"{found.nvidia.present} NVIDIA GPUs, all hidden from the work"
        return _part("gpu", "GPU", (), missing, note=note, mend=None)
    if not found.on_the_bus:
        return _part("gpu", "GPU", (), missing, note="none found", mend=None)
    brand = found.on_the_bus[0].partition(" ")[0]
    hidden = [m for m in missing if m.sensor.startswith("nvml" if brand == "NVIDIA" else "amd")]
    note = f"{', '.join(found.on_the_bus)}, and {_GPU_HIDDEN}"
    return _part("gpu", "GPU", (), missing, note=note, mend=_first_mend(hidden))


def _others(found: Look, used: Sequence[Seen], part: str, name: str) -> list[Part]:
    """Return NPUs or modules; an NPU that is not there gets a line, a module none."""
    read = _sources(used, part)
    devices = dict.fromkeys(
        c.device for s in used if s.info is not None for c in s.info.channels if part_name(c) == part
    )
    if not read:
        missing = _missing(found, part, ())
        if part == "module":
            return []
        here = [m for m in missing if not m.found.startswith("no ")]
        note = "present, not measured" if here else "none found"
        return [_part(part, name, (), missing, note=note, mend=_first_mend(here))]
    parts = []
    for device in devices:
        views = [v for s, c in _sources(used, part, device) if (v := _view(s, c)) is not None]
        seen = next(s for s, _ in _sources(used, part, device))
        unknown = seen.info is not None and seen.info.unit == "s" and seen.info.curve is None
        reason = seen.probe.reason if unknown and seen.probe is not None else None
        note = reason or device
        mend = seen.probe.mend if seen.probe is not None else None
        parts.append(_part(part, name, views, (), note=note, device=device, mend=mend))
    return parts


def _wall(found: Look, used: Sequence[Seen], root: Path) -> Part:
    views = [v for s, c in _sources(used, "wall") if (v := _view(s, c)) is not None]
    missing = _missing(found, "wall", views)
    declared = [m for m in missing if not m.sensor.startswith("hwmon")]
    mend = _first_mend(declared if declared else missing if views else ())
    note = None
    if not views:
        note = "none declared or found"
        controller = any((root / "dev" / name).exists() for name in ("ipmi0", "ipmi/0", "ipmidev/0"))
        if controller and not declared:
            note = "the server has a management controller, which was not declared"
        mend = mend or (_CONTROLLER if controller and not declared else _DECLARE)
    return _part("wall", "wall", views, missing, note=note, mend=mend)


def _part(  # noqa: PLR0913  # the fields of one record
    part: str,
    name: str,
    views: Sequence[SourceView],
    missing: Iterable[Missing],
    *,
    note: str | None,
    mend: str | None,
    device: str | None = None,
) -> Part:
    return Part(
        part=part,
        name=name,
        device=device,
        source=views[0] if views else None,
        others=tuple(views[1:]),
        missing=tuple(missing),
        note=note,
        mend=mend,
    )


def _missing(found: Look, part: str, views: Sequence[SourceView]) -> tuple[Missing, ...]:
    """Return the sources of a part that are better than what is used, and cannot be read."""
    best = views[0].grade if views else "Z"
    missing = []
    for seen in found.seen:
        if seen.used or not _would_be_of(seen, part) or (seen.probe is not None and seen.probe.usable):
            continue
        if seen.info is not None and (seen.info.kind == "use" or seen.info.grade >= best):
            continue
        if seen.probe is None:
            missing.append(Missing(sensor=seen.name, reason="its driver did not answer in time"))
        elif seen.probe.reason != _NOT_NEEDED:
            missing.append(
                Missing(
                    sensor=seen.name,
                    found=seen.probe.found,
                    reason=seen.probe.reason or "it cannot be read",
                    mend=seen.probe.mend,
                )
            )
    return tuple(missing)


def _would_be_of(seen: Seen, part: str) -> bool:
    if seen.info is not None and seen.info.channels:
        return any(part_name(c) == part for c in seen.info.channels)
    name = seen.name
    head = name.partition(":")[0]
    return part == _PART_OF.get(name, _PART_OF.get(head, _PART_OF.get(head.partition("_")[0], "")))


def _first_mend(missing: Iterable[Missing]) -> str | None:
    return next((m.mend for m in missing if m.mend), None)
