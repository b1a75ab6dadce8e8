"""Power over a run's time: its integral is the energy, no peak is lost, and what is not known is a gap."""

import math
import random
import time

import msgspec
import pytest

from carbonlens.domain.run import Run
from carbonlens.errors import InputFileError
from carbonlens.ledger.records import Stored
from carbonlens.ledger.redaction import entomb, redacted
from carbonlens.metering.journal import looks_of, read_header
from carbonlens.metering.phase_spans import Span, longest, spans_of
from carbonlens.metering.phases import Phases
from carbonlens.metering.power_curve import MOST_BINS, power_trace
from carbonlens.metering.power_obstacles import obstacle
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.records import new_run
from carbonlens.metering.recovery import recover
from carbonlens.metering.sampler import process_sampler
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.metering.sensors.discovery import Watch
from carbonlens.metering.session import Session
from carbonlens.metering.trace_file import SCHEMA, WITH_PHASES, read_run_trace
from carbonlens.metering.trace_target import IN_RECORD, target_of
from tests.metering.journals import write
from tests.metering.sensors import CounterSensor
from tests.metering.test_calibrations import LINE
from tests.metering.test_phases_session import Steady, say
from tests.metering.traces import board

MODEL = CpuModelSensor(TreeClock()).info


GAIN = msgspec.structs.replace(LINE, gain=msgspec.structs.replace(LINE.gain, value=1.15))


def counter(component="gpu", device="GPU-1", max_range=None, calibration=None, tick_s=0.02) -> SensorInfo:
    channel = Channel(device=device, component=component, max_range=max_range, calibration=calibration)
    return SensorInfo(
        name="nvml_energy", kind="cumulative", unit="J", scope="board", boundary="device", grade="B",
        update_period_s=tick_s, channels=(channel,), method="counter",
    )  # fmt: skip


def calibrated(info) -> SensorInfo:
    (channel,) = info.channels
    return msgspec.structs.replace(info, channels=(msgspec.structs.replace(channel, calibration=GAIN),))


def looks(infos, watts, *, seconds, pace_s=0.1, failed=lambda place, t_s: False):
    """Looks at a load of ``watts(t)``: power as it is, a counter of it, CPU time as a second per 100 J."""
    joules, found = 0.0, []
    for i in range(round(seconds / pace_s) + 1):
        t_s = i * pace_s
        told = []
        for place, info in enumerate(infos):
            value = {"W": watts(t_s), "J": joules, "s": joules / 100}[info.unit]
            told.append(None if failed(place, t_s) else (value,) * len(info.channels))
        found.append(Sample(round(t_s * 1e6), tuple(told)))
        joules += watts(t_s) * pace_s
    return found


def drawn(infos, samples, spans=()):
    window_us = samples[-1].t_us
    sealed = seal(infos, samples, start_us=0, window_us=window_us)
    return power_trace(iter(samples), infos, sealed, window_us, spans), sealed


def integral(trace):
    return sum(watts * trace.bin_s for watts in trace.power_w if watts is not None)


def steps(t_s):
    return 300.0 if int(t_s) % 3 else 80.0


@pytest.mark.parametrize("seconds", [5, 90, 400])
@pytest.mark.parametrize(
    "infos",
    [
        (board(),),
        (counter(),),
        (MODEL,),
        (board(), MODEL),
        (board(device="GPU-a"), board(device="GPU-b")),
        (calibrated(board()),),
        (calibrated(counter()),),
    ],
    ids=["power", "counter", "model", "power+model", "two boards", "power by meter", "counter by meter"],
)
def test_the_integral_is_the_energy_of_the_record(infos, seconds):
    trace, sealed = drawn(infos, looks(infos, steps, seconds=seconds))
    energy_j = sum(float(r.energy_j) for r in sealed.readings)
    assert integral(trace) == pytest.approx(energy_j, rel=0.01)
    assert len(trace.power_w) == len(trace.time_s) <= MOST_BINS
    assert None not in trace.power_w
    both = zip(trace.low_w, trace.power_w, trace.high_w, strict=True)
    assert all(low <= mean <= high for low, mean, high in both)


