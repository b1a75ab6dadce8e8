"""Windows around repeated work: a sensor that averages must not tell of what was before."""

import time

import pytest

import carbonlens
from carbonlens.domain.sources import Sources
from carbonlens.instrument.window import Label, Place, measure
from carbonlens.ledger.store import Ledger
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.metering.sensors.discovery import Watch
from carbonlens.metering.settling import LONGEST_S, LONGEST_WINDOW_S, least_window_s, settle_s
from tests.stalls import unless_stalled

IDLE_W, LOAD_W = 50.0, 250.0
LABEL = Label(step="a", study="s", role="variant", unit="call")


class AveragingSensor:
    """Tells the mean power of the last second of a simulated device, anew every tenth of one."""

    may_block = False
    rest_s = 0.0

    def __init__(self, window_s=1.0, period_s=0.1):
        self.window_s, self.period_s = window_s, period_s
        self.changes = [(float("-inf"), IDLE_W)]

    def draws(self, watts):
        self.changes.append((time.monotonic(), watts))

    def joules(self, start, end):
        ends = [*(t for t, _ in self.changes[1:]), float("inf")]
        spans = (
            (max(t, start), min(until, end), w) for (t, w), until in zip(self.changes, ends, strict=True)
        )
        return sum(w * max(b - a, 0.0) for a, b, w in spans)

    @property
    def info(self):
        return SensorInfo(
            name="averaging", kind="average", unit="W", scope="board", boundary="device", grade="C",
            update_period_s=self.period_s, window_s=self.window_s, gain_sigma=0.001, offset_sigma_w=0.0,
            channels=(Channel(device="GPU-1", component="gpu", rated_w=300.0),), method="simulated",
        )  # fmt: skip

    def probe(self):
        return Probe(usable=True, found="simulated")

    def read(self, *, edge):
        end = time.monotonic() // self.period_s * self.period_s
        return (self.joules(end - self.window_s, end) / self.window_s,)

    def close(self):
        pass


@pytest.fixture
def place(tmp_path):
    return Place(ledger=str(tmp_path / "ledger"), sources=Sources())


def worked(sensor, place, seconds, *, settles):
    """Return what a window of load says, and what was drawn in it."""
    truth = {}

    def settle(settle_for_s, _run):
        sensor.draws(LOAD_W)
        time.sleep(settle_for_s)

    def work(_recorder, _run):
        if not settles:
            sensor.draws(LOAD_W)
        begin = time.monotonic()
        time.sleep(seconds)
        truth["j"] = sensor.joules(begin, time.monotonic())

    run = measure(LABEL, place, work, settle=settle if settles else None, seen=Watch((sensor,))).run
    sensor.draws(IDLE_W)
    (reading,) = run.energy
    return reading.estimate, truth["j"]


@pytest.mark.slow
def test_the_settled_tail_of_repeated_work_holds_the_truth_where_its_start_does_not(place):
    def once(left):
        biased, truth = worked(AveragingSensor(), place, 1.0, settles=False)
        assert biased.value < 0.95 * truth  # an eighth of the step is missing
        settled, truth = worked(AveragingSensor(), place, 1.0, settles=True)
        assert settled.low < truth < settled.high
        assert settled.value == pytest.approx(truth, rel=0.02)

    unless_stalled(once)


@pytest.mark.slow
def test_the_arm_before_does_not_tell_in_the_window_of_the_next(place):
    """Back to back, as rounds are: a lighter arm after a heavier one."""

    def once(left):
        sensor = AveragingSensor(window_s=0.5)
        sensor.draws(600.0)
        time.sleep(0.6)
        found, truth = worked(sensor, place, 0.6, settles=True)
        assert found.value == pytest.approx(truth, rel=0.02)

    unless_stalled(once)


def test_how_long_a_sensor_needs():
    averaging = AveragingSensor(window_s=1.0, period_s=0.1).info
    assert settle_s([averaging]) == pytest.approx(1.1)
    assert settle_s([averaging, AveragingSensor(window_s=0.2).info]) == pytest.approx(1.1)
    assert settle_s([AveragingSensor(window_s=60.0).info]) == LONGEST_S
    assert settle_s([]) == 0.0


def test_work_that_fails_before_its_window_is_a_failed_run_and_the_error_goes_on(place):
    def broken(_seconds, _run):
        raise ValueError("no such layer")

    sensor = AveragingSensor(window_s=0.05)
    with pytest.raises(ValueError, match="no such layer"):
        measure(LABEL, place, lambda *_: None, settle=broken, seen=Watch((sensor,)))
    (run,) = Ledger(place.ledger).view().runs
    assert (run.status, run.step) == ("failed", "a")
    assert run.error.startswith("ValueError")
    assert all(r.energy_j is None for r in run.energy)


def test_the_users_own_interrupt_is_no_failure_of_the_work(place):
    def interrupted(_recorder, _run):
        raise KeyboardInterrupt

    sensor = AveragingSensor(window_s=0.0, period_s=0.0)
    with pytest.raises(KeyboardInterrupt):
        measure(LABEL, place, interrupted, seen=Watch((sensor,)))
    (run,) = Ledger(place.ledger).view().runs
    assert (run.status, run.step) == ("recovered", "a")


def test_sensors_that_need_no_time_are_not_waited_for(place):
    called = []
    sensor = AveragingSensor(window_s=0.0, period_s=0.0)
    measure(LABEL, place, lambda *_: None, settle=lambda *_: called.append(1), seen=Watch((sensor,)))
    assert called == []


def test_a_window_has_to_be_longer_than_every_update_period():
    fast, slow = AveragingSensor(period_s=0.1).info, AveragingSensor(period_s=2.5).info
    assert least_window_s([fast, slow]) == 5.0
    assert least_window_s([]) == 0.0


def test_a_meter_of_one_reading_a_minute_makes_no_bench_of_hours():
    assert least_window_s([AveragingSensor(period_s=60.0).info]) == LONGEST_WINDOW_S


def test_who_repeats_work_is_told_how_long_before_it_begins(place):
    told = []
    sensor = AveragingSensor(window_s=0.0, period_s=0.2)
    measure(LABEL, place, lambda *_: told.append("work"), size=told.append, seen=Watch((sensor,)))
    assert told == [0.4, "work"]


@pytest.mark.parametrize("settles", [True, False])
def test_what_the_work_tracks_itself_is_a_part_of_the_run(place, settles):
    def tracks(*_):
        with carbonlens.track("inner", ledger=place.ledger):
            pass

    sensor = AveragingSensor(window_s=0.01)
    outer = measure(LABEL, place, tracks, settle=tracks if settles else None, seen=Watch((sensor,))).run
    tracks()
    runs = Ledger(place.ledger).view().runs
    parents = [r.parent_run_id for r in runs if r.step == "inner"]
    assert parents == [outer.run_id] * (1 + settles) + [None]


def test_a_block_that_the_work_leaves_open_is_said_to_overlap(place):
    left = carbonlens.track("left", ledger=place.ledger)
    run = measure(LABEL, place, lambda *_: left.__enter__() and None, seen=Watch(())).run
    left.__exit__(None, None, None)
    assert "CL108" in {f.code for f in run.findings}
    (inner,) = [r for r in Ledger(place.ledger).view().runs if r.step == "left"]
    assert inner.parent_run_id is None
