"""Records are decoded by many threads at once, also the first time."""

import subprocess
import sys
import threading

import msgspec
import pytest

from carbonlens.domain.decoding import convert, decode_json, json_decoder

MANY = """
import sys, threading
sys.setswitchinterval(1e-6)
from carbonlens.domain.decoding import decode_json, convert, json_decoder
from carbonlens.metering.sensors.replay import TraceHeader
HEAD = '{"schema": "carbonlens/trace/1", "sensor": {"name": "a", "kind": "cumulative", "unit": "J", '\\
    '"scope": "board", "boundary": "device", "grade": "B", "update_period_s": 0.1, "method": "m", '\\
    '"channels": [{"device": "GPU-1", "component": "gpu"}]}}'
go, faults = threading.Barrier(8), []
def work(n):
    go.wait()
    try:
        if n % 2:
            assert decode_json(HEAD, TraceHeader).sensor.name == "a"
        else:
            json_decoder(TraceHeader | None).decode(b"null")
    except BaseException as error:  # whatever a thread meets is told by the test
        faults.append(error)
crew = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in crew]; [t.join() for t in crew]
assert not faults, faults
"""


@pytest.mark.parametrize("turn", range(8))
def test_a_first_use_by_many_threads_does_not_crash(turn):
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), turn


class Pair(msgspec.Struct):
    """Any record."""

    a: int
    b: str


def test_it_decodes_as_msgspec_does():
    assert decode_json('{"a": 1, "b": "x"}', Pair) == Pair(1, "x")
    assert convert({"a": "1", "b": "x"}, Pair, strict=False) == Pair(1, "x")
    assert json_decoder(Pair | None).decode(b"null") is None
    with pytest.raises(msgspec.ValidationError):
        convert({"a": "1", "b": "x"}, Pair)
    with pytest.raises(msgspec.DecodeError):
        decode_json("{", Pair)


def test_a_lock_that_nobody_gives_back_is_not_waited_for_for_ever(monkeypatch):
    from carbonlens.domain import decoding

    class Own(msgspec.Struct):
        a: int

    monkeypatch.setattr(decoding, "_LONGEST_S", 0.05)
    monkeypatch.setattr(decoding, "_lock", threading.Lock())
    decoding._lock.acquire()
    assert decode_json('{"a": 1}', Own) == Own(1)
