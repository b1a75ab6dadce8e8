"""Damaged, foreign, unreadable and doubled files: each is named with its mend, the rest stays readable."""

import os
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from carbonlens.app.ledger_care import compact
from carbonlens.errors import UnwritableError
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_compaction import NOW_US, fill, runs_over
from tests.ledger.test_oddities import START_US, live
from tests.ledger.test_store import make_run

# No permission stops root: what the code needs is loaded first, then it becomes an ordinary user.
AS_USER = """
import os, sys
import duckdb
from carbonlens.domain.run import Run
from carbonlens.errors import UnwritableError
import narwhals
from carbonlens.app.ledger_care import redact
from carbonlens.ledger import frames, holdings, latest, parquet, queries, reading, redacting, redaction
from carbonlens.ledger.store import Ledger
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


def as_user(code, *arguments):
    command = [sys.executable, "-c", AS_USER + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def folder():
    """Make a ledger that another user may enter: not below pytest's folder, which it keeps to one user."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        fill(place / "ledger", runs_over(40, 6))
        for parent in (place, *place.parents):
            mode = parent.stat().st_mode
            if parent.stat().st_uid == os.geteuid() and not mode & 0o1001:
                parent.chmod(mode | 0o011)
        place.chmod(0o755)
        yield place / "ledger"


def test_a_record_torn_at_any_byte_is_left_out_and_the_rest_is_read(folder):
    file = folder / "runs" / "202610" / "run-0003.json"
    content = file.read_bytes()
    for length in range(len(content) - 2):
        file.write_bytes(content[:length])
        view = Ledger(folder).view()
        assert len(view.runs) == 5, length
        assert [(f.code, f.file) for f in view.findings] == [("CL501", str(file))], length
        assert all(f.mend for f in view.findings)


def test_a_batch_torn_anywhere_is_left_out_whole(folder):
    file = Ledger(folder).add_batch([make_run("a"), make_run("b")], source_sha256="ab" * 32, importer="t-1")
    content = file.read_bytes()
    for length in range(0, len(content), 97):
        file.write_bytes(content[:length])
        view = Ledger(folder).view()
        assert len(view.runs) == 6
        assert [(f.code, f.file) for f in view.findings] == [("CL503", str(file))]


FOREIGN = [b"", b"\x00" * 512, b"PAR1" * 9, b"\x89PNG\r\n", '{"a": "ä"}'.encode("utf-16")]


@pytest.mark.parametrize("content", FOREIGN)
def test_foreign_files_under_a_ledgers_names_are_told(folder, content):
    (folder / "runs" / "202610" / "foreign.json").write_bytes(content)
    (folder / "imports").mkdir()
    (folder / "imports" / "foreign.parquet").write_bytes(content)
    view = Ledger(folder).view()
    assert len(view.runs) == 6
    assert sorted(f.code for f in view.findings) == ["CL501", "CL503"]
    assert not verify(folder, now_us=NOW_US).sound


def test_a_newer_record_names_itself_and_the_mend_also_inside_a_batch(folder):
    Ledger(folder).append(make_run("newer", schema_version=2**31))
    Ledger(folder).add_batch([make_run("b", schema_version=2)], source_sha256="ab" * 32, importer="t-1")
    findings = Ledger(folder).view().findings
    assert [(f.code, f.mend) for f in findings] == [("CL502", "upgrade carbonlens")] * 2
    assert "schema version 2," in findings[1].message


READ = """
view = Ledger(sys.argv[1]).view()
print(len(view.runs), [(f.code, f.file.rpartition("/")[2], f.mend) for f in view.findings])
"""


@pytest.mark.parametrize(("place", "left"), [("runs/202610/run-0003.json", 5), ("runs/202610", 2)])
def test_what_may_not_be_read_is_told_and_the_rest_is_read(folder, place, left):
    (folder / place).chmod(0)
    done = as_user(READ, folder)
    (folder / place).chmod(0o755)
    assert done.returncode == 0, done.stderr
    mend = "give yourself the right to read it"
    assert done.stdout.strip() == f"{left} {[('CL506', Path(place).name, mend)]}"


READ_NEWEST = """
last = Ledger(sys.argv[1]).latest(10)
with Ledger(sys.argv[1]).query() as view:
    counted = {r["run_id"] for r in view.rows(view.parts)}
    findings = view.findings
print(len(last.runs), len(counted), [f.code for f in last.findings], [f.code for f in findings])
"""

REDACT = """
from carbonlens.errors import CarbonlensError
try:
    redact("run-0000", ["workload"], why="w", ledger=sys.argv[1])
except CarbonlensError as error:
    print(error)
"""


