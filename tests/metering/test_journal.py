"""The journal survives what happens to files: torn tails, flipped bytes, full disks."""

import stat
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.metering.journal import (
    Facts,
    JournalWriter,
    decode_line,
    encode_header,
    encode_line,
    parse,
    read,
    read_header,
)
from carbonlens.metering.recovery import recovered_run
from tests.metering.journals import header, look, write

HEAD = header()
LOOKS = [look(s, s / 2, Facts(units=Decimal(s)) if s % 3 == 0 else None) for s in range(12)]
LINES = [encode_line(HEAD), *map(encode_line, LOOKS)]
WHOLE = encode_header(HEAD) + b"".join(LINES[1:])


def test_what_was_written_is_read(tmp_path):
    path = write(tmp_path / "journal", HEAD, *LOOKS)
    journal = read(path)
    assert journal.header == HEAD
    assert journal.samples == tuple(each.sample for each in LOOKS)
    assert journal.facts == Facts(units=Decimal(9))
    assert journal.damaged == 0
    assert read_header(path) == HEAD


def test_each_line_is_json_of_its_own():
    import json

    for line in LINES:
        assert set(json.loads(line)) == {"crc", "line"}


def test_a_journal_is_its_owners_alone(tmp_path):
    path = write(tmp_path / "journal", HEAD)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_discarding_removes_the_file_and_later_writes_are_nothing(tmp_path):
    writer = JournalWriter(tmp_path, HEAD)
    writer.append(LOOKS[0])
    writer.sync()
    writer.discard()
    writer.append(LOOKS[1])
    writer.sync()
    assert list(tmp_path.iterdir()) == []


def untouched(damaged: bytes):
    """Return the sample lines that stand whole in a damaged file."""
    whole = damaged.split(b"\n")
    return [each.sample for each in LOOKS if encode_line(each)[:-1] in whole]


@given(st.integers(min_value=0, max_value=len(WHOLE)))
def test_any_truncation_loses_only_the_torn_line(length):
    journal = parse(WHOLE[:length].split(b"\n"))
    whole_lines = sum(1 for line in WHOLE[:length].split(b"\n")[:-1] if line)
    assert len(journal.samples) >= max(0, whole_lines - 2)
    assert journal.damaged <= 1
    if whole_lines:
        assert journal.header == HEAD
        recovered_run(journal.header, journal)


@settings(max_examples=300)
@given(st.integers(min_value=0, max_value=len(WHOLE) - 1), st.integers(min_value=1, max_value=255))
def test_any_flipped_byte_loses_only_its_own_lines(at, flip):
    damaged = bytearray(WHOLE)
    damaged[at] ^= flip
    journal = parse(bytes(damaged).split(b"\n"))
    assert list(journal.samples) == untouched(bytes(damaged))
    assert len(journal.samples) >= len(LOOKS) - 2
    assert journal.damaged >= 1
    # The header stands twice, so one flipped byte never costs the run.
    assert journal.header == HEAD
    recovered_run(journal.header, journal)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_no_line_and_no_crash(noise):
    assert decode_line(noise) is None
    assert parse(noise.split(b"\n")).header is None


def test_a_line_of_another_kind_with_a_good_checksum_is_skipped():
    import zlib

    body = b'{"type":"of tomorrow","x":1}'
    line = b'{"crc":"%08x","line":%s}' % (zlib.crc32(body), body)
    assert decode_line(line) is None


def test_a_folder_that_cannot_be_made_is_an_os_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        JournalWriter(tmp_path / "file" / "journal", HEAD)


def open_files():
    import os

    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # names alone are wanted, and a hundred thousand Path objects cost


def test_a_header_that_cannot_be_encoded_leaves_no_file_and_nothing_open(tmp_path):
    import msgspec
    import numpy as np

    wrong = header(run=msgspec.structs.replace(HEAD.run, repeat=np.int64(1)))
    before = open_files()
    with pytest.raises(TypeError):
        JournalWriter(tmp_path, wrong)
    assert (list(tmp_path.iterdir()), open_files()) == ([], before)


def test_a_disk_that_is_full_at_the_header_leaves_no_file_and_nothing_open(tmp_path):
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = open_files()
    # Room for a part of the header: the disk takes that, and refuses the rest.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(LINES[0]) // 2, limit[1]))
    try:
        with pytest.raises(OSError, match="large"):
            JournalWriter(tmp_path, HEAD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (list(tmp_path.iterdir()), open_files()) == ([], before)


def test_a_close_while_another_thread_writes_leaves_the_file_to_it(tmp_path):
    writer = JournalWriter(tmp_path, HEAD)
    with writer._lock:
        writer.close()
    writer.append(LOOKS[0])
    assert len(read(writer.path).samples) == 1
    writer.close()
