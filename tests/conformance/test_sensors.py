"""Every sensor module keeps the sensors' contract, healthy and with each of its faults."""

import itertools
import os
from pathlib import Path

import pytest

from carbonlens.domain.sources import DatasheetDevice, ExternalMeter, ManagementController
from carbonlens.metering.devices.nvidia import VisibleGpus
from carbonlens.metering.sensors.amd import AmdEnergySensor, AmdPowerSensor
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.metering.sensors.datasheet import DatasheetSensor
from carbonlens.metering.sensors.external import ExternalSensor
from carbonlens.metering.sensors.hwmon import HwmonSensor
from carbonlens.metering.sensors.intel_npu import IntelNpuSensor
from carbonlens.metering.sensors.ipmi import IpmiSensor
from carbonlens.metering.sensors.jetson import JetsonSensor
from carbonlens.metering.sensors.nvml import NvmlAverageSensor, NvmlEnergySensor, NvmlPowerSensor
from carbonlens.metering.sensors.nvml_library import Nvml
from carbonlens.metering.sensors.powermetrics import PowermetricsSensor
from carbonlens.metering.sensors.ram_model import RamModelSensor
from carbonlens.metering.sensors.rapl import RaplSensor
from carbonlens.metering.sensors.redfish import RedfishSensor
from carbonlens.metering.sensors.replay import ReplaySensor, TraceWriter
from tests.conformance.sensors import SensorContract
from tests.metering import fake_amdsmi, trees_hwmon, trees_jetson, trees_npu
from tests.metering.fake_nvml import DRIVER_NOT_LOADED, GPU, GPU_IS_LOST, INSTANT, FakeGpu, FakeNvml
from tests.metering.meters import Controller, Memory, meter, plist, printing, saying
from tests.metering.powercap import Powercap

WAIT_S = 5.0
SHORT_S = 0.2


class OnFiles(SensorContract):
    """A contract whose sensors read files; each gets a folder of its own."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self._numbers = itertools.count()
        self._root = tmp_path

    def root(self):
        """Return a fresh folder."""
        path = self._root / f"machine-{next(self._numbers)}"
        path.mkdir()
        return path


class TestRapl(OnFiles):
    """RAPL on a tree like the kernel's."""

    faults = ("no zones", "empty counter", "counter is a folder")
    ends_with_close = False

    def healthy(self):
        tree = Powercap(self.root() / "powercap")
        tree.zone("intel-rapl:0", "package-0", 5_000_000)
        tree.zone("intel-rapl:0:0", "dram", 1_000_000)
        return RaplSensor(tree.root)

    def with_fault(self, name):
        tree = Powercap(self.root() / "powercap")
        if name != "no zones":
            counter = tree.zone("intel-rapl:0", "package-0", 5_000_000)
            counter.unlink()
            if name == "counter is a folder":
                counter.mkdir()
        return RaplSensor(tree.root)


class TestCpuModel(SensorContract):
    """The CPU model, which has no fault of its own."""

    ends_with_close = False

    def healthy(self):
        return CpuModelSensor()

    def with_fault(self, name):
        raise NotImplementedError(name)


class TestExternal(SensorContract):
    """A meter told by a program."""

    faults = ("no such program", "ends at once", "silent", "no power in its lines")

    def healthy(self):
        return ExternalSensor(meter(printing()), wait_s=WAIT_S)

    def with_fault(self, name):
        commands = {
            "no such program": ("/no/such/meter",),
            "ends at once": saying("0,5\n", stay=False),
            "silent": saying(""),
            "no power in its lines": saying("0,nan\n1000000,N/A\n"),
        }
        # A line that came before the program ended is no fault until it is old.
        clock = itertools.count(0.0, 100.0).__next__
        return ExternalSensor(meter(commands[name]), wait_s=SHORT_S, clock=clock)


class TestExternalRailsOfUnstatedAccuracy(TestExternal):
    """A meter of two rails, whose width nobody states."""

    def healthy(self):
        lines = "".join(f"{k},100,a\n{k},20,b\n" for k in range(0, 10_000_000, 1_000_000))
        declared = ExternalMeter(
            name="board",
            command=saying(lines),
            rails=("a", "b"),
            component="gpu",
            boundary="device",
            period_s=100.0,
        )
        return ExternalSensor(declared, wait_s=WAIT_S)


