"""Recovery: the runs of dead processes, each once; of living or foreign ones, never."""

import inspect
import os
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from carbonlens.ledger.store import Ledger
from carbonlens.metering.deposit import is_recorded
from carbonlens.metering.host import place_of_pids, process_start_ticks
from carbonlens.metering.journal import Facts
from carbonlens.metering.recovery import BESIDE_BYTES, SILENT_S, recover, recover_beside
from carbonlens.metering.sensors.cpu_model import this_curve
from tests.metering.journals import header, look, orphan, write
from tests.metering.processes import runs


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "journal"


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def make_silent(path: Path) -> None:
    old = time.time() - SILENT_S - 60
    os.utime(path, (old, old))


def test_a_dead_writers_run_is_sealed_up_to_its_last_sample(folder, ledger):
    facts = Facts(units=Decimal(7))
    run_id, path = orphan(folder, ledger, look(0, 1.0), look(1, 1.5, facts), look(2, 3.0))
    found = recover(folder)
    assert [d.run.run_id for d in found.recovered] == [run_id]
    (run,) = runs(ledger)
    assert (run.run_id, run.status, run.duration_s) == (run_id, "recovered", 2.0)
    # Nobody knows how long it went on: a lower bound, never a complete measurement.
    assert (run.coverage, run.lost_s) == (None, None)
    assert (run.energy[0].state, run.total_energy.state, run.total_energy.high) == (
        "unbounded",
        "unbounded",
        None,
    )
    assert run.end_us == run.start_us + 2_000_000
    assert float(run.energy[0].energy_j) == pytest.approx(2.0 * this_curve().full_w_per_thread)
    assert run.units == 7
    assert [f.code for f in run.findings] == ["CL106"]
    assert not path.exists()
    assert list(folder.iterdir()) == []
    assert recover(folder).recovered == ()


def test_a_run_killed_at_once_is_kept_with_its_energy_unknown(folder, ledger):
    orphan(folder, ledger, look(0, 1.0))
    recover(folder)
    (run,) = runs(ledger)
    assert run.status == "recovered"
    assert run.total_energy.state == "unknown"


def test_a_living_writer_is_left_alone(folder, ledger):
    path = write(folder, header(ledger), look(0, 1.0), look(1, 2.0))
    make_silent(path)
    found = recover(folder)
    assert found.recovered == ()
    assert [(r.run.status, r.ledger) for r in found.running] == [("running", ledger)]
    assert path.exists()


def test_another_hosts_journal_is_left_alone_however_old(folder, ledger):
    _, path = orphan(folder, ledger, host_id="other", machine="other machine")
    make_silent(path)
    found = recover(folder)
    assert found.recovered == ()
    assert [r.elsewhere for r in found.running] == [True]
    assert path.exists()


@pytest.mark.parametrize("elsewhere", [{"host_id": "before the boot"}, {"pid_namespace": "pid:[1]"}])
def test_a_writer_that_cannot_be_seen_is_gone_once_it_was_silent_for_long(folder, ledger, elsewhere):
    _, path = orphan(folder, ledger, **elsewhere)
    assert recover(folder).recovered == ()
    make_silent(path)
    assert len(recover(folder).recovered) == 1


def test_a_damaged_tail_is_said(folder, ledger):
    _, path = orphan(folder, ledger)
    with path.open("ab") as stream:
        stream.write(b'{"crc":"00000000","line":{"type":"sam')
    recover(folder)
    (run,) = runs(ledger)
    assert [f.code for f in run.findings] == ["CL106", "CL107"]
    assert run.duration_s == 2.0


def test_a_journal_without_a_header_is_set_aside_once_it_is_old(folder):
    folder.mkdir()
    path = folder / "x.jsonl"
    path.write_bytes(b"rubbish\n")
    assert recover(folder).damaged == ()
    make_silent(path)
    assert recover(folder).damaged == (folder / "damaged" / "x.jsonl",)
    assert recover(folder).damaged == ()


