"""Killed, interrupted and crashed processes: at most the last second of a run is lost."""

import signal
import time

import pytest

from carbonlens.ledger.store import Ledger
from carbonlens.metering.process_time import process_at
from tests.instrument.wrapper import wait_until
from tests.metering.processes import python, runs, start_python, state_folder

LOOP = """
import sys, time
from carbonlens import track
with track("killed", study="s", unit="loop", ledger=sys.argv[1]) as run:
    run.add_units(3)
    run.record_quality("accuracy", 0.5, n=10)
    print(run.run_id, flush=True)
    end = time.monotonic() + 90
    while time.monotonic() < end:
        sum(range(1000))
"""
# Recovery goes on beside the work; a block that ends sooner leaves the rest to the next.
ANOTHER = """
import sys, threading
from carbonlens import track
with track("next", ledger=sys.argv[1]):
    for thread in threading.enumerate():
        if thread.name == "carbonlens-recovery":
            thread.join(60)
"""


def started(tmp_path, seconds=0.0):
    process = start_python(LOOP, tmp_path, str(tmp_path / "ledger"))
    time.sleep(seconds)
    return process


def by_step(tmp_path):
    return {r.step: r for r in runs(tmp_path / "ledger")}


def journals(tmp_path):
    return [f for f in (state_folder(tmp_path) / "journal").iterdir() if f.is_file()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_process_that_is_ended_from_outside_is_recovered_by_the_next(tmp_path, number):
    begin = time.monotonic()
    process = started(tmp_path, 2.4)
    wait_until(lambda: process_at(process.pid).used_s > 0.8)  # a busy machine lets it wait
    process.send_signal(number)
    assert process.wait(60) == -number
    lived_s = time.monotonic() - begin
    assert len(journals(tmp_path)) == 1
    assert python(ANOTHER, tmp_path, str(tmp_path / "ledger")).stderr == ""
    found = by_step(tmp_path)
    killed = found["killed"]
    assert (found["next"].status, killed.status) == ("complete", "recovered")
    # Samples lie a second apart, so at most the last one is lost (and some on a busy machine).
    assert 1.3 <= killed.duration_s <= lived_s
    assert 0.2 < killed.conditions.cpu_s <= killed.duration_s * 1.1
    assert (killed.units, killed.quality[0].value) == (3, 0.5)
    assert (killed.coverage, [f.code for f in killed.findings]) == (None, ["CL106"])
    # The share of a length that nobody knows is unknown; the seconds up to the last sample are not.
    assert killed.covered_s == pytest.approx(killed.duration_s, abs=0.05)
    assert journals(tmp_path) == []


def test_an_interrupt_seals_the_run_at_once(tmp_path):
    process = started(tmp_path, 0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    killed = by_step(tmp_path)["killed"]
    assert (killed.status, killed.error) == ("failed", "KeyboardInterrupt")
    assert journals(tmp_path) == []


def test_a_process_that_is_asked_to_end_seals_the_run_first(tmp_path):
    process = started(tmp_path, 0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    killed = by_step(tmp_path)["killed"]
    assert (killed.status, killed.error, killed.exit_code) == ("failed", "killed by signal 15", 143)
    assert (killed.coverage, killed.units, killed.findings) == (1.0, 3, ())
    assert journals(tmp_path) == []


def test_a_process_that_leaves_without_cleaning_up_is_recovered(tmp_path):
    code = LOOP.replace("sum(range(1000))", "__import__('os')._exit(5)")
    process = start_python(code, tmp_path, str(tmp_path / "ledger"))
    assert process.wait(60) == 5
    python(ANOTHER, tmp_path, str(tmp_path / "ledger"))
    assert by_step(tmp_path)["killed"].status == "recovered"


def test_a_living_process_is_not_recovered(tmp_path):
    process = started(tmp_path)
    try:
        python(ANOTHER, tmp_path, str(tmp_path / "ledger"))
        assert set(by_step(tmp_path)) == {"next"}
    finally:
        process.kill()
        process.wait()


def test_many_killed_processes_are_each_recovered_once(tmp_path):
    processes = [started(tmp_path) for _ in range(4)]
    time.sleep(1.3)
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
    python(ANOTHER, tmp_path, str(tmp_path / "ledger"))
    statuses = [r.status for r in Ledger(tmp_path / "ledger").view().runs]
    assert sorted(statuses) == ["complete"] + ["recovered"] * 4


def test_a_process_killed_while_it_recovers_loses_nothing(tmp_path):
    process = started(tmp_path, 1.2)
    process.kill()
    process.wait()
    (journal,) = journals(tmp_path)
    claiming = (
        "import os, sys\nfrom pathlib import Path\nfrom carbonlens.metering import recovery\n"
        "recovery._claim(Path(sys.argv[1]))\nos._exit(9)\n"
    )
    assert python(claiming, tmp_path, str(journal)).returncode == 9
    python(ANOTHER, tmp_path, str(tmp_path / "ledger"))
    assert by_step(tmp_path)["killed"].status == "recovered"
