"""Foreign things in a ledger's folder, hosts that come between, and addresses that cannot be written."""

import os
import threading
import time

import pytest

from carbonlens.app import ledger_care
from carbonlens.app.runs import list_runs
from carbonlens.errors import RecordError, UnwritableError
from carbonlens.ledger import compaction, outbox
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_store import make_run

NOW_US = time.time_ns() // 1000 + 10 * 86_400 * 1_000_000


@pytest.fixture
def folder(tmp_path):
    Ledger(tmp_path / "l").append(make_run())
    return tmp_path / "l"


def told(folder):
    return [(f.code, f.file) for f in verify(folder, now_us=NOW_US).findings]


MINE = [".env", ".git/config", "runs/.DS_Store", ".cache/x.tmp", "runs/202311/.r1.json.swp"]
PIPES = [
    *("imports/x.parquet", "months/202311/x.parquet", "charges/x.parquet"),
    *("closes/2026.json", "redactions/x.json"),
]


@pytest.mark.parametrize("name", MINE)
def test_dot_files_of_the_user_are_no_leftovers(folder, name):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    assert told(folder) == []


def test_leftovers_of_ours_are_still_told(folder):
    left = folder / "runs" / "202311" / f".r1.json.{'a' * 16}.tmp"
    left.write_text("{")
    ((code, file),) = told(folder)
    assert (code, file) == ("CL515", str(left))
    (said,) = verify(folder, now_us=NOW_US).findings
    assert "compact" in said.mend


@pytest.mark.parametrize("name", PIPES)
def test_a_pipe_does_not_hold_a_reader(folder, name):
    pipe = folder / name
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    done = []

    def work():
        done.append([f.file for f in verify(folder, now_us=NOW_US).findings if f.severity == "error"])
        with Ledger(folder).query() as view:
            done.append([f.file for f in view.findings])
        done.append(Ledger(folder).latest(3).runs)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(30)
    assert len(done) == 3
    assert str(pipe) in done[0]
    assert done[2] == (make_run(),)


def test_a_host_that_compacts_at_once_is_no_full_disk(folder):
    """The other host takes files away between two steps; the month is folded all the same."""
    tries = []

    def fold():
        tries.append(len(tries))
        if len(tries) < 4:
            raise FileNotFoundError(2, "No such file or directory", "x.parquet")
        return compaction.fold(folder, "202311")

    done, _ = compaction.again_where_gone(fold)
    assert (done.runs, len(tries)) == (1, 4)

    def never():
        raise FileNotFoundError(2, "No such file or directory", "x.parquet")

    with pytest.raises(FileNotFoundError):
        compaction.again_where_gone(never)


@pytest.mark.parametrize("workers", [4])
def test_hosts_that_compact_at_once_lose_and_double_nothing(folder, workers):
    for i in range(40):
        Ledger(folder).append(make_run(f"run-{i:02}"))
    faults = []

    def work():
        try:
            ledger_care.compact(ledger=folder)
        except UnwritableError as error:
            faults.append(error)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert len(Ledger(folder).view().runs) == 41


def test_closes_that_cannot_be_read_stop_a_correction_before_it_is_written(folder):
    place = folder / "closes"
    place.write_text("no folder")
    with pytest.raises(RecordError, match="cannot be read"):
        ledger_care.tag("r1", {"k": "v"}, ledger=folder)
    assert Ledger(folder).view().runs == (make_run(),)
    with pytest.raises(RecordError, match="cannot be read"):
        ledger_care.period_status("2026-03", ledger=folder)


@pytest.fixture
def blocked(tmp_path, monkeypatch):
    """Return an address with a run in it, of which another month cannot be written, and one that waits."""
    monkeypatch.setenv("CARBONLENS_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    address = f"file://{tmp_path}/shared"
    with open_ledger(address) as store:
        store.append(make_run("there"))
    (tmp_path / "shared" / "runs" / "202601").write_text("no folder")
    Ledger(outbox.folder_of(address)).append(make_run("waiting", start_us=1_768_000_000_000_000))
    with pytest.raises(UnwritableError):
        outbox.send(address)
    return address


def test_a_run_that_waits_does_not_block_reading(blocked):
    listed = list_runs(ledger=blocked)
    assert [r.run_id for r in listed.runs] == ["there"]
    (said,) = [f for f in listed.findings if f.code == "CL526"]
    assert "1 run waits" in said.message


def test_no_period_is_closed_without_the_runs_that_wait(blocked):
    with pytest.raises(UnwritableError):
        ledger_care.close("2023-11", ledger=blocked)
