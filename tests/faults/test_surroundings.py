"""Hostile surroundings: no home, no proc, full disks, planted secrets."""

import os

from tests.metering.processes import files_holding, python, runs, state_folder

TRACK = (
    "import os, sys\nfrom carbonlens import track\n"
    "with track('s', ledger=sys.argv[1]) as run:\n    {}\n"
    "print(run.run.status, run.run.total_energy.state)\n"
)


def test_a_planted_secret_appears_in_no_file_and_no_output(tmp_path):
    token, secret = "hf_plantedInArgv987", "sk-plantedInEnviron987"
    code = TRACK.format("os.environ['LATER'] = 'sk-plantedLater987'")
    ledger = str(tmp_path / "ledger")
    done = python(code, tmp_path, ledger, "--api-key", token, API_KEY=secret, CARBONLENS_NOTE=secret)
    assert done.stdout == "complete known\n", done.stderr
    assert files_holding(tmp_path, "planted") == []
    assert "planted" not in done.stdout + done.stderr


def test_the_journal_of_an_open_run_holds_no_secret_either(tmp_path):
    code = TRACK.format("print(open(__import__('glob').glob(sys.argv[2] + '/*.jsonl')[0]).read())")
    folder = state_folder(tmp_path) / "journal"
    done = python(
        code, tmp_path, str(tmp_path / "ledger"), str(folder), "hf_plantedInArgv987", KEY="sk-planted987"
    )
    assert '"header"' in done.stdout
    assert "planted" not in done.stdout


def test_without_a_home_the_temporary_folder_serves(tmp_path):
    (tmp_path / "tmp").mkdir()
    code = TRACK.format("pass")
    ledger = tmp_path / "ledger"
    done = python(
        code, tmp_path, str(ledger), HOME="/proc/nowhere", XDG_STATE_HOME="", TMPDIR=str(tmp_path / "tmp")
    )
    assert done.stdout == "complete known\n", done.stderr
    assert len(runs(ledger)) == 1
    assert (tmp_path / "tmp" / f"carbonlens-{os.getuid()}" / "journal").is_dir()


def test_a_full_disk_loses_the_run_and_nothing_else(tmp_path):
    code = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    code += TRACK.format("value = sum(range(1000))") + "print(value)\n"
    done = python(code, tmp_path, str(tmp_path / "ledger"))
    assert done.stdout == "complete known\n499500\n"
    assert len(done.stderr.splitlines()) == 1
    assert "not kept" in done.stderr


def test_too_many_open_files_do_not_reach_the_work(tmp_path):
    code = (
        "import resource, sys, os\nfrom carbonlens import track\n"
        "with track('warm', ledger=sys.argv[1]): pass\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/proc/self/fd')) - 1,) * 2)\n"
        "with track('s', ledger=sys.argv[1]) as run:\n    x = 41\n"
        "print(x + 1)\n"
    )
    done = python(code, tmp_path, str(tmp_path / "ledger"))
    assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_a_closed_stdout_and_stderr_do_not_matter(tmp_path):
    code = TRACK.format("os.close(1); os.close(2)").partition("print")[0] + "os._exit(0)\n"
    done = python(code, tmp_path, str(tmp_path / "ledger"))
    assert done.returncode == 0
    assert len(runs(tmp_path / "ledger")) == 1


def test_a_track_at_interpreter_exit_does_no_harm(tmp_path):
    code = (
        "import atexit, sys\nfrom carbonlens import track\n"
        "def last():\n    with track('late', ledger=sys.argv[1]): pass\n"
        "atexit.register(last)\n"
    )
    done = python(code, tmp_path, str(tmp_path / "ledger"))
    assert (done.returncode, done.stderr) == (0, "")
    assert [r.step for r in runs(tmp_path / "ledger")] == ["late"]


def test_a_block_that_is_never_left_does_no_harm(tmp_path):
    code = (
        "import sys\nfrom carbonlens import track\n"
        "run = track('open', ledger=sys.argv[1]).__enter__()\nprint('end')\n"
    )
    done = python(code, tmp_path, str(tmp_path / "ledger"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    python("from carbonlens.metering.recovery import recover\nrecover()", tmp_path)
    assert [r.status for r in runs(tmp_path / "ledger")] == ["recovered"]
