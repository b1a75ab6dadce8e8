"""A redaction is not called done while the content may still lie in the ledger's folder."""

import os
import time
from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.ledger_care import compact, redact, supersede, verify
from carbonlens.domain.finding import Finding
from carbonlens.errors import RecordError, UsageError
from carbonlens.ledger import compaction, redacting, retiring
from carbonlens.ledger.redaction import entomb
from carbonlens.ledger.store import Ledger
from tests.ledger.test_store import make_run

SECRET = "hunter2"  # noqa: S105  # a text to look for
OLD_S = redacting.GONE_S + 60


@pytest.fixture
def folder(tmp_path):
    Ledger(tmp_path / "l").append(make_run("abcd-1", tags={"owner": SECRET}))
    Ledger(tmp_path / "l").append(make_run("other", tags={"owner": "nobody"}))
    return tmp_path / "l"


def holding(folder):
    return [f.name for f in folder.rglob("*") if f.is_file() and SECRET.encode() in f.read_bytes()]


def take_out(folder, field="tags.owner"):
    return redact("abcd-1", [field], why="asked for", ledger=folder)


@pytest.mark.parametrize("form", ["newer", "torn"])
def test_a_file_of_the_run_that_cannot_be_redacted_is_refused(folder, form):
    (file,) = folder.glob("runs/*/abcd-1.json")
    content = file.read_bytes()
    other = file.parent / "copy.json"
    newer = content.replace(b'"schema_version": 1', b'"schema_version": 99')
    other.write_bytes(newer if form == "newer" else content[:-20])
    with pytest.raises(RecordError, match="nothing was taken out"):
        take_out(folder)
    assert sorted(holding(folder)) == ["abcd-1.json", "copy.json"]
    assert not (folder / "redactions").exists()
    other.unlink()
    take_out(folder)
    assert holding(folder) == []


def test_a_damaged_file_of_another_run_does_not_stop_it(folder):
    (file,) = folder.glob("runs/*/other.json")
    file.write_bytes(file.read_bytes()[:-20])
    assert take_out(folder).remaining == ()


@pytest.mark.parametrize("age_s", [OLD_S, 0])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_writer_left_goes_too_and_a_fresh_one_is_named(folder, kind, age_s):
    (file,) = folder.glob("runs/*/abcd-1.json")
    left = file.parent / f".abcd-1.json.{'0' * 16}.tmp"
    if kind == "file":
        left.write_bytes(file.read_bytes()[:-5])
        inside = left
    else:
        left.mkdir()
        inside = left / "rows.json"
        inside.write_bytes(msgspec.json.encode({"run_id": "abcd-1", "owner": SECRET}))
    then = time.time() - age_s
    os.utime(inside, (then, then))
    os.utime(left, (then, then))
    other = file.parent / f".other.json.{'1' * 16}.tmp"
    other.write_bytes(b'{"run_id": "other"}')
    done = take_out(folder)
    assert done.remaining == (() if age_s else (str(left),))
    assert (holding(folder) == []) is bool(age_s)
    assert other.exists()


def test_the_target_of_a_link_is_named(folder, tmp_path):
    (file,) = folder.glob("runs/*/abcd-1.json")
    elsewhere = tmp_path / "elsewhere.json"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert take_out(folder).remaining == (str(elsewhere.resolve()),)
    assert holding(folder) == []


def test_texts_of_findings_and_reasons_can_be_taken_out(folder):
    said = Finding(code="CL150", severity="warning", message=f"the meter of {SECRET}", subject=SECRET)
    Ledger(folder).append(make_run("abcd-2", findings=(said,)))
    supersede("abcd-2", {"site": "x"}, why=SECRET, ledger=folder)
    redact("abcd-2", ["findings"], why="asked for", ledger=folder)
    redact("abcd-1", ["tags"], why="asked for", ledger=folder)
    assert holding(folder) == []
    kept = [f for r in Ledger(folder).view().runs if r.site == "x" for f in r.findings]
    assert [(f.code, f.severity) for f in kept][:2] == [("CL150", "warning"), ("CL509", "info")]
    assert {f.message for f in kept[:2]} == {"[redacted]"}
    assert "findings" in kept[-1].message


