"""Metrics of exporters that tell power or energy: DCGM, Kepler and Scaphandre.

Names and units are those of the exporters' own documentation. A place (a GPU, a zone of a
processor) may be told by several metrics; the one of the lowest rank counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

Family = Literal["gpu", "cpu", "wall"]

TOOLS: Final = ("DCGM", "Kepler", "Scaphandre")
"""Who counts where two tell of one host's GPUs, or of its processors: the first."""

PREFIXES: Final = ("DCGM_FI_", "kepler_", "scaph_")

_MEGA: Final = 1e6
_BLANK_FP64: Final = 140_737_488_355_328.0
_LEAST_BLANK_INT64: Final = 9.2e18
_KEPLER_OVERFLOW: Final = 9e14
_HOSTS: Final = (
    "Hostname",
    "hostname",
    "node_name",
    "node",
    "kubernetes_node",
    "exported_instance",
    "instance",
)
_UUIDS: Final = ("UUID", "uuid", "gpu_uuid")


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """What a metric tells.

    Attributes:
        tool: Exporter.
        family: What else would count twice with it.
        component: As of ``Channel``.
        is_counter: Whether it is energy so far.
        size: Watts or joules in one.
        unit: That unit.
        rank: Among metrics of one place.
        part: Which part of a host it is, where no label says.
        counted: Whether it may count: not where another place holds it.
    """

    tool: str
    family: Family
    component: str
    is_counter: bool
    size: float
    unit: str
    rank: int = 0
    part: str = ""
    counted: bool = True


def _dcgm(unit: str, size: float, rank: int, *, is_counter: bool = False) -> Metric:
    return Metric(
        tool="DCGM", family="gpu", component="gpu", is_counter=is_counter, size=size, unit=unit, rank=rank
    )


def _kepler(component: str, part: str, *, is_counter: bool, counted: bool = True) -> Metric:
    return Metric(
        tool="Kepler",
        family="gpu" if component == "gpu" else "cpu",
        component=component,
        is_counter=is_counter,
        size=1.0,
        unit="J" if is_counter else "W",
        rank=0 if is_counter else 1,
        part=part,
        counted=counted,
    )


def _scaph(unit: str, part: str, rank: int, *, counted: bool = True) -> Metric:
    return Metric(
        tool="Scaphandre",
        family="cpu",
        component="cpu+ram" if part == "host" else "cpu",
        is_counter=unit == "uJ",
        size=1 / _MEGA,
        unit=unit,
        rank=rank,
        part=part,
        counted=counted,
    )


METRICS: Final[Mapping[str, Metric]] = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": _dcgm("mJ", 1e-3, 0, is_counter=True),
    "DCGM_FI_DEV_POWER_USAGE_INSTANT": _dcgm("W", 1.0, 1),
    "DCGM_FI_DEV_POWER_USAGE": _dcgm("W", 1.0, 2),
    # Kepler from 0.10 on: one metric, the zone is a label.
    "kepler_node_cpu_joules_total": _kepler("cpu", "", is_counter=True),
    "kepler_node_cpu_watts": _kepler("cpu", "", is_counter=False),
    "kepler_node_gpu_watts": _kepler("gpu", "gpu", is_counter=False),
    # Before, one metric a part.
    "kepler_node_package_joules_total": _kepler("cpu", "package", is_counter=True),
    "kepler_node_dram_joules_total": _kepler("ram", "dram", is_counter=True),
    "kepler_node_gpu_joules_total": _kepler("gpu", "gpu", is_counter=True),
    "kepler_node_core_joules_total": _kepler("cpu", "core", is_counter=True, counted=False),
    "kepler_node_uncore_joules_total": _kepler("cpu", "uncore", is_counter=True, counted=False),
    "kepler_node_other_joules_total": _kepler("cpu", "other", is_counter=True, counted=False),
    "kepler_node_platform_joules_total": _kepler("total", "platform", is_counter=True, counted=False),
    "scaph_host_energy_microjoules": _scaph("uJ", "host", 0),
    "scaph_host_power_microwatts": _scaph("uW", "host", 1),
    "scaph_socket_energy_microjoules": _scaph("uJ", "socket", 0, counted=False),
    "scaph_socket_power_microwatts": _scaph("uW", "socket", 1, counted=False),
    "scaph_domain_energy_microjoules": _scaph("uJ", "domain", 0, counted=False),
    "scaph_domain_power_microwatts": _scaph("uW", "domain", 1, counted=False),
}
"""Metrics by name."""

