"""Every sensor module over its fake: a small machine that draws known power and can be broken."""

import itertools
import os
import time
from pathlib import Path

from carbonlens.domain.sources import DatasheetDevice, ManagementController
from carbonlens.metering.devices.nvidia import VisibleGpus
from carbonlens.metering.devices.processes import OwnProcesses
from carbonlens.metering.host import this_host
from carbonlens.metering.sensors.amd import AmdEnergySensor, AmdPowerSensor
from carbonlens.metering.sensors.datasheet import DatasheetSensor
from carbonlens.metering.sensors.external import ExternalSensor
from carbonlens.metering.sensors.hwmon import HwmonSensor
from carbonlens.metering.sensors.intel_npu import IntelNpuSensor
from carbonlens.metering.sensors.ipmi import IpmiSensor
from carbonlens.metering.sensors.jetson import JetsonSensor
from carbonlens.metering.sensors.nvml import NvmlAverageSensor, NvmlEnergySensor, NvmlPowerSensor
from carbonlens.metering.sensors.nvml_library import Nvml
from carbonlens.metering.sensors.nvml_use import NvmlUseSensor
from carbonlens.metering.sensors.powermetrics import PowermetricsSensor
from carbonlens.metering.sensors.ram_model import RamModelSensor
from carbonlens.metering.sensors.rapl import RaplSensor
from carbonlens.metering.sensors.redfish import RedfishSensor
from carbonlens.metering.sensors.replay import ReplaySensor, TraceWriter
from tests.faults.kinds import KindSensor, PanicError
from tests.faults.windows import World
from tests.metering import fake_amdsmi, fake_nvml, trees_hwmon, trees_jetson, trees_npu
from tests.metering.meters import Controller, Memory, meter, plist
from tests.metering.powercap import Powercap, turn
from tests.metering.trees_sysfs import put

WATTS = 100.0
BASE_J = 5000.0


class FilesWorld(World):
    """Files of the kernel that a test writes.

    Attributes:
        files: Each with the function that gives its true text.
    """

    slack_s = 0.015  # they are written before each look

    def __init__(self):
        self.zero_s = time.monotonic()
        self.base = BASE_J
        self.files = {}
        self.told = None
        self.gone = False
        self.faults = {
            "empty": lambda: self._tell(""),
            "N/A": lambda: self._tell("N/A"),
            "binary": lambda: self._tell("\x01\x02"),
            "vanished": self._vanish,
        }

    def joules(self):
        return self.base + WATTS * (time.monotonic() - self.zero_s)

    def tick(self):
        for file, true in self.files.items():
            if not self.gone:
                put(file, true() if self.told is None else self.told)

    def heal(self):
        self.told, self.gone = None, False
        self.tick()

    def _tell(self, text):
        self.told = text
        self.tick()

    def _vanish(self):
        self.gone = True
        for file in self.files:
            file.unlink(missing_ok=True)

    def _count_anew(self):
        self.base, self.zero_s = 0.0, time.monotonic()


class Rapl(FilesWorld):
    """A package of a powercap tree."""

    def __init__(self, root):
        super().__init__()
        tree = Powercap(root / "powercap")
        counter = tree.zone("intel-rapl:0", "package-0", int(BASE_J * 1e6))
        self.sensor = RaplSensor(tree.root)
        self.files = {counter: lambda: int(self.joules() * 1e6)}
        self.rates = {"package-0": WATTS}
        self.faults |= {
            "negative": lambda: self._tell("-5"),
            "1e24": lambda: self._tell("9" * 24),
            "reset": self._count_anew,
        }
        del self.faults["vanished"]  # a file that is open outlives its name; sysfs then gives ENODEV

    def tick(self):
        for file, true in self.files.items():
            turn(file, true() if self.told is None else self.told)


class HwmonMachine(FilesWorld):
    """An ACPI meter of a server."""

    def __init__(self, root):
        super().__init__()
        folder = trees_hwmon.acpi(root, 1, int(WATTS * 1e6), interval_ms=1)
        self.sensor = HwmonSensor(root, "machine")
        self.files = {folder / "power1_average": lambda: int(WATTS * 1e6)}
        self.rates = {c.device: WATTS for c in self.sensor.info.channels}
        self.faults |= {"negative": lambda: self._tell("-5"), "1e24": lambda: self._tell("9" * 24)}


class HwmonGrace(FilesWorld):
    """Meters of a Grace Hopper module."""

    def __init__(self, root):
        super().__init__()
        tree = trees_hwmon.grace_hopper(root)
        watts = {name: int(file.read_text()) for name, file in tree.items()}
        self.files = {file: lambda w=watts[name]: w for name, file in tree.items()}
        self.sensor = HwmonSensor(root, "grace")
        values = self.sensor.read(edge=True)
        self.rates = {c.device: v for c, v in zip(self.sensor.info.channels, values, strict=True)}
        self.faults |= {"negative": lambda: self._tell("-5"), "1e24": lambda: self._tell("9" * 24)}


