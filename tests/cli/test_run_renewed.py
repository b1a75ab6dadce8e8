"""``run`` while its command moves or renews the package: the exit code stands, a line says what is lost."""

import shutil
from pathlib import Path

import pytest

import carbonlens
from carbonlens.cli import run_plain

HALF_WRITTEN = "def ("
TO_SHOW = (*run_plain._AFTERWARDS, run_plain._AS_JSON)


def links(folder, made):
    """Make a folder of links to what another one holds."""
    made.mkdir()
    for entry in folder.iterdir():
        (made / entry.name).symlink_to(entry)


@pytest.fixture
def package(tmp_path):
    """Return a package of links that the test may spoil; the shell's folder comes first in its path."""
    made = tmp_path / "carbonlens"
    links(Path(carbonlens.__file__).parent, made)
    return made


def spoil(package, name, text):
    """Make a module's file half a file, or none."""
    _, folder, leaf = name.split(".")
    whole = (package / folder).readlink()
    (package / folder).unlink()
    links(whole, package / folder)
    file = package / folder / f"{leaf}.py"
    file.unlink()
    if text is not None:
        file.write_text(text)


def lines(done):
    return [line for line in done.stderr.splitlines() if line]


@pytest.mark.parametrize("text", [None, HALF_WRITTEN], ids=["gone", "half written"])
@pytest.mark.parametrize("name", TO_SHOW)
def test_a_view_that_cannot_be_loaded_takes_neither_exit_code_nor_record(shell, package, name, text):
    spoil(package, name, text)
    done = shell("run", "--json", "--ledger", "kept", "--", "sh", "-c", "exit 7", code=7)
    (line,) = lines(done)
    assert line.startswith("carbonlens: what the run used cannot be shown (")
    assert "moved or renewed" in line
    assert len(list((shell.folder / "kept").rglob("*.json"))) == 1


@pytest.mark.parametrize(
    ("name", "seconds"), [("carbonlens.ledger.store", 0), ("carbonlens.ledger.layout", 0.5)]
)
def test_a_record_that_cannot_be_stored_is_said_and_recovered_later(shell, package, name, seconds):
    spoil(package, name, None if seconds else HALF_WRITTEN)
    words = f"sleep {seconds}; exit 7"
    done = shell("run", "--ledger", "kept", "--", "sh", "-c", words, code=7)
    said, shown = lines(done)
    assert "what stores a run cannot be loaded" in said
    assert "moved or renewed" in said
    assert "a later command recovers" in said
    assert shown.endswith("the run was not saved")
    shutil.rmtree(package)  # the package that these tests are of comes next in the path
    (run,) = shell.json("runs", "--ledger", "kept")["runs"]
    assert run["status"] == "recovered"


@pytest.mark.parametrize("wait", ["", "sleep 1; "], ids=["at once", "later"])
def test_a_command_that_moves_the_package_away_keeps_its_exit_code(shell, package, wait):
    words = f"{wait}mv {package} {package}.away; exit 7"
    done = shell("run", "--ledger", "kept", "--", "sh", "-c", words, code=7)
    assert "Traceback" not in done.stderr
    assert all(line.startswith("carbonlens: ") for line in lines(done))
    if wait:  # all was loaded by then
        assert "saved run" in done.stderr


def test_what_few_runs_need_is_loaded_while_the_command_works(shell, package):
    words = f"sleep 1; mv {package} {package}.away; exit 7"
    done = shell("run", "--json", "--trace", "t.csv", "--ledger", "kept", "--", "sh", "-c", words, code=7)
    assert done.stderr == ""
    assert '"schema":"carbonlens/run/1"' in done.stdout
    assert (shell.folder / "t.csv").exists()