@pytest.mark.parametrize("info", [board(), counter()], ids=["power", "counter"])
def test_no_peak_is_lost_however_much_is_thinned(info):
    # One look in six thousand saw it.
    samples = looks((info,), lambda t_s: 700.0 if abs(t_s - 301.3) < 0.05 else 100.0, seconds=600)
    trace, _ = drawn((info,), samples)
    peak_s = trace.time_s[trace.high_w.index(max(trace.high_w))]
    assert max(trace.high_w) == pytest.approx(700, rel=0.01)
    assert max(trace.power_w) < 250
    assert abs(peak_s - 301.3) < 2 * trace.bin_s
    dip, _ = drawn((info,), looks((info,), lambda t: 5.0 if abs(t - 301.3) < 0.05 else 100.0, seconds=600))
    assert min(dip.low_w) == pytest.approx(5, rel=0.01)


def test_readings_that_failed_for_a_while_are_a_gap_and_no_zero():
    infos = (board(), MODEL)
    samples = looks(infos, steps, seconds=20, failed=lambda place, t: place == 0 and 8 <= t < 12)
    trace, _ = drawn(infos, samples)
    gap = {t for t, w in zip(trace.time_s, trace.power_w, strict=True) if w is None}
    assert gap
    assert min(gap) == pytest.approx(8, abs=0.2)
    assert max(gap) == pytest.approx(12, abs=0.3)
    assert all(w is None or w > 0 for w in trace.power_w)
    assert [w is None for w in trace.low_w] == [w is None for w in trace.power_w]


def test_looks_that_stay_away_are_a_gap_of_power_and_none_of_a_counter():
    for info, has_gap in ((board(), True), (counter(), False)):
        samples = [s for s in looks((info,), lambda t: 100.0, seconds=20) if not 6e6 < s.t_us < 13e6]
        trace, _ = drawn((info,), samples)
        assert (None in trace.power_w) is has_gap
        assert all(w is None or w == pytest.approx(100, rel=0.02) for w in trace.power_w)


def test_a_counter_that_wraps_goes_on_and_one_that_begins_anew_leaves_a_gap():
    info = counter(max_range=300.0)
    samples = [Sample(s.t_us, ((s.values[0][0] % 300,),)) for s in looks((info,), lambda t: 100.0, seconds=9)]
    trace, _ = drawn((info,), samples)
    assert trace.power_w == pytest.approx([100.0] * len(trace.power_w))
    info = counter()
    samples = [
        Sample(s.t_us, ((s.values[0][0] - (400 if s.t_us > 5e6 else 0),),))
        for s in looks((info,), lambda t: 100.0, seconds=9)
    ]
    trace, _ = drawn((info,), samples)
    assert trace.power_w.count(None) == 1
    assert max(w for w in trace.power_w if w is not None) == pytest.approx(100.0)


def jittered(tick_s, watts=300.0, *, seconds=60):
    """Looks that come up to 10 ms early or late at a counter that moves in ticks alone."""
    rng, found = random.Random(tick_s), []  # noqa: S311  # jitter, no secret
    for i in range(seconds * 10):
        t_s = i * 0.1 + rng.uniform(-0.01, 0.01) * bool(i)
        found.append(Sample(round(t_s * 1e6), ((math.floor(t_s / tick_s) * tick_s * watts,),)))
    return found


@pytest.mark.parametrize("tick_s", [0.001, 0.02, 0.1, 1.0])
def test_the_least_and_most_of_a_counter_are_the_loads_and_not_its_ticks(tick_s):
    info = counter(tick_s=tick_s)
    trace, sealed = drawn((info,), jittered(tick_s))
    # A tick more or less of the five that a step spans at least.
    assert min(w for w in trace.low_w if w is not None) > 300 * 0.79
    assert max(w for w in trace.high_w if w is not None) < 300 * 1.21
    assert integral(trace) == pytest.approx(float(sealed.readings[0].energy_j), rel=0.02)
    assert trace.over_s == max(5 * tick_s, 0.05)
    assert drawn((board(),), looks((board(),), steps, seconds=5))[0].over_s == 0


JUMPS = {
    "one spike": ({40: 9e6}, 0),
    "one beyond any counter": ({40: 1e15}, 0),
    "spikes apart": ({40: 9e6, 42: 3e7}, 0),
    "two spikes": ({40: 9e6, 41: 3e7}, 0),
    "set forward": (dict.fromkeys(range(40, 90), 9e6), 1),
    "set forward for a while": (dict.fromkeys(range(40, 50), 9e6), 2),
}


