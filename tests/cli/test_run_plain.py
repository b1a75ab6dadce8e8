"""The short way of ``run``: the same arguments as the library would give, or none at all."""

import inspect
import subprocess
import sys
import threading

import pytest

from carbonlens.cli import run, run_plain
from carbonlens.cli.run_plain import FLAGS, VALUES, measured, parsed
from carbonlens.metering.sensors import nvml_library
from carbonlens.metering.sensors.candidates import REPLAY


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("-- true", {"command": ["true"]}),
        ("true -x --live", {"command": ["true", "-x", "--live"]}),
        ("--live -- sh -c x", {"live": True, "command": ["sh", "-c", "x"]}),
        ("--step a --step=b -- true", {"step": "b", "command": ["true"]}),
        ("--tag k=v --tag=l=w -- true", {"tag": ["k=v", "l=w"], "command": ["true"]}),
        ("--repeat 3 --units 10 -- true", {"repeat": 3, "units": "10", "command": ["true"]}),
        ("--step -- -- true", {"step": "--", "command": ["true"]}),
        ("--record-args -- -- true", {"record_args": True, "command": ["--", "true"]}),
        ("--json --ledger /x -- true", {"json": True, "ledger": "/x", "command": ["true"]}),
    ],
)
def test_plain_lines_are_taken_apart(line, given):
    assert parsed(line.split(" ")) == given


@pytest.mark.parametrize(
    "line",
    [
        *("", "--", "-h", "--help", "--nope -- true", "--step", "--live=yes -- true", "-s a -- true"),
        *("--repeat x -- true", "--repeat -1 -- true", "--ledger= -- true", "--ste a -- true"),
    ],
)
def test_what_is_not_plain_is_left_to_the_library(line):
    assert parsed(line.split(" ") if line else []) is None


def test_it_knows_every_option_of_the_command():
    of_command = set(inspect.signature(run.run_command_line).parameters) - {"command"}
    assert of_command == {name.replace("-", "_") for name in VALUES | FLAGS}
    assert of_command == set(inspect.signature(measured).parameters) - {"command"}


@pytest.mark.parametrize(
    "line",
    [
        [
            "--step",
            "a",
            "--study=s",
            "--unit",
            "u",
            "--units",
            "4",
            "--repeat",
            "2",
            "--tag",
            "k=v=w",
            "--",
            "sh",
        ],
        ["--record-args", "--json", "--trace", "t.csv", "--ledger", "l", "echo", "--", "-x"],
        ["--step", "--", "--tag", "a=", "--tag=b=1", "--", "--", "x"],
    ],
)
def test_the_library_gives_the_same(line):
    from carbonlens.cli.commands import built

    command = built(["run"]).commands["run"]
    library = command.make_context("run", list(line)).params
    told = {k: str(v) if k == "ledger" else v for k, v in library.items() if v not in (None, False, [], ())}
    assert {k: list(v) if k in ("command", "tag") else v for k, v in told.items()} == parsed(line)


def test_a_plain_run_loads_no_library_for_command_lines(tmp_path):
    code = (
        "import sys\nfrom carbonlens.cli import main\n"
        f"sys.argv = ['carbonlens', 'run', '--ledger', {str(tmp_path / 'l')!r}, '--', 'true']\n"
        "try:\n    main.main()\nfinally:\n    print('click' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    "repeat", ["-1", str(2**63), "9" * 23, "9" * 90, "9" * 5000], ids=lambda r: f"{len(r)} digits"
)
@pytest.mark.parametrize("form", ["--repeat {}", "--repeat={}"])
def test_a_round_that_no_record_holds_is_refused_before_the_command_runs(shell, repeat, form):
    done = shell("run", *form.format(repeat).split(" "), "--", "touch", "ran", code=2)
    assert "repeat" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (shell.folder / "ran").exists()


@pytest.mark.parametrize("repeat", [0, 2**63 - 1])
def test_the_first_and_the_last_round_that_a_record_holds_are_kept(shell, repeat):
    shell("run", "--repeat", repeat, "--", "true")
    (run,) = shell.json("runs")["runs"]
    assert shell.json("runs", "show", run["run_id"])["record"]["repeat"] == repeat


@pytest.mark.parametrize("name", ["step", "study", "unit"])
def test_a_name_that_is_empty_is_no_name_and_is_said(shell, name):
    shell("run", f"--{name}", "", "--units", 3, "--", "true")
    (run,) = shell.json("runs")["runs"]
    assert run[name] is None
    assert [f["subject"] for f in run["findings"] if f["code"] == "CL110"] == [name]


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Return the threads in which NVIDIA's library was started; its driver is there, in an empty folder."""

    class Library:
        def start(self):
            started.append(threading.current_thread())

    started, node = [], tmp_path / "nvidiactl"
    node.touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_plain, "_DRIVERS", (str(node),))
    monkeypatch.setattr(nvml_library, "process_nvml", Library)
    for name in ("CUDA_VISIBLE_DEVICES", "CARBONLENS_SOURCES", REPLAY):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return started


def loaded():
    run_plain.load()
    for thread in threading.enumerate():
        if thread.name == "carbonlens-nvml":
            thread.join(20)


@pytest.mark.parametrize(
    ("is_there", "visible", "starts"), [(True, None, 1), (True, "0", 1), (True, "", 0), (False, None, 0)]
)
def test_a_driver_starts_beside_what_is_loaded(tmp_path, driver, monkeypatch, is_there, visible, starts):
    if not is_there:
        (tmp_path / "nvidiactl").unlink()
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    loaded()
    assert len(driver) == starts
    assert threading.main_thread() not in driver


@pytest.mark.parametrize(
    ("declared", "starts"),
    [
        ('leave_out = ["nvml_energy", "nvml_power", "nvml_average", "nvml_use"]', 0),
        ('leave_out = ["rapl"]', 1),
        ("leave_out = [", 1),  # a broken file declares nothing, and the run says so
    ],
)
def test_a_driver_whose_sensors_are_left_out_is_not_touched(tmp_path, driver, declared, starts):
    (tmp_path / "pyproject.toml").write_text(f"[tool.carbonlens.sources]\n{declared}\n")
    loaded()
    assert len(driver) == starts


def test_a_driver_is_not_touched_where_a_recording_is_played(driver, monkeypatch):
    monkeypatch.setenv(REPLAY, "gpu.csv")
    loaded()
    assert driver == []
