"""Which devices two runs share, and of which of them it is sure that they are one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from carbonlens.domain.run import Run

_ONE_IN_THE_WORLD: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<!\d)\d{10,}(?!\d)|\bJS\d{3}-\d{4,}", re.IGNORECASE
)
"""UUIDs, serial numbers of boards and of meters."""

_ONE_IN_A_MACHINE: Final = re.compile(
    r"\d+|(?:gpu|card|package|socket)[ _-]?\d+|host|(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d", re.I
)
"""An index that a tool gives, alone or behind the kind of device; the machine; or a place on a bus."""


@lru_cache(maxsize=4096)
def is_one_in_the_world(device: str) -> bool:
    """Tell whether no other device has an id, in whatever machine it is."""
    return _ONE_IN_THE_WORLD.search(device) is not None


def devices_of(run: Run) -> list[str]:
    """Return the devices whose energy counts in a run, each once."""
    return list(dict.fromkeys(d for r in run.energy if r.energy_j for d in r.devices))


def shared(run: Run, held: Run) -> list[str]:
    """Return the devices that two runs name alike."""
    theirs = devices_of(held)
    return [d for d in devices_of(run) if d in theirs]


def sure_devices(run: Run, held: Run) -> Iterator[str]:
    """Yield the devices of both that are one for sure."""
    is_one_machine = run.host_id is not None and run.host_id == held.host_id
    for device in shared(run, held):
        if is_one_in_the_world(device) or (is_one_machine and _ONE_IN_A_MACHINE.fullmatch(device)):
            yield device
