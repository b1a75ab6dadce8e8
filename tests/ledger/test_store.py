"""Records are written whole, read back exactly, and never overwritten."""

import os
import subprocess
import sys
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.run import Reading, Run
from carbonlens.errors import RecordError, UnwritableError
from carbonlens.ledger import compaction
from carbonlens.ledger.store import Ledger


def make_run(run_id="r1", energy="1.5", start_us=1_700_000_000_000_000, **more):
    reading = Reading(
        component="cpu",
        energy_j=None if energy is None else Decimal(energy),
        boundary="it",
        grade="D",
        method="model",
        state="unknown" if energy is None else "known",
        u_by_source_j={"cpu_model:x": 0.3},
    )
    return Run(run_id=run_id, start_us=start_us, units=Decimal(3), energy=(reading,), **more)


def test_a_record_comes_back_exactly(tmp_path):
    run = make_run(energy="123456789012345678.123456", tags={"team": "vision"})
    file = Ledger(tmp_path).append(run)
    assert file.parent.name == "202311"
    assert Ledger(tmp_path).view().runs == (run,)


def test_the_ledger_hides_itself_from_git(tmp_path):
    Ledger(tmp_path / "l").append(make_run())
    assert (tmp_path / "l" / ".gitignore").read_text() == "*\n"


def test_a_record_is_immutable(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(make_run())
    assert ledger.append(make_run()).exists()
    with pytest.raises(RecordError, match="different record"):
        ledger.append(make_run(energy="9"))
    assert ledger.view().runs == (make_run(),)


def test_no_temporary_file_is_left(tmp_path):
    Ledger(tmp_path).append(make_run())
    names = [p.name for p in tmp_path.rglob("*") if p.is_file()]
    assert sorted(names) == [".gitignore", "r1.json"]


def test_damaged_records_are_findings_and_the_others_are_read(tmp_path):
    ledger = Ledger(tmp_path)
    good = ledger.append(make_run("good"))
    (good.parent / "torn.json").write_bytes(good.read_bytes()[:100])
    (good.parent / "empty.json").write_bytes(b"")
    (good.parent / "text.json").write_bytes(b"\xff\xfe")
    view = ledger.view()
    assert [r.run_id for r in view.runs] == ["good"]
    assert [f.code for f in view.findings] == ["CL501"] * 3


def test_a_copy_of_a_record_counts_once(tmp_path):
    ledger = Ledger(tmp_path)
    file = ledger.append(make_run())
    (file.parent / "copy.json").write_bytes(file.read_bytes())
    view = ledger.view()
    assert len(view.runs) == 1
    assert [f.code for f in view.findings] == ["CL504"]


def test_a_newer_schema_is_said_not_guessed(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(make_run("new", schema_version=99))
    view = ledger.view()
    assert view.runs == ()
    assert [f.code for f in view.findings] == ["CL502"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_refused_with_its_name(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UnwritableError, match=str(tmp_path)):
        Ledger(tmp_path / "l").ensure_writable()


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "l").write_text("")
    with pytest.raises(UnwritableError):
        Ledger(tmp_path / "l").append(make_run())


def test_outcomes_are_found_by_their_hash_and_checked(tmp_path):
    ledger = Ledger(tmp_path)
    sha = ledger.add_outcomes([1, 0, 1])
    assert ledger.outcomes(sha) == (1, 0, 1)
    assert ledger.outcomes("0" * 64) is None
    (tmp_path / "outcomes" / f"{sha}.json").write_text("[1,1,1]")
    with pytest.raises(RecordError, match="hash"):
        ledger.outcomes(sha)


def test_a_batch_comes_back_exactly_and_once(tmp_path):
    ledger = Ledger(tmp_path)
    runs = [make_run(f"r{i}", energy=None if i == 2 else f"{i}.000001", start_us=None) for i in range(5)]
    for _ in range(2):
        ledger.add_batch(runs, source_sha256="ab" * 32, importer="t-1")
    assert sorted(ledger.view().runs, key=lambda r: r.run_id) == runs


def test_a_damaged_batch_is_a_finding(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(make_run())
    file = ledger.add_batch([make_run("b")], source_sha256="ab" * 32, importer="t-1")
    file.write_bytes(file.read_bytes()[:50])
    view = ledger.view()
    assert [r.run_id for r in view.runs] == ["r1"]
    assert [f.code for f in view.findings] == ["CL503"]


def test_a_folder_with_a_quote_in_its_name_works(tmp_path):
    ledger = Ledger(tmp_path / "it's; a -- test")
    ledger.add_batch([make_run()], source_sha256="ab" * 32, importer="t-1")
    assert len(ledger.view().runs) == 1


def test_many_processes_write_one_folder_without_loss(tmp_path):
    code = (
        "import sys; from tests.ledger.test_store import make_run\n"
        "from carbonlens.ledger.store import Ledger\n"
        "for i in range(10): Ledger(sys.argv[1]).append(make_run(f'{sys.argv[2]}-{i}'))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)]) for n in range(4)]
    assert [w.wait() for w in writers] == [0] * 4
    view = Ledger(tmp_path).view()
    assert len({r.run_id for r in view.runs}) == 40
    assert view.findings == ()


@given(
    energy=st.decimals(min_value=0, max_value=10**15, places=6),
    units=st.decimals(min_value=0, max_value=10**9, places=3),
    text=st.text(max_size=40),
)
def test_any_record_survives_the_json_round_trip(tmp_path_factory, energy, units, text):
    run = make_run(energy=str(energy), step=text, tags={"k": text})
    ledger = Ledger(tmp_path_factory.mktemp("ledger"))
    ledger.append(run)
    assert ledger.view().runs == (run,)


def test_a_record_that_was_folded_is_saved_already_and_another_of_its_id_is_refused(tmp_path):
    ledger = Ledger(tmp_path)
    run = make_run("r", "1", 1_790_000_000_000_000)
    ledger.append(run)
    compaction.compact(tmp_path, before="202612")
    assert ledger.append(run).suffix == ".parquet"
    with pytest.raises(RecordError, match="different record of this id"):
        ledger.append(msgspec.structs.replace(run, step="other"))
    ledger.append(msgspec.structs.replace(run, run_id="r2"))
    assert [r.run_id for r in ledger.view().runs] == ["r", "r2"]


@given(
    run_id=st.text(max_size=12)
    | st.sampled_from([".x", "../../x", "a/b", "", "x" * 300, "é" * 120, "a.json"])
)
def test_any_id_is_read_back_or_refused_and_nothing_is_written_elsewhere(tmp_path_factory, run_id):
    place = tmp_path_factory.mktemp("place")
    ledger = Ledger(place / "a" / "b" / "ledger")
    try:
        ledger.append(make_run(run_id))
    except RecordError:
        kept = ()
    else:
        kept = (run_id,)
    assert tuple(r.run_id for r in ledger.view().runs) == kept
    folder = ledger.path / "runs" / "202311"
    assert {f.parent for f in place.rglob("*.json")} <= {folder}
    # A letter is a name, and so is what an older version made.
    assert kept or not (run_id.isalnum() and len(run_id.encode()) <= 100)
