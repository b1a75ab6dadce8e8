"""A measurement is made again after a stall, and only then."""

import time
from pathlib import Path

import pytest

from tests.stalls import heartbeat, least, unless_stalled, waited_s


def test_a_machine_that_stood_still_is_seen():
    with heartbeat() as beat:
        begin = time.monotonic()
        while time.monotonic() - begin < 0.05:
            sum(range(2_000_000))
    assert beat.longest_s > 0.002


def test_what_fails_through_a_stall_is_measured_again():
    seen = []

    def once(left):
        seen.append(left)
        sum(range(5_000_000))
        assert len(seen) > 2

    unless_stalled(once)
    assert seen == [5, 4, 3]


def test_what_is_wrong_every_time_fails():
    def once(left):
        sum(range(5_000_000))
        raise AssertionError(f"wrong with {left} left")

    with pytest.raises(AssertionError, match="wrong with 0 left"):
        unless_stalled(once)


def test_waiting_is_counted_and_work_is_not():
    begin_s, began_s = waited_s(), time.monotonic()
    time.sleep(0.05)
    slept_s, passed_s = waited_s() - begin_s, time.monotonic() - began_s
    assert 0.03 <= slept_s <= passed_s + 0.01  # the kernel counts by ticks of up to 10 ms
    begin_s, end_s = waited_s(), time.thread_time() + 0.05
    while time.thread_time() < end_s:
        pass
    worked_s = waited_s() - begin_s
    if Path("/proc/thread-self/schedstat").exists():
        assert worked_s < 0.02


def test_the_least_of_some_measurements_is_taken_and_no_more_are_made_than_it_takes():
    tries = []
    assert least(lambda number: (tries.append(number), (0.3, 0.2, 0.05, 0.01)[number])[1], 0.1) == 0.05
    assert tries == [0, 1, 2]
    assert least(lambda number: 1.0 - number / 10, 0.1, tries=3) == 0.8
