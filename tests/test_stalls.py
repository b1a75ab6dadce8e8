"""A measurement is made again after a stall, and only then."""

import time

import pytest

from tests.stalls import heartbeat, unless_stalled


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