@pytest.mark.parametrize("name", JUMPS)
def test_a_reading_that_cannot_be_is_left_out_as_its_tally_leaves_it_out(name):
    more, gaps = JUMPS[name]
    infos = (counter(),)
    samples = [
        Sample(s.t_us, ((s.values[0][0] + more.get(i, 0.0),),))
        for i, s in enumerate(looks(infos, lambda t: 100.0, seconds=8.9))
    ]
    trace, sealed = drawn(infos, samples)
    assert trace.power_w.count(None) == gaps
    assert [w for w in trace.high_w if w is not None] == pytest.approx([100.0] * (len(trace.high_w) - gaps))
    assert integral(trace) == pytest.approx(float(sealed.readings[0].energy_j), rel=0.001)


def test_there_is_no_curve_where_a_part_of_the_energy_is_not_known():
    infos = (board(),)
    samples = looks(infos, steps, seconds=5)
    sealed = seal(infos, samples, start_us=0, window_us=5_000_000, unmeasured=("GPU-other",))
    assert power_trace(samples, infos, sealed, 5_000_000) is None
    silent = (board(), board(device="GPU-2"))
    both = looks(silent, steps, seconds=5, failed=lambda place, t: place == 1)
    assert drawn(silent, both)[0] is None
    short = looks(infos, steps, seconds=0.1)
    assert drawn(infos, short)[0] is None
    # Each says why.
    whole = seal(infos, samples, start_us=0, window_us=5_000_000)
    beside = (*whole.readings, msgspec.structs.replace(whole.readings[0], boundary="facility"))
    mixed = msgspec.structs.replace(whole, readings=beside, parts=whole.parts * 2)
    said = [
        obstacle(infos, sealed, 5_000_000).why,
        obstacle(silent, seal(silent, both, start_us=0, window_us=5_000_000), 5_000_000).why,
        obstacle(infos, whole, 100_000).why,
        obstacle(infos, mixed, 5_000_000).why,
    ]
    wanted = ("energy of a part", "energy of a part", "shorter than two looks (0.2 s)", "several boundaries")
    assert all(words in why for words, why in zip(wanted, said, strict=True))
    assert obstacle(infos, whole, 5_000_000) is None


def test_only_the_longest_spans_are_kept_in_order_of_time():
    spans = [Span(f"p{i}", i * 1000, i * 1000 + i) for i in range(10)]
    assert [s.name for s in longest(spans, 3)] == ["p7", "p8", "p9"]
    trace, _ = drawn(
        (board(),), looks((board(),), steps, seconds=5), spans=[Span("load", 500_000, 2_000_000)]
    )
    assert [(s.name, s.start_s, s.end_s) for s in trace.spans] == [("load", 0.5, 2.0)]


def test_spans_follow_switches_nested_and_said_and_quicker_than_looks():
    phases = Phases(keeps_switches=True)
    told = []

    def at(t_us, change, *, mark=False):
        change(phases)
        phases.settle(t_us, None)
        if mark:
            told.append(phases.mark(t_us, None, ends=True))

    outer = phases.begin("training")
    at(0, lambda p: None)
    at(1000, lambda p: p.say("checkpoint"))
    at(1500, lambda p: p.say(None))
    at(2000, lambda p: p.say("evaluation"), mark=True)
    at(3000, lambda p: p.end(outer), mark=True)
    assert spans_of(told, 9000) == (
        ("training", 0, 1000),
        ("checkpoint", 1000, 1500),
        ("training", 1500, 2000),
        ("evaluation", 2000, 3000),
    )
    for i in range(1000):
        at(4000 + i, lambda p, i=i: p.say(f"n{i % 2}"))
    at(6000, lambda p: p.say("last"), mark=True)
    assert len(told[-1].switches) < 300
    late = [s for s in spans_of(told, 9000) if s.start_us > 4255]
    # What was too quick to be noted has no name, and the rest is placed as ever.
    assert late == [("last", 6000, 9000)]


def measured(tmp_path, trace, *, killed=False):
    watch = Watch((Steady(),))
    one = Session(new_run("test"), watch, tmp_path / "ledger", journal_folder=tmp_path / "j", trace=trace)
    one.start()
    for name in ("load", "steady", None):
        say(one, name)
        for _ in range(5):
            time.sleep(0.05)
            one.sample()
    if killed:
        process_sampler().remove(one)  # it would write on, into this journal and into other tests' times
        return next((tmp_path / "j").iterdir())
    return one.finish().run


