"""Size and hash of files and folders."""

import hashlib
import os
from pathlib import Path

import pytest

from carbonlens.instrument import artefact_files
from carbonlens.instrument.artefact_figures import Allowance, UntoldError
from tests.instrument.looking_at import looked, said


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "model"
    (place / "sub").mkdir(parents=True)
    (place / "weights.bin").write_bytes(b"\0" * 1000)
    (place / "sub" / "config.json").write_text("{}")
    return place


def test_a_file_has_the_hash_that_sha256sum_prints(tmp_path):
    file = tmp_path / "model.pt"
    file.write_bytes(os.urandom(9_000_000))
    found, notes = said(file)
    assert (found.kind, found.bytes, notes) == ("file", 9_000_000, [])
    assert found.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert looked(str(file)) == found
    (tmp_path / "link").symlink_to(file)
    assert looked(tmp_path / "link") == found


def test_a_missing_file_is_said(tmp_path):
    found, notes = said(tmp_path / "nothing.bin")
    assert (found.bytes, found.sha256) == (None, None)
    assert notes == ["CL140 input model: nothing is known of it (nothing is there)"]


def test_what_is_no_file_is_never_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        found, notes = said(path)
        assert found.bytes is None
        assert "neither a file nor a folder" in notes[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_cannot_be_read_is_said(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(b"x")
    file.chmod(0)
    assert "PermissionError" in said(file)[1][0]


def test_a_folder_is_hashed_by_names_and_contents_alone(folder, tmp_path):
    found, notes = said(folder)
    assert (found.kind, found.bytes, notes) == ("folder", 1002, [])
    twin = tmp_path / "twin"
    (twin / "sub").mkdir(parents=True)
    (twin / "sub" / "config.json").write_text("{}")
    (twin / "weights.bin").write_bytes(b"\0" * 1000)
    os.utime(twin / "weights.bin", (1, 1))
    assert looked(twin).sha256 == found.sha256
    (twin / "weights.bin").write_bytes(b"\0" * 999 + b"\1")
    assert looked(twin).sha256 != found.sha256


@pytest.mark.parametrize(
    "change",
    [
        lambda p: (p / "weights.bin").rename(p / "w.bin"),
        lambda p: (p / "empty").mkdir(),
        lambda p: (p / "weights.bin").rename(p / "sub" / "weights.bin"),
        lambda p: (p / "loop").symlink_to(p),
    ],
)
def test_a_renamed_moved_or_added_entry_changes_the_hash(folder, change):
    before = looked(folder).sha256
    change(folder)
    after, notes = said(folder)
    assert (after.bytes, notes) == (1002, [])
    assert after.sha256 != before


def test_a_pipe_in_a_folder_makes_it_unknown(folder):
    os.mkfifo(folder / "pipe")
    found, notes = said(folder)
    assert (found.bytes, found.sha256) == (None, None)
    assert "it is no regular file" in notes[0]


class Meddling(Allowance):
    """An allowance that changes a folder at its third check, while the folder is being read."""

    def __init__(self, change):
        super().__init__()
        self.change, self.checks = change, 0

    def check(self):
        self.checks += 1
        if self.checks == 3:
            self.change()
        super().check()


@pytest.mark.parametrize(
    "change",
    [
        lambda p: (p / "weights.bin").write_bytes(b"other"),
        lambda p: (p / "new").write_bytes(b"x"),
        lambda p: (p / "sub" / "config.json").unlink(),
    ],
)
def test_a_folder_that_changes_meanwhile_has_no_hash(folder, change):
    meddling = Meddling(lambda: change(folder))
    with pytest.raises((UntoldError, FileNotFoundError)):
        artefact_files.read_folder(folder, meddling)
    assert meddling.checks >= 3


def test_a_file_that_grows_meanwhile_has_no_hash(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"x" * 100)

    class Growing(Allowance):
        grown = False

        def check(self):
            if not self.grown:
                self.grown = True
                with file.open("ab") as stream:
                    stream.write(b"x")

    with pytest.raises(UntoldError, match="changed while it was read"):
        artefact_files.read_file(file, Growing())


def test_an_empty_path_is_not_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "private").write_bytes(b"1")
    monkeypatch.chdir(tmp_path)
    found, notes = said("")
    assert (found.bytes, found.sha256) == (None, None)
    assert notes == ["CL140 input model: nothing is known of it (its path is empty)"]
