"""Sessions: energy from edge to edge, and nothing a sensor or a disk does reaches the user."""

import os
import resource
import threading
import time
from decimal import Decimal

import pytest

from carbonlens.ledger.store import Ledger
from carbonlens.metering.devices.conditions import Surroundings
from carbonlens.metering.devices.throttling import CPUS, Throttling
from carbonlens.metering.host_watch import HostWatch
from carbonlens.metering.journal import JournalWriter, read
from carbonlens.metering.patience import PatientSensor
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.records import new_run, one_line
from carbonlens.metering.sampler import Sampler, process_sampler
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.metering.sensors.discovery import Watch
from carbonlens.metering.session import Session
from tests.metering.processes import burn, runs
from tests.metering.sensors import CounterSensor
from tests.metering.trees_sysfs import put
from tests.stalls import unless_stalled


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def session(tmp_path, *sensors, **more):
    watch = Watch((CpuModelSensor(TreeClock()), *sensors))
    return Session(new_run("test"), watch, tmp_path / "ledger", journal_folder=tmp_path / "journal", **more)


def codes(run):
    return [f.code for f in run.findings]


def test_a_run_begins_with_its_window_and_not_with_the_search_for_sensors(tmp_path):
    one = session(tmp_path)
    time.sleep(0.3)  # drivers that take a while to answer
    begin_us = time.time_ns() // 1000
    one.start()
    (path,) = (tmp_path / "journal").iterdir()
    assert read(path).header.run.start_us >= begin_us
    run = one.finish().run
    assert begin_us <= run.start_us <= run.end_us <= time.time_ns() // 1000


class Read(CounterSensor):
    """A counter that notes when it is read, by the wall clock."""

    def __init__(self):
        super().__init__()
        self.read_us = []

    def read(self, *, edge):
        self.read_us.append(time.time_ns() // 1000)
        return super().read(edge=edge)


OURS = [
    (JournalWriter, "append"),
    (JournalWriter, "sync"),
    (Session, "_open_journal"),
    (HostWatch, "begin"),
    (HostWatch, "rss"),
    (HostWatch, "figures"),
    (Surroundings, "begin"),
    (Surroundings, "ask"),
    (Surroundings, "end"),
    (Sampler, "add"),
    (Sampler, "remove"),
]
"""What of ours is done at the edges of a window beside reading the sensors."""


def noting(owner, name, times_us, monkeypatch, *, wait_s=0.0):
    """Have a method note when it is called by the wall clock, and take its time."""
    was = getattr(owner, name)

    def noted(*given, **more):
        times_us.append(time.time_ns() // 1000)
        time.sleep(wait_s)
        return was(*given, **more)

    monkeypatch.setattr(owner, name, noted)


@pytest.mark.parametrize(("owner", "name"), OURS)
def test_nothing_of_ours_that_takes_long_moves_start_or_end(tmp_path, monkeypatch, owner, name):
    called_us, written_us = [], []
    noting(owner, name, called_us, monkeypatch, wait_s=0.05)
    noting(JournalWriter, "append", written_us, monkeypatch)
    sensor = Read()
    one = session(tmp_path, sensor)
    one.start()
    one.sync()
    run = one.finish().run
    # From the first reading, before it is written down, to the last one. Both are told apart by the clock
    # that the run has, whatever the machine did meanwhile; a tick for the clock's own rounding.
    assert called_us
    assert sensor.read_us[0] - 2 <= run.start_us <= written_us[0] + 2
    assert run.start_us < run.end_us <= sensor.read_us[-1] + 2
    assert run.duration_s == pytest.approx((run.end_us - run.start_us) / 1e6)


def test_a_session_is_sealed_into_its_ledger_and_leaves_no_journal(tmp_path, ledger):
    one = session(tmp_path)
    one.start()
    (path,) = (tmp_path / "journal").iterdir()
    assert read(path).header.run.status == "running"
    burn(0.2)
    one.sync()
    stored = one.finish()
    assert runs(ledger) == (stored.run,)
    assert stored.fault is None
    run = stored.run
    assert run.status == "complete"
    assert run.coverage == 1.0
    assert run.lost_s == 0.0
    assert run.duration_s == pytest.approx((run.end_us - run.start_us) / 1e6)
    assert sum(h.energy_j for h in run.energy_by_hour) == run.energy[0].energy_j
    assert list((tmp_path / "journal").iterdir()) == []


def test_the_fakes_are_sensors():
    assert isinstance(CounterSensor(), Sensor)
    assert isinstance(CpuModelSensor(), Sensor)


class SteadyCounter(CounterSensor):
    """A counter of 100 W, however late it is read."""

    def read(self, *, edge):
        super().read(edge=edge)
        return (100.0 * time.monotonic(),)


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("odd"), RuntimeError("NVMLError_Unknown")])
def test_a_sensor_that_raises_is_a_gap(tmp_path, error):
    def once(left):
        sensor = SteadyCounter(faults={1}, error=error)
        one = session(tmp_path / str(left), sensor)
        one.start()
        one.sample()
        time.sleep(0.03)
        run = one.finish().run
        # Readings 0 and 2 are good: the counter itself carries what happened between.
        assert run.energy[0].state == "known"
        assert float(run.energy[0].energy_j) == pytest.approx(100 * run.duration_s, abs=0.2)
        assert sensor.closed

    unless_stalled(once)


