"""One GPU's reading, with patience for a GPU that is lost and may come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from carbonlens.metering.sensors.nvml_faults import INVALID_ARGUMENT, UNINITIALIZED, NvmlError
from carbonlens.metering.sensors.nvml_library import Handle, Nvml

T = TypeVar("T")

FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 60.0

_OF_THE_HANDLE: Final = frozenset({UNINITIALIZED, INVALID_ARGUMENT})
"""Faults of a handle from before the library was shut down: a fresh one may read at once."""


class DeviceLine(Generic[T]):
    """Reads one GPU; after a fault it asks again, less and less often.

    The GPU is looked up by its UUID again, because a handle is of no use once the GPU
    was lost or other code shut the library down. At the edges of a window it is always
    asked.

    Args:
        library: NVML.
        uuid: Of the GPU.
        read: Reads it through a handle; raises ``OSError`` for a fault.
        clock: Seconds of a monotonic clock.
    """

    def __init__(
        self, library: Nvml, uuid: str, read: Callable[[Handle], T], clock: Callable[[], float]
    ) -> None:
        """Prepare; the GPU is looked up at the first read."""
        self.uuid = uuid
        self.fault: OSError | None = None
        self._library = library
        self._read = read
        self._clock = clock
        self._handle: Handle = None
        self._wait_s = FIRST_WAIT_S
        self._again_at: float | None = None

    def read(self, *, edge: bool) -> T | None:
        """Return a reading; ``None`` when there is none, and ``fault`` then says why.

        Args:
            edge: True at the edges of a window.
        """
        if self._again_at is not None and not edge and self._clock() < self._again_at:
            return None
        for _ in range(2):
            try:
                handle = self._handle
                if handle is None:
                    handle = self._handle = self._library.handle(self.uuid)
                value = self._read(handle)
            except OSError as fault:
                self._handle = None
                self.fault = fault
                if not (isinstance(fault, NvmlError) and fault.code in _OF_THE_HANDLE):
                    break
            else:
                if self._again_at is not None:
                    self._again_at, self._wait_s = None, FIRST_WAIT_S
                return value
        self._again_at = self._clock() + self._wait_s
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        return None
