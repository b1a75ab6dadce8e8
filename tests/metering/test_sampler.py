"""The sampler: one thread for all sessions, ten looks a second, fewer at old ones, gone when idle."""

import os
import threading
import time

import pytest

from carbonlens.metering.pace import FAST_S, MAX_S, SLOW_S, period_s
from carbonlens.metering.sampler import Sampler
from tests.instrument.wrapper import wait_until


class Counted:
    """A session that counts what is asked of it."""

    reads_power = False
    is_easy = False

    def __init__(self):
        self.samples = 0
        self.syncs = 0
        self.abandoned = False

    def sample(self):
        self.samples += 1

    def sync(self):
        self.syncs += 1

    def abandon(self):
        self.abandoned = True


def sampler_threads():
    return [t for t in threading.enumerate() if t.name == "carbonlens-sampler"]


@pytest.mark.parametrize(
    ("age_s", "counters_s", "power_s"),
    [
        (0, FAST_S, FAST_S),
        (599, FAST_S, FAST_S),
        (601, SLOW_S, SLOW_S),
        (36_000, 10.0, SLOW_S),
        (10**7, MAX_S, SLOW_S),
    ],
)
def test_old_sessions_are_looked_at_less_often_but_power_every_second(age_s, counters_s, power_s):
    assert period_s(age_s, power=False) == counters_s
    assert period_s(age_s, power=True) == power_s


@pytest.mark.parametrize(
    ("age_s", "wait_s"), [(0, FAST_S), (1, FAST_S), (5, 0.5), (10, SLOW_S), (599, SLOW_S), (3600 * 5, 5.0)]
)
def test_where_nothing_is_lost_by_waiting_a_tenth_of_the_age_is_waited_at_most_a_second(age_s, wait_s):
    assert period_s(age_s, power=False, easy=True) == pytest.approx(wait_s)
    assert period_s(age_s, power=True, easy=True) == pytest.approx(min(wait_s, SLOW_S))


def test_overlapping_sessions_share_one_thread():
    before = len(sampler_threads())
    sampler = Sampler()
    one, two = Counted(), Counted()
    sampler.add(one)
    wait_until(lambda: one.samples)
    sampler.add(two)
    assert len(sampler_threads()) == before + 1
    wait_until(lambda: two.samples)
    sampler.remove(one)
    time.sleep(0.05)  # one look may have been under way
    seen = one.samples
    wait_until(lambda: two.samples >= 4)
    sampler.remove(two)
    assert one.samples == seen


def test_a_window_that_begins_while_the_thread_rests_is_looked_at_on_its_own_beat():
    """Else power has a hole at the start of every window but the first."""

    def first_look_s():
        sampler, one, two = Sampler(), Counted(), Counted()
        sampler.add(one)
        wait_until(lambda: one.samples)
        sampler.remove(one)
        time.sleep(2 * FAST_S)  # the thread has gone to rest
        begin = time.monotonic()
        sampler.add(two)
        while not two.samples:
            time.sleep(0.001)
        sampler.remove(two)
        return time.monotonic() - begin

    assert min(first_look_s() for _ in range(4)) < 2 * FAST_S


def test_looks_keep_the_beat_of_ten_a_second():
    sampler, one = Sampler(), Counted()
    begin = time.monotonic()
    sampler.add(one)
    time.sleep(2.05)
    sampler.remove(one)
    assert one.samples <= 10 * (time.monotonic() - begin) + 1


def test_a_journal_is_put_on_the_disk_every_few_seconds():
    sampler, one = Sampler(), Counted()
    begin = time.monotonic()
    sampler.add(one)
    wait_until(lambda: one.syncs)
    sampler.remove(one)
    took_s = time.monotonic() - begin
    assert took_s >= 4.0
    assert one.samples <= 10 * took_s + 1
    # Few of them where the machine kept the thread waiting: what there is, is no burst.
    assert one.samples >= 35 or took_s > 5.5


def test_a_fork_leaves_the_childs_sampler_empty():
    from carbonlens.metering.sampler import process_sampler

    session = Counted()
    process_sampler().add(session)
    pid = os.fork()
    if pid == 0:
        ok = session.abandoned and not sampler_threads() and process_sampler()._entries == {}
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert not session.abandoned
    process_sampler().remove(session)


def test_a_session_that_raises_does_not_end_the_others_sampler():
    from carbonlens.metering import sampler as module

    class Session:
        reads_power = True
        is_easy = False

        def __init__(self, fails):
            self.fails = fails
            self.looks = 0

        def sample(self):
            self.looks += 1
            if self.fails:
                raise RuntimeError("odd")

        sync = abandon = sample

    bad, good = Session(True), Session(False)
    own = module.Sampler()
    own.add(bad)
    own.add(good)
    end = time.monotonic() + 60
    while min(bad.looks, good.looks) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    own.remove(bad)
    own.remove(good)
    assert good.looks >= 2
    assert bad.looks >= 2
