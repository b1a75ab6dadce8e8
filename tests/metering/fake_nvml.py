"""A simulated NVML: GPUs that draw power over time and fail as real ones do.

It stands in for the module ``pynvml`` and has its functions, its return codes and its
odd corners (an error with code 0 for an empty list, bytes for texts in old releases).
Time is a clock that a test moves; counters and power change at ticks only.
"""

import itertools
import threading
from types import SimpleNamespace

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 3, 4, 6
UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND = 1, 9, 12
GPU_IS_LOST, UNKNOWN = 15, 999
INSTANT, AVERAGE, GPU, MODULE = 186, 185, 0, 1

H100 = "NVIDIA H100 80GB HBM3"


class FakeError(Exception):
    """As ``pynvml.NVMLError``: carries the return code."""

    def __init__(self, value):
        super().__init__(f"NVML error {value}")
        self.value = value


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now

    def pass_(self, seconds):
        self.now += seconds


class FakeMig:
    """One MIG instance: ``busy`` is its activity in percent, ``name`` its profile."""

    def __init__(self, uuid, gi, ci=0, slices=1, *, busy=0.0, name=None, tells_size=True):
        self.uuid, self.gi, self.ci, self.slices = uuid, gi, ci, slices
        self.busy = busy
        self.name = name or f"{H100} MIG {slices}g.10gb"
        self.tells_size = tells_size


class FakeGpu:
    """One GPU.

    Args:
        uuid: ``GPU-...``.
        power: Watts, or pairs of a time and the watts from then on.
        module: Watts drawn by the rest of its module; ``None`` for a board.
        lacks: Functions or fields ``(id, scope)`` that it does not offer.
    """

    def __init__(self, uuid, power=100.0, *, name=H100, capability=(9, 0), lacks=(), module=None, minor=None):
        self.uuid, self.name, self.capability, self.minor = uuid, name, capability, minor
        self.power = [(0.0, float(power))] if isinstance(power, int | float) else list(power)
        self.lacks = set(lacks)
        self.module = module
        self.limit_w = self.default_limit_w = self.most_limit_w = 700.0
        self.tick_s = 0.1
        self.counted_from = 0.0
        self.fault = None  # code that every call on it gives
        self.faults = {}  # code by function, or by function and GPU instance
        self.hang = None  # an Event that calls wait for
        self.migs = None
        self.max_migs = 7
        self.processes = {}  # pid -> percent
        self.contexts = []
        self.heat_s = 0.0  # how long heat has slowed it
        self.clock_mhz, self.temperature_c, self.memory_bytes = 1980, 41, 5 << 30
        self.counter = None  # a function of the true joules, for impossible counters

    def watts(self, t):
        return [w for start, w in self.power if start <= t][-1]

    def joules(self, since, until):
        """Return the exact integral of the power drawn."""
        bounds = [since, *(s for s, _ in self.power if since < s < until), until]
        return sum(self.watts(a) * (b - a) for a, b in itertools.pairwise(bounds))