def test_a_sensor_that_always_raises_leaves_the_model(tmp_path):
    one = session(tmp_path, CounterSensor(faults=range(99)))
    one.start()
    run = one.finish().run
    assert [r.grade for r in run.energy] == ["D"]


def test_a_sensor_that_hangs_costs_50_ms_and_is_said(tmp_path):
    one = session(tmp_path, CounterSensor(faults={1}, hang_s=1.5, may_block=True))
    one.start()
    begin = time.monotonic()
    run = one.finish().run
    assert time.monotonic() - begin < 1.0
    assert [r.grade for r in run.energy] == ["D"]
    assert "CL113" in codes(run)


def test_a_sensor_that_hangs_at_the_start_does_not_hold_the_work(tmp_path):
    counter = CounterSensor(faults={0}, hang_s=1.2)
    one = session(tmp_path, PatientSensor(counter, wait_s=0.3))
    begin = time.monotonic()
    one.start()
    assert time.monotonic() - begin < 1.0
    time.sleep(1.3)
    one.sample()
    run = one.finish().run
    # The counter covers less than half: the model of the whole window stands in, and it is said.
    assert (run.energy[0].grade, run.energy[0].state, run.coverage) == ("D", "known", 1.0)
    assert {"CL113", "CL114"} <= set(codes(run))


def test_a_blocking_sensor_that_behaves_is_read_in_its_own_thread(tmp_path):
    names = []

    class Watched(SteadyCounter):
        def read(self, *, edge):
            names.append(threading.current_thread().name)
            return super().read(edge=edge)

    def once(left):
        names.clear()
        sensor = PatientSensor(Watched(), wait_s=60)
        assert (sensor.info.name, sensor.probe().usable) == ("counter", True)
        one = session(tmp_path / str(left), sensor)
        one.start()
        time.sleep(0.05)
        run = one.finish().run
        # What a busy machine's thread counted outside of the window is taken off.
        assert float(run.energy[0].energy_j) == pytest.approx(100 * run.duration_s, abs=0.2)
        # Never in the user's thread: the edges in the sensor's own, looks between in the sampler's.
        assert names[0] == names[-1] == "carbonlens-sensor"
        assert set(names[1:-1]) <= {"carbonlens-sampler"}

    unless_stalled(once)


def test_a_blocking_sensor_that_raises_is_a_gap(tmp_path):
    sensor = PatientSensor(CounterSensor(faults={0, 1}), wait_s=60)
    with pytest.raises(OSError, match="lost"):
        sensor.read(edge=True)
    sensor.close()
    PatientSensor(CounterSensor()).close()


def test_without_a_journal_the_run_is_measured_all_the_same(tmp_path, ledger):
    (tmp_path / "journal").write_text("a file where the folder should be")
    one = session(tmp_path)
    one.start()
    one.sample()
    run = one.finish().run
    assert runs(ledger) == (run,)
    assert codes(run) == ["CL111"]


def test_a_full_disk_ends_the_journal_and_not_the_run(tmp_path):
    one = session(tmp_path)
    one.start()
    (path,) = (tmp_path / "journal").iterdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, before[1]))
    try:
        one.sample()
        one.sample()
        one.sync()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    run = one.finish().run
    assert codes(run) == ["CL111"]
    assert run.status == "complete"


def test_no_ledger_takes_the_run_the_journal_stays(tmp_path, monkeypatch):
    (tmp_path / "ledger").write_text("a file where the folder should be")
    one = session(tmp_path)
    one.start()
    (tmp_path / "state" / "carbonlens").mkdir(parents=True, exist_ok=True)
    (tmp_path / "state" / "carbonlens" / "ledger").write_text("another one")
    stored = one.finish()
    assert stored.ledger is None
    assert stored.fault
    assert len(list((tmp_path / "journal").iterdir())) == 1


def test_what_the_user_recorded_is_in_the_journal(tmp_path):
    one = session(tmp_path)
    one.start()
    one.recorder.add_units(5)
    one.recorder.add_latencies([1.0, 2.0])
    one.sample()
    (path,) = (tmp_path / "journal").iterdir()
    facts = read(path).facts
    assert (facts.units, facts.latency.n, facts.latency.mean_ms) == (Decimal(5), 2, 1.5)
    one.finish()


