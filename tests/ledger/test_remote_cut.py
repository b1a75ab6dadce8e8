"""Behind an address: an upload that is cut off anywhere can be done again, and names are of objects."""

import msgspec
import pytest

from carbonlens.app.ledger_care import close, compact, redact, verify
from carbonlens.app.runs import list_runs
from carbonlens.domain.run import Origin
from carbonlens.errors import CarbonlensError, RecordError, UnwritableError
from carbonlens.ledger import compaction
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.store import Ledger
from tests.ledger.test_store import make_run

local = pytest.importorskip("fsspec.implementations.local", reason="needs the extra remote")

MARCH = 1_772_704_800_000_000


@pytest.fixture
def shared(tmp_path):
    """Yield an address, and the folder that is there."""
    return f"file://{tmp_path / 'shared'}", tmp_path / "shared"


def fill(address, form):
    origin = Origin(instrument="t", imported_us=1)
    runs = [
        make_run(f"run-{i}", start_us=MARCH, end_us=MARCH + 9, tags={"owner": "x"}, origin=origin)
        for i in range(3)
    ]
    with open_ledger(address) as ledger:
        if form == "batch":
            ledger.add_batch(runs, source_sha256="ab" * 32, importer="t-1")
        else:
            for run in runs:
                ledger.append(run)
    if form == "month":
        compact(ledger=address)
    close("2026-03", ledger=address)


def cut_after(monkeypatch, count):
    """Have the network go away after so many objects were put or removed."""
    left = iter(range(count))

    def until(work):
        def done(self, *args, **more):
            if next(left, None) is None:
                raise OSError(5, "the network went away")
            return work(self, *args, **more)

        return done

    for name in ("pipe_file", "rm"):
        monkeypatch.setattr(local.LocalFileSystem, name, until(getattr(local.LocalFileSystem, name)))


@pytest.mark.parametrize("form", ["json", "batch", "month"])
def test_a_redaction_cut_off_after_any_object_is_ended_by_the_next(shared, monkeypatch, form):
    address, folder = shared
    fill(address, form)
    for count in range(10):
        # Each try goes on from where the one before was cut off.
        with monkeypatch.context() as patch:
            cut_after(patch, count % 3)
            try:
                redact("run-1", ["tags.owner"], why="w", ledger=address)
            except UnwritableError:
                pass
            else:
                break
        altered = {f.code for f in verify(ledger=address).findings if f.severity == "error"}
        assert altered <= {"CL514"}, "content that was closed must not be called altered"
    else:
        pytest.fail("it never ended")
    assert verify(ledger=address).sound
    assert [dict(r.tags) for r in Ledger(folder).view().runs if r.run_id == "run-1"] == [{}]
    assert len(list_runs(ledger=address).runs) == 3


def test_what_is_wrong_behind_an_address_is_named_by_the_object(shared):
    address, folder = shared
    fill(address, "json")
    with open_ledger(address) as ledger:
        ledger.add_batch([make_run("z")], source_sha256="cd" * 32, importer="t-1")
    place = folder / "runs" / "202603"
    (place / "torn.json").write_text('{"run_id":')
    (place / "copy.json").write_bytes((place / "run-0.json").read_bytes())
    (batch,) = folder.glob("imports/*.parquet")
    batch.write_bytes(b"no Parquet")
    names = {f"{address}/{f.relative_to(folder)}" for f in (place / "torn.json", place / "copy.json", batch)}
    assert {f.file for f in list_runs(ledger=address).findings} == names
    assert {f.file for f in verify(ledger=address).findings} == names
    assert {f.file for f in compact(ledger=address).findings} <= names
    with open_ledger(address) as ledger, ledger.query() as view:
        assert {f.file for f in view.findings} == names
    for work in (lambda: close("2026-02", ledger=address), lambda: redact_tag(address)):
        with pytest.raises(RecordError) as said:
            work()
        assert said.value.where in names
        assert "/carbonlens-" not in str(said.value)


def redact_tag(address):
    redact("run-0", ["tags.owner"], why="w", ledger=address)


def test_a_redaction_behind_an_address_names_the_objects_that_it_wrote(shared):
    address, _ = shared
    fill(address, "json")
    done = redact("run-0", ["tags.owner"], why="w", ledger=address)
    assert done.files == (f"{address}/runs/202603/run-0.json",)


def test_an_error_keeps_its_kind_and_its_exit_code(shared):
    address, _ = shared
    fill(address, "json")
    with pytest.raises(CarbonlensError) as said, open_ledger(address) as ledger:
        ledger.append(msgspec.structs.replace(make_run("run-0", start_us=MARCH), step="other"))
    assert (type(said.value), said.value.exit_code) == (RecordError, 3)
    assert said.value.where == f"{address}/runs/202603/run-0.json"


def test_two_hosts_that_compact_one_address_at_once_both_end(shared):
    """The one that is slower finds the files gone that it wants to remove."""
    address, folder = shared
    with open_ledger(address) as ledger:
        for i in range(4):
            ledger.append(make_run(f"run-{i}", start_us=MARCH + i))
    with open_ledger(address) as slower:
        compaction.compact(slower.path, before="202611", is_copy=True)
        (folder / "runs" / "202603" / "run-0.json").unlink()
    assert not list(folder.glob("runs/*/*.json"))
    assert len(list_runs(ledger=address).runs) == 4
    assert verify(ledger=address).sound
