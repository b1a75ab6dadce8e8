"""How the conditions of a run are printed: what else was going on, and how its devices fared."""

from __future__ import annotations

from carbonlens.domain.run import DeviceConditions, Run

_GB = 1e9
_LONGEST_NAME = 24


def condition_lines(run: Run) -> list[str]:
    """Return the load beside the run, and a line for each device that tells of itself."""
    seen = run.conditions
    if seen is None:
        return []
    beside = [
        None if seen.cpu_s is None else f"{seen.cpu_s:.3g} s of CPU time",
        None if seen.load_1m is None else f"load {seen.load_1m:.3g}",
        f"{seen.steal_s:.3g} s stolen by the hypervisor" if seen.steal_s else None,
        f"{seen.throttled_s:.3g} s slowed by heat or a fault" if seen.throttled_s else None,
        None if seen.peak_rss_bytes is None else f"memory up to {seen.peak_rss_bytes / _GB:.3g} GB",
    ]
    told = ", ".join(text for text in beside if text is not None)
    return [*([told] if told else []), *(_device(d) for d in seen.devices)]


def _device(device: DeviceConditions) -> str:
    clock = None if device.clock_mhz is None else f"{device.clock_mhz:.0f} MHz"
    if clock is not None and device.lowest_clock_mhz is not None:
        clock += f" (lowest {device.lowest_clock_mhz:.0f})"
    parts = [
        clock,
        None if device.temperature_c is None else f"up to {device.temperature_c:.0f} °C",
        None if device.power_cap_w is None else f"cap {device.power_cap_w:g} W",
        None if device.memory_bytes is None else f"memory up to {device.memory_bytes / _GB:.3g} GB",
    ]
    name = device.device if len(device.device) <= _LONGEST_NAME else device.device[: _LONGEST_NAME - 1] + "…"
    return f"{name}: {', '.join(p for p in parts if p is not None) or 'tells nothing'}"
