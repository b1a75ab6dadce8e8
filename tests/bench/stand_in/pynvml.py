"""A stand-in for ``pynvml`` with as many equal GPUs as ``STAND_IN_GPUS`` says, for what measuring costs.

A counter takes 3 ms and everything else nothing, as on an H100 in its own thread; what
the tools do themselves is then what is compared. Not for tests of what is measured.
"""

# ruff: noqa: N801, N802, N816, N818 - the library's own names

import os
import time
from types import SimpleNamespace

COUNTER_S = 0.003
POWER_MW = 400_000
NVML_TEMPERATURE_GPU = 0
NVML_SUCCESS = 0


class NVMLError(Exception):
    """Carries the return code."""

    def __init__(self, value=3):
        super().__init__(value)
        self.value = value


class NVMLError_NotSupported(NVMLError):
    """Something is not offered."""


class NVMLError_FunctionNotFound(NVMLError):
    """Something is not there."""


def nvmlInit():
    """Start."""


def nvmlShutdown():
    """End."""


def nvmlSystemGetDriverVersion():
    return "580.0"


def nvmlDeviceGetCount():
    return int(os.environ.get("STAND_IN_GPUS", "0"))


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlDeviceGetHandleByUUID(uuid):
    return int(uuid.rpartition("-")[2])


def nvmlDeviceGetUUID(handle):
    return f"GPU-00000000-0000-0000-0000-{handle:012d}"


def nvmlDeviceGetName(handle):
    return "NVIDIA H100 80GB HBM3"


def nvmlDeviceGetMinorNumber(handle):
    return handle


def nvmlDeviceGetEnforcedPowerLimit(handle):
    return 700_000


nvmlDeviceGetPowerManagementLimit = nvmlDeviceGetEnforcedPowerLimit


def nvmlDeviceGetCudaComputeCapability(handle):
    return (9, 0)


def nvmlDeviceGetMigMode(handle):
    return [0, 0]


def nvmlDeviceGetTotalEnergyConsumption(handle):
    end = time.perf_counter() + COUNTER_S
    while time.perf_counter() < end:
        pass
    return int(time.monotonic() // 0.1 * 0.1 * POWER_MW)


def nvmlDeviceGetPowerUsage(handle):
    return POWER_MW


def nvmlDeviceGetFieldValues(handle, fields):
    return [
        SimpleNamespace(nvmlReturn=0 if scope == 0 else 3, value=SimpleNamespace(uiVal=POWER_MW))
        for _, scope in fields
    ]


def nvmlDeviceGetProcessUtilization(handle, since_us):
    return [SimpleNamespace(pid=os.getpid(), timeStamp=time.time_ns() // 1000, smUtil=97)]


def nvmlDeviceGetComputeRunningProcesses(handle):
    return [SimpleNamespace(pid=os.getpid(), usedGpuMemory=None)]


nvmlDeviceGetGraphicsRunningProcesses = nvmlDeviceGetComputeRunningProcesses


def nvmlDeviceGetMemoryInfo(handle):
    return SimpleNamespace(total=85_899_345_920, used=1 << 30, free=84 << 30)


def nvmlDeviceGetUtilizationRates(handle):
    return SimpleNamespace(gpu=97, memory=10)


def nvmlDeviceGetTemperature(handle, sensor):
    return 50


def nvmlDeviceGetComputeMode(handle):
    return 0