def test_a_month_that_may_not_be_read_stops_neither_the_newest_runs_nor_a_query(folder):
    (folder / "runs" / "202610").chmod(0)
    done = as_user(READ_NEWEST, folder)
    (folder / "runs" / "202610").chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2 2 ['CL506'] ['CL506']"


@pytest.mark.parametrize("place", ["runs/202610", "runs/202610/run-0003.json"])
def test_a_redaction_names_what_it_may_not_read(folder, place):
    """The content may be in there too."""
    (folder / place).chmod(0)
    done = as_user(REDACT, folder)
    (folder / place).chmod(0o755)
    assert str(folder / place) in done.stdout, done.stderr
    assert "right to read" in done.stdout


WRITE = """
try:
    Ledger(sys.argv[1]).append(Run(run_id="new"))
except UnwritableError as error:
    print(error)
"""


def test_a_folder_that_may_not_be_written_is_named_with_the_mend(folder):
    folder.chmod(0o555)
    done = as_user(WRITE, folder)
    assert str(folder) in done.stdout
    assert "Permission denied" in done.stdout
    assert "--ledger" in done.stdout
    assert len(Ledger(folder).view().runs) == 6


@pytest.fixture(params=["tmpfs", "limit"])
def full_disk(request, tmp_path):
    """Yield a folder on a disk without room: a small file system as root, else a limit of the process."""
    place = tmp_path / "disk"
    place.mkdir()
    if request.param == "limit":
        yield place, "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))\n"
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    try:
        yield place, ""
    finally:
        subprocess.run(["umount", str(place)], check=True)


FILL = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import sys
import tempfile
from carbonlens.errors import UnwritableError
from carbonlens.ledger.store import Ledger
from tests.ledger.test_store import make_run
ledger = Ledger(sys.argv[1])
for i in range(200):
    run = make_run(f"run-{i:03}", tags={"t": "x" * i * 20})
    try:
        ledger.append(run)
    except UnwritableError as error:
        print("FULL", error)
        break
    print(run.run_id, flush=True)
"""


def test_on_a_full_disk_what_was_acknowledged_is_whole_and_nothing_else_is_there(full_disk):
    place, limit = full_disk
    ledger = place / "ledger"
    done = subprocess.run([sys.executable, "-c", limit + FILL, str(ledger)], capture_output=True, text=True)
    *acknowledged, last = done.stdout.splitlines()
    assert last.startswith("FULL"), done.stderr
    assert str(ledger) in last
    assert "free space" in last
    assert len(acknowledged) > 3
    view = Ledger(ledger).view()
    assert sorted(r.run_id for r in view.runs) == acknowledged
    assert view.findings == ()
    assert [f.name for f in ledger.rglob(".*") if f.name != ".gitignore"] == []


def test_compaction_on_a_full_disk_leaves_everything_as_it_was(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    try:
        fill(place / "ledger", runs_over(5, 10))
        (place / "ballast").write_bytes(b"x" * (shutil.disk_usage(place).free - 4096))
        before = sorted(r.sha256 for r in Ledger(place / "ledger").holdings().records)
        with pytest.raises(UnwritableError, match="free space"):
            compact(ledger=place / "ledger")
        assert sorted(r.sha256 for r in Ledger(place / "ledger").holdings().records) == before
        (place / "ballast").unlink()
        assert compact(ledger=place / "ledger").months[0].runs == 10
        assert sorted(r.sha256 for r in Ledger(place / "ledger").holdings().records) == before
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_clock_that_jumps_back_loses_and_doubles_nothing(tmp_path):
    """Two boots, the second with its clock a day behind; one run across the jump."""
    runs = [live(START_US + i * 10**9, host_id="boot-1") for i in range(4)]
    runs += [live(START_US - 86_400 * 10**6 + i * 10**9, host_id="boot-2") for i in range(4)]
    runs.append(live(START_US + 77 * 10**9, host_id="boot-2", end_us=START_US))
    fill(tmp_path, runs)
    result = verify(tmp_path, now_us=NOW_US)
    assert (result.counting, result.sound) == (9, True)
    assert {f.code for f in result.findings} == {"CL512", "CL513"}
    compact(ledger=tmp_path, months=["202611"])
    assert sum(r.energy[0].energy_j for r in Ledger(tmp_path).view().runs) == Decimal(9)


def test_two_machines_with_one_name_share_a_folder_without_harm(tmp_path):
    for machine in range(2):
        for i in range(5):
            run = live(START_US + i * 10**6, host_id=f"boot-{machine}", hardware=f"cpu {machine}")
            Ledger(tmp_path).append(msgspec.structs.replace(run, run_id=f"{machine}-{i}"))
    result = verify(tmp_path, now_us=NOW_US)
    assert (result.records, result.counting, result.sound) == (10, 10, True)
    assert [f.code for f in result.findings] == ["CL513"]
