"""One scripted sensor of each kind, whose true power the test knows, and everything drivers do to it."""

import errno
import threading
import time

from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.signals.cpu_model import CpuCurve
from tests.faults.windows import World
from tests.metering.fake_nvml import GPU_IS_LOST, NOT_SUPPORTED, UNKNOWN, FakeError

KINDS = ("cumulative", "instant", "average", "utilisation", "use")
GPU = "GPU-1"
WATTS = 100.0
SHARE = 0.25
HANG_S = 5.0


class PanicError(Exception):
    """Of no family that anybody expects."""


ERRORS = {
    "NotSupported": FakeError(NOT_SUPPORTED),
    "GpuIsLost": FakeError(GPU_IS_LOST),
    "no permission": PermissionError(errno.EACCES, "Permission denied"),
    "unknown driver error": FakeError(UNKNOWN),
    "device vanished": OSError(errno.ENODEV, "No such device"),
    "RuntimeError": RuntimeError("NVMLError_Unknown"),
    "KeyError": KeyError("current_socket_power"),
    "ZeroDivisionError": ZeroDivisionError("division by zero"),
    "StopIteration": StopIteration(),
    "UnicodeDecodeError": UnicodeDecodeError("ascii", b"\xff", 0, 1, "ordinal not in range"),
    "MemoryError": MemoryError(),
    "own family": PanicError("the driver is upset"),
}
GARBAGE = {
    "nothing": None,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "negative": -3.0,
    "1e18": 1e18,
}

_UNITS = {"cumulative": "J", "instant": "W", "average": "W", "utilisation": "s", "use": "s"}
_GRADES = {"cumulative": "B", "instant": "C", "average": "C", "utilisation": "D", "use": "D"}


class KindSensor:
    """Tells the truth of its kind, or does what the fault says."""

    rest_s = 0.0

    def __init__(self, kind, *, may_block):
        self.may_block = may_block
        self.error = None
        self.told = ()
        self.hang = None
        self.zero_s = time.monotonic()
        self.base = 100.0
        self.closed = False
        self.info = SensorInfo(
            name=f"test_{kind}",
            kind=kind,
            unit=_UNITS[kind],
            scope="board",
            boundary="device",
            grade=_GRADES[kind],
            update_period_s=0.001,
            channels=_channels(kind),
            method="of a test",
            window_s=0.002 if kind == "average" else None,
            offset_sigma_w=0.0,
            gain_sigma=0.01,
            curve=_curve() if kind == "utilisation" else None,
        )

    def probe(self):
        return Probe(usable=True, found="a test's device")

    def read(self, *, edge):
        hang = self.hang
        if hang is not None:
            hang.wait(HANG_S)
        if self.error is not None:
            raise self.error
        if self.told:
            return self.told * len(self.info.channels)
        return self.true()

    def true(self):
        passed_s = time.monotonic() - self.zero_s
        if self.info.unit == "W":
            return (WATTS,)
        if self.info.kind == "use":
            # The two began at different values: a jump of both to 0 and back changes the share.
            return (0.9 * self.base + SHARE * passed_s, self.base + passed_s)
        rate = WATTS if self.info.unit == "J" else 1.0
        return (self.base + rate * passed_s,)

    def close(self):
        self.closed = True


def _channels(kind):
    if kind == "use":
        return tuple(Channel(device=GPU, component="gpu", who=who) for who in ("own", "all"))
    return (Channel(device=GPU, component="gpu"),)


def _curve():
    return CpuCurve(
        family="test", idle_w_per_thread=0.0, full_w_per_thread=WATTS, spread=0.1, n=1, source="a test"
    )


class KindWorld(World):
    """A sensor of one kind and all its faults."""

    rates = {GPU: WATTS}  # noqa: RUF012  # fixed

    def __init__(self, kind, *, may_block=False):
        self.sensor = KindSensor(kind, may_block=may_block)
        self.faults = {name: self._raising(error) for name, error in ERRORS.items()}
        self.faults |= {name: self._telling(value) for name, value in GARBAGE.items()}
        self.faults["hang"] = self._hang
        if self.sensor.info.unit != "W":
            self.faults["reset"] = self._reset

    def heal(self):
        self.sensor.error, self.sensor.told = None, ()
        hang, self.sensor.hang = self.sensor.hang, None
        if hang is not None:
            hang.set()

    def _raising(self, error):
        def strike():
            self.sensor.error = error

        return strike

    def _telling(self, value):
        def strike():
            self.sensor.told = (value,)

        return strike

    def _hang(self):
        self.sensor.hang = threading.Event()

    def _reset(self):
        self.sensor.base, self.sensor.zero_s = 0.0, time.monotonic()
