"""The records that travel with a quarter's report: what is packed, what is refused, of which state."""

from __future__ import annotations

import errno
import io
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from carbonlens.app import sustainability_taken
from carbonlens.app.ledger_care import compact, redact
from carbonlens.app.sustainability_carried import Packed, missing_of, records_of, unpack
from carbonlens.app.sustainability_enclosed import Basis, Taken, words_of
from carbonlens.app.sustainability_taken import gathered_with_files
from carbonlens.errors import InputFileError, RecordError, UnwritableError
from carbonlens.ledger import retiring
from carbonlens.ledger.store import Ledger
from tests.ledger.test_redaction import PLANTED, holding, secret_run
from tests.ledger.test_store import make_run

MANY = 1 << 24
END_US = 1_701_388_800_000_000
"""The end of November 2023, in which the runs lie."""


def unpacked(packed, folder):
    unpack(packed.content, folder, "r.pdf")
    return folder


@pytest.mark.parametrize("form", ["json", "copy", "month", "import"])
def test_what_a_tombstone_takes_out_leaves_no_house(tmp_path, form):
    ledger = tmp_path / "ledger"
    if form == "import":
        file = Ledger(ledger).add_batch([secret_run()], source_sha256="ab" * 32, importer="t-1")
    else:
        file = Ledger(ledger).append(secret_run())
    if form == "month":
        compact(ledger=ledger)
        (file,) = (ledger / "months").rglob("*.parquet")
    before = file.read_bytes()
    assert holding(unpacked(records_of(ledger, MANY), tmp_path / "before"))
    redact("secret-run", ["tags.owner", "origin.args", "workload"], why="asked for", ledger=ledger)
    assert holding(unpacked(records_of(ledger, MANY), tmp_path / "after")) == []
    # A host that was late, or a backup, brings the original back: readers take it out each time.
    (file.with_name("copy.json") if form == "copy" else file).write_bytes(before)
    assert records_of(ledger, MANY) == Packed(why="redacted")
    redact("secret-run", ["tags.owner", "origin.args", "workload"], why="asked for", ledger=ledger)
    again = records_of(ledger, MANY)
    assert (bool(again.content), again.why) == (True, "")
    assert holding(unpacked(again, tmp_path / "again")) == []


@pytest.mark.parametrize("name", ["redactions/ab.json", "runs/202311/cut.json", "imports/ab.parquet"])
def test_what_cannot_be_read_may_hold_what_was_taken_out(tmp_path, name):
    Ledger(tmp_path).append(secret_run())
    redact("secret-run", ["tags.owner"], why="asked for", ledger=tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"{cut " + PLANTED.encode())
    assert records_of(tmp_path, MANY) == Packed(why="redacted")


def test_only_what_readers_take_records_from_is_packed(tmp_path):
    ledger = tmp_path / "ledger"
    Ledger(ledger).append(make_run("a"))
    for name in ("runs/202311/a.json~", "runs/202311/.b.json", "runs/202311/deeper/c.json", "runs/d.json",
                 "imports/secret", "imports/x.csv", "redactions/old.bak", "samples/20231101/s.parquet",
                 "months/202311/lonely.json", "studies/x.toml"):  # fmt: skip
        (ledger / name).parent.mkdir(parents=True, exist_ok=True)
        (ledger / name).write_text("{}")
    with zipfile.ZipFile(io.BytesIO(records_of(ledger, MANY).content)) as archive:
        assert archive.namelist() == ["runs/202311/a.json"]


def test_a_retired_file_of_a_month_stays_behind(tmp_path):
    Ledger(tmp_path).append(make_run("a"))
    compact(ledger=tmp_path)
    (file,) = (tmp_path / "months").rglob("*.parquet")
    old = file.with_name("old.parquet")
    shutil.copy(file, old)
    retiring.retire([old], file)
    with zipfile.ZipFile(io.BytesIO(records_of(tmp_path, MANY).content)) as archive:
        names = {Path(n).name for n in archive.namelist()}
    assert names == {file.name, file.with_suffix(".json").name}


@pytest.mark.parametrize("run_id", ["a:b", "a\\b", "a\u200bb"])
def test_a_record_of_a_name_that_verify_refuses_keeps_all_behind(tmp_path, run_id):
    """Without it alone, the figures would not follow from the others."""
    Ledger(tmp_path).append(make_run("a"))
    Ledger(tmp_path).append(make_run(run_id))
    assert records_of(tmp_path, MANY) == Packed(why="unnamed")


@pytest.mark.parametrize("why", ["redacted", "unnamed", "changing"])
def test_the_report_says_why_records_stay_behind(why):
    words = words_of(3, why)
    assert "records stay behind" in words
    assert words not in (words_of(3), *(words_of(3, w) for w in {"redacted", "unnamed", "changing"} - {why}))
    said = {"period": "2026Q3", "present_us": 1, "factors_sha256": "", "records_left_out": why}
    assert msgspec.convert(said, Basis).records_left_out == why
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(said | {"records_left_out": "assured by an auditor"}, Basis)


