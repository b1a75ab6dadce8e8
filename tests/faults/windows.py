"""Windows with a fault in them: how a session is driven through one, and what must hold of its record.

The checks here are those every sensor of every kind is held to. ``Zeroing`` is the
mistake they exist to catch: a reader that makes 0 of an error.
"""

import math
import os
import threading
import time
from dataclasses import dataclass

from carbonlens.metering.journal import read
from carbonlens.metering.records import new_run
from carbonlens.metering.recovery import recovered_run
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.metering.sensors.discovery import Watch
from carbonlens.metering.session import Session
from tests.stalls import unless_stalled, waited_s

MOMENTS = ("start", "inside", "end", "always")
OURS_S = 0.15
"""Law 8 allows 50 ms of our own at either edge; a busy machine adds to it."""

LOOKS = 5
SAYS = {"CL105", "CL113", "CL114", "CL123", "CL130", "CL155"}
"""Findings of which one at least says that something was lost."""


class World:
    """A sensor with its surroundings, which a test breaks and mends.

    Attributes:
        sensor: What is read, probed by ``probe``.
        rates: True watts of each channel by its device, or nothing where only the
            healthy reading tells.
        faults: What can go wrong, by name; each begins and lasts until ``heal``.
        slack_s: How much older a reading may be than it seems.
        matters: Whether a run's energy wants this sensor.
    """

    sensor = None
    look_s = 0.006
    slack_s = 0.0
    matters = True
    rates: dict
    faults: dict

    def probe(self):
        probe = self.sensor.probe()
        assert probe.usable, probe

    def tick(self):
        """Have the source tell what is true now."""

    def heal(self):
        """End the fault."""

    def close(self):
        self.heal()
        self.sensor.close()


class Zeroing:
    """A sensor whose author took 0 for an answer where there is none."""

    may_block = False

    def __init__(self, sensor):
        self._sensor = sensor
        self.rest_s = sensor.rest_s

    @property
    def info(self):
        return self._sensor.info

    def probe(self):
        return self._sensor.probe()

    def read(self, *, edge):
        try:
            values = self._sensor.read(edge=edge)
        except Exception:  # noqa: BLE001  # the mistake under test
            return (0.0,) * len(self.info.channels)
        return tuple(0.0 if v is None or not math.isfinite(v) else v for v in values)

    def close(self):
        self._sensor.close()


@dataclass
class Window:
    """A sealed run, what recovery makes of the same journal, and how long the edges waited."""

    run: object
    recovered: object
    start_s: float
    stop_s: float


class Aside:
    """Looks in a thread, as the sampler does: one at a time, and a driver may hold it."""

    def __init__(self, session):
        self._session = session
        self._thread = None

    def look(self):
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._session.sample, daemon=True)
            self._thread.start()
        self._thread.join(0.02)


def measure(folder, world, fault, moment, *, sensors=None, looks=LOOKS):
    """Measure a window in which the fault strikes at the moment, and heals but at the end.

    Args:
        folder: For journal and ledger; fresh.
        world: Probed.
        fault: Name among the world's faults; ``None`` for a window without.
        moment: One of ``MOMENTS``.
        sensors: What is read, where it is more or other than the world's sensor.
        looks: How many, with ``look_s`` between them.
    """
    strike = world.faults[fault] if fault is not None else world.heal
    watch = Watch((CpuModelSensor(), *(sensors or (world.sensor,))))
    session = Session(new_run("test"), watch, folder / "ledger", journal_folder=folder / "journal")
    aside = Aside(session)
    world.tick()
    if moment in {"start", "always"}:
        strike()
        world.tick()
    begin = waited_s()
    session.start()
    start_s = waited_s() - begin
    (journal,) = (folder / "journal").glob("*.jsonl")
    kept = folder / "kept.jsonl"
    os.link(journal, kept)
    for look in range(looks):
        time.sleep(world.look_s)
        if (moment, look) == ("inside", 2):
            strike()
        if (moment, look) in {("inside", looks - 1), ("start", 2)}:
            world.heal()
        world.tick()
        aside.look()
    if moment == "end":
        strike()
    world.tick()
    begin = waited_s()
    run = session.finish().run
    stop_s = waited_s() - begin
    held = read(kept)
    return Window(run, recovered_run(held.header, held), start_s, stop_s)


def readings_of(run, info):
    """Return the readings that a sensor gave of the run, and of the devices it should have told of."""
    devices = {c.device for c in info.channels}
    return [r for r in (*run.energy, *run.beside) if r.devices and r.devices[0] in devices]


def check(window, world, fault):
    """Hold a window to the laws: nothing is 0 for an error, nothing lost is claimed, all of it is said."""
    run, info = window.run, world.sensor.info
    codes = {f.code for f in run.findings}
    assert run.status == "complete"
    found = readings_of(run, info)
    for reading in found:
        held_to_truth(reading, run.duration_s, world)
        if fault is not None and world.matters and reading.state != "known":
            assert codes & SAYS, codes
    used = info.kind == "use" or any(r.method == info.method for r in run.energy)
    if fault is not None and world.matters and not used:
        assert codes & (SAYS | {"CL116"}), codes
    if not all(r.state == "known" for r in run.energy):
        assert run.total_energy.state != "known"
    lost_s = run.duration_s * (1 - run.coverage)
    assert math.isclose(run.lost_s, lost_s, abs_tol=2e-6)
    covered = [0.0 if r.covered_s is None else r.covered_s for r in run.energy]
    assert math.isclose(run.duration_s - run.lost_s, min(*covered, run.duration_s), abs_tol=2e-6)
    check_recovered(window)


def held_to_truth(reading, window_s, world):
    """Compare one reading with what was drawn."""
    joules = None if reading.energy_j is None else float(reading.energy_j)
    if joules is None:
        assert (reading.state, reading.grade) == ("unknown", None)
        return
    true_w = world.rates[reading.devices[0]]
    slack_j = true_w * (world.slack_s + 0.002)
    assert joules > 0, f"{joules} J of {reading}"
    assert joules <= 1.02 * true_w * window_s + slack_j, f"{joules} J in {window_s} s at {true_w} W"
    assert reading.covered_s <= window_s + 1e-6
    if reading.state == "known":
        assert joules >= 0.98 * true_w * reading.covered_s - slack_j
        assert reading.covered_s >= 0.98 * window_s
    else:
        assert reading.state == "unbounded"


def check_recovered(window):
    """Another process, with the journal alone, says the same of the same samples."""

    def amounts(run):
        return [(r.component, r.energy_j, r.devices, r.covered_s) for r in (*run.energy, *run.beside)]

    assert amounts(window.recovered) == amounts(window.run)
    assert window.recovered.duration_s == window.run.duration_s
    assert (window.recovered.status, window.recovered.coverage) == ("recovered", None)
    assert "known" not in {r.state for r in window.recovered.energy}


def patiently(measure_once, limit_s=OURS_S, tries=12):
    """Return a window, after some whose edges each waited no longer than the limit at their best.

    What we wait for is waited for every time; a machine that is busy adds to it only at times.
    """
    starts, stops = [], []
    for left in reversed(range(tries)):
        window = unless_stalled(lambda again, left=left: measure_once(10 * left + again))
        starts.append(window.start_s)
        stops.append(window.stop_s)
        if max(min(starts), min(stops)) <= limit_s:
            break
    assert min(starts) <= limit_s, f"start waited {min(starts):.3f} s, {tries} times"
    assert min(stops) <= limit_s, f"stop waited {min(stops):.3f} s, {tries} times"
    return window
