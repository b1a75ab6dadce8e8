"""NVIDIA GPUs that the work may use: what the driver lists, opened and chosen.

Looked at once a process and environment: sessions share what was found.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.metering.devices import mig
from carbonlens.metering.devices.visibility import (
    VARIABLES,
    Device,
    Instance,
    Pick,
    Visibility,
    visible,
)
from carbonlens.metering.sensors.nvml_faults import GPU_IS_LOST, NvmlError
from carbonlens.metering.sensors.nvml_library import Handle, Nvml, process_nvml, retried

T = TypeVar("T")

_ROOT: Final = Path("/")


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU that the work may use.

    Attributes:
        uuid: ``GPU-...``, also of a GPU of which the work has an instance.
        name: Of the product.
        rated_w: Highest power limit that can be set.
        compute_capability: Of its architecture.
        divided: Whether MIG is on.
        part: The work's share by size of a divided GPU; ``None`` for a whole one, and
            where it cannot be told.
        mine: Instances that are the work's.
        shown: All instances that this process is shown.
    """

    uuid: str
    name: str = ""
    rated_w: float | None = None
    compute_capability: tuple[int, int] | None = None
    divided: bool = False
    part: float | None = None
    mine: tuple[Instance, ...] = ()
    shown: tuple[Instance, ...] = ()

    @property
    def label(self) -> str:
        """Name and the beginning of the UUID, as printed."""
        return f"{self.name or 'NVIDIA GPU'} ({self.uuid[:12]})"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs of the work.

    Attributes:
        gpus: Those it may use.
        present: How many the driver lists.
        silent: How many of them do not answer.
        driver: Version of the driver.
        findings: What could not be told.
    """

    gpus: tuple[Gpu, ...]
    present: int
    silent: int = 0
    driver: str | None = None
    findings: tuple[Finding, ...] = ()


class VisibleGpus:
    """Finds the GPUs that the work may use, when it is first asked.

    Args:
        library: NVML; the process's own by default.
        environ: The work's environment; this process's by default.
        root: File system in which device files are looked for.
    """

    def __init__(
        self, library: Nvml | None = None, environ: Mapping[str, str] | None = None, root: Path = _ROOT
    ) -> None:
        """Prepare; the driver is not asked yet."""
        self.library = library or process_nvml()
        self._environ = dict(os.environ if environ is None else environ)
        self._root = root
        self._lock = threading.Lock()
        self._selection: Selection | None = None
        self._known: dict[tuple[str, str], Any] = {}

    def look(self) -> Selection:
        """Return the GPUs of the work; asked of the driver until all it lists have answered.

        Raises:
            NvmlError: If there is no driver, or it does not answer.
        """
        with self._lock:
            if self._selection is not None:
                return self._selection
            found = self._asked()
            if not found.silent:
                self._selection = found
            return found

    def remembered(self, what: str, uuid: str, find: Callable[[], T]) -> T:
        """Return what was found out about a GPU, asked once unless it failed.

        Args:
            what: Name of the fact.
            uuid: The GPU.
            find: How it is found out; what it raises is not remembered.
        """
        if (what, uuid) not in self._known:
            self._known[what, uuid] = find()
        return cast("T", self._known[what, uuid])

    def _asked(self) -> Selection:
        handles = retried(self.library, self.library.handles)
        listed = [d for d in map(self._device, handles) if d is not None]
        silent = len(handles) - len(listed)
        if handles and not listed:
            raise NvmlError(GPU_IS_LOST, "no GPU tells its UUID")
        open_to_us = _openable([device for device, _ in listed], self._root)
        reachable = [listed[place] for place in open_to_us]
        chosen = visible(self._environ, [device for device, _ in reachable])
        gpus, notes = self._gpus(reachable, chosen)
        return Selection(
            gpus=tuple(gpus),
            present=len(handles),
            silent=silent,
            driver=self.library.driver_version(),
            findings=(*chosen.findings, *notes, *_silent(silent, len(handles))),
        )

    def _device(self, handle: Handle) -> tuple[Device, Handle] | None:
        if handle is None:
            return None
        try:
            uuid = self.library.uuid(handle)
        except OSError:
            return None  # a GPU that is lost has no identity to measure it by
        divided = self.library.is_divided(handle)
        device = Device(
            uuid=uuid,
            name=self.library.name(handle),
            minor=self.library.minor(handle),
            divided=divided,
            instances=mig.instances_of(self.library, handle) if divided else (),
        )
        return device, handle

    def _gpus(
        self, reachable: list[tuple[Device, Handle]], chosen: Visibility
    ) -> tuple[list[Gpu], list[Finding]]:
        gpus: list[Gpu] = []
        notes: list[Finding] = []
        for place, named in _by_device(chosen.picks).items():
            device, handle = reachable[place]
            part, mine = mig.divided_among(device, named) if device.divided else (None, ())
            if device.divided:
                notes += mig.findings_of(device, part)
            gpus.append(
                Gpu(
                    uuid=device.uuid,
                    name=device.name,
                    rated_w=self.library.rated_w(handle),
                    compute_capability=self.library.compute_capability(handle),
                    divided=device.divided,
                    part=part,
                    mine=mine,
                    shown=device.instances,
                )
            )
        return gpus, notes


def process_gpus() -> VisibleGpus:
    """Return the GPUs of this process, found once for each state of its environment."""
    return _gpus_of(tuple((name, os.environ[name]) for name in VARIABLES if name in os.environ), os.getpid())


@lru_cache(maxsize=8)
def _gpus_of(variables: tuple[tuple[str, str], ...], pid: int) -> VisibleGpus:
    del pid  # only part of the key: a forked child looks for itself
    return VisibleGpus(environ=dict(variables))


def _by_device(picks: tuple[Pick, ...]) -> dict[int, list[int | None]]:
    found: dict[int, list[int | None]] = {}
    for pick in picks:
        found.setdefault(pick.device, []).append(pick.instance)
    return found


def _openable(devices: list[Device], root: Path) -> list[int]:
    """Return the places of the devices whose files this process may open.

    A container or cgroup keeps devices away by their files. Where there are no such
    files at all (WSL, a simulation), nothing is kept away by them.
    """
    files = [None if d.minor is None else root / "dev" / f"nvidia{d.minor}" for d in devices]
    if not any(file is not None and file.exists() for file in files):
        return list(range(len(devices)))
    return [k for k, f in enumerate(files) if f is None or os.access(f, os.R_OK | os.W_OK)]


def _silent(silent: int, of: int) -> tuple[Finding, ...]:
    if not silent:
        return ()
    return (
        Finding(
            code="CL139",
            severity="warning",
            message=f"of {counted(of, 'GPU')} that the driver lists, "
            f"{counted(silent, 'does not answer: it is', 'do not answer: they are')} not measured",
            mend="dmesg names the fault (Xid); nvidia-smi shows whether they come back",
            subject="energy.gpu",
        ),
    )