class HwmonIntelGpu(FilesWorld):
    """The energy counter of a discrete Intel GPU."""

    def __init__(self, root):
        super().__init__()
        folder = trees_hwmon.intel_gpu(root, 1, "xe", (int(BASE_J * 1e6),))
        self.sensor = HwmonSensor(root, "intel_gpu")
        self.files = {folder / "energy1_input": lambda: int(self.joules() * 1e6)}
        self.rates = {c.device: WATTS for c in self.sensor.info.channels}
        self.faults |= {
            "negative": lambda: self._tell("-5"),
            "1e24": lambda: self._tell("9" * 24),
            "reset": self._count_anew,
        }


class Jetson(FilesWorld):
    """Rails of an Orin NX."""

    def __init__(self, root):
        super().__init__()
        folder = trees_jetson.orin_nx(root)
        held = {file: file.read_text().strip() for file in folder.glob("*_input")}
        self.files = {file: lambda text=text: text for file, text in held.items()}
        self.sensor = JetsonSensor(root)
        self.probe()
        values = self.sensor.read(edge=True)
        self.rates = {c.device: v for c, v in zip(self.sensor.info.channels, values, strict=True)}


class IntelNpu(FilesWorld):
    """An NPU that is busy all the time, of stated power."""

    def __init__(self, root):
        super().__init__()
        file = trees_npu.npu(root, busy_us=0)
        self.sensor = IntelNpuSensor(
            root, DatasheetDevice(device="intel_npu", power_w=WATTS, source="a test")
        )
        self.files = {file: lambda: int(self.joules() / WATTS * 1e6)}
        self.rates = {c.device: WATTS for c in self.sensor.info.channels}
        self.faults |= {
            "negative": lambda: self._tell("-5"),
            "1e24": lambda: self._tell("9" * 24),
            "reset": self._count_anew,
        }


class Ram(FilesWorld):
    """Memory of this process on a process file system of the test's."""

    matters = False  # beside a whole server's figure, which holds it

    def __init__(self, root):
        super().__init__()
        memory = Memory(root, os.getpid(), os.sysconf("SC_PAGE_SIZE"))
        memory.holds("self", 1 << 30)
        file = memory.proc / "self" / "statm"
        text = file.read_text().strip()
        self.files = {file: lambda: text}
        self.sensor = RamModelSensor(proc=memory.proc, cgroup=memory.cgroup)
        self.rates = {"memory-held": self.sensor.read(edge=True)[0]}
        del self.faults["vanished"]  # it stays open


class BreakingNvml(fake_nvml.FakeNvml):
    """An NVML that can also raise what is no NVML error."""

    breaks = None

    def _asked(self, function):
        if self.breaks is not None:
            raise self.breaks
        super()._asked(function)


class Nvidia(World):
    """One GPU of 100 W under the real clock, a tick a millisecond."""

    kind = NvmlEnergySensor
    lacks = ()
    slack_s = 0.003

    def __init__(self, root):
        self.gpu = fake_nvml.FakeGpu("GPU-aaaaaaaa-1111", WATTS, lacks=self.lacks)
        self.gpu.tick_s = 0.001
        self.gpu.processes = {os.getpid(): 25.0, 1 << 23: 75.0}
        self.api = BreakingNvml(self.gpu, clock=time.monotonic)
        self.gpus = VisibleGpus(Nvml(self.api), {}, root)
        self.sensor = self.made()
        self.rates = {self.gpu.uuid: WATTS}
        codes = {
            "NotSupported": fake_nvml.NOT_SUPPORTED,
            "no permission": fake_nvml.NO_PERMISSION,
            "GpuIsLost": fake_nvml.GPU_IS_LOST,
            "unknown": fake_nvml.UNKNOWN,
        }
        self.faults = {name: lambda code=code: self._fail(code) for name, code in codes.items()}
        self.faults |= {
            "own family": lambda: self._break(PanicError("upset")),
            "KeyError": lambda: self._break(KeyError("handle")),
            "hang": self._hang,
            "driver reload": self.api.reload_driver,
            "shut down by others": self.api.shut_down_by_others,
        }

    def made(self):
        return self.kind(self.gpus, time.monotonic)

    def heal(self):
        self.gpu.fault, self.api.breaks = None, None
        hang, self.gpu.hang = self.gpu.hang, None
        if hang is not None:
            hang.set()

    def _fail(self, code):
        self.gpu.fault = code

    def _break(self, error):
        self.api.breaks = error

    def _hang(self):
        self.gpu.hang = fake_nvml.hanging()