def test_a_run_that_reached_its_ledger_is_not_recorded_again(folder, ledger):
    run_id, path = orphan(folder, ledger)
    recover(folder)
    (first,) = runs(ledger)
    again = write(folder, header(ledger, run=first, start_ticks=1), look(0, 0.0), look(9, 9.0))
    assert recover(folder).recovered == ()
    assert not again.exists()
    assert [r.run_id for r in runs(ledger)] == [run_id]
    assert path != again or not path.exists()


def test_an_unwritable_ledger_sends_the_run_to_the_state_folder(folder, tmp_path):
    (tmp_path / "file").write_text("")
    orphan(folder, tmp_path / "file" / "ledger")
    (stored,) = recover(folder).recovered
    assert stored.ledger == tmp_path / "state" / "carbonlens" / "ledger"
    assert stored.fault
    (run,) = runs(stored.ledger)
    assert "CL112" in [f.code for f in run.findings]


def test_a_claim_whose_holder_died_is_taken_over(folder, ledger):
    _, path = orphan(folder, ledger)
    path.rename(path.with_name(f"{path.name}.claim-{os.getpid()}-1-{place_of_pids()}-{int(time.time())}"))
    assert len(recover(folder).recovered) == 1
    assert list(folder.iterdir()) == []


def test_a_claim_whose_holder_lives_is_respected(folder, ledger):
    _, path = orphan(folder, ledger)
    long_ago = int(time.time() - 2 * SILENT_S)
    mine = f"{os.getpid()}-{process_start_ticks(os.getpid())}-{place_of_pids()}-{long_ago}"
    path.rename(path.with_name(f"{path.name}.claim-{mine}"))
    assert recover(folder).recovered == ()


@pytest.mark.parametrize(("age_s", "taken"), [(60, 0), (SILENT_S + 60, 1)])
def test_a_claim_of_another_container_is_taken_over_once_it_is_old(folder, ledger, age_s, taken):
    """A container that ends while it seals leaves a claim that nobody can ask about."""
    _, path = orphan(folder, ledger)
    path.rename(path.with_name(f"{path.name}.claim-7-1-elsewhere-{int(time.time() - age_s)}"))
    assert len(recover(folder).recovered) == taken
    assert len(list(folder.iterdir())) == 1 - taken


def _recover_when(moment, folder):
    time.sleep(max(0.0, moment - time.time()))
    return len(recover(folder).recovered)


def test_processes_that_recover_at_once_seal_each_run_once(folder, ledger):
    wanted = {orphan(folder, ledger)[0] for _ in range(20)}
    with ProcessPoolExecutor(4) as pool:
        moment = time.time() + 0.5
        counts = list(pool.map(_recover_when, [moment] * 4, [folder] * 4))
    assert sum(counts) == 20
    assert sorted(r.run_id for r in runs(ledger)) == sorted(wanted)
    assert list(folder.iterdir()) == []


def test_no_folder_is_nothing_to_recover(tmp_path):
    assert recover(tmp_path / "none").recovered == ()
    assert recover_beside(tmp_path / "none") is None


def test_recovery_beside_the_work(folder, ledger):
    orphan(folder, ledger)
    recover_beside(folder).join(60)
    assert len(Ledger(ledger).view().runs) == 1


def test_a_live_run_taken_for_dead_supersedes_its_recovery(ledger):
    from carbonlens.metering.deposit import deposit

    run = header().run
    deposit(run, ledger)
    later = deposit(run.__class__(run_id=run.run_id, status="complete", start_us=run.start_us), ledger)
    assert later.fault is None
    assert later.run.run_id != run.run_id
    assert later.run.supersedes == run.run_id
    assert len(runs(ledger)) == 2


