"""What makes two records one, and which record of a chain of corrections counts."""

import itertools
import os
import socket

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.identity import uuid7, uuid7_ms
from carbonlens.ledger.records import Stored, content_sha256, current, decode, family_of, minified, unique
from carbonlens.ledger.store import Ledger
from tests.ledger.test_store import make_run


def stored(run, file="f"):
    return Stored(run=run, text=msgspec.json.encode(run), file=file)


def ids(runs):
    return [r.run_id for r in runs]


def test_the_hash_is_of_the_content_not_of_its_indentation(tmp_path):
    run = make_run(tags={"a": "ä\u2028 b"})
    compact = msgspec.json.encode(run)
    file = Ledger(tmp_path).append(run)
    assert file.read_bytes() != compact
    assert content_sha256(file.read_bytes()) == content_sha256(compact)
    assert content_sha256(msgspec.json.encode(make_run(energy="1.6"))) != content_sha256(compact)


def test_equal_records_count_once_without_words():
    kept, findings = unique([stored(make_run(), "a"), stored(make_run(), "b")])
    assert (len(kept), findings) == (1, [])


def test_other_content_under_one_id_counts_once_and_is_said():
    kept, findings = unique([stored(make_run(), "a"), stored(make_run(energy="9"), "b")])
    assert [r.file for r in kept] == ["a"]
    assert [(f.code, f.severity, f.file) for f in findings] == [("CL505", "error", "b")]


def test_imported_ids_are_unique_within_a_study_only():
    kept, findings = unique([stored(make_run(study="a")), stored(make_run(study="b", energy="2"))])
    assert (len(kept), findings) == (2, [])


def test_a_chain_counts_its_last_record():
    runs = [make_run("a"), make_run("b", supersedes="a"), make_run("c", supersedes="b"), make_run("d")]
    for order in itertools.permutations(runs):
        counting, findings = current(order)
        assert sorted(ids(counting)) == ["c", "d"]
        assert findings == ()
    assert ids(family_of(runs[0], runs)) == ["a", "b", "c"]


def test_a_record_corrected_twice_counts_once_the_latest():
    early, late = uuid7(1_000, b"\x01" * 10), uuid7(2_000, b"\x01" * 10)
    runs = [make_run("a"), make_run(late, supersedes="a"), make_run(early, supersedes="a")]
    counting, findings = current(runs)
    assert ids(counting) == [late]
    assert [(f.code, f.severity) for f in findings] == [("CL507", "error")]


def test_a_fork_further_down_counts_once_too():
    tail = make_run("d", supersedes="b")
    runs = [make_run("a"), make_run("b", supersedes="a"), make_run("c", supersedes="a"), tail]
    counting, findings = current(runs)
    assert ids(counting) == ["d"]
    assert [f.code for f in findings] == ["CL507"]


def test_a_circle_of_corrections_counts_once_and_is_said():
    runs = [make_run("a", supersedes="b"), make_run("b", supersedes="a"), make_run("c", supersedes="c")]
    counting, findings = current(runs)
    assert ids(counting) == ["b", "c"]
    assert [f.code for f in findings] == ["CL508", "CL508"]


def test_a_correction_of_an_imported_run_means_its_own_study():
    runs = [make_run("1", study="a"), make_run("1", study="b"), make_run("x", study="b", supersedes="1")]
    counting, _ = current(runs)
    assert [(r.study, r.run_id) for r in counting] == [("a", "1"), ("b", "x")]


@given(st.lists(st.one_of(st.none(), st.integers(0, 11)), max_size=12))
def test_each_family_of_corrections_counts_exactly_once(links):
    """Whatever corrects whatever: as many runs count as there are connected families."""
    runs = [make_run(f"r{i}", supersedes=None if t is None else f"r{t}") for i, t in enumerate(links)]
    counting, _ = current(runs)
    families = {frozenset(ids(family_of(r, runs))) for r in runs}
    assert sum(len(f) for f in families) == len(runs)
    assert len(counting) == len(families)
    assert all(len(f & set(ids(counting))) == 1 for f in families)


def test_many_corrections_do_not_slow_reading_down():
    runs = [make_run(f"r{i}", supersedes=f"r{i - 1}" if i else None) for i in range(20_000)]
    counting, _ = current(runs)
    assert ids(counting) == ["r19999"]


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"run_id": 1}', b"\xff", b'{"schema_version": 1}'])
def test_what_is_no_record_is_refused(text):
    with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
        decode(text)


@given(ms=st.integers(0, (1 << 48) - 1), noise=st.binary(min_size=10, max_size=10))
def test_an_id_tells_when_it_was_made(ms, noise):
    assert uuid7_ms(uuid7(ms, noise)) == ms


@pytest.mark.parametrize("text", ["", "r1", "12345678-1234-4234-8234-123456789012", "0" * 32])
def test_other_ids_tell_nothing(text):
    assert uuid7_ms(text) is None


@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "folder"])
def test_what_is_no_regular_file_keeps_no_reader_waiting(tmp_path, kind, monkeypatch):
    ledger = Ledger(tmp_path)
    file = ledger.append(make_run()).with_name("other.json")
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "folder":
        file.mkdir()
    else:
        # The path of a socket is short.
        monkeypatch.chdir(file.parent)
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(file.name)
    view = ledger.view()
    assert len(view.runs) == 1
    assert [(f.code, f.file) for f in view.findings] == [("CL501", str(file))]


@pytest.mark.parametrize("start", ["[", '{"a":', '{"tags":{"a":'])
def test_a_deeply_nested_file_is_a_damaged_record(tmp_path, start):
    ledger = Ledger(tmp_path)
    file = ledger.append(make_run()).with_name("deep.json")
    file.write_text(start * 100_000)
    view = ledger.view()
    assert len(view.runs) == 1
    assert [(f.code, f.file) for f in view.findings] == [("CL501", str(file))]
    with pytest.raises(msgspec.DecodeError, match="nested"):
        minified(b"[" * 100_000)