class TestExternalPipe(OnFiles):
    """A meter told by a named pipe."""

    faults = ("no such pipe",)

    def healthy(self):
        path = self.root() / "meter"
        os.mkfifo(path)
        # Held open for reading and writing, the pipe keeps what is written into it.
        handle = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        os.write(handle, b"0,50\n1000000,50\n")
        self.held.append(handle)
        return ExternalSensor(meter(pipe=str(path), period_s=100.0), wait_s=WAIT_S)

    def with_fault(self, name):
        return ExternalSensor(meter(pipe=str(self.root() / "none")), wait_s=SHORT_S)

    @pytest.fixture(autouse=True)
    def writers(self):
        self.held = []
        yield
        for handle in self.held:
            os.close(handle)

    def test_making_one_opens_and_starts_nothing(self):
        pytest.skip("the test itself holds the pipe open")

    def test_closing_leaves_no_file_open(self):
        pytest.skip("the test itself holds the pipe open")


class TestPowermetrics(SensorContract):
    """Powermetrics on recordings."""

    faults = ("no such program", "sudo wants a password", "silent", "damaged", "no energy")

    def healthy(self):
        sample = plist(cpu_energy=1000, gpu_energy=10, ane_energy=0)
        return PowermetricsSensor(saying(sample), package_only=False, wait_s=WAIT_S)

    def with_fault(self, name):
        commands = {
            "no such program": ("/no/such/powermetrics",),
            "sudo wants a password": ("sh", "-c", "exit 1"),
            "silent": saying(""),
            "damaged": saying("<plist>\0</plist>"),
            "no energy": saying(plist(tasks=1)),
        }
        return PowermetricsSensor(commands[name], package_only=False, wait_s=SHORT_S)


class TestIpmi(SensorContract):
    """A management controller behind ipmitool."""

    faults = ("no such program", "not filled in", "deactivated", "not understood")

    def healthy(self):
        return IpmiSensor(lambda _: "Instantaneous power reading: 200 Watts\n", wait_s=WAIT_S)

    def with_fault(self, name):
        if name == "no such program":

            def run(command):
                raise FileNotFoundError(2, "No such file or directory", command[0])
        else:
            text = {
                "not filled in": "Instantaneous power reading: 0 Watts\n",
                "deactivated": "Instantaneous power reading: 9 Watts\nPower reading state is: deactivated\n",
                "not understood": "usage: ipmitool\n",
            }[name]

            def run(command):
                return text

        return IpmiSensor(run, wait_s=WAIT_S)


class TestRedfish(SensorContract):
    """A management controller on loopback."""

    faults = ("refused", "null", "nought", "no address", "in the clear")

    @pytest.fixture(autouse=True)
    def account(self, monkeypatch):
        monkeypatch.setenv("CARBONLENS_REDFISH_USER", "reader")
        monkeypatch.setenv("CARBONLENS_REDFISH_PASSWORD", "x")
        watts = {"/1": 300, "/null": None, "/nought": 0}
        told = {name: {"PowerControl": [{"PowerConsumedWatts": w}]} for name, w in watts.items()}
        self.controller = Controller({"/refused": 401, **told})
        yield
        self.controller.close()

    def asking(self, url):
        return RedfishSensor(ManagementController(kind="redfish", url=url), wait_s=WAIT_S)

    def healthy(self):
        return self.asking(f"{self.controller.url}/1")

    def with_fault(self, name):
        urls = {"no address": None, "in the clear": "http://bmc.example/1"}
        return self.asking(urls.get(name, f"{self.controller.url}/{name}"))

    def test_closing_leaves_no_file_open(self):
        pytest.skip("the controller under test is in this process, with its own sockets")


class TestDatasheet(SensorContract):
    """A constant."""

    faults = ("nan", "0", "-1")

    def healthy(self):
        return DatasheetSensor(DatasheetDevice(device="tpu", power_w=2.0, source="datasheet v1.4"))

    def with_fault(self, name):
        return DatasheetSensor(DatasheetDevice(device="tpu", power_w=float(name), source="none"))


class TestReplay(OnFiles):
    """A recorded trace."""

    faults = ("no such file", "damaged", "empty")

    def trace(self, *rows):
        path = self.root() / "trace.jsonl"
        info = ExternalSensor(meter(printing())).info
        writer = TraceWriter(path, info)
        for row in rows:
            writer.append(*row)
        writer.close()
        return path

    def healthy(self):
        return ReplaySensor(self.trace((0, (1.0,)), (10_000_000, (2.0,))))

    def with_fault(self, name):
        if name == "no such file":
            return ReplaySensor(self.root() / "none.jsonl")
        path = self.trace()
        if name == "damaged":
            path.write_text("{}\n")
        return ReplaySensor(path)


class TestRamModel(OnFiles):
    """The RAM model on a process file system of its own."""

    faults = ("no proc", "nonsense")

    def memory(self):
        return Memory(self.root(), os.getpid(), os.sysconf("SC_PAGE_SIZE"))

    def healthy(self):
        memory = self.memory()
        memory.holds("self", 1 << 30)
        return RamModelSensor(proc=memory.proc, cgroup=memory.cgroup)

    def with_fault(self, name):
        memory = self.memory()
        if name == "nonsense":
            (memory.proc / "self" / "statm").write_text("what\n")
        return RamModelSensor(proc=memory.proc, cgroup=memory.cgroup)