def test_outcomes_are_stored_beside_the_run(tmp_path, ledger):
    one = session(tmp_path)
    one.start()
    one.recorder.add_quality("accuracy", None, None, [1, 1, 0, 1], higher_is_better=True)
    (quality,) = one.finish().run.quality
    assert (quality.value, quality.n) == (0.75, 4)
    assert Ledger(ledger).outcomes(quality.outcomes_sha256) == (1, 1, 0, 1)


def test_the_cpu_time_of_a_window_is_that_of_its_work(tmp_path):
    def once(left):
        one = session(tmp_path / str(left))
        one.start()
        burn(0.2)
        assert one.finish().run.conditions.cpu_s == pytest.approx(0.2, abs=0.1)

    unless_stalled(once)


def test_the_peak_of_a_window_is_not_that_of_earlier_work(tmp_path):
    block = bytearray(150_000_000)
    del block
    one = session(tmp_path)
    one.start()
    assert (
        one.finish().run.conditions.peak_rss_bytes < resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    )


def test_a_forked_child_writes_nothing(tmp_path):
    one = session(tmp_path)
    one.start()
    # What the sampler writes meanwhile is the parent's own.
    process_sampler().remove(one)
    one.sample()
    (path,) = (tmp_path / "journal").iterdir()
    size = path.stat().st_size
    pid = os.fork()
    if pid == 0:
        one.sample()
        one.sync()
        os._exit(0 if not one.is_ours else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert path.stat().st_size == size
    one.sample()
    assert path.stat().st_size > size
    one.finish()


@pytest.mark.parametrize(
    ("text", "kept"), [(None, None), ("one\ntwo", "one"), ("x" * 500, "x" * 200), ("\n a \nb", "a")]
)
def test_errors_are_one_short_line(text, kept):
    assert one_line(text) == kept


def test_a_look_that_is_under_way_at_the_end_closes_the_sensors_itself(tmp_path):
    def once(left):
        sensor = CounterSensor(faults={1}, hang_s=0.5)
        one = session(tmp_path / str(left), sensor)
        one.start()
        looking = threading.Thread(target=one.sample)
        looking.start()
        time.sleep(0.1)
        begin = time.monotonic()
        run = one.finish().run
        took_s, was_closed = time.monotonic() - begin, sensor.closed
        looking.join(60)
        assert took_s < 0.3
        assert not was_closed
        assert sensor.closed
        assert run.status == "complete"

    unless_stalled(once)


class Held(CounterSensor):
    """A counter whose second reading takes as long as it is held, and that notes what is done meanwhile."""

    def __init__(self):
        super().__init__()
        self.is_read, self.may_end = threading.Event(), threading.Event()
        self.closed_while_read = False

    def read(self, *, edge):
        told = super().read(edge=edge)
        if self.reads > 1:
            self.is_read.set()
            self.may_end.wait(60)
            self.closed_while_read = self.closed
        return told


@pytest.mark.parametrize("way", ["drop", "finish"])
def test_no_sensor_is_closed_while_it_is_read(tmp_path, way):
    """However a session ends: whoever reads closes them."""
    sensor = Held()
    one = session(tmp_path, sensor)
    one.start()
    process_sampler().remove(one)
    looking = threading.Thread(target=one.sample)
    looking.start()
    assert sensor.is_read.wait(60)
    if way == "drop":
        one.drop()
    else:
        threading.Timer(0.2, sensor.may_end.set).start()
        one.finish()
    sensor.may_end.set()
    looking.join(60)
    assert not sensor.closed_while_read
    assert sensor.closed
    assert not one._lock.locked()


def test_a_ledger_whose_name_json_cannot_hold_costs_the_journal_alone(tmp_path):
    one = Session(
        new_run("test"),
        Watch((CpuModelSensor(TreeClock()),)),
        tmp_path / "caf\udce9",
        journal_folder=tmp_path / "journal",
    )
    one.start()
    run = one.finish().run
    assert run.status == "complete"
    assert codes(run) == ["CL111"]


def test_no_mend_names_what_is_not_there():
    from pathlib import Path

    from carbonlens.metering import findings

    text = Path(findings.__file__).read_text("utf-8")
    assert "carbonlens doctor" in text
    assert "import the" not in text
    assert "carbonlens runs" in text


def test_what_heat_did_in_the_window_is_among_the_conditions(tmp_path):
    cpus = tmp_path / "cpu"
    counter = cpus / "cpu0" / "thermal_throttle" / "package_throttle_total_time_ms"
    put(cpus / "online", "0\n")
    put(counter, "100\n")
    one = session(tmp_path)
    assert one._surroundings._throttling._cpus == CPUS
    one._surroundings._throttling = Throttling((), cpus=cpus)
    one.start()
    put(counter, "350\n")
    assert one.finish().run.conditions.throttled_s == pytest.approx(0.25)
