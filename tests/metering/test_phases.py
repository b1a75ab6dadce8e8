"""Phases: their time, energy and units sum to the run's, and what sensors cannot tell apart is not told."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.run import Run
from carbonlens.metering.phase_energy import Stretches, replayed, with_phases
from carbonlens.metering.phases import MOST_NAMES, PhaseBlock, PhaseMark, Phases
from carbonlens.metering.sealing import Sample, seal_tally, tallied
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.tally import Tally
from tests.metering.sensors import CounterSensor

COUNTER = CounterSensor().info
POWER = SensorInfo(
    name="board",
    kind="instant",
    unit="W",
    scope="board",
    boundary="it",
    grade="C",
    update_period_s=0.01,
    channels=(Channel(device="GPU-a", component="gpu"),),
    method="power now",
    duty=1.0,
)


class World:
    """A machine whose power is known at all times, measured by a counter and a power sensor.

    Args:
        infos: Which of the two sensors there are.
    """

    def __init__(self, infos=(COUNTER, POWER)):
        self.infos = infos
        self.phases = Phases(infos)
        self.tally = Tally(infos)
        self.stretches = Stretches(infos, self.tally)
        self.samples, self.marks = [], []
        self.t_us, self.joules, self.units = 0, 0.0, Decimal(0)
        self.watts = 0.0
        self.answers = True

    def look(self, watts, *, ends=False):
        """Look, and have the power be so many watts from here on."""
        self.watts = watts
        told = {"J": (self.joules,), "W": (watts,)} if self.answers else {"J": None, "W": None}
        sample = Sample(self.t_us, tuple(told[i.unit] for i in self.infos))
        mark = self.phases.mark(self.t_us, self.units or None, ends=ends)
        tallied(self.tally, sample)
        self.stretches.take(sample, mark, in_use=self.phases.in_use)
        self.samples.append(sample)
        # As a line of the journal: what a recovery reads back.
        self.marks.append(msgspec.json.decode(msgspec.json.encode(mark), type=PhaseMark | None))

    def wait(self, us):
        self.joules += self.watts * us / 1e6
        self.t_us += us

    def run(self, stretches=None):
        """Seal the run where it is now."""
        stretches = stretches or self.stretches
        stretches.finish(self.t_us, self.units or None)
        sealed = seal_tally(self.tally, start_us=0, window_us=self.t_us)
        run = Run(run_id="a", duration_s=self.t_us / 1e6, energy=sealed.readings, units=self.units or None)
        return with_phases(run, stretches, sealed, self.phases.findings())


segment = st.tuples(
    st.sampled_from([None, "load", "steady", "evaluation"]),
    st.integers(150_000, 90_000_000),
    st.floats(1.0, 300.0),
    st.integers(0, 3),
)
"""A phase, its length in microseconds, its power in watts, and its units."""


@given(st.lists(segment, min_size=1, max_size=12), st.sampled_from([(COUNTER,), (POWER,), (COUNTER, POWER)]))
def test_phases_and_the_rest_are_the_run(segments, infos):
    world = World(infos)
    true_s, true_j, true_units = {}, {}, {}
    for name, us, watts, units in segments:
        world.phases.say(name)
        # The power of a stretch is there from its first look on.
        world.look(watts, ends=True)
        parts = max(us // 100_000, 1)
        for k in range(parts):
            world.wait(us // parts)
            if k < parts - 1:
                world.look(watts)
        world.units += units
        took = us // parts * parts
        true_s[name] = true_s.get(name, 0.0) + took / 1e6
        true_j[name] = true_j.get(name, 0.0) + watts * took / 1e6 * len(infos)
        true_units[name] = true_units.get(name, 0) + units
    world.look(0.0, ends=True)
    # Played again from the journal: the tally of the run is finished by then, phases are not its business.
    again = replayed(world.infos, world.samples, world.marks)
    run = world.run()
    phases = {p.name: p for p in run.phases}
    assert set(phases) == set(true_s) - {None}
    for name, phase in phases.items():
        assert phase.duration_s == pytest.approx(true_s[name], abs=2e-6)
        assert float(phase.energy_j) == pytest.approx(true_j[name], rel=0.02)
        assert (phase.units or 0) == true_units[name]
        assert phase.state == "known"
    told_s = sum(p.duration_s for p in run.phases)
    assert run.duration_s - told_s == pytest.approx(true_s.get(None, 0.0), abs=1e-5)
    # No joule of the phases is missing in the run, and what is in none is the rest.
    total = sum(r.energy_j for r in run.energy)
    rest = total - sum(p.energy_j for p in run.phases)
    assert rest >= 0
    assert float(rest) == pytest.approx(true_j.get(None, 0.0), rel=0.02, abs=0.02 * float(total))
    if infos == (COUNTER,):
        # A counter's differences are exact, whatever lies between.
        assert float(rest) == pytest.approx(true_j.get(None, 0.0), abs=1e-4)
    again.finish(world.t_us, world.units or None)
    assert {n: (s.us, s.units, s.entries) for n, s in again.sums.items()} == {
        n: (s.us, s.units, s.entries) for n, s in world.stretches.sums.items()
    }
    assert {n: {k: g.amount for k, g in s.gains.items()} for n, s in again.sums.items()} == {
        n: {k: pytest.approx(g.amount) for k, g in s.gains.items()} for n, s in world.stretches.sums.items()
    }


@given(st.lists(st.tuples(segment, st.booleans()), min_size=1, max_size=15))
def test_switches_without_a_look_lose_no_time_and_no_joule(steps):
    world = World((COUNTER,))
    world.look(50.0)
    for (name, us, watts, units), looked in steps:
        world.phases.say(name)
        if looked:
            world.look(watts, ends=True)
        else:
            world.phases.settle(world.t_us, world.units or None)
            world.watts = watts
        world.wait(us)
        world.units += units
    world.look(0.0, ends=True)
    run = world.run()
    told_us = round(sum(p.duration_s for p in run.phases) * 1e6)
    in_none_us = sum(us for (name, us, _, _), _ in steps if name is None)
    assert told_us + in_none_us == pytest.approx(world.t_us, abs=5)
    assert sum(p.energy_j or 0 for p in run.phases) <= run.energy[0].energy_j
    assert sum(p.units or 0 for p in run.phases) <= world.units
    for phase in run.phases:
        assert phase.energy_j is None or phase.energy_j > 0
        assert (phase.energy_j is None) == any(
            phase.name in f.message for f in run.findings if f.code in {"CL177", "CL178"}
        )


def test_a_short_part_of_a_long_stretch_widens_it_and_is_not_told_itself():
    world = World((COUNTER,))
    world.look(100.0)
    world.phases.say("steady")
    world.look(100.0, ends=True)
    world.wait(10_000_000)
    world.phases.say("checkpoint")
    world.look(100.0, ends=True)
    world.wait(20_000)
    world.phases.say("steady")  # too soon for a look
    world.phases.settle(world.t_us, None)
    world.wait(9_980_000)
    world.look(0.0, ends=True)
    run = world.run()
    steady, checkpoint = run.phases
    assert float(steady.energy_j) == pytest.approx(1998, rel=1e-3)
    assert steady.u_by_source_j["phases:by-time"] == pytest.approx(0.002 * 3 * 1000, rel=0.01)
    assert (checkpoint.energy_j, checkpoint.state, checkpoint.entries) == (None, "unknown", 1)
    (note,) = run.findings
    assert (note.code, note.message.rpartition(": ")[2]) == ("CL177", "'checkpoint'")


def test_a_counter_that_gains_nothing_is_not_nothing_used():
    world = World((COUNTER,))
    world.look(0.0)
    world.phases.say("idle")
    world.look(0.0, ends=True)
    world.wait(5_000_000)
    world.phases.say(None)
    world.look(100.0, ends=True)
    world.wait(5_000_000)
    world.look(0.0, ends=True)
    run = world.run()
    (idle,) = run.phases
    assert (idle.energy_j, idle.duration_s) == (None, 5.0)
    assert [f.code for f in run.findings] == ["CL178"]


def test_a_lost_line_of_the_journal_costs_the_energy_of_its_stretch_alone():
    world = World((COUNTER,))
    for name, watts in (("a", 10.0), ("b", 20.0), ("c", 30.0), ("c", 30.0)):
        world.phases.say(name)
        world.look(watts, ends=True)
        world.wait(4_000_000)
    world.look(0.0, ends=True)
    # Where b ended.
    pairs = [(s, m) for s, m in zip(world.samples, world.marks, strict=True) if s.t_us != 8_000_000]
    run = world.run(replayed(world.infos, *zip(*pairs, strict=True)))
    energies = {p.name: p.energy_j for p in run.phases}
    # The line also held that b lasted: nobody knows of it any more.
    assert float(energies["a"]) == pytest.approx(40)
    assert float(energies["c"]) == pytest.approx(120)
    (c,) = (p for p in run.phases if p.name == "c")
    assert c.state == "unbounded"


def test_a_phase_in_which_a_sensor_of_power_failed_has_a_lower_bound():
    world = World((POWER,))
    world.look(100.0)
    for name in ("a", "b"):
        world.phases.say(name)
        world.look(100.0, ends=True)
        for k in range(50):
            world.wait(100_000)
            world.answers = name == "b" or not 10 <= k < 30
            world.look(100.0)
    world.wait(100_000)
    world.look(100.0, ends=True)
    run = world.run()
    a, b = run.phases
    assert (a.state, b.state) == ("unbounded", "known")
    # A sample holds for three looks where the next ones failed.
    assert float(a.energy_j) == pytest.approx(320, rel=0.01)
    assert float(b.energy_j) == pytest.approx(510, rel=0.01)
    assert run.energy[0].state == "unbounded"


def test_names_are_texts_and_not_too_many():
    phases = Phases()
    for odd in (3, None, "", " \n", b"load", ["load"]):
        assert phases.begin(odd) is None
    assert not phases.in_use
    assert [f.code for f in phases.findings()] == ["CL110"]

    class Broken(str):
        def __str__(self):
            raise RuntimeError("secret")

    assert phases.begin(Broken("x")) is None
    assert "secret" not in phases.findings()[0].message
    level = phases.begin("a\n b\udce9" + "x" * 500)
    assert len(level.own) == 80
    assert level.own.startswith("a b\N{REPLACEMENT CHARACTER}x")
    for k in range(2 * MOST_NAMES):
        phases.say(f"phase {k}")
    assert len(phases._names) == MOST_NAMES
    assert f"{MOST_NAMES} phases already" in phases.findings()[1].message


def names_over(phases, *changes):
    """Return the phase that counts after each change."""
    told = []
    for k, change in enumerate(changes):
        change()
        phases.settle(1000 * (k + 1), None)
        told.append(phases._now)
    return told


def test_the_inner_name_wins_and_the_outer_goes_on():
    phases = Phases()
    outer, inner = (PhaseBlock(n, phases.begin, phases.end) for n in ("outer", "inner"))
    leave = (None, None, None)
    told = names_over(
        phases,
        outer.__enter__,
        inner.__enter__,
        outer.__enter__,  # the same once more
        lambda: phases.say("said"),
        lambda: phases.say(None),
        lambda: outer.__exit__(*leave),
        lambda: inner.__exit__(*leave),
        lambda: phases.say("other"),
        lambda: outer.__exit__(*leave),
        lambda: outer.__exit__(*leave),  # once too often
    )
    assert told == ["outer", "inner", "outer", "said", "outer", "inner", "outer", "other", None, None]
    assert phases.findings() == ()


def test_a_name_said_again_is_no_new_entry():
    world = World((COUNTER,))
    world.look(1.0)
    for _ in range(3):
        world.phases.say("steady")
        world.look(1.0, ends=True)
        world.wait(200_000)
    world.look(1.0, ends=True)
    assert [(p.entries, p.duration_s) for p in world.run().phases] == [(1, 0.6)]


def test_looks_at_switches_are_bounded_in_cost_and_number():
    phases = Phases()
    assert not phases.is_due(99_999)
    assert phases.is_due(100_000)
    # A sensor that takes a long while, once and for all.
    phases.looked(60_000)
    assert not phases.is_due(100_000)
    assert phases.is_due(4_000_000)
    slow = Phases([msgspec.structs.replace(COUNTER, update_period_s=10.0)])
    assert not slow.is_due(9_999_999)
    many = Phases()
    for _ in range(1000):
        many.looked(0.0)
    assert not many.is_due(399_000_000)
    assert many.is_due(401_000_000)


def test_a_look_that_is_owed_comes_once_the_phase_lasts():
    phases = Phases()
    phases.say("a")
    phases.settle(90_000, None)
    assert not phases.is_pending(130_000)  # it may be over at once
    assert phases.is_pending(140_001)
    phases.mark(150_000, None, ends=True)
    assert not phases.is_pending(900_000)


def test_units_that_a_thread_read_before_another_settled_are_not_taken_back():
    phases = Phases(())
    phases.in_use = True
    level = phases.begin("a")
    phases.settle(10, Decimal(100))
    late = Decimal(60)  # read before, brought after
    phases.settle(20, late)
    phases.end(level)
    phases.settle(30, Decimal(130))
    mark = phases.mark(40, Decimal(130), ends=True)
    assert sum(p.units for p in mark.pieces) == 130
    assert all(p.units >= 0 for p in mark.pieces)


READ = st.one_of(st.none(), st.integers(0, 9).map(Decimal))


@given(st.lists(st.tuples(st.sampled_from("ab"), READ, st.booleans(), st.booleans()), min_size=1, max_size=8))
def test_a_look_tells_of_as_many_units_as_its_phases_hold_whatever_the_threads_order(turns):
    # Threads read the count first and come by turns then, so that it may go down and up.
    phases = Phases(())
    told = Decimal(0)
    for place, (name, units, looks, ends) in enumerate(turns):
        phases.say(name)
        phases.settle(10 * place + 5, units)
        _, stale, *_ = turns[place // 2]
        mark = phases.mark(10 * place + 9, stale, ends=ends) if looks or ends else None
        if mark is not None:
            assert (mark.units or 0) == told + sum(p.units for p in mark.pieces)
            told += sum(p.units for p in mark.pieces) if ends else 0