_ZONES: Final = {"package": "cpu", "dram": "ram"}
"""Zones of Kepler that are no part of another; psys holds them, core and uncore are in the package."""

SHARES: Final = re.compile(
    r"^(?:kepler_(?:container|process|pod|vm)_\w*(?:joules_total|watts)"
    r"|scaph_process_power_consumption_microwatts)$"
)
"""Shares of a host's energy by process, container, pod or virtual machine."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Whose power or energy a series tells.

    Attributes:
        host: Machine, where a label says.
        name: Unique within the host and tool.
        device: Stable id.
        component: As of ``Channel``.
        counted: Whether it may count.
    """

    host: str | None
    name: str
    device: str
    component: str
    counted: bool


def place_of(metric: Metric, labels: Mapping[str, str]) -> Place:
    """Return the place of a series by its labels."""
    host = next((labels[n] for n in _HOSTS if labels.get(n)), None)
    if metric.family == "gpu":
        return _gpu(metric, labels, host)
    zone = labels.get("zone") or metric.part
    counted, component = metric.counted, metric.component
    if metric.tool == "Kepler" and not metric.part:
        # Several sockets have a path each; a zone that Kepler sums has one.
        counted, component = zone.split("-")[0] in _ZONES, _ZONES.get(zone.split("-")[0], "cpu")
    parts = [
        labels[n] for n in ("socket_id", "domain_name", "package", "path", "mode", "sensor") if labels.get(n)
    ]
    name = " ".join([metric.tool, zone, *parts])
    return Place(host=host, name=name, device=name, component=component, counted=counted)


def _gpu(metric: Metric, labels: Mapping[str, str], host: str | None) -> Place:
    index = labels.get("gpu") or labels.get("index") or labels.get("gpu_index")
    device = (
        next((labels[n] for n in _UUIDS if labels.get(n)), None) or labels.get("device") or index or "GPU"
    )
    mode = f" {labels['mode']}" if metric.tool == "Kepler" and labels.get("mode") else ""
    name = device if device.upper().startswith("GPU") else f"GPU {device}"
    return Place(
        host=host,
        name=f"{name}{mode}",
        device=device,
        component="gpu",
        counted=metric.counted,
    )


def values_of(metric: Metric, values: Array) -> Array | None:
    """Return watts or joules as ``value_of`` does of each; ``None`` where one cannot be a value."""
    import numpy as np

    off = values - _BLANK_FP64
    is_blank = (values >= _LEAST_BLANK_INT64) | ((off >= 0) & (off < 16)) | ~np.isfinite(values)
    if metric.tool == "Kepler":
        is_blank |= values >= _KEPLER_OVERFLOW
    if (values[~is_blank] < 0).any():
        return None
    told: Array = np.where(is_blank, np.nan, values * metric.size)
    return told


def value_of(metric: Metric, text: str) -> float:
    """Return watts or joules; NaN for words and figures that stand for no reading.

    Raises:
        ValueError: If it is no number.
    """
    if "_" in text:
        raise ValueError(f"has the value {text!r}, which is no number")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"has the value {text!r}, which is no number") from None
    is_blank = value >= _LEAST_BLANK_INT64 or 0 <= value - _BLANK_FP64 < 16
    if not math.isfinite(value) or is_blank or (metric.tool == "Kepler" and value >= _KEPLER_OVERFLOW):
        return math.nan
    if value < 0:
        raise ValueError(f"has the value {text}, below zero")
    return value * metric.size
