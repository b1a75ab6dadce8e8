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

from carbonlens.app import sustainability_report, sustainability_taken
from carbonlens.app.explain_records import Records
from carbonlens.app.ledger_care import compact, redact
from carbonlens.app.report_enclosed import without_any_host_name, without_host_names
from carbonlens.app.runs import find_run
from carbonlens.app.sustainability_carried import Packed, missing_of, records_of, unpack
from carbonlens.app.sustainability_enclosed import Basis, Taken, words_of
from carbonlens.app.sustainability_report import report_sustainability
from carbonlens.app.sustainability_taken import gathered_with_files
from carbonlens.domain.identity import host_pseudonym, is_plain_host
from carbonlens.errors import InputFileError, RecordError, SelectionError, UnwritableError
from carbonlens.ledger import parquet, retiring
from carbonlens.ledger.store import Ledger
from carbonlens.metering.host import place_of_pids, this_host
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


WHY = ("redacted", "unnamed", "changing", "hosts")


@pytest.mark.parametrize("why", WHY)
def test_the_report_says_why_records_stay_behind(why):
    words = words_of(3, why)
    assert "records stay behind" in words
    assert words not in (words_of(3), *(words_of(3, w) for w in set(WHY) - {why}))
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

    def take(gathered, wanted):
        assert wanted.records
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


@pytest.mark.parametrize("start_us", [END_US - 7_200_000_000, END_US, END_US + 40 * 86_400_000_000])
def test_a_run_sealed_meanwhile_has_it_gathered_again_whenever_it_ran(tmp_path, monkeypatch, start_us):
    """One of the next quarter may share a device with a run over the quarter's end, and so move its part."""
    Ledger(tmp_path).append(make_run("first"))
    rounds = gathering(
        monkeypatch,
        tmp_path,
        lambda n: n or Ledger(tmp_path).append(make_run("later", start_us=start_us, end_us=start_us + 60)),
    )
    gathered, taken = gathered_with_files("2023Q4", ledger=tmp_path)
    assert (len(rounds), taken.records.why) == (2, "")
    assert names_in(taken) == gathered.held == ("first", "later")


def test_a_ledger_that_never_rests_keeps_its_records(tmp_path, monkeypatch):
    gathering(monkeypatch, tmp_path, lambda n: Ledger(tmp_path).append(make_run(f"run-{n}")))
    _, taken = gathered_with_files("2023Q4", ledger=tmp_path)
    assert taken.records == Packed(why="changing")


@pytest.mark.parametrize("part", ["gather", "take"])
@pytest.mark.parametrize("times", [1, 9])
def test_a_file_that_goes_away_is_looked_for_again_and_told(tmp_path, monkeypatch, part, times):
    Ledger(tmp_path).append(make_run("first"))
    gathering(monkeypatch, tmp_path, lambda n: None)
    whole, asked = getattr(sustainability_taken, part), []

    def going_away(*given, **more):
        asked.append(given)
        if len(asked) <= times:
            raise RecordError("a file went away", where="runs/a.json", mend="try again")
        return whole(*given, **more)

    monkeypatch.setattr(sustainability_taken, part, going_away)
    if times == 1:
        assert names_in(gathered_with_files("2023Q4", ledger=tmp_path)[1]) == ("first",)
        return
    with pytest.raises(RecordError, match="3 times in a row") as refused:
        gathered_with_files("2023Q4", ledger=tmp_path)
    assert refused.value.where == "runs/a.json"
    assert len(asked) == 3


def batches(ledger, hosts):
    """Write a batch for each host: a name, or a pseudonym."""
    for number, host in enumerate(hosts):
        run = make_run(f"run-{number}", host_id=host)
        Ledger(ledger).add_batch([run], source_sha256=f"{number:02}" * 32, importer="t-1")


@pytest.mark.parametrize("form", ["json", "import", "month"])
@pytest.mark.parametrize(
    ("hosts", "plain"),
    [
        ([None, host_pseudonym("node7")], 0),
        (["build-node7.acme.internal", host_pseudonym("node7")], 1),
        (["node7", "node7", "node8", None], 2),
        (["A" * 32], 1),
        (["0" * 31], 1),
    ],
)
def test_records_that_name_hosts_travel_only_where_the_user_says_so(tmp_path, form, hosts, plain):
    ledger = tmp_path / "ledger"
    if form == "import":
        batches(ledger, hosts)
    else:
        for number, host in enumerate(hosts):
            Ledger(ledger).append(make_run(f"run-{number}", host_id=host))
    if form == "month":
        compact(ledger=ledger)
    found = records_of(ledger, MANY)
    assert (bool(found.content), found.why, found.hosts) == (not plain, "hosts" if plain else "", plain)
    assert records_of(ledger, MANY, with_host_names=True).content


def test_what_this_machine_records_of_itself_is_no_plain_name():
    host = this_host()
    assert not any(map(is_plain_host, (host.host_id, host.machine, place_of_pids())))


def test_tables_of_runs_hold_pseudonyms_in_the_place_of_hosts_names():
    names = {"host_id": "node7", "host": "node7", "machine": "node7", "run_id": "smi-ab-node7"}
    row = {**names, "parent_run_id": None, "job_id": "job-node7", "energy_j": 1}
    hidden = without_host_names(row)
    stand_in = host_pseudonym("node7")
    assert {hidden[n] for n in ("host_id", "host", "machine")} == {stand_in}
    assert hidden["run_id"] == f"smi-ab-{stand_in}"
    assert {n: hidden[n] for n in row.keys() - names.keys()} == {n: row[n] for n in row.keys() - names.keys()}
    assert without_host_names(hidden) == hidden
    assert without_host_names({"host_id": None, "run_id": "a"}) == {"host_id": None, "run_id": "a"}


