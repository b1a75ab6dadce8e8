"""Ledger work killed at every step: nothing is lost, nothing counts twice, the next try ends it."""

import shutil
import subprocess
import sys

import pytest

from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_compaction import NOW_US, fill, runs_over
from tests.ledger.test_redaction import FIELDS, PLANTED, holding, secret_run

# The interpreter itself reports each opening, rename and removal of a file; ours ends there.
# One process holds what the work imports and forks a child for each try.
KILLER = """
import os, sys
from pathlib import Path
from carbonlens.app import ledger_care
from carbonlens.ledger import activity, atomic, closing, compaction, parquet, redacting, schema, verify
import duckdb, tempfile, shutil, uuid
work, more = sys.argv[1], sys.argv[2:]
EVENTS = {"open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir"}
def arm(left, ledger):
    def killing(event, arguments):
        nonlocal left
        if event in EVENTS and any(
            str(a).startswith(ledger) for a in arguments if isinstance(a, (str, os.PathLike))
        ):
            left -= 1
            if left < 0:
                os._exit(9)
    sys.addaudithook(killing)
def act(ledger):
    if work == "compact":
        ledger_care.compact(ledger=ledger)
    elif work == "redact":
        ledger_care.redact("secret-run", more, why="w", ledger=ledger)
    elif work == "close":
        ledger_care.close("2026-09", ledger=ledger)
    else:
        ledger_care.tag("run-0000", {"k": "v"}, ledger=ledger)
for line in sys.stdin:
    events, _, ledger = line.strip().partition(" ")
    child = os.fork()
    if not child:
        arm(int(events), ledger)
        act(ledger)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Killer:
    """Does a piece of work on a ledger, and kills it when it touches the ledger once too often."""

    def __init__(self, work, *more):
        command = [sys.executable, "-c", KILLER, work, *more]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()

    def __call__(self, ledger, after=10_000):
        """Return whether the work ended by itself."""
        self.process.stdin.write(f"{after} {ledger}\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        assert code in (0, 9)
        return code == 0


def energies(folder):
    runs, findings = current(Ledger(folder).view().runs)
    assert findings == ()
    return sorted((r.run_id, r.energy[0].energy_j) for r in runs)


def each_step(tmp_path, prepared, killer):
    """Yield the ledger after the work was killed at each of its steps, until it runs to its end."""
    for events in range(500):
        folder = tmp_path / f"after-{events}"
        shutil.copytree(prepared, folder)
        ended = killer(folder, after=events)
        yield folder
        shutil.rmtree(folder)
        if ended:
            return
    raise AssertionError("the work has no end")


@pytest.mark.slow
@pytest.mark.timeout(1800)  # some hundred kills and as many verifications, on a machine that does more
@pytest.mark.parametrize("folded_before", [False, True])
def test_compaction_killed_at_any_step_loses_and_doubles_nothing(tmp_path, folded_before):
    prepared = tmp_path / "prepared"
    runs = runs_over(15, 6)
    with Killer("compact") as compact:
        fill(prepared, runs[:3] if folded_before else runs)
        if folded_before:
            assert compact(prepared)
            fill(prepared, runs[3:])
        expected = energies(prepared)
        steps = 0
        for folder in each_step(tmp_path, prepared, compact):
            steps += 1
            view = Ledger(folder).view()
            assert (len(view.runs), view.findings) == (6, ())
            assert energies(folder) == expected
            assert verify(folder, now_us=NOW_US).sound
            assert compact(folder)
            assert energies(folder) == expected
            assert [f for f in verify(folder, now_us=NOW_US).findings if f.code != "CL515"] == []
            assert list(folder.glob("runs/202609/*.json")) == []
    assert steps > 20


@pytest.mark.slow
def test_redaction_killed_at_any_step_keeps_figures_and_ends_at_the_next_try(tmp_path):
    prepared = tmp_path / "prepared"
    ledger = fill(prepared, [secret_run(), *runs_over(10, 3)])
    ledger.add_batch([secret_run()], source_sha256="ab" * 32, importer="t-1")
    expected = energies(prepared)
    steps = 0
    with Killer("redact", *FIELDS) as redact:
        for folder in each_step(tmp_path, prepared, redact):
            steps += 1
            assert energies(folder) == expected
            if list(folder.glob("redactions/[!.]*")):
                assert PLANTED not in repr(Ledger(folder).view().runs)
            if holding(folder):
                assert redact(folder)
            assert [f for f in holding(folder) if not hidden(f, folder)] == []
            assert energies(folder) == expected
            assert verify(folder, now_us=NOW_US).sound
    assert steps > 8


def hidden(file, folder):
    """Tell what a killed writer left under a temporary name."""
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


@pytest.mark.parametrize("work", ["close", "tag"])
def test_a_close_or_a_correction_killed_at_any_step_is_whole_or_not_there(tmp_path, work):
    prepared = tmp_path / "prepared"
    fill(prepared, runs_over(10, 2))
    outcomes = set()
    with Killer(work) as killer:
        for folder in each_step(tmp_path, prepared, killer):
            result = verify(folder, now_us=NOW_US)
            assert [f.code for f in result.findings] == []
            assert result.counting == 2
            outcomes.add((result.records, len(list(folder.glob("closes/*.json")))))
    assert outcomes == ({(2, 0), (2, 1)} if work == "close" else {(2, 0), (3, 0)})