class NvmlEnergy(Nvidia):
    """The energy counter; it can also jump to what no GPU can have drawn."""

    def __init__(self, root):
        super().__init__(root)
        self.faults |= {
            "1e18": lambda: self._count(lambda _: 1e18),
            "negative": lambda: self._count(lambda _: -1.0),
        }

    def heal(self):
        super().heal()
        self.gpu.counter = None

    def _count(self, counter):
        self.gpu.counter = counter


class NvmlPower(Nvidia):
    """Power of the moment."""

    kind = NvmlPowerSensor


class NvmlAverage(Nvidia):
    """Mean power, of a GPU that has but that."""

    kind = NvmlAverageSensor
    lacks = ((fake_nvml.INSTANT, fake_nvml.GPU),)


class NvmlUse(Nvidia):
    """Who used the GPU."""

    def made(self):
        own = OwnProcesses(namespace=this_host().pid_namespace)
        return NvmlUseSensor(self.gpus, own, time.monotonic)

    def beside(self):
        """Return a sensor of the GPU's energy, which uses are a share of."""
        energy = NvmlEnergySensor(self.gpus, time.monotonic)
        energy.probe()
        return energy


class Amd(World):
    """One card under the real clock."""

    kind = AmdEnergySensor

    def __init__(self, root):
        self.gpu = fake_amdsmi.FakeGpu("AMD Instinct MI300X", WATTS)
        self.api = fake_amdsmi.FakeAmdsmi([self.gpu], _RealClock())
        self.sensor = self.made(root)
        self.faults = {"gone": self._vanish, "own family": self._break, "N/A": self._tell_nothing}

    def made(self, root):
        return AmdEnergySensor(self.api, {}, root=root)

    def probe(self):
        super().probe()
        self.rates = {c.device: WATTS for c in self.sensor.info.channels}

    def heal(self):
        self.gpu.gone, self.gpu.counts, self.gpu.current = False, 1.0, WATTS
        self.api._fails.clear()

    def _vanish(self):
        self.gpu.gone = True

    def _break(self):
        self.api._fails |= {"amdsmi_get_energy_count", "amdsmi_get_power_info"}

    def _tell_nothing(self):
        self.gpu.counts, self.gpu.current = None, "N/A"


class AmdEnergy(Amd):
    """The energy counter."""


class AmdPower(Amd):
    """Socket power."""

    def made(self, root):
        return AmdPowerSensor(self.api, {}, root=root)


class _RealClock:
    """Time as it passes, for the fake's counter."""

    def __init__(self):
        self._zero_s = time.monotonic()

    @property
    def now(self):
        return time.monotonic() - self._zero_s


class _Piped(World):
    """Something that tells by lines or documents, through a pipe that the test writes."""

    slack_s = 0.02

    def __init__(self, root):
        self.path = root / "pipe"
        os.mkfifo(self.path)
        # Held open for both, the pipe keeps what is written and never ends.
        self.handle = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self.told = None
        self.last_s = time.monotonic()
        self.faults = {"silent": lambda: self._tell(b""), "garbage": lambda: self._tell(b"\xff\xfe what?\n")}

    def tick(self):
        now_s = time.monotonic()
        text = self.text(now_s - self.last_s) if self.told is None else self.told
        self.last_s = now_s
        if text:
            os.write(self.handle, text)
        time.sleep(0.003)

    def heal(self):
        self.told = None

    def close(self):
        super().close()
        os.close(self.handle)

    def _tell(self, text):
        self.told = text


class External(_Piped):
    """A meter at the plug, told by a pipe."""

    def __init__(self, root):
        super().__init__(root)
        self.sensor = ExternalSensor(meter(pipe=str(self.path), period_s=0.02))
        self.rates = {"plug": WATTS}
        for name in ("nan", "inf", "N/A"):
            text = f"{{t}},{name}\n"
            self.faults[name] = lambda text=text: self._tell_watts(text)

    def text(self, passed_s):
        del passed_s
        return b"%d,%g\n" % (time.monotonic() * 1e6, WATTS)

    def _tell_watts(self, text):
        self.told = text.format(t=int(time.monotonic() * 1e6)).encode()

    def probe(self):
        super().probe()
        self.tick()
        self.tick()


class Powermetrics(_Piped):
    """Apple's own program, played by a pipe."""

    look_s = 0.012
    slack_s = 0.04

    def __init__(self, root):
        super().__init__(root)
        self.sensor = PowermetricsSensor(("cat", str(self.path)), package_only=False)
        self.faults["damaged"] = lambda: self._tell(b"\0<plist><dict><key>elapsed_ns</key></plist>\n")
        self.faults["no energy"] = lambda: self._tell(plist(0.01, tasks=1).encode())

    def tick(self):
        # A program that was held up tells of all the time since the sample before.
        held_up = self.told == b""
        since_s = self.last_s
        super().tick()
        if held_up:
            self.last_s = since_s

    def text(self, passed_s):
        mj = round(passed_s * WATTS * 1e3)
        return plist(passed_s, cpu_energy=mj, gpu_energy=mj, ane_energy=mj).encode()

    def probe(self):
        super().probe()
        self.rates = {c.device: WATTS for c in self.sensor.info.channels}
        for _ in range(3):
            time.sleep(0.01)
            self.tick()