class FakeNvml:
    """The library.

    Args:
        gpus: What is in the machine.
        clock: Seconds; moved by the test.
        old: As an old release: bytes for texts, no versioned functions.
    """

    NVMLError = FakeError

    def __init__(self, *gpus, clock=None, old=False):
        self.gpus = list(gpus)
        self.clock = clock or Clock()
        self.old = old
        self.init_fault = None
        self.inits = 0
        self.shutdowns = 0
        self.calls = []
        self.samples = set()
        self._generation = 0
        self._up = False

    def function(self, name):
        """Count how often a function was called."""
        return self.calls.count(name)

    def shut_down_by_others(self):
        """Other code in the process ends the library; handles are void from then on."""
        self._up = False
        self._generation += 1

    def reload_driver(self):
        """Counters start anew, handles are void."""
        self.shut_down_by_others()
        for gpu in self.gpus:
            gpu.counted_from = self.clock()

    # The library's own functions.

    def nvmlInit(self):
        if self.init_fault is not None:
            raise FakeError(self.init_fault)
        self.inits += 1
        self._up = True

    def nvmlShutdown(self):
        self.shutdowns += 1
        self._up = False

    def nvmlSystemGetDriverVersion(self):
        self._asked("nvmlSystemGetDriverVersion")
        return self._text("580.159.04")

    def nvmlDeviceGetCount(self):
        self._asked("nvmlDeviceGetCount")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):
        self._asked("nvmlDeviceGetHandleByIndex")
        return self._handle(self.gpus[index])

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self._asked("nvmlDeviceGetHandleByUUID")
        found = [g for g in self.gpus if g.uuid == uuid]
        if not found:
            raise FakeError(NOT_FOUND)
        return self._handle(found[0])

    def nvmlDeviceGetUUID(self, handle):
        return self._text(self._of(handle, "nvmlDeviceGetUUID").uuid)

    def nvmlDeviceGetName(self, handle):
        return self._text(self._of(handle, "nvmlDeviceGetName").name)

    def nvmlDeviceGetMinorNumber(self, handle):
        gpu = self._of(handle, "nvmlDeviceGetMinorNumber")
        return self.gpus.index(gpu) if gpu.minor is None else gpu.minor

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return round(self._of(handle, "nvmlDeviceGetEnforcedPowerLimit").limit_w * 1000)

    def nvmlDeviceGetPowerManagementLimit(self, handle):
        return round(self._of(handle, "nvmlDeviceGetPowerManagementLimit").limit_w * 1000)

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle):
        return round(self._of(handle, "nvmlDeviceGetPowerManagementDefaultLimit").default_limit_w * 1000)

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle):
        gpu = self._of(handle, "nvmlDeviceGetPowerManagementLimitConstraints")
        return [200_000, round(gpu.most_limit_w * 1000)]

    def nvmlDeviceGetCudaComputeCapability(self, handle):
        return self._of(handle, "nvmlDeviceGetCudaComputeCapability").capability

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        gpu = self._of(handle, "nvmlDeviceGetTotalEnergyConsumption")
        joules = gpu.joules(gpu.counted_from, max(self._tick(gpu), gpu.counted_from))
        joules += (gpu.module or 0.0) * max(self._tick(gpu) - gpu.counted_from, 0.0)
        return round(1000 * (joules if gpu.counter is None else gpu.counter(joules)))

    def nvmlDeviceGetPowerUsage(self, handle):
        gpu = self._of(handle, "nvmlDeviceGetPowerUsage")
        if gpu.capability <= (8, 0):
            return round(1000 * gpu.watts(self._tick(gpu)))
        return round(1000 * gpu.joules(self._tick(gpu) - 1.0, self._tick(gpu)))

    def nvmlDeviceGetFieldValues(self, handle, fields):
        gpu = self._of(handle, "nvmlDeviceGetFieldValues")
        return [self._field(gpu, *field) for field in fields]

    def nvmlDeviceGetViolationStatus(self, handle, policy):
        gpu = self._of(handle, "nvmlDeviceGetViolationStatus")
        heat_s = gpu.heat_s if policy == 1 else 0.0
        return SimpleNamespace(referenceTime=round(self.clock() * 1e6), violationTime=round(heat_s * 1e9))

    def nvmlDeviceGetClockInfo(self, handle, kind):
        assert kind == 1
        return self._of(handle, "nvmlDeviceGetClockInfo").clock_mhz

    def nvmlDeviceGetTemperature(self, handle, place):
        assert place == 0
        return self._of(handle, "nvmlDeviceGetTemperature").temperature_c

    def nvmlDeviceGetMemoryInfo(self, handle):
        gpu = self._of(handle, "nvmlDeviceGetMemoryInfo")
        return SimpleNamespace(total=80 << 30, used=gpu.memory_bytes, free=(80 << 30) - gpu.memory_bytes)

    def nvmlDeviceGetMigMode(self, handle):
        gpu = self._of(handle, "nvmlDeviceGetMigMode")
        return [int(gpu.migs is not None)] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, handle):
        return self._of(handle, "nvmlDeviceGetMaxMigDeviceCount").max_migs

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, index):
        gpu = self._of(handle, "nvmlDeviceGetMigDeviceHandleByIndex")
        if index >= len(gpu.migs):
            raise FakeError(NOT_FOUND)
        return SimpleNamespace(gpu=gpu.migs[index], generation=self._generation)

    def nvmlDeviceGetGpuInstanceId(self, handle):
        return self._of(handle, "nvmlDeviceGetGpuInstanceId").gi

    def nvmlDeviceGetComputeInstanceId(self, handle):
        return self._of(handle, "nvmlDeviceGetComputeInstanceId").ci

    def nvmlDeviceGetAttributes_v2(self, handle):
        mig = self._of(handle, "nvmlDeviceGetAttributes_v2")
        if not mig.tells_size:
            raise FakeError(NOT_SUPPORTED)
        return SimpleNamespace(computeInstanceSliceCount=mig.slices, gpuInstanceSliceCount=mig.slices)

    def nvmlDeviceGetProcessUtilization(self, handle, since_us):
        gpu = self._of(handle, "nvmlDeviceGetProcessUtilization")
        now_us = round(self.clock() * 1e6)
        active = [(pid, percent) for pid, percent in gpu.processes.items() if percent]
        if not active or now_us <= since_us:
            raise FakeError(0 if gpu.processes else NOT_FOUND)
        return [SimpleNamespace(pid=p, timeStamp=now_us, smUtil=u, memUtil=0) for p, u in active]

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        gpu = self._of(handle, "nvmlDeviceGetComputeRunningProcesses")
        return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in gpu.contexts]

    def nvmlGpmSampleAlloc(self):
        self._asked("nvmlGpmSampleAlloc")
        sample = SimpleNamespace(t=None, mig=None)
        self.samples.add(id(sample))
        return sample

    def nvmlGpmSampleFree(self, sample):
        self.samples.remove(id(sample))

    def nvmlGpmMigSampleGet(self, handle, gi, sample):
        gpu = self._of(handle, "nvmlGpmMigSampleGet")
        if code := gpu.faults.get(("nvmlGpmMigSampleGet", gi)):
            raise FakeError(code)
        sample.t, sample.migs = self.clock(), [m for m in gpu.migs if m.gi == gi]
        return sample

    def c_nvmlGpmMetricsGet_t(self):
        return SimpleNamespace(metrics=[SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0)])

    def nvmlGpmMetricsGet(self, wanted):
        self._asked("nvmlGpmMetricsGet")
        assert wanted.sample2.t > wanted.sample1.t
        assert wanted.metrics[0].metricId == 1
        wanted.metrics[0].value = max(m.busy for m in wanted.sample2.migs)
        return wanted

    # The simulation.

    def _field(self, gpu, field, scope):
        code, watts = 0, 0.0
        if (field, scope) in gpu.lacks or (scope == MODULE and gpu.module is None):
            code = NOT_SUPPORTED
        else:
            tick = self._tick(gpu)
            watts = gpu.watts(tick) if field == INSTANT else gpu.joules(tick - 1.0, tick)
            watts += gpu.module or 0.0 if scope == MODULE else 0.0
        return SimpleNamespace(nvmlReturn=code, value=SimpleNamespace(uiVal=round(1000 * watts)))

    def _tick(self, gpu):
        return self.clock() // gpu.tick_s * gpu.tick_s

    def _handle(self, gpu):
        if gpu.fault == GPU_IS_LOST:
            raise FakeError(GPU_IS_LOST)
        return SimpleNamespace(gpu=gpu, generation=self._generation)

    def _of(self, handle, function):
        self._asked(function)
        if handle.generation != self._generation:
            raise FakeError(UNINITIALIZED if not self._up else 2)
        gpu = handle.gpu
        hang = getattr(gpu, "hang", None)
        if hang is not None:
            hang.wait()
        if function in getattr(gpu, "lacks", ()):
            raise FakeError(NOT_SUPPORTED)
        fault = getattr(gpu, "fault", None) or getattr(gpu, "faults", {}).get(function)
        if fault:
            raise FakeError(fault)
        return gpu

    def _asked(self, function):
        self.calls.append(function)
        if not self._up:
            raise FakeError(UNINITIALIZED)

    def _text(self, text):
        return text.encode() if self.old else text


def hanging():
    """Return an event that nobody sets, as a driver that does not come back."""
    return threading.Event()
