"""``carbonlens run``: the command's own exit code, whatever becomes of our words."""

import json
import shutil
import signal
import subprocess
import sys

import pytest


def run(shell, *arguments, redirect="", **env):
    """Run the command line below a shell that redirects its streams."""
    line = [sys.executable, "-m", "carbonlens.cli.main", "run", *arguments]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirect}', "sh", *line],
        cwd=shell.folder,
        # Buffered, as outside of tests: what is not flushed is lost.
        env={**shell.env, "PYTHONUNBUFFERED": "", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "redirect", ["2>&-", "2>/dev/full", ">&-", ">/dev/full", ">/dev/full 2>&1", ">&- 2>&-"]
)
@pytest.mark.parametrize("json_option", [(), ("--json",)])
def test_the_exit_code_passes_through_when_nothing_can_be_printed(shell, redirect, json_option):
    done = run(shell, *json_option, "--", "sh", "-c", "exit 7", redirect=redirect)
    assert done.returncode == 7, done.stderr


def test_a_death_by_signal_passes_through_when_nothing_can_be_printed(shell):
    done = run(shell, "--", "sh", "-c", "kill -TERM $$", redirect="2>/dev/full")
    assert done.returncode == -signal.SIGTERM


def test_the_json_of_a_command_that_died_by_a_signal_is_whole(shell):
    done = run(shell, "--json", "--", "sh", "-c", "kill -TERM $$")
    assert done.returncode == -signal.SIGTERM
    assert json.loads(done.stdout)["run"]["status"] == "failed"


def test_a_run_that_was_kept_is_called_saved(shell):
    done = run(shell, "--", "true")
    assert "saved run" in done.stderr
    assert done.returncode == 0


def test_a_run_that_was_kept_nowhere_is_not_called_saved(shell):
    (shell.folder / ".carbonlens").write_text("a file where the folder should be")
    (shell.folder / "state" / "carbonlens").mkdir(parents=True)
    (shell.folder / "state" / "carbonlens" / "ledger").write_text("another one")
    done = run(shell, "--", "true")
    assert done.returncode == 0
    assert "saved run" not in done.stderr
    assert "not saved" in done.stderr


def test_a_ledger_that_is_no_place_does_not_stop_the_command(shell):
    done = run(shell, "--", "sh", "-c", "echo ran; exit 3", CARBONLENS_LEDGER="~nosuchuser/x")
    assert (done.returncode, done.stdout) == (3, "ran\n")
    assert "no ledger was found" in done.stderr
    kept = list((shell.folder / "state" / "carbonlens" / "ledger").rglob("*.json"))
    assert len(kept) == 1
    assert "CL112" in kept[0].read_text()


def test_a_label_that_is_no_utf8_does_not_cost_the_run(shell):
    done = run(shell, "--step", "caf\udce9", "--tag", "k=\udce9", "--", "true")
    assert done.returncode == 0
    assert "saved run" in done.stderr


def test_an_empty_program_name_is_not_found(shell):
    assert "not found" in shell("run", "--", "", code=127).stderr


def test_what_the_command_tracks_lies_beside_its_run(shell):
    code = "import carbonlens\nwith carbonlens.track('inner'): sum(range(10000))"
    shell("run", "--ledger", "here", "--", sys.executable, "-c", code)
    runs = shell.json("runs", "--ledger", "here")["runs"]
    assert len(runs) == 2
    assert sorted(r["parent_run_id"] is None for r in runs) == [False, True]


def test_the_json_is_the_last_line_whatever_the_command_printed(shell):
    done = run(shell, "--json", "--", "sh", "-c", "printf 'a\\n{b'")
    *before, last = done.stdout.splitlines()
    assert before == ["a", "{b"]
    assert json.loads(last)["run"]["status"] == "complete"


