"""An ``amdsmi`` of its own: GPUs that answer as those that people published, faults included."""

from types import SimpleNamespace


class AmdSmiException(Exception):  # noqa: N818  # its name in the library
    """The library's own base of errors."""


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


class FakeGpu:
    """One processor.

    Args:
        name: Market name.
        watts: What it draws, which its counter counts.
        average, current: What the power fields say; the draw by default.
        counts: False for a counter that stands still, a number for one that counts that
            many times the draw, ``None`` for none.
    """

    def __init__(self, name, watts, *, average="N/A", current=None, counts=1.0, hip_id=None, serial=None):
        self.name = name
        self.watts = watts
        self.average = average
        self.current = watts if current is None else current
        self.counts = counts
        self.hip_id = hip_id
        self.serial = serial
        self.gone = False
        self.backwards = False


class FakeAmdsmi:
    """The functions of the module that are used.

    Args:
        gpus: In the library's (PCI) order.
        clock: What its counters follow.
        old: Whether answers are those of versions before 6.2.1.
        fails: Names of functions that raise, or ``init``.
        lacks: Names of functions that this version does not have.
    """

    AmdSmiException = AmdSmiException
    AmdSmiInitFlags = SimpleNamespace(INIT_AMD_GPUS=2)
    AmdSmiClkType = SimpleNamespace(GFX=0)
    AmdSmiTemperatureType = SimpleNamespace(EDGE=0, HOTSPOT=1)
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT=0)
    AmdSmiMemoryType = SimpleNamespace(VRAM=0)

    def __init__(self, gpus, clock=None, *, old=False, fails=(), lacks=()):
        self.gpus = list(gpus)
        self.clock = clock or Clock()
        self._old = old
        self._fails = set(fails)
        self._lacks = set(lacks)
        self.asked = []

    def __getattribute__(self, name):
        if name.startswith("amdsmi_") and name in object.__getattribute__(self, "_lacks"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def _ask(self, function, gpu=None):
        self.asked.append(function)
        if function in self._fails or (gpu is not None and gpu.gone):
            raise AmdSmiException(f"{function}: AMDSMI_STATUS_NO_DATA")

    def amdsmi_init(self, flags):
        self._ask("amdsmi_init")

    def amdsmi_get_processor_handles(self):
        self._ask("amdsmi_get_processor_handles")
        return list(self.gpus)

    def amdsmi_get_gpu_enumeration_info(self, gpu):
        self._ask("amdsmi_get_gpu_enumeration_info", gpu)
        place = self.gpus.index(gpu)
        hip = place if gpu.hip_id is None else gpu.hip_id
        return {"hip_id": hip, "hip_uuid": f"GPU-{place:016x}" if gpu.serial is None else gpu.serial}

    def amdsmi_get_gpu_kfd_info(self, gpu):
        self._ask("amdsmi_get_gpu_kfd_info", gpu)
        place = self.gpus.index(gpu)
        return {"node_id": 2 + (place if gpu.hip_id is None else gpu.hip_id)}

    def amdsmi_get_gpu_asic_info(self, gpu):
        self._ask("amdsmi_get_gpu_asic_info", gpu)
        return {"market_name": gpu.name, "asic_serial": f"0x{self.gpus.index(gpu):016X}"}

    def amdsmi_get_gpu_device_uuid(self, gpu):
        return "00ff74a1-0000-1000-80ff-ffffffffffff"

    def amdsmi_get_gpu_device_bdf(self, gpu):
        return f"0000:{self.gpus.index(gpu):02x}:00.0"

    def amdsmi_get_power_info(self, gpu):
        self._ask("amdsmi_get_power_info", gpu)
        return {
            "average_socket_power": gpu.average,
            "current_socket_power": gpu.current,
            "gfx_voltage": 750,
            "power_limit": 560_000_000,
        }

    def amdsmi_get_power_cap_info(self, gpu):
        self._ask("amdsmi_get_power_cap_info", gpu)
        return {"power_cap": 300_000_000, "max_power_cap": 560_000_000}

    def amdsmi_get_clock_info(self, gpu, kind):
        self._ask("amdsmi_get_clock_info", gpu)
        return {"cur_clk" if self._old else "clk": 2100, "min_clk": 132, "max_clk": 2100}

    def amdsmi_get_temp_metric(self, gpu, place, metric):
        self._ask("amdsmi_get_temp_metric", gpu)
        return {0: "N/A" if not self._old else 38, 1: 47 if not self._old else "N/A"}[place]

    def amdsmi_get_gpu_memory_usage(self, gpu, kind):
        self._ask("amdsmi_get_gpu_memory_usage", gpu)
        return 283 << 20

    def amdsmi_get_energy_count(self, gpu):
        self._ask("amdsmi_get_energy_count", gpu)
        if gpu.counts is None:
            return {"energy_accumulator": "N/A", "counter_resolution": "N/A", "timestamp": 0}
        joules = 1000.0 + gpu.watts * self.clock.now * gpu.counts * (-1 if gpu.backwards else 1)
        key = "power" if self._old else "energy_accumulator"
        return {key: int(joules * 1e6 / 15.3), "counter_resolution": 15.3, "timestamp": 1}
