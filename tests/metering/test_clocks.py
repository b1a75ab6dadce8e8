"""The wall clock's time of a moment, however long the thread is put aside between two clocks."""

import time

import pytest

from carbonlens.metering import clocks
from carbonlens.metering.clocks import wall_us


def test_a_moment_passed_is_as_far_back_by_both_clocks():
    before_us, moment_ns, after_us = time.time_ns() // 1000, time.monotonic_ns(), time.time_ns() // 1000
    # What a clock is read late by is within the two readings around it, but for the rounding.
    assert before_us - 2 <= wall_us(moment_ns) <= after_us + 2
    assert wall_us(moment_ns - 7_000_000_000) == pytest.approx(
        before_us - 7_000_000, abs=after_us - before_us + 2
    )


class Stopped:
    """Clocks that tick 100 ns a look, on a machine that stands still for 10 ms before some looks."""

    AHEAD_NS = 1_700_000_000_000_000_000

    def __init__(self, stalls):
        self.now_ns, self.looks, self.stalls = 5_000_000, 0, stalls

    def monotonic_ns(self):
        self.now_ns += 10_000_000 if self.looks in self.stalls else 100
        self.looks += 1
        return self.now_ns

    def time_ns(self):
        return self.AHEAD_NS + self.monotonic_ns()


@pytest.mark.parametrize("stalls", [{k} for k in range(15)] + [{0, 1, 2, 5}, {1, 4, 7, 10}, {2, 5, 8, 14}])
def test_a_machine_that_stops_between_the_clocks_moves_nothing(monkeypatch, stalls):
    monkeypatch.setattr(clocks, "time", Stopped(stalls))
    assert wall_us(3_000_000) == (Stopped.AHEAD_NS + 3_000_000) // 1000
