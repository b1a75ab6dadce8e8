"""Processes on a GPU: how much of its activity was the work's own, and how much everybody's.

Activity is what NVML samples: the share of time in which a process had a kernel
running. It tells who used a GPU, not what that took.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from carbonlens.metering.childless import is_childless
from carbonlens.metering.devices.nvidia import Gpu
from carbonlens.metering.host import this_host
from carbonlens.metering.process_time import children, process_at
from carbonlens.metering.sensors.nvml_faults import NOT_SUPPORTED, NvmlError
from carbonlens.metering.sensors.nvml_library import Busy, Handle, Nvml

INITIAL_NAMESPACE: Final = "pid:[4026531836]"
"""The namespace in which a process has the number that the driver knows (Linux,
include/linux/proc_ns.h: PROC_PID_INIT_INO)."""

_PROC: Final = Path("/proc")
_PERCENT: Final = 0.01
_US: Final = 1e-6
_ALL_OF_IT: Final = 0.99
_TOLD_LATE_S: Final = 5.0
"""The driver tells of a process after its end; a number is given anew when all others were."""

_LEAST_APART_S: Final = 0.1
"""Performance samples closer together say nothing (the counters move in ticks)."""


class Used(NamedTuple):
    """Seconds of activity since the first look: the work's own and everybody's; ``None`` if unknown."""

    own_s: float | None
    all_s: float | None


class OwnProcesses:
    """The processes of the work: this one, its descendants, and those that ended a moment ago.

    Of these the driver may still tell something. Later their numbers are given to others.

    Args:
        pid: The root of the tree; this process by default.
        proc: The process file system.
        namespace: Its pid namespace, as ``/proc/self/ns/pid`` names it.
        clock: Seconds of a monotonic clock.
    """

    def __init__(
        self,
        pid: int | None = None,
        proc: Path = _PROC,
        namespace: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with the root alone."""
        self._clock = clock
        self._root = os.getpid() if pid is None else pid
        self._proc = proc
        self._living: dict[int, bytes | None] = {self._root: None}
        self._ended: dict[int, float] = {}
        self._confirmed = (this_host().pid_namespace if namespace is None else namespace) == INITIAL_NAMESPACE

    @property
    def in_initial_namespace(self) -> bool:
        """Whether the driver's process numbers are surely this process's own."""
        return self._confirmed

    @property
    def seen(self) -> frozenset[int]:
        """Numbers of the processes in the tree at the last look, and of those that had just ended."""
        return frozenset((*self._ended, *self._living))

    def look(self) -> None:
        """Walk the tree, and forget who ended a while ago."""
        now_s = self._clock()
        self._ended = {pid: since_s for pid, since_s in self._ended.items() if now_s - since_s < _TOLD_LATE_S}
        alone = len(self._living) == 1
        if self._root == os.getpid() and alone and self._proc == _PROC and is_childless():
            return
        self._ended |= dict.fromkeys(self._gone(), now_s)
        waiting = list(self._living)
        while waiting:
            for child in children(waiting.pop(), self._proc):
                if child not in self._living:
                    process = process_at(child, self._proc)
                    if process is not None:
                        self._living[child] = process.start
                        self._ended.pop(child, None)
                        waiting.append(child)

    def _gone(self) -> list[int]:
        """Take out the processes that are gone; return the numbers that nobody else has by now."""
        free = []
        for pid, start in tuple(self._living.items()):
            process = process_at(pid, self._proc) if pid != self._root else None
            if pid == self._root or (process is not None and process.start == start):
                continue
            del self._living[pid]
            if process is None:
                free.append(pid)
        return free

    def are_named_in(self, pids: Iterable[int]) -> bool:
        """Tell whether the driver's process numbers mean the same here.

        In a container a driver may give the host's numbers. They are trusted as soon as
        one of the work's own processes is among those with a context on the GPU.

        Args:
            pids: Numbers the driver gives.
        """
        if not self._confirmed:
            self._confirmed = not self.seen.isdisjoint(pids)
        return self._confirmed


