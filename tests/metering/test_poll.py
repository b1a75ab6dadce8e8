"""A source asked beside the work: one odd answer is a fault of that answer, and the next is asked for."""

import time

import pytest

from carbonlens.metering.sensors.poll import Poll

ODD = [
    OverflowError("int too large"),
    ValueError("not understood"),
    KeyError("Reading"),
    TypeError("None"),
    AttributeError("get"),
    ZeroDivisionError(),
    RecursionError(),
    TimeoutError("late"),
]


@pytest.mark.parametrize("odd", [*ODD, float("nan"), float("inf"), -5.0], ids=repr)
def test_an_odd_answer_ends_nothing(odd):
    """Asked again a second later, the source's next figure is read."""
    answers = iter([odd, 120.0])

    def ask():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    poll = Poll(ask)
    poll.start()
    assert poll.wait(60)
    with pytest.raises(OSError, match=r"late|answer"):
        poll.latest()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            assert poll.latest() == 120
            break
        except OSError:
            time.sleep(0.02)
    else:
        pytest.fail("the source was not asked again")
    poll.stop()


def test_what_an_odd_answer_quotes_is_not_told():
    def ask():
        raise ValueError("Invalid header value b'Basic c2VjcmV0'")

    poll = Poll(ask)
    poll.start()
    assert poll.wait(60)
    with pytest.raises(OSError, match="ValueError") as told:
        poll.latest()
    assert "c2VjcmV0" not in str(told.value)
    poll.stop()