class Ipmi(World):
    """A controller behind ipmitool, which is asked once a second."""

    faults_text = {  # noqa: RUF012  # fixed
        "deactivated": "Instantaneous power reading: 9 Watts\nPower reading state is: deactivated\n",
        "nought": "Instantaneous power reading: 0 Watts\n",
        "not understood": "usage: ipmitool\n",
    }

    def __init__(self, root):
        self.told = None
        self.sensor = IpmiSensor(self._run)
        self.rates = {"controller": WATTS}
        self.faults = {n: lambda t=t: self._tell(t) for n, t in self.faults_text.items()}
        self.faults["no answer"] = lambda: self._tell(TimeoutError("ipmitool gave no answer"))
        self.faults["own family"] = lambda: self._tell(PanicError("upset"))

    def heal(self):
        self.told = None

    def _tell(self, what):
        self.told = what

    def _run(self, command):
        if isinstance(self.told, Exception):
            raise self.told
        return self.told or f"Instantaneous power reading: {WATTS:g} Watts\n"


class Redfish(World):
    """A controller on loopback."""

    look_s = 0.02

    def __init__(self, root):
        self.documents = {}
        self.controller = Controller(self.documents)
        os.environ["CARBONLENS_REDFISH_USER"] = "reader"
        os.environ["CARBONLENS_REDFISH_PASSWORD"] = "x"  # noqa: S105  # of a test
        where = ManagementController(kind="redfish", url=f"{self.controller.url}/1")
        self.sensor = RedfishSensor(where)
        self.rates = {"controller": WATTS}
        self.faults = {
            "refused": lambda: self._tell(401),
            "error": lambda: self._tell(500),
            "null": lambda: self._tell({"PowerControl": [{"PowerConsumedWatts": None}]}),
            "nought": lambda: self._tell({"PowerControl": [{"PowerConsumedWatts": 0}]}),
            "no JSON": lambda: self._tell(b"\xff<html>"),
        }
        self.heal()

    def heal(self):
        self._tell({"PowerControl": [{"PowerConsumedWatts": WATTS}]})

    def close(self):
        super().close()
        self.controller.close()
        for name in ("USER", "PASSWORD"):
            os.environ.pop(f"CARBONLENS_REDFISH_{name}", None)

    def _tell(self, document):
        self.documents["/1"] = document


class Replay(World):
    """A recording; its faults stand in it, a while later, and the test has its clock jump there."""

    slack_s = 0.006

    def __init__(self, root):
        path = root / "trace.jsonl"
        self.info = KindSensor("instant", may_block=False).info
        writer = TraceWriter(path, self.info)
        for t_us in range(0, 2_000_000, 5000):
            writer.append(t_us, (WATTS,))
        for t_us in range(100_000_000, 102_000_000, 5000):
            writer.append(t_us, None)
        for t_us in range(200_000_000, 202_000_000, 5000):
            writer.append(t_us, (None,))
        writer.close()
        self.ahead_s = 0.0
        self.sensor = ReplaySensor(path, clock=lambda: time.monotonic() + self.ahead_s)
        self.rates = {self.info.channels[0].device: WATTS}
        self.faults = {
            "failed": lambda: self._jump(100.0),
            "nothing": lambda: self._jump(200.0),
            "over": lambda: self._jump(1000.0),
        }

    def probe(self):
        super().probe()
        self.sensor.read(edge=True)

    def heal(self):
        self.ahead_s = 0.0

    def _jump(self, ahead_s):
        self.ahead_s = ahead_s


class Datasheet(World):
    """A declared constant, with no fault of its own."""

    def __init__(self, root):
        device = DatasheetDevice(device="tpu", power_w=WATTS, source="a test", component="npu")
        self.sensor = DatasheetSensor(device)
        self.rates = {"tpu": WATTS}
        self.faults = {}


WORLDS = (
    Rapl,
    HwmonMachine,
    HwmonGrace,
    HwmonIntelGpu,
    Jetson,
    IntelNpu,
    Ram,
    NvmlEnergy,
    NvmlPower,
    NvmlAverage,
    NvmlUse,
    AmdEnergy,
    AmdPower,
    External,
    Powermetrics,
    Ipmi,
    Redfish,
    Replay,
    Datasheet,
)

_numbers = itertools.count()


def built(kind, folder: Path):
    """Make one, probed, with a folder of its own."""
    root = folder / f"world-{next(_numbers)}"
    root.mkdir()
    world = kind(root)
    world.probe()
    return world