def test_a_run_whose_trace_is_asked_for_keeps_power_and_phases_in_record_and_file(tmp_path):
    file = tmp_path / "t.csv"
    run = measured(tmp_path, target_of(file))
    assert [s.name for s in run.power.spans] == ["load", "steady"]
    told = {p.name: p.duration_s for p in run.phases}
    for span in run.power.spans:
        assert span.end_s - span.start_s == pytest.approx(told[span.name], abs=0.002)
    told = [w for w in run.power.power_w if w is not None]
    assert len(told) >= 4
    assert told == pytest.approx([100.0] * len(told), rel=0.2)
    assert integral(run.power) == pytest.approx(run.total_energy.value, rel=0.02)
    read = read_run_trace(file)
    assert read.head.schema == WITH_PHASES
    assert [(p.phase, p.start_us - run.start_us) for p in read.phases] == [
        (s.name, round(s.start_s * 1e6)) for s in run.power.spans
    ]
    assert len(read.rows) > 10


def test_a_curve_is_kept_without_a_file_and_none_where_no_trace_is_asked_for(tmp_path):
    assert target_of(True) is IN_RECORD
    run = measured(tmp_path, IN_RECORD)
    assert run.power is not None
    assert run.trace is None
    assert not [f for f in run.findings if f.code == "CL161"]
    plain = Session(new_run("t"), Watch((CounterSensor(),)), tmp_path / "l", journal_folder=tmp_path / "k")
    plain.start()
    assert plain.finish().run.power is None


def test_a_killed_run_has_its_curve_and_phases_from_the_journal(tmp_path):
    path = measured(tmp_path, target_of(tmp_path / "t.csv"), killed=True)
    head = read_header(path)
    gone = msgspec.structs.replace(head.writer, start_ticks=1)
    write(tmp_path / "left", msgspec.structs.replace(head, writer=gone), *looks_of(path))
    (sealed,) = recover(tmp_path / "left").recovered
    assert sealed.run.status == "recovered"
    assert [s.name for s in sealed.run.power.spans] == ["load", "steady"]
    assert [p.phase for p in read_run_trace(tmp_path / "t.csv").phases] == ["load", "steady"]


def test_a_trace_of_the_first_version_is_read_and_one_without_phases_is_still_of_it(tmp_path):
    old = tmp_path / "old.csv"
    old.write_text(
        '# {"schema":"carbonlens/run-trace/1","run_id":"r","start_us":1700000000000000}\n'
        '# {"column":"nvml_power/GPU-1","sensor":{"name":"nvml_power","kind":"instant","unit":"W",'
        '"scope":"board","boundary":"device","grade":"C","update_period_s":0.1,'
        '"channels":[{"device":"GPU-1","component":"gpu"}],"method":"power"}}\n'
        "t_us,nvml_power/GPU-1\n1700000000000000,61.5\n"
    )
    read = read_run_trace(old)
    assert (read.phases, read.rows) == ((), ((1_700_000_000_000_000, (61.5,)),))
    watch = Watch((Steady(),))
    one = Session(
        new_run("t"),
        watch,
        tmp_path / "l",
        journal_folder=tmp_path / "k",
        trace=target_of(tmp_path / "n.csv"),
    )
    one.start()
    one.finish()
    assert read_run_trace(tmp_path / "n.csv").head.schema == SCHEMA


def test_redacting_the_energy_takes_its_power_over_time_out_too(tmp_path):
    run = measured(tmp_path, IN_RECORD)
    stored = Stored(run=run, text=msgspec.json.encode(run), file="")
    stone = entomb(stored, ("energy",), by="x", when_us=0, why="y")
    left = msgspec.json.decode(redacted(stored.text, stone), type=Run)
    assert (left.energy[0].energy_j, left.power) == (None, None)
    kept = entomb(stored, ("error", "workload", "power"), by="x", when_us=0, why="y")
    assert msgspec.json.decode(redacted(stored.text, kept), type=Run).power is None


@pytest.mark.parametrize(
    ("schema", "line", "said"),
    [
        (WITH_PHASES, '# {"phase":"load","start_us":5,"end_us":4}', "ends before it begins"),
        (WITH_PHASES, '# {"phase":"load","start_us":5}', "no line of a trace's head"),
        (SCHEMA, '# {"phase":"load","start_us":4,"end_us":5}', "no line of a trace's head"),
    ],
)
def test_a_phase_that_makes_no_sense_is_refused_with_its_line(tmp_path, schema, line, said):
    file = tmp_path / "t.csv"
    file.write_text(f'# {{"schema":"{schema}","run_id":"r","start_us":0}}\n{line}\nt_us\n')
    with pytest.raises(InputFileError, match=rf"t\.csv:2.*{said}"):
        read_run_trace(file)