def packed(name="runs/a.json", **more):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for one in (name, *more.get("others", ())):
            entry = zipfile.ZipInfo(one)
            entry.compress_type = more.get("by", zipfile.ZIP_STORED)
            archive.writestr(entry, b"{}")
    return made.getvalue()


def encrypted():
    """An archive whose entry says that it is encrypted."""
    content = bytearray(packed())
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + at] |= 1
    return bytes(content)


HOSTILE = {
    "encrypted": encrypted(),
    "lzma": packed(by=zipfile.ZIP_LZMA),
    "bzip2": packed(by=zipfile.ZIP_BZIP2),
    "cut lzma": packed(by=zipfile.ZIP_LZMA).replace(b"\x09\x04\x05\x00", b"\xff\xff\xff\xff"),
    "file and folder": packed("runs/a", others=["runs/a/b.json"]),
    "folder and file": packed("runs/a/b.json", others=["runs/a"]),
    "long name": packed(f"runs/{'x' * 300}.json"),
    "nul": packed("runs/a.json").replace(b"runs/a.json", b"runs/\0.json"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused_in_words(tmp_path, kind):
    with pytest.raises(InputFileError) as refused:
        unpack(HOSTILE[kind], tmp_path / "ledger", "r.pdf")
    assert refused.value.where == "r.pdf"


def test_a_full_disk_is_told_as_such(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UnwritableError, match="No space left"):
        unpack(packed(), tmp_path / "ledger", "r.pdf")


def test_carried_records_are_found_in_whatever_file_the_ledger_has_them(tmp_path):
    ledger, carried = tmp_path / "ledger", tmp_path / "carried"
    for name in ("a", "b", "secret-run"):
        Ledger(ledger).append(secret_run(name))
    unpacked(records_of(ledger, MANY), carried)
    assert missing_of(carried, ledger) == 0
    compact(ledger=ledger)
    Ledger(ledger).append(make_run("later"))
    assert missing_of(carried, ledger) == 0
    redact("secret-run", ["tags.owner"], why="asked for", ledger=ledger)
    assert missing_of(carried, ledger) == 1
    for file in [*(ledger / "months").rglob("*.parquet")]:
        file.unlink()
    assert missing_of(carried, ledger) == 3


def gathering(monkeypatch, ledger, at_each):
    """Have gathering and taking work on a ledger of runs, with something done to it in between."""
    rounds = []

    def gather(*_, **__):
        held = tuple(sorted(f.stem for f in ledger.rglob("*.json")))
        at_each(len(rounds))
        rounds.append(held)
        return SimpleNamespace(end_us=END_US, held=held)

    def take(gathered, *, with_records):
        assert with_records
        return Taken(files=(), records=records_of(ledger, MANY))

    monkeypatch.setattr(sustainability_taken, "gather", gather)
    monkeypatch.setattr(sustainability_taken, "take", take)
    return rounds


def names_in(taken):
    with zipfile.ZipFile(io.BytesIO(taken.records.content)) as archive:
        return tuple(sorted(Path(n).stem for n in archive.namelist()))


def test_a_run_sealed_while_the_report_is_made_is_in_both_or_in_none(tmp_path, monkeypatch):
    Ledger(tmp_path).append(make_run("first"))
    rounds = gathering(monkeypatch, tmp_path, lambda n: n or Ledger(tmp_path).append(make_run("meanwhile")))
    gathered, taken = gathered_with_files("2023Q4", ledger=tmp_path)
    assert len(rounds) == 2
    assert names_in(taken) == gathered.held == ("first", "meanwhile")


def test_a_run_after_the_quarter_does_not_have_it_gathered_again(tmp_path, monkeypatch):
    Ledger(tmp_path).append(make_run("first"))
    rounds = gathering(
        monkeypatch, tmp_path, lambda n: Ledger(tmp_path).append(make_run("later", start_us=END_US))
    )
    _, taken = gathered_with_files("2023Q4", ledger=tmp_path)
    assert (len(rounds), taken.records.why) == (1, "")


def test_a_ledger_that_never_rests_keeps_its_records(tmp_path, monkeypatch):
    gathering(monkeypatch, tmp_path, lambda n: Ledger(tmp_path).append(make_run(f"run-{n}")))
    _, taken = gathered_with_files("2023Q4", ledger=tmp_path)
    assert taken.records == Packed(why="changing")


@pytest.mark.parametrize("times", [1, 9])
def test_a_file_that_goes_away_is_looked_for_again_and_told(tmp_path, monkeypatch, times):
    Ledger(tmp_path).append(make_run("first"))
    rounds = gathering(monkeypatch, tmp_path, lambda n: None)
    whole = sustainability_taken.take

    def take(gathered, **given):
        if len(rounds) <= times:
            raise RecordError("a file went away", where="runs/a.json", mend="try again")
        return whole(gathered, **given)

    monkeypatch.setattr(sustainability_taken, "take", take)
    if times == 1:
        assert names_in(gathered_with_files("2023Q4", ledger=tmp_path)[1]) == ("first",)
        return
    with pytest.raises(RecordError, match="3 times in a row") as refused:
        gathered_with_files("2023Q4", ledger=tmp_path)
    assert refused.value.where == "runs/a.json"
