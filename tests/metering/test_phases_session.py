"""Phases of a session: looks at its switches are few, quick, and never waited for."""

import threading
import time

import pytest

from carbonlens.metering.devices.conditions import Told, _Seen
from carbonlens.metering.journal import read
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.records import new_run
from carbonlens.metering.recovery import recovered_run
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.metering.sensors.discovery import Watch
from carbonlens.metering.session import Session
from tests.metering.sensors import CounterSensor
from tests.stalls import unless_stalled


class Steady(CounterSensor):
    """A counter of 100 W, however late it is read."""

    def read(self, *, edge):
        super().read(edge=edge)
        return (100.0 * time.monotonic(),)


def session(tmp_path, *sensors):
    watch = Watch((CpuModelSensor(TreeClock()), *sensors))
    return Session(new_run("test"), watch, tmp_path / "ledger", journal_folder=tmp_path / "journal")


def say(one, name):
    one.switch_phase(lambda phases: phases.say(name))


def test_a_session_measures_its_phases(tmp_path):
    def once(left):
        one = session(tmp_path / str(left), Steady())
        one.start()
        for name in ("load", "steady", None, "steady"):
            say(one, name)
            one.recorder.add_units(2)
            time.sleep(0.25)
        (path,) = (tmp_path / str(left) / "journal").iterdir()
        journal = read(path)
        run = one.finish().run
        load, steady = run.phases
        for phase, entries in ((load, 1), (steady, 2)):
            assert (phase.entries, phase.units, phase.state, phase.grade) == (
                entries,
                2 * entries,
                "known",
                "B",
            )
            assert phase.duration_s == pytest.approx(0.25 * entries, abs=0.1)
            assert float(phase.energy_j) == pytest.approx(100 * phase.duration_s, rel=0.05)
            assert phase.energy.low < 100 * phase.duration_s < phase.energy.high
        assert run.units == 8
        killed = recovered_run(journal.header, journal)
        assert [(p.name, p.state) for p in killed.phases] == [("load", "known"), ("steady", "unbounded")]
        assert killed.phases[0].duration_s == load.duration_s
        assert float(killed.phases[0].energy_j) == pytest.approx(float(load.energy_j), rel=0.05)
        assert killed.phases[0].units == load.units

    unless_stalled(once)


def test_a_run_without_phases_notes_none(tmp_path):
    one = session(tmp_path)
    one.start()
    (path,) = (tmp_path / "journal").iterdir()
    one.sample()
    assert not any(read(path).marks)
    assert one.finish().run.phases == ()


def test_switches_without_end_stay_small_and_quick(tmp_path):
    one = session(tmp_path)
    one.start()
    begin = time.monotonic()
    for k in range(20_000):
        say(one, f"p{k % 3}")
    took_s = time.monotonic() - begin
    (path,) = (tmp_path / "journal").iterdir()
    # Ten looks a second at most, and each a short line.
    assert path.stat().st_size < 20_000 + 10_000 * took_s
    assert one.phases._looks <= 10 * took_s + 1
    assert len(one.phases._accounts) <= 4
    run = one.finish().run
    assert sum(p.entries for p in run.phases) == 20_000
    assert sum(p.duration_s for p in run.phases) == pytest.approx(run.duration_s, abs=0.1)
    assert all(p.energy_j is None for p in run.phases)
    assert "CL177" in [f.code for f in run.findings]


def test_a_sampler_that_is_at_a_look_is_not_waited_for(tmp_path):
    one = session(tmp_path, Steady())
    one.start()
    time.sleep(0.15)
    held, done = threading.Event(), threading.Event()

    def hold():
        with one._lock:
            held.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    begin = time.monotonic()
    say(one, "load")
    assert time.monotonic() - begin < 0.5
    done.set()
    holder.join()
    time.sleep(0.05)
    run = one.finish().run
    assert [p.name for p in run.phases] == ["load"]
    (note,) = (f for f in run.findings if f.code == "CL176")
    assert note.message.startswith("at 1 switch ")


def test_a_look_that_fails_leaves_the_switch(tmp_path):
    one = session(tmp_path)
    one.start()
    time.sleep(0.15)
    whole, one._looking = one._looking, None  # a fault of ours, whatever it is
    say(one, "load")
    one._looking = whole
    run = one.finish().run
    assert [(p.name, p.entries) for p in run.phases] == [("load", 1)]
    assert "CL176" in [f.code for f in run.findings]


def test_a_driver_that_hangs_in_the_sampler_costs_one_wait_whatever_switches_follow(tmp_path):
    def once(left):
        one = session(tmp_path / str(left), Steady())
        one.start()
        time.sleep(0.15)
        with one._lock:
            for k in range(40):
                say(one, f"p{k % 2}")
            waited_us = one.phases._cost_us
        # What the waits came to was booked: no more than one of them, whatever the machine did.
        assert 40_000 < waited_us < 100_000
        assert one.phases.wait_s(150_000) == 0.0
        run = one.finish().run
        assert sum(p.entries for p in run.phases) == 40

    unless_stalled(once)


def test_a_killed_run_keeps_what_was_said_of_phases_and_devices(tmp_path):
    one = session(tmp_path, Steady())
    one._surroundings._looks._seen["GPU-a"] = seen = _Seen()
    seen.take(Told(clock_mhz=1500.0, power_cap_w=300.0))
    one.start()
    say(one, "")
    outer = one.phases.begin("a")
    one.phases.begin("b")
    one.phases.end(outer)
    one.phases.could_not_look()
    one._look(ends=True)
    (path,) = (tmp_path / "journal").iterdir()
    journal = read(path)
    killed = recovered_run(journal.header, journal)
    assert {"CL110", "CL175", "CL176"} <= {f.code for f in killed.findings}
    told = {d.device: d for d in killed.conditions.devices}
    assert (told["GPU-a"].clock_mhz, told["GPU-a"].power_cap_w) == (1500.0, 300.0)
    # And no line more until a minute is over.
    assert one._surroundings.to_note(50_000_000) == ()
    assert one._surroundings.to_note(70_000_000)
    one.finish()
