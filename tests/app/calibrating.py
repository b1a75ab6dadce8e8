"""A load in time, a device that tells of it with an error, and a meter in a program of its own."""

import sys
import time

from carbonlens.domain.sources import ExternalMeter
from carbonlens.metering.sensors import Channel, Probe, SensorInfo

GPU = "GPU-0a1b2c3d-1111-2222-3333-444455556666"
GAIN, OFFSET_W, LAG_S = 1.05, 6.0, 0.1
LEVELS_W = (60.0, 150.0, 320.0, 240.0)
STEP_S = 0.9
UPDATE_S = 0.05

METER = """\
import sys, time
levels, step = {levels}, {step}
while True:
    t = time.monotonic()
    print(f"{{t * 1e6:.0f}},{{levels[int(t / step) % len(levels)]}}", flush=True)
    time.sleep(0.01)
"""


def load_w(t_s: float, levels=LEVELS_W, step_s=STEP_S) -> float:
    return levels[int(t_s / step_s) % len(levels)]


def meter(folder, *, levels=LEVELS_W, **more) -> ExternalMeter:
    script = folder / "meter.py"
    script.write_text(METER.format(levels=levels, step=STEP_S))
    given = {"name": "pmd", "component": "gpu", "boundary": "device", "gain_95": 0.01, **more}
    return ExternalMeter(command=(sys.executable, str(script)), **given)


class Board:
    """Tells the load by its own line, a lag late."""

    may_block = False
    rest_s = 0.0

    def __init__(self, device=GPU, kind="instant", levels=LEVELS_W, usable=True) -> None:
        self._device, self._kind, self._levels, self._usable = device, kind, levels, usable
        self.closed = 0

    @property
    def info(self) -> SensorInfo:
        return SensorInfo(
            name="nvml_power" if self._kind == "instant" else "nvml_energy",
            kind=self._kind,
            unit="J" if self._kind == "cumulative" else "W",
            scope="board",
            boundary="device",
            grade="C",
            update_period_s=UPDATE_S,
            channels=(Channel(device=self._device, component="gpu", rated_w=350.0),),
            method="power of the board",
            gain_sigma=0.0255,
        )

    def probe(self) -> Probe:
        return Probe(usable=self._usable, found="a board")

    def read(self, *, edge):
        updated_s = time.monotonic() // UPDATE_S * UPDATE_S
        return ((load_w(updated_s - LAG_S, self._levels) - OFFSET_W) / GAIN,)

    def close(self) -> None:
        self.closed += 1
