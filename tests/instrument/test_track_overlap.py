"""Runs that outlive the run they began in: nothing of them is lost, and both records say it."""

import asyncio
import time

import pytest

import carbonlens
from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_totals import totals
from carbonlens.ledger.store import Ledger


def burn(seconds):
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def kept(ledger):
    return {r.step: r for r in Ledger(ledger).view().runs}


def codes(run):
    return [f.code for f in run.findings if f.code == "CL108"]


def summed(runs):
    """Return what totals count, in joules, and how many runs they leave inside others."""
    found = totals(list(runs), allocate(list(runs)))
    return sum(p.billed.value for p in found.parts), found.nested


def test_a_block_that_outlives_the_one_around_it_in_one_thread_is_counted_whole(ledger):
    first, second = (carbonlens.track(name, ledger=ledger) for name in ("first", "second"))
    first.__enter__()
    burn(0.1)
    second.__enter__()
    burn(0.1)
    first.__exit__(None, None, None)
    burn(0.5)
    second.__exit__(None, None, None)
    runs = kept(ledger)
    assert runs["second"].parent_run_id is None
    assert [codes(runs[n]) for n in ("first", "second")] == [["CL108"], ["CL108"]]
    energy, nested = summed(runs.values())
    assert nested == 0
    assert energy >= 0.99 * runs["second"].total_energy.value > runs["first"].total_energy.value
    assert energy < runs["first"].total_energy.value + runs["second"].total_energy.value


def test_what_encloses_both_stays_their_parent(ledger):
    with carbonlens.track("around", ledger=ledger) as around:
        first, second = (carbonlens.track(name, ledger=ledger) for name in ("first", "second"))
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
    runs = kept(ledger)
    assert {runs[n].parent_run_id for n in ("first", "second")} == {around.run_id}
    assert codes(runs["around"]) == []


def test_a_task_that_outlives_its_block_stands_for_itself(ledger):
    async def work(ended):
        with carbonlens.track("task", ledger=ledger):
            await ended.wait()
            burn(0.1)

    async def main():
        ended = asyncio.Event()
        with carbonlens.track("block", ledger=ledger):
            task = asyncio.create_task(work(ended))
            await asyncio.sleep(0.01)
        ended.set()
        await task

    asyncio.run(main())
    runs = kept(ledger)
    assert runs["task"].parent_run_id is None
    assert codes(runs["task"]) == codes(runs["block"]) == ["CL108"]


def test_nested_blocks_stay_nested(ledger):
    with carbonlens.track("outer", ledger=ledger) as outer, carbonlens.track("inner", ledger=ledger):
        burn(0.01)
    runs = kept(ledger)
    assert runs["inner"].parent_run_id == outer.run_id
    assert codes(runs["inner"]) == codes(runs["outer"]) == []
