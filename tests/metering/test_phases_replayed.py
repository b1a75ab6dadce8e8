"""Phases that were told live are those that the journal tells, to the last bit, whatever the sensors."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carbonlens.metering.journal import Facts, Look, encode_header, encode_line, parse
from carbonlens.metering.phase_energy import Stretches, replayed, with_phases
from carbonlens.metering.phases import Phases
from carbonlens.metering.records import sealed_run
from carbonlens.metering.recovery import recovered_run
from carbonlens.metering.sealing import Sample, seal_tally, tallied
from carbonlens.metering.sensors import VOID, Channel, SensorInfo
from carbonlens.metering.tally import Tally
from tests.metering.journals import header


def sensor(name, kind, period_s):
    return SensorInfo(
        name=name,
        kind=kind,
        unit="J" if kind == "cumulative" else "W",
        scope="board",
        boundary="device",
        grade="B" if kind == "cumulative" else "C",
        update_period_s=period_s,
        channels=tuple(Channel(device=f"{name}-{k}", component="gpu") for k in range(2)),
        method="test",
    )


class Live:
    """What a session does with its looks, at times of the test's choice; its journal beside it."""

    def __init__(self, infos):
        self.infos = infos
        self.phases, self.tally = Phases(infos), Tally(infos)
        self.stretches = Stretches(infos, self.tally)
        self.head = msgspec.structs.replace(header(), sensors=infos)
        self.lines = [encode_header(self.head)]
        self.t_us, self.joules, self.watts = 0, 0.0, 0.0
        self.units = Decimal(0)

    def told(self, info, answer):
        if answer is not None:
            return answer
        return (self.joules, 2 * self.joules) if info.unit == "J" else (self.watts, self.watts / 3)

    def look(self, answers=(), skew_us=None, *, ends=False):
        values = tuple(
            self.told(info, answers[k] if k < len(answers) else None) for k, info in enumerate(self.infos)
        )
        values = tuple(None if told == "failed" else told for told in values)
        sample = Sample(self.t_us, values, None, skew_us)
        tallied(self.tally, sample)
        mark = self.phases.mark(self.t_us, self.units or None, ends=ends)
        self.stretches.take(sample, mark, in_use=self.phases.in_use)
        facts = Facts(units=self.units or None)
        self.lines.append(encode_line(Look(sample=sample, facts=facts, phases=mark)))

    def switch(self, name):
        self.phases.say(name)
        if self.phases.is_settled:
            return
        if self.phases.is_due(self.t_us):
            self.look(ends=True)
        else:
            self.phases.settle(self.t_us, self.units or None)

    def wait(self, us, watts):
        self.watts = watts
        self.t_us += us
        self.joules += watts * us / 1e6

    def both(self):
        """Return the sealed run, and what a recovery makes of its journal."""
        self.look(ends=True)
        self.stretches.finish(self.t_us, self.units or None)
        sealed = seal_tally(self.tally, start_us=self.head.run.start_us, window_us=self.t_us)
        run = sealed_run(self.head.run, Facts(units=self.units or None), sealed, self.t_us, "complete")
        live = with_phases(run, self.stretches, sealed, self.phases.findings())
        self.journal = parse(b"".join(self.lines).split(b"\n"))
        return live, recovered_run(self.head, self.journal)


def sums(stretches):
    """Return every number of the phases, those included that no record shows."""
    return {
        name: (s.us, s.entries, s.units, s.doubt_us, {place: gain_of(g) for place, g in s.gains.items()})
        for name, s in stretches.sums.items()
    }


def gain_of(gain):
    return gain.amount, gain.by_time, gain.covered_us, gain.variance


def comparable(run, last):
    """Return the phases, but for the state of the one that a killed run was in."""
    return [
        msgspec.structs.replace(p, state="known" if p.name == last and p.state == "unbounded" else p.state)
        for p in run.phases
    ]


infos = st.lists(
    st.tuples(
        st.sampled_from(["instant", "average", "cumulative"]), st.sampled_from([0.001, 0.1, 1.0, 15.0, 60.0])
    ),
    min_size=1,
    max_size=3,
).map(lambda kinds: tuple(sensor(f"s{k}", *kind) for k, kind in enumerate(kinds)))

answer = st.sampled_from([None, None, None, None, (), "failed", (float("nan"), 7.0), (VOID, 7.0), (0.0, 0.0)])
"""What one look at one sensor tells; ``None`` for the truth."""

step = st.tuples(
    st.sampled_from(["stay", "stay", "stay", None, "load", "steady", "", 3]),
    st.integers(1, 20_000_000),
    st.floats(0.0, 400.0),
    st.lists(answer, max_size=3),
    st.sampled_from([None, (0, 3_000, -2_000), (-40_000, 0, 0)]),
    st.integers(0, 2),
    st.integers(1, 8),
)
LATE = [("stay", 300_000, 100.0, [], None, 0, 8)] * 12 + [("train", 500_000, 100.0, [], None, 0, 8)] * 12


@given(infos, st.lists(step, min_size=1, max_size=15))
@example((sensor("fast", "instant", 0.1), sensor("slow", "instant", 60.0)), LATE)
@example((sensor("fast", "instant", 0.1),), [*LATE, ("", 100, 1.0, [], None, 0, 1)])
def test_phases_live_are_those_of_the_journal(infos, steps):
    one = Live(infos)
    one.look()
    for name, us, watts, answers, skew_us, units, looks in steps:
        if name != "stay":
            one.switch(name)
        for _ in range(looks):
            one.wait(us // looks + 1, watts)
            one.units += units
            one.look(answers, skew_us)
    live, killed = one.both()
    again = replayed(one.infos, one.journal.samples, one.journal.marks)
    again.finish(one.t_us, one.units or None)
    assert sums(again) == sums(one.stretches)
    last = one.stretches.last
    assert comparable(killed, last) == comparable(live, last)
    notes = [f for f in live.findings if f.subject == "phases" or f.code == "CL110"]
    assert [f for f in killed.findings if f.subject == "phases" or f.code == "CL110"] == notes


def test_a_late_first_phase_has_the_energy_from_before_it_where_a_sensor_is_slow():
    one = Live((sensor("fast", "instant", 0.1), sensor("slow", "instant", 60.0)))
    for k in range(900):
        if k == 300:
            one.switch("train")
        one.look()
        one.wait(100_000, 100.0)
    live, killed = one.both()
    assert live.phases == killed.phases
    (train,) = one.stretches.sums.values()
    assert (train.us, train.gains[0, 0].amount) == (60_000_000, pytest.approx(6000, rel=2e-3))
    assert train.gains[0, 0].covered_us == pytest.approx(60e6, rel=1e-3)


def test_what_is_kept_before_the_first_phase_does_not_grow():
    one = Live((sensor("fast", "instant", 0.1), sensor("count", "cumulative", 0.001)))
    sizes = []
    for k in range(4_000):
        one.look()
        one.wait(100_000, 50.0)
        one.lines.clear()
        if k in {1_000, 3_999}:
            sizes.append(len(one.stretches._first) + len(one.stretches._latest))
    assert sizes == [2, 2]