def test_a_journal_that_can_never_be_sealed_is_set_aside_and_the_others_are_sealed(folder, ledger):
    absurd = msgspec.structs.replace(header().run, start_us=10**18, run_id="0-absurd")
    write(folder, header(ledger, run=absurd, start_ticks=1), look(0, 1.0), look(1, 2.0))
    endless = msgspec.structs.replace(header().run, run_id="0-endless")
    write(folder, header(ledger, run=endless, start_ticks=1), look(0, 1.0), look(1e12, 2.0))
    run_id, _ = orphan(folder, ledger)
    found = recover(folder)
    assert {f.name for f in found.damaged} == {"0-absurd.jsonl", "0-endless.jsonl"}
    assert [d.run.run_id for d in found.recovered] == [run_id]
    assert recover(folder).damaged == ()


def test_a_journal_of_another_version_is_left_to_its_own(folder, ledger):
    later = msgspec.structs.replace(header(ledger, start_ticks=1), version=2)
    path = write(folder, later, look(0, 1.0), look(1, 2.0))
    make_silent(path)
    found = recover(folder)
    assert (found.recovered, found.running, found.damaged) == ((), (), ())
    assert found.foreign == (path,)
    assert path.exists()


def test_the_figure_is_the_same_whoever_seals_a_run(folder, ledger):
    orphan(folder, ledger)
    (by_command,) = recover(folder).recovered
    wanted, _ = orphan(folder, ledger)
    recover_beside(folder).join(60)
    (beside,) = (r for r in runs(ledger) if r.run_id == wanted)
    assert beside.energy == by_command.run.energy
    assert set(inspect.signature(recover).parameters) == {"folder", "most_bytes"}


NEWER = [
    b'{"type":"header","version":2,"runs":[]}',
    b'{"type":"header","version":2}',
    b'{"kind":"header","version":"2.1","writer":null,"run":{"id":7}}',
]


@pytest.mark.parametrize("body", NEWER)
@pytest.mark.parametrize("framed", [True, False])
def test_a_journal_whose_header_took_another_shape_is_left_to_its_own(folder, ledger, body, framed):
    path = folder / "0.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    line = b'{"crc":"%08x","line":%b}' % (zlib.crc32(body), body) if framed else body
    path.write_bytes(line + b"\n\n" + line + b"\n\n{}\n")
    make_silent(path)
    found = recover(folder)
    assert (found.recovered, found.running, found.damaged, found.foreign) == ((), (), (), (path,))
    assert path.exists()


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 90, b"[]\n1\n", b'{"crc":"00000000","line":{"version":2}}\n']
)
def test_a_journal_that_says_no_version_is_damaged(folder, content):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "0.jsonl"
    path.write_bytes(content)
    make_silent(path)
    found = recover(folder)
    assert ([p.name for p in found.damaged], found.foreign) == (["0.jsonl"], ())


def test_what_is_no_regular_file_is_left_alone(folder, ledger):
    run_id, _ = orphan(folder, ledger)
    os.mkfifo(folder / "0.jsonl")
    (folder / "1.jsonl").mkdir()
    (folder / "2.jsonl").symlink_to("0.jsonl")
    assert [d.run.run_id for d in recover(folder).recovered] == [run_id]
    assert sorted(p.name for p in folder.iterdir()) == ["0.jsonl", "1.jsonl", "2.jsonl"]


def test_a_run_in_a_compacted_month_is_recorded(ledger):
    run_id, month = "01a21f7d-66a9-73bb-b1ee-43cbbb5813c7", ledger / "months" / "2026-11"
    month.mkdir(parents=True)
    (month / "x.json").write_text(f'{{"runs": ["{run_id}"]}}')
    assert is_recorded(run_id, ledger)
    assert not is_recorded(run_id.replace("1", "2"), ledger)


def test_a_journal_too_long_to_read_beside_work_stays_for_a_command(folder, ledger):
    """To read it would take the work's time and memory, and be billed to it."""
    _, short = orphan(folder, ledger, look(0, 1.0), look(1, 1.5))
    long = folder / "long.jsonl"
    with long.open("wb") as file:
        file.truncate(BESIDE_BYTES + 1)
    recover_beside(folder).join(60)
    assert not short.exists()
    assert long.exists()
    assert recover_beside(folder) is None
    make_silent(long)
    assert recover(folder).damaged
