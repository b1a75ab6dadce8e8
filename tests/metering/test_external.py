"""The external meter: its lines, its own clock, its gaps, and its program's life."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.units import Z_95
from carbonlens.errors import MeasurementError
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors.external import ExternalSensor, collect
from carbonlens.metering.sensors.meter_lines import HoldCounter, LineParser, MeterLine, on_host_clock
from carbonlens.metering.sensors.stream import ABOVE_J
from tests.instrument.wrapper import wait_until
from tests.metering.meters import collected, meter, printing, saying
from tests.stalls import unless_stalled


def lines(text):
    parser = LineParser()
    return parser.feed(text.encode()), parser


def counted(*pairs, period_s=None):
    counter = HoldCounter(period_s)
    for t_s, watts in pairs:
        counter.take(MeterLine(t_s * 1e6, watts), t_s)
    return counter


def test_header_comments_blank_and_torn_lines_are_left_out_and_counted():
    told, parser = lines("t_us,watts,rail\n# made by hand\n\n0,100,a\r\n1000000,nan,a\n2000,\n1,2,3,4\n5,7")
    assert told == [MeterLine(0.0, 100.0, "a")]
    assert (parser.skipped, parser.refused) == (3, 3)
    assert parser.feed(b"5\n") == [MeterLine(5.0, 75.0)]


def test_a_header_names_other_units_and_one_nobody_knows_refuses_every_line():
    assert lines("t_ms,milliwatts\n5,2500\n")[0] == [MeterLine(5000.0, 2.5)]
    assert lines("t_s,W\n5,2500\n")[0] == [MeterLine(5e6, 2500.0)]
    told, parser = lines("t_ns,watts\n5,2500\n")
    assert told == []
    assert parser.refused == 1


@pytest.mark.parametrize("cell", ["-1", "inf", "N/A", "[N/A]", "", "1 2"])
def test_what_is_no_power_is_never_zero(cell):
    told, parser = lines(f"0,{cell}\n")
    assert told == []
    assert parser.refused == 1


def test_a_decimal_comma_is_no_rail():
    """41,9 W would be 41 W of a rail called 9."""
    told, parser = lines("t_us,watts\n1000000,41,9\n1500000,42,3\n")
    assert (told, parser.refused, parser.last_refused) == ([], 2, "1500000,42,3")
    assert lines("0,41,+5\n1,41,1e3\n2,41,.5\n")[0] == []
    declared = LineParser(["9"])
    assert declared.feed(b"0,41,9\n0,41,8\n0,41,a\n") == [
        MeterLine(0.0, 41.0, "9"),
        MeterLine(0.0, 41.0, "a"),
    ]


def test_0_w_of_a_whole_machine_is_no_power_and_of_one_supply_of_two_it_is():
    told = LineParser(is_whole=True).feed(b"0,0\n1,0.0\n2,50\n3,0,standby\n")
    assert told == [MeterLine(2.0, 50.0), MeterLine(3.0, 0.0, "standby")]
    assert LineParser().feed(b"0,0\n") == [MeterLine(0.0, 0.0)]


@pytest.mark.parametrize(("component", "usable"), [("wall", False), ("total", False), ("gpu", True)])
def test_a_meter_that_tells_0_w_of_all_the_machine_tells_nothing(component, usable):
    sensor = ExternalSensor(meter(printing("0"), component=component), wait_s=60 if usable else 0.1)
    try:
        sensor._start()
        wait_until(lambda: sensor._parser.refused or usable, 60)  # it tells its first line
        assert sensor.probe().usable is usable
    finally:
        sensor.close()


def test_a_line_without_end_does_not_fill_the_memory():
    parser = LineParser()
    for _ in range(100):
        parser.feed(b"x" * 1000)
    assert parser.refused > 0
    assert len(parser._rest) < 10_000


def test_watts_are_held_until_the_next_line_on_the_meters_own_clock():
    """Zeus integrates 70 W for 10 s and 300 W for 1 s to 1850 J; the truth is 1000 J."""
    counter = HoldCounter()
    counter.take(MeterLine(0.0, 70.0), 100.0)
    assert counter.tell(100.0) == 0.0
    for t_s in range(1, 11):
        # They arrive in a heap, seconds late: that must not matter.
        counter.take(MeterLine(t_s * 1e6, 70.0 if t_s < 10 else 300.0), 111.0)
    counter.take(MeterLine(11e6, 0.0), 111.0)
    assert counter.tell(111.0) == pytest.approx(1000.0)
    assert counter.clock_fault is None


def test_a_gap_is_not_bridged_and_the_counter_falls():
    counter = counted((0, 100.0), (1, 100.0), (2, 100.0))
    assert counter.tell(2) == 0.0  # told for the first time
    counter.take(MeterLine(3e6, 100.0), 3)
    assert counter.tell(3) == pytest.approx(100.0)
    counter.take(MeterLine(13e6, 100.0), 13)
    counter.take(MeterLine(14e6, 9000.0), 14)
    counter.take(MeterLine(15e6, 100.0), 15)
    assert counter.tell(15) == 0.0  # lower than before, though 9100 J were counted since
    counter.take(MeterLine(16e6, 100.0), 16)
    assert counter.tell(16) == pytest.approx(100.0)


def test_a_counter_that_told_nothing_but_0_falls_below_it_after_a_gap():
    counter = counted((0, 100.0), (1, 100.0))
    assert counter.tell(1) == 0.0
    counter.take(MeterLine(60e6, 100.0), 60)
    assert counter.tell(60) < 0.0


def test_a_clock_that_goes_back_begins_a_new_stretch():
    counter = counted((10, 100.0), (11, 100.0))
    counter.tell(11)
    counter.take(MeterLine(12e6, 100.0), 12)
    assert counter.tell(12) == pytest.approx(100.0)
    counter.take(MeterLine(0.0, 100.0), 13)
    assert counter.tell(13) == 0.0


def test_the_last_watts_are_held_until_now_and_the_counter_never_falls_for_it():
    counter = counted((0, 100.0), (1, 100.0), period_s=1.0)
    assert counter.tell(1) == 0.0
    assert counter.tell(1.5) == pytest.approx(50.0)
    counter.take(MeterLine(1.2e6, 10.0), 1.6)  # it was 100 W for 0.2 s only
    assert counter.tell(1.6) == pytest.approx(50.0)
    counter.take(MeterLine(7.2e6 / 2, 10.0), 4.0)
    assert counter.tell(4.0) == pytest.approx(50.0)
    counter.take(MeterLine(6e6, 10.0), 6.4)
    assert counter.tell(6.4) == pytest.approx(20.0 + 48.0)


def test_a_stale_line_is_none_and_a_slower_meter_is_followed():
    counter = counted((0, 100.0), (1, 100.0))
    assert counter.tell(4) is not None
    assert counter.tell(4.1) is None
    for t_s in range(10, 300, 10):
        counter.take(MeterLine(t_s * 1e6, 100.0), t_s)
    assert counter.seen_period_s == pytest.approx(10.0)
    first = counter.tell(290)
    counter.take(MeterLine(300e6, 100.0), 300)
    assert counter.tell(300) - first == pytest.approx(1000.0)


def test_a_part_of_a_sum_that_falls_silent_makes_the_sum_unknown():
    counter = HoldCounter(1.0)
    for t_s in range(3):
        counter.take(MeterLine(t_s * 1e6, 10.0, "a"), t_s)
        counter.take(MeterLine(t_s * 1e6, 5.0, "b"), t_s)
    assert counter.watts == 15.0
    before = counter.tell(2)
    for rail, watts in (("a", 10.0), ("b", 5.0)):
        counter.take(MeterLine(3e6, watts, rail), 3)
    assert counter.tell(3) - before == pytest.approx(15.0)
    for t_s in range(4, 9):
        counter.take(MeterLine(t_s * 1e6, 10.0, "a"), t_s)
    assert counter.tell(8) is None


@given(st.lists(st.tuples(st.integers(1, 2_900_000), st.floats(0, 5000)), min_size=1, max_size=40))
def test_without_gaps_the_counter_is_the_sum_of_watts_times_time(steps):
    counter = HoldCounter(1.0)
    t_us, arrived, held, truth = 0, 0.0, 7.0, 0.0
    counter.take(MeterLine(0.0, held), arrived)
    assert counter.tell(arrived) == 0.0
    for step_us, watts in steps:
        t_us += step_us
        truth += held * step_us * 1e-6
        held = watts
        arrived = t_us * 1e-6
        counter.take(MeterLine(float(t_us), watts), arrived)
    assert counter.clock_fault is None
    assert counter.tell(arrived) == pytest.approx(truth, rel=1e-9, abs=1e-9)


@given(st.lists(st.one_of(st.floats(0.01, 2.9), st.floats(3.1, 50.0), st.floats(-9.0, -0.01)), max_size=30))
def test_sealing_never_counts_energy_over_a_gap(spacings):
    """Whatever the gaps, what the told values gain is no more than what was held between lines."""
    counter = HoldCounter(1.0)
    t_s, now, held, told = 0.0, 0.0, 0.0, []
    counter.take(MeterLine(0.0, 100.0), now)
    told.append(counter.tell(now))
    for spacing in spacings:
        t_s += spacing
        now += abs(spacing)
        held += 100.0 * spacing if 0 < spacing <= 3.0 else 0.0
        counter.take(MeterLine(t_s * 1e6, 100.0), now)
        told.append(counter.tell(now))
    gained = sum(b - a for a, b in itertools.pairwise(told) if b >= a)
    assert gained <= held + 1e-6


def test_times_are_moved_onto_this_machines_clock_by_the_quickest_line():
    told = [(MeterLine(0.0, 1.0), 50.3), (MeterLine(1e6, 2.0), 51.1), (MeterLine(2e6, 3.0), 52.9)]
    assert [line.t_us for line in on_host_clock(told)] == pytest.approx([50.1e6, 51.1e6, 52.1e6])
    assert on_host_clock([]) == []


def read_until(sensor, joules):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if (value := sensor.read(edge=False)[0]) is not None and value >= joules:
                return value
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError("the meter told too little")


def test_a_program_is_read_and_described_as_declared():
    sensor = ExternalSensor(meter(printing(), offset_95_w=0.5), wait_s=60)
    begin_s = time.monotonic()
    try:
        assert sensor.info.update_period_s == 1.0  # nothing was seen yet
        probe = sensor.probe()
        assert probe.usable
        assert "100 W now" in probe.found
        info = sensor.info
        assert (info.name, info.kind, info.unit, info.grade) == ("external:plug", "cumulative", "J", "A")
        assert (info.scope, info.boundary, info.whole_machine) == ("wall", "it", True)
        assert info.gain_sigma == pytest.approx(0.01 / Z_95)
        assert info.offset_sigma_w == pytest.approx(0.5 / Z_95)
        assert 0.015 < info.update_period_s < time.monotonic() - begin_s  # 20 ms, longer on a busy machine
        assert info.width_known
        assert "+-1 %" in info.method
        assert sensor.notes() == ()
        assert read_until(sensor, ABOVE_J + 5.0) < ABOVE_J + 100.0
    finally:
        sensor.close()


def test_unknown_accuracy_is_said_and_is_not_a_width_of_zero():
    sensor = ExternalSensor(meter(printing(), gain_95=None))
    assert not sensor.info.width_known
    assert "accuracy not stated" in sensor.info.method
    assert [f.code for f in sensor.notes()] == ["CL146"]


def test_each_declared_rail_is_a_device_and_other_rails_are_left_out():
    text = "".join(f"{k * 1000000},{w},{r}\n" for k in range(3) for r, w in (("a", 10), ("b", 5), ("x", 999)))
    declared = meter(saying(text), rails=("a", "b"), component="gpu", boundary="device", period_s=1.0)
    sensor = ExternalSensor(declared, wait_s=60)
    try:
        assert sensor.probe().found.endswith("15 W now, a line every 1 s")
        assert [c.device for c in sensor.info.channels] == ["plug:a", "plug:b"]
        assert sensor.info.scope == "rail"
        assert sensor.read(edge=True) == (ABOVE_J, ABOVE_J)
    finally:
        sensor.close()


def test_at_the_start_of_a_run_nothing_is_waited_for():
    def once(left):
        sensor = ExternalSensor(meter((sys.executable, "-c", "import time; time.sleep(60)")))
        try:
            begin = time.monotonic()
            probe = sensor.probe()
            with pytest.raises(OSError, match="lately"):
                sensor.read(edge=True)
            assert probe.usable
            assert time.monotonic() - begin < 0.2
            assert sensor.info.update_period_s == 1.0
        finally:
            sensor.close()

    unless_stalled(once)


@pytest.mark.parametrize(
    ("command", "wait_s", "reason"),
    [
        (("/no/such/meter",), 0.4, "cannot be started"),
        ((), 0.4, "no command"),
        (saying("", stay=False), 60, "exit code 0"),
        (saying("", stay=True), 0.4, "told no power in 0.4 s"),
        (saying("power is 5\n", stay=True), 0.4, "power is 5"),
    ],
)
def test_the_doctor_says_why_a_meter_cannot_be_used(command, wait_s, reason):
    sensor = ExternalSensor(meter(command), wait_s=wait_s)
    probe = sensor.probe()
    if reason == "power is 5":  # a busy machine takes a while to start it
        wait_until(lambda: sensor._parser.refused, 60)
        probe = sensor.probe()
    sensor.close()
    assert not probe.usable
    assert reason in probe.reason
    assert probe.mend


def test_arguments_of_the_program_are_not_told():
    sensor = ExternalSensor(meter(("/no/such/meter", "--key", "swordfish")), wait_s=0.1)
    probe = sensor.probe()
    assert "swordfish" not in f"{probe}{sensor.info}"


def test_a_program_that_ends_leaves_old_lines_which_are_no_reading():
    clock = [0.0]
    sensor = ExternalSensor(meter(saying("0,5\n1000000,5\n")), wait_s=60, clock=lambda: clock[0])
    try:
        sensor.probe()
        assert sensor.read(edge=False) == (ABOVE_J,)
        clock[0] = 3.5
        with pytest.raises(OSError, match="lately"):
            sensor.read(edge=False)
    finally:
        sensor.close()


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid):
    deadline = time.monotonic() + 60
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


STUBBORN = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "open(sys.argv[1], 'w').write(f'{os.getpid()} {os.getpgid(0)} {os.getsid(0)} {os.read(0, 1)!r}')\n"
    "while True: print('0,1', flush=True); time.sleep(0.05)\n"
)


def told_by(path):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()).count(" ") == 3:
            return text.split(" ")
        time.sleep(0.02)
    raise AssertionError("the program did not start")


def test_a_program_that_ignores_the_request_to_end_is_killed(tmp_path):
    # One that prints would end by its closed pipe: this one has to be killed.
    silent = STUBBORN.replace("print('0,1', flush=True); ", "")
    sensor = ExternalSensor(meter((sys.executable, "-c", silent, str(tmp_path / "told"))))
    sensor.probe()
    pid, group, session, typed = told_by(tmp_path / "told")
    assert pid == group == session  # Ctrl-C and a lost terminal do not reach it
    assert int(session) != os.getsid(0)
    assert typed == "b''"  # nor does what the user types
    sensor.close()
    assert gone(int(pid))


def test_what_the_program_started_ends_with_it(tmp_path):
    script = tmp_path / "meter.sh"
    script.write_text(
        f"sleep 60 & echo $! > {tmp_path}/child\n"
        "while :; do echo $(($(date +%s%N) / 1000)),1; sleep 0.05; done\n"
    )
    sensor = ExternalSensor(meter(("sh", str(script))), wait_s=60)
    assert sensor.probe().usable
    child = int((tmp_path / "child").read_text())
    sensor.close()
    assert gone(child)


def test_a_killed_process_leaves_no_program_behind(tmp_path):
    code = (
        "import sys, time\n"
        "from carbonlens.metering.sensors.external import ExternalSensor\n"
        "from carbonlens.domain.sources import ExternalMeter\n"
        "m = ExternalMeter(name='m', command=(sys.executable, '-c', sys.argv[2], sys.argv[1]))\n"
        "ExternalSensor(m).probe(); print('on', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        (sys.executable, "-c", code, str(tmp_path / "told"), STUBBORN), stdout=subprocess.PIPE
    ) as work:
        work.stdout.readline()
        pid = int(told_by(tmp_path / "told")[0])
        assert is_alive(pid)
        work.send_signal(signal.SIGKILL)
    assert gone(pid)


def test_a_named_pipe_is_read_and_waits_for_no_writer(tmp_path):
    pipe = tmp_path / "meter"
    os.mkfifo(pipe)
    clock = [0.0]
    sensor = ExternalSensor(meter(pipe=str(pipe)), clock=lambda: clock[0])
    try:
        assert sensor.probe().usable
        with pipe.open("w") as stream:
            stream.write("0,50\n1000000,50\n")
            stream.flush()
            assert read_until(sensor, 0.0) == ABOVE_J
            clock[0] = 1.0
            stream.write("2000000,50\n")
            stream.flush()
            assert read_until(sensor, ABOVE_J + 50.0) == pytest.approx(ABOVE_J + 50.0)
    finally:
        sensor.close()


def test_a_file_is_followed_from_its_end_with_the_units_of_its_header(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("t_ms,mw\n0,999000\n1000,999000\n20")
    clock = [0.0]
    sensor = ExternalSensor(meter(pipe=str(path)), clock=lambda: clock[0])
    try:
        sensor.probe()
        time.sleep(0.3)
        with path.open("a") as stream:
            stream.write("00,999000\n3000,5000\n4000,5000\n")
            stream.flush()
            assert read_until(sensor, 0.0) == ABOVE_J
            clock[0] = 1.0
            stream.write("5000,7000\n")
            stream.flush()
            assert read_until(sensor, ABOVE_J + 5.0) == pytest.approx(ABOVE_J + 5.0)
    finally:
        sensor.close()


def test_collect_gives_raw_lines_on_this_machines_clock():
    before = time.monotonic() * 1e6
    told = collected(meter(printing("42")))
    assert {line.watts for line in told} == {42.0}
    assert before <= told[0].t_us <= told[-1].t_us <= time.monotonic() * 1e6 + 1
    assert told[1].t_us - told[0].t_us >= 15_000


@pytest.mark.parametrize("command", [("/no/such/meter",), saying("nonsense\n")])
def test_collecting_from_a_meter_that_tells_nothing_says_so(command):
    with pytest.raises(MeasurementError, match="plug"):
        collect(meter(command), 0.3)


def test_a_gap_in_the_meter_is_uncovered_time_of_the_run():
    """From lines to the sealed run: 10 s at 100 W, 20 s without a line, 10 s at 100 W."""
    counter = HoldCounter(1.0)
    samples = []
    for t_s in range(41):
        if not 10 < t_s < 30:
            counter.take(MeterLine(t_s * 1e6, 100.0), t_s)
        value = counter.tell(t_s)
        samples.append(Sample(t_s * 1_000_000, (None if value is None else (value,),)))
    info = ExternalSensor(meter(printing(), period_s=1.0)).info
    sealed = seal([info], samples, start_us=0, window_us=40_000_000)
    (wall,) = [r for r in (*sealed.readings, *sealed.beside) if r.component == "wall"]
    assert wall.state == "unbounded"
    # The last line before the gap is held for three periods, as DESIGN's integrator does.
    assert wall.covered_s == pytest.approx(23.0)
    assert float(wall.energy_j) == pytest.approx(2300.0)


SILENT = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells a child of its parent's end on Linux")
def test_a_silent_program_ends_with_a_wrapper_that_is_killed(tmp_path):
    """As ``carbonlens run`` starts it: in the main thread, with signals held back."""
    code = (
        "import signal, sys, time\n"
        "from carbonlens.metering.sensors.external import ExternalSensor\n"
        "from carbonlens.domain.sources import ExternalMeter\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})\n"
        "m = ExternalMeter(name='m', command=(sys.executable, '-c', sys.argv[2], sys.argv[1]))\n"
        "ExternalSensor(m, tied=True).probe(); print('on', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        (sys.executable, "-c", code, str(tmp_path / "told"), SILENT), stdout=subprocess.PIPE
    ) as work:
        work.stdout.readline()
        deadline = time.monotonic() + 60
        while not (tmp_path / "told").exists() or not (tmp_path / "told").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        pid = int((tmp_path / "told").read_text())
        assert is_alive(pid)
        work.send_signal(signal.SIGKILL)
    assert gone(pid)
