"""Functions whose work comes later: coroutines and generators, plain, wrapped, called and left alone."""

import asyncio
import contextlib
import functools
import gc
import inspect

import pytest

from carbonlens import stage, track
from tests.metering.processes import burn, runs


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


async def wait(seconds):
    await asyncio.sleep(seconds)
    return seconds


class Waits:
    """Is awaited when it is called."""

    async def __call__(self, seconds):
        return await wait(seconds)


class Counts:
    """Is gone through when it is called."""

    def __call__(self, n):
        yield from range(n)


def codes(run):
    return [f.code for f in run.findings]


@pytest.mark.parametrize("kind", [track, stage])
@pytest.mark.parametrize(
    "function",
    [wait, functools.partial(wait), Waits(), Waits().__call__],
    ids=["def", "partial", "object", "method"],
)
def test_what_is_awaited_is_measured_to_its_end(ledger, kind, function):
    measured = kind("a", ledger=ledger)(function)
    assert asyncio.run(measured(0.1)) == 0.1
    (run,) = runs(ledger)
    assert run.duration_s >= 0.1
    assert "CL110" not in codes(run)


def test_an_object_that_is_a_generator_when_called_is_measured_to_its_end(ledger):
    source = track("g", ledger=ledger)(Counts())(2)
    assert runs(ledger) == ()
    assert list(source) == [0, 1]
    assert [r.status for r in runs(ledger)] == ["complete"]


@pytest.mark.parametrize("kind", [track, stage])
@pytest.mark.parametrize(
    "later", [lambda: wait(0), lambda: (n for n in range(2))], ids=["coroutine", "generator"]
)
def test_what_is_returned_to_be_done_later_is_said_not_to_be_in_the_run(ledger, kind, later):
    returned = kind("s", ledger=ledger)(later)()
    assert (asyncio.run(returned) == 0) if inspect.iscoroutine(returned) else (list(returned) == [0, 1])
    (run,) = runs(ledger)
    assert "CL110" in codes(run)
    assert any("await" in f.message for f in run.findings)


def test_what_returns_its_value_says_nothing(ledger):
    assert track("s", ledger=ledger)(list)((1, 2)) == [1, 2]
    assert codes(runs(ledger)[0]) == []


async def numbers():
    try:
        yield 1
        yield 2
    finally:
        await asyncio.sleep(0)


async def broken_off(source):
    await anext(source)
    kept.append(source)
    raise LookupError


async def left_early(source):
    async for _ in source:
        return


async def dropped(source):
    await anext(source)
    del source
    gc.collect()
    await asyncio.sleep(0.1)


kept = []
"""Holds a generator until the loop closes it."""


@pytest.mark.parametrize("use", [broken_off, left_early, dropped])
def test_a_generator_that_is_left_alone_ends_as_it_does_unmeasured(ledger, use):
    """The loop closes what it has seen, all at once: the generator inside must be closed by ours alone."""
    complaints = []

    def left(function):
        with asyncio.Runner() as runner:
            runner.get_loop().set_exception_handler(lambda _loop, said: complaints.append(said["message"]))
            with contextlib.suppress(LookupError):
                runner.run(use(function()))
        kept.clear()
        gc.collect()

    left(numbers)
    assert complaints == []
    left(track("s", ledger=ledger)(numbers))
    assert complaints == []
    assert [r.status for r in runs(ledger)] == ["complete"]


def test_generators_that_are_never_begun_are_no_runs(ledger):
    made = track("g", ledger=ledger)(numbers)()
    del made
    gc.collect()
    assert runs(ledger) == ()


def test_a_generator_that_is_dropped_half_way_is_sealed(ledger):
    @track("g", ledger=ledger)
    def count():
        burn(0.05)
        yield 1
        yield 2

    source = count()
    next(source)
    del source
    gc.collect()
    (run,) = runs(ledger)
    assert (run.status, run.conditions.cpu_s >= 0.04) == ("complete", True)
