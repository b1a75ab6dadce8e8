"""Accelerators that are present, whether or not a sensor can read them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path("/")


def present(root: Path = _ROOT, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return what accelerators this process can reach, in words; empty without any.

    Args:
        root: File system to look at.
        environ: Environment; ``CUDA_VISIBLE_DEVICES`` set to nothing or to a
            negative index hides NVIDIA devices from the work.
    """
    variables = os.environ if environ is None else environ
    found: list[str] = []
    if not _hidden(variables.get("CUDA_VISIBLE_DEVICES")):
        nodes = _names(root / "dev", "nvidia") | _names(root / "proc" / "driver" / "nvidia" / "gpus", "")
        numbered = [n for n in nodes if n.removeprefix("nvidia")[:1].isdigit()]
        if numbered:
            found.append("NVIDIA GPU")
    if (root / "dev" / "kfd").exists():
        found.append("AMD GPU")
    return tuple(found)


def _hidden(visible: str | None) -> bool:
    return visible is not None and (not visible.strip() or visible.strip().startswith("-"))


def _names(folder: Path, prefix: str) -> set[str]:
    try:
        return {entry.name for entry in os.scandir(folder) if entry.name.startswith(prefix)}
    except OSError:
        return set()