class ProcessMeter:
    """Adds up what processes did on one GPU, from samples of the driver's.

    Args:
        library: NVML.
        own: The work's processes; whoever reads has them looked at before.
        clock: Seconds of a monotonic clock.
    """

    def __init__(self, library: Nvml, own: OwnProcesses, clock: Callable[[], float]) -> None:
        """Start at nothing."""
        self._library = library
        self._own = own
        self._clock = clock
        self._since_us: int | None = None
        self._looked_at = 0.0
        self._own_s = 0.0
        self._all_s = 0.0

    def __call__(self, handle: Handle) -> Used:
        """Return the seconds so far.

        Raises:
            NvmlError: If the device does not tell.
        """
        now = self._clock()
        samples = self._library.busy(handle, self._since_us or 0)
        mine = self._own.seen
        if self._since_us is not None:
            elapsed_us = (now - self._looked_at) / _US
            seconds = _seconds_by_pid(samples, self._since_us, elapsed_us)
            self._all_s += sum(seconds.values())
            self._own_s += sum(s for pid, s in seconds.items() if pid in mine)
        self._since_us = max((s.t_us for s in samples), default=self._since_us or 0)
        self._looked_at = now
        return Used(self._own_s if self._tells_own(handle, samples) else None, self._all_s)

    def _tells_own(self, handle: Handle, samples: Iterable[Busy]) -> bool:
        """Tell whether the work's own part is known; while nobody did anything, it is."""
        if self._all_s == 0 or self._own.are_named_in(s.pid for s in samples):
            return True
        return self._own.are_named_in(self._library.pids(handle))


class InstanceMeter:
    """Adds up the activity of a divided GPU's instances, each weighted by its size.

    Args:
        library: NVML.
        gpu: The GPU, with the instances that are the work's and those that are shown.
        clock: Seconds of a monotonic clock.

    Raises:
        NvmlError: If the instances of others are not all shown, or sizes are unknown: the
            share would come out too high.
    """

    def __init__(self, library: Nvml, gpu: Gpu, clock: Callable[[], float]) -> None:
        """Weigh the instances; nothing is sampled yet."""
        self._library = library
        self._clock = clock
        self._weights = _weights(gpu)
        self._last: tuple[float, dict[int, Handle]] | None = None
        self._own_s = 0.0
        self._all_s = 0.0

    def __call__(self, handle: Handle) -> Used:
        """Return the seconds so far; a second is the whole GPU's.

        Raises:
            NvmlError: If an instance does not tell (before Hopper none does).
        """
        now = self._clock()
        if self._last is not None and now - self._last[0] < _LEAST_APART_S:
            return Used(self._own_s, self._all_s)
        samples = self._sampled(handle)
        last, self._last = self._last, (now, samples)
        if last is not None:
            try:
                for instance, (own, whole) in self._weights.items():
                    active = self._library.active_percent(last[1][instance], samples[instance]) * _PERCENT
                    self._own_s += active * own * (now - last[0])
                    self._all_s += active * whole * (now - last[0])
            finally:
                self._free(last[1])
        return Used(self._own_s, self._all_s)

    def close(self) -> None:
        """Give the last samples back."""
        if self._last is not None:
            self._free(self._last[1])
            self._last = None

    def _sampled(self, handle: Handle) -> dict[int, Handle]:
        taken: dict[int, Handle] = {}
        try:
            for instance in self._weights:
                taken[instance] = self._library.instance_sample(handle, instance)
        except NvmlError:
            self._free(taken)
            raise
        return taken

    def _free(self, samples: dict[int, Handle]) -> None:
        for sample in samples.values():
            self._library.free(sample)


def _seconds_by_pid(samples: Iterable[Busy], since_us: int, elapsed_us: float) -> dict[int, float]:
    """Return how long each process was active.

    A sample holds for the time since the last one of its process, at most for what has
    passed since the last look: idle samples are left out by the driver.
    """
    seconds: dict[int, float] = {}
    last_us: dict[int, int] = {}
    for sample in sorted(samples, key=lambda s: s.t_us):
        held_us = min(max(sample.t_us - last_us.get(sample.pid, since_us), 0), elapsed_us)
        last_us[sample.pid] = sample.t_us
        seconds[sample.pid] = seconds.get(sample.pid, 0.0) + sample.percent * _PERCENT * held_us * _US
    return seconds


def _weights(gpu: Gpu) -> dict[int, tuple[float, float]]:
    """Return the work's and the whole part of the GPU, by GPU instance."""
    weights: dict[int, tuple[float, float]] = {}
    shown = 0.0
    for instance in gpu.shown:
        if instance.gpu_instance is None or instance.part is None:
            raise NvmlError(NOT_SUPPORTED, f"size of {instance.uuid}")
        own, whole = weights.get(instance.gpu_instance, (0.0, 0.0))
        mine = instance.part if instance in gpu.mine else 0.0
        weights[instance.gpu_instance] = (own + mine, whole + instance.part)
        shown += instance.part
    if not weights:
        raise NvmlError(NOT_SUPPORTED, "instances of the GPU")
    if shown < _ALL_OF_IT and this_host().pid_namespace != INITIAL_NAMESPACE:
        raise NvmlError(NOT_SUPPORTED, "instances of others, which a container may hide")
    return weights
