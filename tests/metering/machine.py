"""A machine that a test drives: its time passes when somebody waits, and counters follow its load."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from carbonlens.metering.cpu_calibration import Setting
from tests.metering.powercap import Powercap, turn

THREADS = 4
TICKS_A_S = 100_000


class Machine:
    """Two packages; idle and full watts of both together, and the loads of the two phases."""

    def __init__(
        self,
        folder: Path,
        idle_w: float = 40.0,
        full_w: float = 200.0,
        idle_load: float = 0.02,
        full_load: float = 0.98,
    ) -> None:
        cap = Powercap(folder / "powercap")
        self.powercap = cap.root
        self.stat = folder / "stat"
        self.counters = [cap.zone(f"intel-rapl:{i}", f"package-{i}") for i in range(2)]
        self.loaded = 0
        self._watts, self._loads = (idle_w, full_w), (idle_load, full_load)
        self._busy = False
        self._now_s = self._joules = self._busy_s = 0.0
        self.sleep(0.0)

    @property
    def setting(self) -> Setting:
        return Setting(stat=self.stat, load=self.load, settle_s=1.0, clock=self.clock, sleep=self.sleep)

    def clock(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self._now_s += seconds
        self._joules += self._watts[self._busy] * seconds
        self._busy_s += self._loads[self._busy] * seconds * THREADS
        for counter in self.counters:
            turn(counter, round(self._joules / len(self.counters) * 1e6))
        busy = round(self._busy_s * TICKS_A_S)
        idle = round(self._now_s * THREADS * TICKS_A_S) - busy
        self.stat.write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\n")

    @contextmanager
    def load(self) -> Iterator[None]:
        self._busy = True
        self.loaded += 1
        try:
            yield
        finally:
            self._busy = False
