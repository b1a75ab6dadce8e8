"""Accelerators that are present, whether or not a sensor can read them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from carbonlens.metering.devices.visibility import CUDA, Device, picks
from carbonlens.metering.sensors import SensorInfo

_ROOT = Path("/")
_NVIDIA = "NVIDIA GPU"
_AMD = "AMD GPU"


def present(root: Path = _ROOT, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return what accelerators this process can reach, in words; empty without any.

    Args:
        root: File system to look at.
        environ: Environment; ``CUDA_VISIBLE_DEVICES`` may hide NVIDIA devices from the
            work (nothing, a negative index, a word that names no device).
    """
    variables = os.environ if environ is None else environ
    found: list[str] = []
    if nvidia_devices(root) and not _hidden(variables.get(CUDA)):
        found.append(_NVIDIA)
    if (root / "dev" / "kfd").exists():
        found.append(_AMD)
    return tuple(found)


def unread(
    infos: Iterable[SensorInfo],
    *,
    visible: Iterable[tuple[str, str]] | None = None,
    root: Path = _ROOT,
    environ: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the accelerators this process can reach that no sensor reads, in words.

    Args:
        infos: The sensors that are read.
        visible: Id and words of each NVIDIA GPU the work may use, as the driver lists
            them; ``None`` when the driver does not answer.
        root: File system to look at.
        environ: As for ``present``.
    """
    read = {c.device: i.name for i in infos if i.kind != "use" for c in i.channels if _is_gpu(c.component)}
    names = [n for n in present(root, environ) if not (n == _AMD and any("amd" in s for s in read.values()))]
    if visible is not None:
        names = [n for n in names if n != _NVIDIA]
        names = [words for device, words in visible if device not in read] + names
    return tuple(names)


def nvidia_devices(root: Path = _ROOT) -> bool:
    """Tell whether there are device files of NVIDIA GPUs, without asking a driver.

    Args:
        root: File system to look at.
    """
    nodes = _names(root / "dev", "nvidia") | _names(root / "proc" / "driver" / "nvidia" / "gpus", "")
    return any(n.removeprefix("nvidia")[:1].isdigit() for n in nodes) or _below_windows(root)


def _below_windows(root: Path) -> bool:
    """Tell whether this is Linux below Windows with an NVIDIA GPU handed through (WSL)."""
    return (root / "dev" / "dxg").exists() and (root / "usr/lib/wsl/lib/libnvidia-ml.so.1").exists()


def _hidden(visible: str | None) -> bool:
    """Tell whether the list hides every device, however many there are."""
    if visible is None:
        return False
    if visible.strip().upper().startswith(("GPU-", "MIG-")):
        return False
    most = [Device(uuid="")] * 1024
    return not picks(visible, most)


def _is_gpu(component: str) -> bool:
    return component in {"gpu", "total"}


def _names(folder: Path, prefix: str) -> set[str]:
    try:
        return {entry.name for entry in os.scandir(folder) if entry.name.startswith(prefix)}
    except OSError:
        return set()
