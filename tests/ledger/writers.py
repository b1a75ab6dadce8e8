"""Many processes writing one folder, as ranks of a job or hosts of a shared folder do."""

import subprocess
import sys
import time
from pathlib import Path

WRITER = """
import sys
from pathlib import Path
from tests.ledger.test_store import make_run
from carbonlens.domain.identity import uuid7
from carbonlens.ledger.store import Ledger
import os, time
ledger, runs, gate = Ledger(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
start = time.time_ns() // 1000
ids = [uuid7(start // 1000, os.urandom(10)) for _ in range(runs)]
records = [make_run(name, energy=f"{i}.5", start_us=start) for i, name in enumerate(ids)]
print("ready", flush=True)
while not gate.exists():
    time.sleep(0.005)
for run in records:
    ledger.append(run)
    print(run.run_id, flush=True)
print("end", time.monotonic(), flush=True)
"""


def write_at_once(ledger: Path, gate: Path, processes: int, runs: int):
    """Let processes write at once; return the ids they acknowledged and the seconds until the last."""
    command = [sys.executable, "-c", WRITER, str(ledger), str(runs), str(gate)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    start = time.monotonic()
    gate.touch()
    outputs = [writer.communicate()[0] for writer in writers]
    assert [w.returncode for w in writers] == [0] * processes
    lines = [line for text in outputs for line in text.splitlines()]
    # One clock for all processes of a host; the interpreters' own start and end do not count.
    ends = [float(line.split()[1]) for line in lines if line.startswith("end ")]
    return [line for line in lines if not line.startswith("end ")], max(ends) - start
