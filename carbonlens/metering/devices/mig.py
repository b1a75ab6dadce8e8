"""MIG: the instances a GPU is divided into, and the share of it that each has by size.

NVML has neither power nor energy of an instance: they are read from the whole GPU,
and the work is billed a share of it, which is a model and labelled as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from carbonlens.domain.finding import Finding
from carbonlens.metering.devices.visibility import Device, Instance
from carbonlens.metering.sensors.nvml_library import Handle, Nvml

_PROFILE: Final = re.compile(r"MIG (?:(\d+)c\.)?(\d+)g\.")
"""A profile's name: "MIG 1g.10gb", "MIG 1c.3g.40gb" (one compute slice of three)."""


def instances_of(library: Nvml, handle: Handle) -> tuple[Instance, ...]:
    """Return the MIG instances of a GPU that this process is shown.

    Args:
        library: NVML.
        handle: Of the GPU, on which MIG is on.
    """
    handles, most = library.instances(handle)
    found: list[Instance] = []
    for one in handles:
        try:
            uuid = library.uuid(one)
        except OSError:
            continue  # it was taken down meanwhile
        slices = library.compute_slices(one) or _slices_by_name(library.name(one))
        gpu, compute = library.instance_ids(one)
        found.append(
            Instance(
                uuid=uuid,
                gpu_instance=gpu,
                compute_instance=compute,
                part=min(slices / most, 1.0) if slices and most else None,
            )
        )
    return tuple(found)


def divided_among(device: Device, named: Sequence[int | None]) -> tuple[float | None, tuple[Instance, ...]]:
    """Return the work's share of a divided GPU, and the instances that are the work's.

    A GPU that was chosen as a whole, as by an index, gives the work one of its
    instances: the only one that is shown, else it cannot be told which.

    Args:
        device: The GPU.
        named: Places of the instances the work may use; ``None`` where none is named.

    Returns:
        ``None`` as the share when it cannot be told: the whole GPU is then an upper bound.
    """
    if any(place is None for place in named):
        named = (0,) if len(device.instances) == 1 else ()
    mine = tuple(device.instances[place] for place in named if place is not None)
    parts = [instance.part for instance in mine]
    if not parts or any(part is None for part in parts):
        return None, mine
    return min(sum(part for part in parts if part is not None), 1.0), mine


def findings_of(device: Device, part: float | None) -> tuple[Finding, ...]:
    """Return what must be said of a divided GPU.

    Args:
        device: The GPU.
        part: The work's share of it by size.
    """
    if part is None:
        return (
            Finding(
                code="CL135",
                severity="warning",
                message=f"{device.uuid} is divided (MIG) and it cannot be told which instance is the work's: "
                "the energy of the whole GPU stands for it, an upper bound",
                mend="name the instance: CUDA_VISIBLE_DEVICES=MIG-... (nvidia-smi -L)",
                subject=device.uuid,
            ),
        )
    return (
        Finding(
            code="CL136",
            severity="info",
            message=f"{device.uuid} is divided (MIG), and no sensor reads an instance: the work is billed "
            f"its share of the GPU's energy, by activity where that is told, else {part:.0%} by size",
            subject=device.uuid,
        ),
    )


def _slices_by_name(name: str) -> int | None:
    found = _PROFILE.search(name)
    return int(found[1] or found[2]) if found else None
