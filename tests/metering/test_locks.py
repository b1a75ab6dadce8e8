"""Locks: held in turn, and gone past where the holder never lets go."""

import threading

from carbonlens.metering.locks import patiently


def test_a_lock_is_held_meanwhile_and_free_afterwards():
    lock = threading.Lock()
    with patiently(lock):
        assert lock.locked()
    assert not lock.locked()


def test_a_lock_whose_holder_never_lets_go_is_gone_past_and_left_to_it():
    lock = threading.Lock()
    lock.acquire()
    with patiently(lock):
        pass
    assert lock.locked()
