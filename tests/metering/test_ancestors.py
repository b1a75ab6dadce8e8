"""Which processes a run's process descends from: read once, by pid and start time."""

import os
import subprocess
import sys

import msgspec
import pytest

from carbonlens.domain.run import Run
from carbonlens.errors import UsageError
from carbonlens.ledger.records import Stored, decode
from carbonlens.ledger.redaction import entomb
from carbonlens.metering import host
from carbonlens.metering.host import process_ancestors, process_pseudonym
from carbonlens.metering.journal import Facts, Header, Journal, Writer
from carbonlens.metering.records import new_run
from carbonlens.metering.recovery import recovered_run

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

ASK = """
import os
from carbonlens.metering.host import process_ancestors
print(*process_ancestors(os.getpid()))
"""


def test_a_child_names_its_parent_first_and_then_what_is_above_that():
    own = process_pseudonym(os.getpid())
    told = subprocess.run(
        [sys.executable, "-c", ASK], check=True, capture_output=True, text=True
    ).stdout.split()
    assert told[0] == own
    above = process_ancestors(os.getpid())
    assert tuple(told[1 : len(above) + 1]) == above[: len(told) - 1]
    assert len(set(told)) == len(told) <= 16


def test_a_record_has_them_and_keeps_them_when_it_is_recovered():
    run = new_run("track")
    assert run.ancestors == process_ancestors(os.getpid())
    assert run.process not in run.ancestors
    writer = Writer(pid=1, start_ticks=1, host_id="h", machine="m", pid_namespace="")
    header = Header(writer=writer, ledger="x", run=run, sensors=())
    back = msgspec.json.decode(msgspec.json.encode(header), type=Header)
    sealed = recovered_run(back, Journal(header=back, samples=(), facts=Facts(), damaged=0))
    assert sealed.ancestors == run.ancestors


def test_a_record_without_them_says_nothing():
    text = msgspec.json.encode(Run(run_id="old"))
    plain = msgspec.json.decode(text)
    del plain["ancestors"]
    assert decode(msgspec.json.encode(plain)).ancestors is None


def test_they_cannot_be_taken_out_as_figures_rest_on_them():
    run = Run(run_id="r", ancestors=("a", "b"))
    stored = Stored(run=run, text=msgspec.json.encode(run), file="r.json")
    with pytest.raises(UsageError):
        entomb(stored, ["ancestors"], by="me", when_us=0, why="test")


def test_where_nothing_can_be_read_nothing_is_said():
    beyond_any_pid = 2**22 + 12345
    assert process_ancestors(beyond_any_pid) is None


def test_a_parent_that_ended_is_not_the_process_that_has_its_pid_now():
    """Two processes of one pid have two names, as each has its start time."""
    ticks = host.process_start_ticks(os.getpid())
    assert host._process(os.getpid(), ticks) == process_pseudonym(os.getpid())
    assert host._process(os.getpid(), ticks + 1) != process_pseudonym(os.getpid())
