"""IPMI: the instantaneous watts of a controller, and nothing that only looks like them."""

import os
import resource
import sys
import threading
import time
from contextlib import nullcontext, suppress

import pytest

from carbonlens.metering.host import process_start_ticks
from carbonlens.metering.process_time import TreeClock, left_out, own_s
from carbonlens.metering.sensors.ipmi import COMMAND, IpmiSensor, parse_reading, run_program
from carbonlens.metering.sensors.stream import Program
from tests.stalls import unless_stalled

ANSWER = """
    Instantaneous power reading:                   {now} Watts
    Minimum during sampling period:                 68 Watts
    Maximum during sampling period:                504 Watts
    Average power reading over sample period:      348 Watts
    IPMI timestamp:                           Thu Feb 15 08:36:01 2024
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   {state}

"""


def answer(now=332, state="activated"):
    return ANSWER.format(now=now, state=state)


def test_the_instantaneous_reading_is_taken_and_not_the_mean_of_weeks():
    assert parse_reading(answer()) == 332.0


@pytest.mark.parametrize(
    "text",
    [
        answer(0),
        answer(0, "deactivated"),
        answer(235, "deactivated"),
        answer("No Reading"),
        "",
        "Average power reading over sample period: 348 Watts\n",
        "Instantaneous power reading: . Watts\n",
    ],
)
def test_what_is_not_filled_in_is_unknown_and_never_0(text):
    assert parse_reading(text) is None


def test_a_short_answer_without_state_is_read():
    assert parse_reading("    Instantaneous power reading:                   123 Watts\n") == 123.0


def test_it_is_read_beside_the_work():
    asked = []

    def run(command):
        asked.append(tuple(command))
        return answer(200 + len(asked))

    sensor = IpmiSensor(run, wait_s=60)
    try:
        assert sensor.probe().found == "management controller: 201 W now"
        assert sensor.read(edge=True) == (201.0,)
        assert asked == [COMMAND]
        info = sensor.info
        assert (info.name, info.kind, info.unit, info.grade) == ("ipmi", "instant", "W", "C")
        assert (info.channels[0].component, info.boundary, sensor.rest_s) == ("wall", "it", 1.0)
        assert info.whole_machine
        assert "not stated" in info.method
    finally:
        sensor.close()


def test_a_controller_that_hangs_holds_nobody():
    """A management controller can take seconds, or hang: no run waits for it."""
    hold = threading.Event()

    def run(command):
        hold.wait(30)
        return answer()

    def once(left):
        sensor = IpmiSensor(run)
        begin = time.monotonic()
        assert sensor.probe().usable
        with pytest.raises(OSError, match="no answer yet"):
            sensor.read(edge=True)
        sensor.close()
        assert time.monotonic() - begin < 0.2

    try:
        unless_stalled(once)
    finally:
        hold.set()


@pytest.fixture
def many_files():
    """More open files than select(2) can wait for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("no more files may be opened here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    handle = os.open(os.devnull, os.O_RDONLY)
    copies = [os.dup(handle) for _ in range(1100)]
    yield
    for copy in (handle, *copies):
        os.close(copy)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_programs_are_read_beside_more_than_a_thousand_open_files():
    assert run_program(["echo", "332"]) == "332\n"
    program = Program(["echo", "332"])
    program.open()
    assert program.read(60.0) == b"332\n"
    program.close()
    assert left_out() == frozenset()


def test_an_old_answer_is_no_reading():
    clock = [0.0]
    hold = threading.Event()
    answers = iter([answer()])

    def run(command):
        for text in answers:
            return text
        hold.wait(30)
        raise OSError("over")

    sensor = IpmiSensor(run, wait_s=60, clock=lambda: clock[0])
    try:
        sensor.probe()
        assert sensor.read(edge=False) == (332.0,)
        clock[0] = 3.5
        with pytest.raises(OSError, match="too old"):
            sensor.read(edge=False)
    finally:
        sensor.close()
        hold.set()


def fault_of(sensor):
    """Read until it fails; return what it says."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            sensor.read(edge=False)
        except OSError as error:
            return str(error)
        time.sleep(0.02)
    return "no fault"


def test_a_fault_after_good_answers_is_a_fault():
    """One failed reading is 0 in perun: it is none here."""
    texts = iter([answer(), answer(0)])
    sensor = IpmiSensor(lambda command: next(texts, answer(0)), wait_s=60)
    try:
        sensor.probe()
        assert sensor.read(edge=False) == (332.0,)
        assert "tells no power" in fault_of(sensor)
    finally:
        sensor.close()


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def test_a_program_that_fails_says_why_and_the_probe_names_one_mend(tmp_path):
    device = script(tmp_path / "a", "echo 'Could not open device at /dev/ipmi0' >&2; exit 1\n")
    with pytest.raises(OSError, match="/dev/ipmi0"):
        run_program([device])
    for program, mend in ((device, "/dev/ipmi0"), ("/no/such/ipmitool", "install ipmitool")):
        sensor = IpmiSensor(lambda _, program=program: run_program([program]), wait_s=60)
        probe = sensor.probe()
        sensor.close()
        assert not probe.usable
        assert mend in probe.mend


def test_a_program_gets_no_terminal_and_its_output_is_returned(tmp_path):
    assert run_program([script(tmp_path / "b", "cat; echo 5\n")]) == "5\n"


BURN = f"""{sys.executable} -c "
import time
while time.process_time() < 0.2: pass
print(1)"
"""


@pytest.mark.parametrize("ending", ["", "exit 3\n", "sleep 60\n"], ids=["ends", "fails", "hangs"])
def test_the_programs_time_is_no_part_of_the_work(tmp_path, ending):
    """Ipmitool is asked once a second: its time would be the work's."""
    clock = TreeClock()
    program = script(tmp_path / "burn", BURN + ending)
    before, used = clock.read(), own_s()
    with nullcontext() if not ending else pytest.raises(OSError, match=r"failed|no answer"):
        run_program([program], timeout_s=1.5)
    assert clock.read() - before - (own_s() - used) < 0.1
    assert left_out() == frozenset()


def test_a_program_whose_end_somebody_else_waited_for_tells_what_it_printed(tmp_path):
    """The reaper of ``run`` may be quicker."""
    reaped = threading.Event()

    def reap():
        while not reaped.is_set():
            for pid in left_out():
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    reaper = threading.Thread(target=reap, daemon=True)
    reaper.start()
    try:
        assert [run_program([script(tmp_path / "c", "echo 5\n")]) for _ in range(5)] == ["5\n"] * 5
    finally:
        reaped.set()
        reaper.join(5)


def test_what_a_program_that_hangs_has_started_ends_with_it(tmp_path):
    mark = tmp_path / "pid"
    with pytest.raises(TimeoutError, match=r"no answer in 0\.5 s"):
        run_program([script(tmp_path / "d", f"sleep 60 & echo $! > {mark}; wait\n")], timeout_s=0.5)
    time.sleep(0.1)
    assert process_start_ticks(int(mark.read_text())) is None


def test_a_deactivated_controller_is_sent_to_redfish():
    sensor = IpmiSensor(lambda _: answer(235, "deactivated"), wait_s=60)
    probe = sensor.probe()
    sensor.close()
    assert not probe.usable
    assert "redfish" in probe.mend