def test_a_tombstone_with_a_reason_given_before_stays_and_is_not_called_remaining(folder):
    redact("abcd-1", ["tags.owner"], why=f"because of {SECRET}", ledger=folder)
    Ledger(folder).view()
    supersede("abcd-1", {"site": "x"}, why="typo", ledger=folder)
    (stone,) = (folder / "redactions").iterdir()
    done = redact("abcd-1", ["findings"], why="w", ledger=folder)
    assert (done.remaining, str(stone) in done.tombstones) == ((), True)


@pytest.mark.parametrize("misfit", ["correction", "itself"])
def test_a_record_that_no_sum_holds_is_redacted_too(tmp_path, misfit):
    own = make_run("abcd-9", tags={"owner": SECRET})
    bad = msgspec.structs.replace(own, run_id="abcd-8", supersedes="abcd-9", units=Decimal("NaN"))
    if misfit == "correction":
        Ledger(tmp_path).append(own)
    file = tmp_path / "runs" / "corrections" / "abcd-8.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(msgspec.json.encode(bad))
    asked = "abcd-9" if misfit == "correction" else "abcd-8"
    done = redact(asked, ["tags.owner"], why="w", ledger=tmp_path)
    assert set(done.run_ids) == {asked, "abcd-8"}
    assert holding(tmp_path) == []


@pytest.mark.parametrize("field", ["study", "job_id", "findings.code"])
def test_what_cannot_be_taken_out_is_refused(folder, field):
    said = Finding(code="CL150", severity="info", message="m")
    Ledger(folder).append(make_run("abcd-3", study="s", job_id="j", findings=(said,)))
    with pytest.raises(UsageError):
        redact("abcd-3", [field], why="w", ledger=folder)
    assert not list(folder.glob("redactions/*"))


@pytest.mark.parametrize("folded_before", [False, True])
def test_a_compaction_that_knew_of_no_redaction_brings_nothing_back(folder, monkeypatch, folded_before):
    """It read the records before, and writes its file while the redaction goes on."""
    if folded_before:
        compact(ledger=folder)
        Ledger(folder).append(make_run("third"))
    records = Ledger(folder).holdings().records
    carry_out = redacting._carry_out

    def carry_out_late(*given):
        monkeypatch.setattr(redacting, "_carry_out", carry_out)
        file = compaction.write_month(folder, "202311", records, {})
        retiring.retire(set(file.parent.glob("*.parquet")) - {file}, file)
        return carry_out(*given)

    monkeypatch.setattr(redacting, "_carry_out", carry_out_late)
    assert take_out(folder).remaining == ()
    held = Ledger(folder).holdings()
    assert (held.unredacted, held.findings) == ((), ())
    assert sorted((r.run.run_id, *r.run.tags.values()) for r in held.records)[:2] == [
        ("abcd-1",),
        ("other", "nobody"),
    ]
    assert verify(ledger=folder).sound


@pytest.mark.parametrize(
    "change", [{"schema_version": 99}, {"fields": ["run_id"]}, {"fields": ["energy.energy_j"]}]
)
@pytest.mark.parametrize("field", ["tags.team", "tags.none"])
@pytest.mark.parametrize("form", ["json", "month"])
def test_a_tombstone_that_is_not_carried_out_is_not_written_over(folder, change, field, form):
    """The new one would have its name: who asked, why, and what was to go would be lost."""
    Ledger(folder).append(make_run("abcd-2", tags={"owner": SECRET, "team": "v"}))
    if form == "month":
        compact(ledger=folder)
    (stored,) = [r for r in Ledger(folder).holdings().records if r.run.run_id == "abcd-2"]
    made = entomb(stored, ["tags.owner"], by="b", when_us=1, why="asked for")
    told = msgspec.json.encode({**msgspec.to_builtins(made), **change})
    file = folder / "redactions" / made.file_name
    file.parent.mkdir()
    file.write_bytes(told)
    with pytest.raises(RecordError, match="not carried out") as error:
        redact("abcd-2", [field], why="w", ledger=folder)
    assert error.value.where == str(file)
    assert file.read_bytes() == told
