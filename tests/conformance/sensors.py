"""What every sensor keeps to: inherit ``SensorContract``, say how to make one, and be tested.

A class for a sensor gives ``healthy``, a sensor that can be read, and ``with_fault``
for each name in ``faults``. ``settle`` waits until readings that come from a thread
are there.
"""

import math
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from carbonlens.domain.units import Boundary, Grade
from carbonlens.metering.sensors import Kind, Probe, Scope, Sensor, SensorInfo
from tests.stalls import unless_stalled

PAIRS = {
    ("cumulative", "J"),
    ("instant", "W"),
    ("average", "W"),
    ("utilisation", "s"),
    ("use", "s"),
}
GRADES = {
    "cumulative": {"A", "B", "C", "D"},  # D: powermetrics sums what its maker calls estimates
    "instant": {"A", "C", "D", "E"},
    "average": {"A", "C"},
    "utilisation": {"D"},
    "use": set(get_args(Grade)),
}
COMPONENTS = {"cpu", "gpu", "ram", "npu", "soc", "total", "wall"}
PATIENCE_S = 5.0


def open_files():
    """Count this process's open files, where the system tells."""
    fds = Path("/proc/self/fd")
    return sum(1 for _ in fds.iterdir()) if fds.is_dir() else 0


def read_when_there(sensor):
    """Read, waiting for a sensor whose thread has not told yet."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return sensor.read(edge=True)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class SensorContract(ABC):
    """Checks of one sensor module.

    Attributes:
        faults: Names of faults that ``with_fault`` can make; each leaves nothing to read.
        ends_with_close: False for a sensor that opens anew what it reads; it must then
            give all of it back again.
    """

    faults: tuple[str, ...] = ()
    ends_with_close = True

    @abstractmethod
    def healthy(self) -> Sensor:
        """Make a sensor that can be read."""

    @abstractmethod
    def with_fault(self, name: str) -> Sensor:
        """Make a sensor that has the fault."""

    @pytest.fixture
    def sensor(self):
        made = self.healthy()
        yield made
        made.close()

    def faulty(self):
        """Yield each fault with its sensor, closed afterwards."""
        for name in self.faults:
            made = self.with_fault(name)
            try:
                yield name, made
            finally:
                made.close()

    def test_it_is_a_sensor(self, sensor):
        assert isinstance(sensor, Sensor)
        assert isinstance(sensor.may_block, bool)
        assert sensor.rest_s >= 0

    def test_making_one_opens_and_starts_nothing(self):
        self.healthy().close()  # what is imported and made once is not of the second
        files, threads = open_files(), threading.active_count()
        made = self.healthy()
        assert (open_files(), threading.active_count()) <= (files, threads)
        made.close()

    def test_a_healthy_one_is_usable_and_says_what_is_there(self, sensor):
        probe = sensor.probe()
        assert isinstance(probe, Probe)
        assert probe.usable, probe
        assert probe.found.strip()

    def test_a_faulty_one_says_why_and_at_most_one_mend(self):
        for name, made in self.faulty():
            probe = made.probe()
            assert not probe.usable, name
            assert probe.found.strip(), name
            assert (probe.reason or "").strip(), name
            assert probe.mend is None or (probe.mend.strip() and probe.mend.isprintable()), name
            # A safe mend is the user's own to make, or asks whoever may.
            assert "sudo" not in (probe.mend or "") or "administrator" in probe.mend, name

    def test_a_fault_is_an_oserror_or_none_and_never_a_number(self):
        for name, made in self.faulty():
            made.probe()
            for edge in (True, False):
                values = None
                with suppress(OSError):
                    values = made.read(edge=edge)
                assert values is None or all(v is None for v in values), name

    def test_the_description_is_fixed_and_goes_through_the_journal(self, sensor):
        sensor.probe()
        info = sensor.info
        assert msgspec.json.decode(msgspec.json.encode(info), type=SensorInfo) == info
        read_when_there(sensor)
        assert sensor.info == info

    def test_kind_unit_grade_and_boundary_are_such_as_are_understood(self, sensor):
        sensor.probe()
        info = sensor.info
        assert info.kind in get_args(Kind)
        assert (info.kind, info.unit) in PAIRS
        assert info.grade in GRADES[info.kind]
        assert info.boundary in get_args(Boundary)
        assert info.scope in get_args(Scope)
        assert info.update_period_s >= 0
        assert math.isfinite(info.update_period_s)

    def test_its_width_is_told_or_said_to_be_unknown(self, sensor):
        sensor.probe()
        info = sensor.info
        told = info.gain_sigma > 0 or info.curve is not None or info.kind == "use"
        assert told or not info.width_known
        assert math.isfinite(info.gain_sigma)

    def test_what_is_printed_is_one_printable_line(self, sensor):
        sensor.probe()
        assert sensor.info.method.strip()
        assert sensor.info.method.isprintable()
        assert sensor.info.name.strip()
        assert sensor.info.name.isprintable()

    def test_channels_are_distinct_and_each_has_a_value(self, sensor):
        sensor.probe()
        channels = sensor.info.channels
        values = read_when_there(sensor)
        assert len(values) == len(channels) > 0
        # One counter may tell of two components, or of the work and of all.
        assert len({(c.device, c.component, c.who) for c in channels}) == len(channels)
        # A rail that several share is named by all of them.
        assert {part for c in channels for part in c.component.split("+")} <= COMPONENTS
        assert all(c.max_range is None or c.max_range > 0 for c in channels)
        assert all(v is None or math.isfinite(v) for v in values)
        assert any(v is not None for v in values)

    def test_a_cumulative_value_does_not_fall_while_nothing_breaks(self, sensor):
        sensor.probe()
        if sensor.info.kind not in {"cumulative", "utilisation", "use"}:
            pytest.skip("power may fall")
        before = read_when_there(sensor)
        after = read_when_there(sensor)
        assert all(a is None or b is None or b >= a for a, b in zip(before, after, strict=True))

    def test_closing_twice_is_safe_and_ends_the_reading(self):
        made = self.healthy()
        made.probe()
        read_when_there(made)
        made.close()
        made.close()
        if self.ends_with_close:
            with pytest.raises(OSError, match=r"."):
                made.read(edge=True)
        else:
            files = open_files()
            with suppress(OSError):
                made.read(edge=True)
            made.close()
            assert open_files() <= files

    def test_closing_one_that_was_never_read_is_safe(self):
        self.healthy().close()

    def test_closing_takes_no_longer_than_the_law_allows(self):
        def once(left):
            made = self.healthy()
            made.probe()
            read_when_there(made)
            begin = time.monotonic()
            made.close()
            # Law 8 allows 50 ms of our own time; a busy machine adds to it.
            assert time.monotonic() - begin < 0.2

        unless_stalled(once)

    def test_closing_leaves_no_file_open(self):
        self.healthy().close()
        before = open_files()
        made = self.healthy()
        made.probe()
        read_when_there(made)
        made.close()
        deadline = time.monotonic() + PATIENCE_S
        while open_files() > before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert open_files() <= before

    def test_reading_from_threads_while_it_is_closed_raises_oserror_at_most(self):
        made = self.healthy()
        made.probe()
        read_when_there(made)
        if made.may_block:
            made.close()
            pytest.skip("one thread reads it, and closes it (PatientSensor)")
        wrong: list[BaseException] = []
        go = threading.Event()

        def read_on():
            go.wait()
            for _ in range(50):
                try:
                    made.read(edge=False)
                except OSError:
                    continue
                except BaseException as error:  # noqa: BLE001  # whatever it is, is the finding
                    wrong.append(error)
                    return

        threads = [threading.Thread(target=read_on) for _ in range(3)]
        for thread in threads:
            thread.start()
        go.set()
        made.close()
        for thread in threads:
            thread.join(PATIENCE_S)
        made.close()
        assert not wrong
        assert not any(t.is_alive() for t in threads)
