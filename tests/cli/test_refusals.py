"""What cannot be answered ends in one line and exit code 2, never in a traceback or in silence."""

import os
import subprocess
import sys

import pytest


def one_line(done):
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
@pytest.mark.parametrize(
    "arguments",
    [("doctor",), ("doctor", "--json"), ("runs",), ("runs", "--json"), ("calibrate", "--list", "--json")],
    ids=" ".join,
)
def test_a_stdout_that_takes_nothing_is_said(shell, redirect, arguments):
    line = [sys.executable, "-m", "carbonlens.cli.main", *arguments]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirect}', "sh", *line],
        cwd=shell.folder,
        env={**shell.env, "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "the output cannot be written" in one_line(done)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("runs", "--study", "nosuch"), "no run of a study 'nosuch'"),
        (("runs", "--ledger", "nope"), "not there"),
        (("runs", "--ledger", "afile"), "afile"),
        (("runs", "--limit", "0"), "--limit"),
        (("runs", "--limit", "-1"), "--limit"),
        (("run", "--repeat", "-1", "--", "true"), "--repeat"),
        (("runs", "tag", "latest", "team=a", "step=3"), "runs supersede latest --by step="),
        (("calibrate", "cpu", "--idle-w", "nan", "--full-w", "90"), "no power"),
        (("calibrate", "cpu", "--idle-w", "50", "--full-w", "inf"), "no power"),
        (("calibrate", "cpu", "--idle-w", "50", "--full-w", "1e300"), "no power"),
        (("calibrate", "cpu", "--against", "watts:-1,9"), "no power"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_request_that_makes_no_sense(shell, arguments, said):
    (shell.folder / "afile").write_text("a file")
    assert said in one_line(shell(*arguments, code=2))


@pytest.mark.parametrize(
    "text",
    ["a=" + "[" * 100_000, "x = 1\n" * 100_000, f"leave_out = ['{'y' * 100_000}']", f"{'k' * 100_000} = 1"],
    ids=["deep", "large", "long value", "long key"],
)
def test_a_sources_file_that_is_no_such_file(shell, text):
    (shell.folder / "s.toml").write_text(text)
    done = shell("doctor", code=2, CARBONLENS_SOURCES="s.toml")
    assert len(one_line(done)) < 500
    shell("run", "--", "true", CARBONLENS_SOURCES="s.toml")


@pytest.mark.parametrize("variable", ["CARBONLENS_SOURCES", "CARBONLENS_REPLAY"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_regular_file_is_not_waited_for(shell, variable, kind):
    place = shell.folder / "place"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    given = {variable: "/dev/zero" if kind == "device" else str(place)}
    done = shell("run", "--", "true", **given)
    assert "saved run" in done.stderr
    shell("doctor", code=2 if variable == "CARBONLENS_SOURCES" else 3, **given)


def test_a_pipe_among_the_journals_is_not_waited_for(shell):
    shell("run", "--", "true")
    journals = next((shell.folder / "state").rglob("journal*"))
    folder = next(d for d in (journals, *journals.rglob("*")) if d.is_dir())
    for place in {folder, *(d for d in folder.rglob("*") if d.is_dir())}:
        os.mkfifo(place / "x.jsonl")
    assert len(shell.json("runs")["runs"]) == 1
    shell("runs", "recover")
