"""Many writers at once, some of them killed: none lost, none doubled, none torn."""

import signal
import subprocess
import sys
import time

from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.writers import WRITER, write_at_once


def test_writers_at_once_lose_and_double_nothing(tmp_path):
    acknowledged, _ = write_at_once(tmp_path / "ledger", tmp_path / "gate", processes=8, runs=25)
    view = Ledger(tmp_path / "ledger").view()
    assert len(acknowledged) == 200
    assert sorted(r.run_id for r in view.runs) == sorted(acknowledged)
    assert view.findings == ()


def test_killed_writers_leave_no_torn_record_and_lose_nothing_acknowledged(tmp_path):
    gate = tmp_path / "gate"
    gate.touch()
    command = [sys.executable, "-c", WRITER, str(tmp_path / "ledger"), "20000", str(gate)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
        assert writer.stdout.readline()
    time.sleep(0.2)
    for writer in writers:
        writer.kill()
    lines = [writer.communicate()[0] for writer in writers]
    assert {w.returncode for w in writers} == {-signal.SIGKILL}
    acknowledged = {line for text in lines for line in text.splitlines() if len(line) == 36}
    view = Ledger(tmp_path / "ledger").view()
    assert view.findings == ()
    assert acknowledged <= {r.run_id for r in view.runs}
    # Each writer may have stored one more than it could say.
    assert len(view.runs) <= len(acknowledged) + 2 * len(writers)
    assert verify(tmp_path / "ledger", now_us=time.time_ns() // 1000).sound