class Nvml_(SensorContract):  # noqa: N801  # not collected: the base of the NVML sensors
    """The NVML sensors, on a library that is not there."""

    faults = ("no driver", "lost")
    ends_with_close = False
    kind = NvmlEnergySensor
    lacks = ()

    def healthy(self):
        api = FakeNvml(FakeGpu("GPU-aaaaaaaa-1111", 100.0, lacks=self.lacks))
        return self.kind(VisibleGpus(Nvml(api), {}, Path("/none")), api.clock)

    def with_fault(self, name):
        gpu = FakeGpu("GPU-aaaaaaaa-1111", 100.0, lacks=self.lacks)
        api = FakeNvml(gpu)
        if name == "lost":
            gpu.fault = GPU_IS_LOST
        else:
            api.init_fault = DRIVER_NOT_LOADED
        return self.kind(VisibleGpus(Nvml(api), {}, Path("/none")), api.clock)


class TestNvmlEnergy(Nvml_):
    """The energy counter of NVML."""

    kind = NvmlEnergySensor


class TestNvmlPower(Nvml_):
    """Instantaneous power of NVML."""

    kind = NvmlPowerSensor


class TestNvmlAverage(Nvml_):
    """Mean power of NVML, on a GPU that has but that."""

    kind = NvmlAverageSensor
    lacks = ((INSTANT, GPU),)


class TestAmdEnergy(SensorContract):
    """The energy counter of AMD cards."""

    faults = ("no GPU", "counter fails")
    ends_with_close = False

    def made(self, gpus, **more):
        clock = fake_amdsmi.Clock()
        library = fake_amdsmi.FakeAmdsmi(gpus, clock, **more)
        return AmdEnergySensor(library, {}, clock=clock, wait=clock.wait)

    def healthy(self):
        return self.made([fake_amdsmi.FakeGpu("AMD Instinct MI300X", 140)])

    def with_fault(self, name):
        if name == "no GPU":
            return self.made([])
        gpus = [fake_amdsmi.FakeGpu("AMD Instinct MI300X", 140)]
        return self.made(gpus, fails=("amdsmi_get_energy_count",))


class TestAmdPower(SensorContract):
    """Power of AMD cards."""

    faults = ("no GPU", "power fails")
    ends_with_close = False

    def healthy(self):
        gpu = fake_amdsmi.FakeGpu("AMD Instinct MI210", 41, average=41)
        return AmdPowerSensor(fake_amdsmi.FakeAmdsmi([gpu]), {})

    def with_fault(self, name):
        gpus = [] if name == "no GPU" else [fake_amdsmi.FakeGpu("AMD Instinct MI210", 41, average=41)]
        fails = () if name == "no GPU" else ("amdsmi_get_power_info",)
        return AmdPowerSensor(fake_amdsmi.FakeAmdsmi(gpus, fails=fails), {})


class TestHwmonGrace(OnFiles):
    """Power meters of a Grace Hopper module."""

    faults = ("no meter", "unreadable")
    ends_with_close = False

    def healthy(self):
        root = self.root()
        trees_hwmon.grace_hopper(root)
        return HwmonSensor(root, "grace")

    def with_fault(self, name):
        root = self.root()
        if name == "unreadable":
            trees_hwmon.grace_hopper(root)
            for file in root.rglob("power1_average"):
                file.write_text("N/A\n")
        return HwmonSensor(root, "grace")


class TestJetson(OnFiles):
    """Rails of a Jetson module."""

    faults = ("no rails", "unreadable")
    ends_with_close = False

    def healthy(self):
        root = self.root()
        trees_jetson.orin_nx(root)
        return JetsonSensor(root)

    def with_fault(self, name):
        root = self.root()
        if name == "unreadable":
            trees_jetson.orin_nx(root)
            for file in root.rglob("*_input"):
                file.write_text("N/A\n")
        return JetsonSensor(root)


class TestIntelNpu(OnFiles):
    """Time in use of an Intel NPU of stated power."""

    faults = ("no NPU", "no counter", "unreadable")
    ends_with_close = False

    def healthy(self):
        root = self.root()
        trees_npu.npu(root, busy_us=1_500_000)
        return IntelNpuSensor(root, DatasheetDevice(device="intel_npu", power_w=8.0, source="datasheet"))

    def with_fault(self, name):
        root = self.root()
        if name != "no NPU":
            file = trees_npu.npu(root, busy_us=None if name == "no counter" else 5)
            if name == "unreadable":
                file.write_text("N/A\n")
        return IntelNpuSensor(root)