@pytest.mark.parametrize(
    ("host", "file", "said"),
    [
        ("gpu07.internal", "log-gpu07.internal.csv", "log-{}.csv"),
        ("gpu07.internal", "runs/GPU07_2026.csv", "runs/{}_2026.csv"),
        ("gpu07", "gpu07.gpu07x.csv", "{}.gpu07x.csv"),
        ("node-1", "node-1-node-12.csv", "{}-node-12.csv"),
        ("10.0.0.7", "2026-10-01 10.0.0.7.csv", "2026-10-01 {}.csv"),
        ("a+b(", "x a+b(.csv", "x {}.csv"),
        ("s", "\u017f.csv", "{}.csv"),
        ("Straße", "STRASSE straße.csv", "STRASSE {}.csv"),
        ("gpu07", "august.csv", "august.csv"),
        (host_pseudonym("x"), f"{host_pseudonym('x')}.csv", f"{host_pseudonym('x')}.csv"),
    ],
)
def test_the_name_of_a_source_file_tells_no_host_either(host, file, said):
    (row,) = without_any_host_name([{"host": host, "run_id": "r", "source_file": file}])
    assert row["source_file"] == said.format(host_pseudonym(host))
    again = without_host_names({"host": host, "run_id": "r", "source_file": file})
    assert again["source_file"] == row["source_file"]


def test_a_file_of_one_host_may_be_named_after_another_one():
    rows = [{"host": h, "run_id": "r", "source_file": "node1 and node2.csv"} for h in ("node1", "node2")]
    for row in without_any_host_name(rows):
        assert "node" not in row["source_file"]


def test_a_first_label_of_two_hosts_is_neither_of_them():
    hosts = ("gpu07.a.org", "gpu07.b.org")
    rows = [{"host": h, "run_id": "r", "source_file": "log-gpu07.csv"} for h in hosts]
    for row in without_any_host_name(rows):
        assert row["source_file"] == f"log-{host_pseudonym('gpu07')}.csv"
    whole = [{"host": h, "run_id": "r", "source_file": f"{h}.csv"} for h in hosts]
    for host, row in zip(hosts, without_any_host_name(whole), strict=True):
        assert row["source_file"] == f"{host_pseudonym(host)}.csv"


@pytest.mark.parametrize("host", ["node7", "node-7.example.org", "a--b"])
def test_who_holds_the_ledger_finds_a_run_by_the_id_that_a_table_gives_it(tmp_path, host):
    for name in (f"smi-ab-{host}", f"smi-ab-other{host}", "smi-ab"):
        Ledger(tmp_path).append(msgspec.structs.replace(make_run(name), host_id=host))
    hidden = without_host_names({"host": host, "run_id": f"smi-ab-{host}"})["run_id"]
    assert host not in hidden
    assert find_run(hidden, ledger=tmp_path).run_id == f"smi-ab-{host}"
    records = Records(ledger=tmp_path)
    assert records.find(f"run:{hidden}") == records.find(f"run:smi-ab-{host}")
    for other in (f"smi-ac-{hidden[-32:]}", f"smi-ab-{host_pseudonym('nobody')}", hidden[-32:]):
        with pytest.raises(SelectionError):
            find_run(other, ledger=tmp_path)
        assert records.find(f"run:{other}") is None


def test_a_parent_on_another_host_is_named_as_its_own_row_is():
    rows = [
        {"host_id": "node1", "run_id": "p-node1", "parent_run_id": "p-node-2"},
        {"host_id": "node-2", "run_id": "p-node-2", "parent_run_id": None},
    ]
    child, parent = without_any_host_name(rows)
    assert child["parent_run_id"] == parent["run_id"]
    assert not [text for row in (child, parent) for text in row.values() if text and "node" in text]


def test_files_of_a_ledger_are_read_by_one_database(tmp_path, monkeypatch):
    """Opening one takes longer than reading a small batch."""
    ledger, carried = tmp_path / "ledger", tmp_path / "carried"
    batches(ledger, [None] * 4)
    Ledger(ledger).append(secret_run())
    redact("secret-run", ["tags.owner"], why="asked for", ledger=ledger)
    opened, connect = [], parquet.connect

    def counting():
        opened.append(1)
        return connect()

    monkeypatch.setattr(parquet, "connect", counting)
    unpacked(records_of(ledger, MANY), carried)
    assert len(opened) == 1
    assert missing_of(carried, ledger) == 0
    assert len(opened) == 2


@pytest.mark.parametrize(
    ("formats", "files", "records"),
    [(["md"], False, False), (["xlsx", "md"], False, False), (["json"], False, True),
     (["html"], False, True), (["md", "pdf"], True, True)],
)  # fmt: skip
def test_only_what_the_formats_carry_is_taken(tmp_path, monkeypatch, formats, files, records):
    asked = []

    def gathered(*_, wanted, **__):
        asked.append(wanted)
        raise RecordError("enough", mend="none")

    monkeypatch.setattr(sustainability_report, "gathered_with_files", gathered)
    monkeypatch.setattr(sustainability_report, "start_rendering", lambda _: None)
    with pytest.raises(RecordError, match="enough"):
        report_sustainability("2023Q4", formats=formats, out_dir=tmp_path, ledger=tmp_path)
    assert [(w.files, w.records) for w in asked] == [(files, records)]
