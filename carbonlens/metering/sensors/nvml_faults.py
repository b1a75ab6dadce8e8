"""Faults of NVML: each return code with its reason and one safe mend."""

from __future__ import annotations

from typing import Final

UNINITIALIZED: Final = 1
INVALID_ARGUMENT: Final = 2
NOT_SUPPORTED: Final = 3
NO_PERMISSION: Final = 4
NOT_FOUND: Final = 6
DRIVER_NOT_LOADED: Final = 9
LIBRARY_NOT_FOUND: Final = 12
FUNCTION_NOT_FOUND: Final = 13
GPU_IS_LOST: Final = 15
UNKNOWN: Final = 999

_CONTAINER: Final = "start the container with: --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"
_REBOOT: Final = "restart the machine at its next maintenance; dmesg names the fault (Xid)"

_FAULTS: Final[dict[int, tuple[str, str | None]]] = {
    0: ("the driver gave no answer", None),
    UNINITIALIZED: ("the library was shut down by other code", None),
    INVALID_ARGUMENT: ("the driver does not know the request", None),
    NOT_SUPPORTED: ("the device does not offer it", None),
    NO_PERMISSION: ("no permission", "ask an administrator to allow it for this user"),
    NOT_FOUND: ("not found", None),
    8: ("the device's power cables are not connected", None),
    DRIVER_NOT_LOADED: ("the NVIDIA driver is not loaded", _CONTAINER),
    10: ("the driver did not answer in time", None),
    LIBRARY_NOT_FOUND: ("libnvidia-ml.so.1 is not installed", _CONTAINER),
    FUNCTION_NOT_FOUND: ("the driver is too old for it", "use a newer NVIDIA driver"),
    GPU_IS_LOST: ("the GPU fell off the bus", _REBOOT),
    16: ("the GPU must be reset", _REBOOT),
    17: ("the operating system blocked it", _CONTAINER),
    18: ("driver and library are of different versions", "restart the machine: the driver was updated"),
    UNKNOWN: ("the driver gave an unknown error", None),
}
"""Reason and mend by NVML return code (nvml.h: a stable part of its interface)."""


class NvmlError(OSError):
    """A call to NVML failed.

    Args:
        code: NVML's return code.
        what: What was asked for.
    """

    def __init__(self, code: int, what: str) -> None:
        """Look up the reason, so that a reader needs no table."""
        self.code = code
        self.reason, self.mend = _FAULTS.get(code, (f"NVML error {code}", None))
        super().__init__(f"{what}: {self.reason}")