@pytest.mark.parametrize("command", [("true",), ("sleep", "0.3"), ("no-such-program",)])
def test_every_known_figure_has_an_interval_and_an_unknown_one_none(shell, command):
    done = run(shell, "--", *command)
    line = next(line for line in done.stderr.splitlines() if "saved run" in line)
    assert " ," not in line
    assert " ;" not in line
    (told,) = shell.json("runs")["runs"]
    known = told["energy"]["total"]["value"] is not None
    assert ("[" in line) == known
    row, total = shell("runs").stdout.splitlines()[1:3]
    assert ("[" in row, "[" in total or "exact" in row) == (known, known)
    shown = shell("runs", "show", told["run_id"]).stdout
    assert " ," not in next(text for text in shown.splitlines() if text.startswith("energy"))


def test_a_program_that_is_not_there_is_recorded_by_its_name(shell):
    done = run(shell, "--", "/home/somebody/bin/nosuch")
    assert "/home/somebody/bin/nosuch: command not found" in done.stderr
    (kept,) = shell.json("runs")["runs"]
    assert kept["error"] == "nosuch: command not found"


def test_runs_kept_in_the_state_folder_are_pointed_at(shell):
    (shell.folder / ".carbonlens").write_text("a file where the folder should be")
    run(shell, "--", "true")
    (shell.folder / ".carbonlens").unlink()
    done = shell("runs")
    place = shell.folder / "state" / "carbonlens" / "ledger"
    assert "1 run could not reach its ledger:" in done.stderr
    assert f"carbonlens runs --ledger {place}" in done.stderr
    assert shell.json("runs")["kept_elsewhere"] == {"ledger": str(place), "runs": 1}
    assert "could not reach" not in shell("runs", "--ledger", place).stderr
    assert "move the folder runs/ there into a ledger" in done.stderr
    shutil.copytree(place / "runs", shell.folder / ".carbonlens" / "runs", dirs_exist_ok=True)
    shutil.rmtree(place / "runs")
    moved = shell("runs")
    assert moved.stderr == ""
    assert "total of 1 run" in moved.stdout


@pytest.mark.parametrize("command", [("true",), ("sh", "-c", "exit 3"), ("no-such-program",)])
def test_the_line_of_a_run_fits_a_terminal_and_names_the_id_that_runs_lists(shell, command):
    done = run(shell, "--", *command)
    line = next(line for line in done.stderr.splitlines() if "saved run" in line)
    assert len(line) <= 80
    short = line.partition("saved run ")[2].split()[0]
    assert shell("runs").stdout.splitlines()[1].split()[0] == short
    told = json.loads(shell("runs", "show", short, "--json").stdout)["run"]
    assert told["run_id"].endswith(short)
    assert shell.json("runs", "show", "latest")["run"] == told


def test_every_command_that_takes_a_run_takes_the_id_that_is_printed(shell):
    run(shell, "--trace", "t.csv", "--", "true")
    short = shell("runs").stdout.splitlines()[1].split()[0]
    full = shell.json("runs")["runs"][0]["run_id"]
    assert shell.json("runs", "show", short)["run"]["run_id"] == full
    assert shell.json("runs", "tag", short, "a=b")["supersedes"] == full
    assert shell.json("runs", "supersede", short, "--by", "units=2")["supersedes"] != full
    assert shell("ledger", "redact", short, "--field", "tags", "--why", "a test").returncode == 0
    refused = shell("calibrate", "GPU-0a1b", "--against", short, code=2).stderr
    assert "no run" not in refused


def test_latest_is_the_run_that_began_last(shell):
    for name in ("first", "second"):
        run(shell, "--step", name, "--", "true")
    assert shell.json("runs", "show", "latest")["run"]["step"] == "second"


def test_latest_of_no_run_is_refused(shell):
    assert "no run 'latest'" in shell("runs", "show", "latest", code=2).stderr


def test_a_run_without_names_is_listed_by_its_program(shell):
    run(shell, "--", "true")
    assert shell("runs").stdout.splitlines()[1].split()[1] == "(true)"
