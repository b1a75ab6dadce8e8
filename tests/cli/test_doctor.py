"""``carbonlens doctor`` as users run it."""

import sys

import pytest

from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.sensors.replay import TraceWriter


def trace(folder):
    path = folder / "gpu.trace"
    info = SensorInfo(
        name="nvml_power",
        kind="instant",
        unit="W",
        scope="board",
        boundary="device",
        grade="C",
        update_period_s=0.1,
        channels=(Channel(device="GPU-1", component="gpu"),),
        method="NVML power now",
    )
    writer = TraceWriter(path, info)
    for k in range(50):
        writer.append(k * 100_000, (100.0,))
    writer.close()
    return str(path)


def test_it_fits_a_terminal_and_names_each_part(shell):
    done = shell("doctor")
    lines = done.stdout.splitlines()
    assert len(lines) <= 25
    # A path is never broken, however long it is.
    assert max(len(line) for line in lines if str(shell.folder) not in line) <= 80
    for word in ("CPU", "RAM", "GPU", "NPU", "wall", "ledger", "journal", "sources", "extras"):
        assert any(line.startswith(word) for line in lines), word
    assert "\x1b" not in done.stdout
    assert not (shell.folder / ".carbonlens").exists()


def test_json(shell):
    told = shell.json("doctor")
    assert told["schema"] == "carbonlens/doctor/1"
    assert told["can_measure"] is True
    assert {"cpu", "ram", "gpu", "npu", "wall"} <= {p["part"] for p in told["parts"]}
    assert told["storage"]["journal_fault"] is None


def test_a_broken_sources_file_is_an_error_of_the_user(shell):
    (shell.folder / "pyproject.toml").write_text("[tool.carbonlens.sources]\ncpu_tpd_w = 3\n")
    done = shell("doctor", code=2)
    assert "pyproject.toml:2" in done.stderr
    assert "did you mean 'cpu_tdp_w'?" in done.stderr
    assert done.stdout == ""


def test_a_broken_sources_file_does_not_stop_a_run(shell):
    (shell.folder / "pyproject.toml").write_text("[tool.carbonlens.sources]\ncpu_tpd_w = 3\n")
    shell("run", "--", sys.executable, "-c", "pass")
    (run,) = shell.json("runs")["runs"]
    assert "CL156" in {f["code"] for f in run["findings"]}


def test_a_recording_is_never_taken_for_a_measurement(shell):
    path = trace(shell.folder)
    assert "REPLAY" in shell("doctor", CARBONLENS_REPLAY=path).stdout
    told = shell.json("doctor", CARBONLENS_REPLAY=path)
    assert told["replay"] == path
    assert {p["source"]["sensor"] for p in told["parts"] if p["source"]} == {"replay:nvml_power"}
    command = [sys.executable, "-c", "import time; time.sleep(0.5)"]
    done = shell("run", "--", *command, CARBONLENS_REPLAY=path)
    assert "played from a recording, not measured" in done.stderr
    (run,) = shell.json("runs")["runs"]
    assert "CL157" in {f["code"] for f in run["findings"]}
    assert run["energy"]["gpu"]["value"] > 10


def test_nothing_to_read_is_exit_code_3(shell):
    done = shell("doctor", code=3, CARBONLENS_REPLAY="none.trace")
    assert "none.trace" in done.stderr
    (shell.folder / "sources.toml").write_text("leave_out = ['cpu_model']\n")
    shell("doctor", code=3, CARBONLENS_SOURCES="sources.toml")


def test_a_declared_meter_that_does_not_answer_is_told_with_its_mend(shell):
    (shell.folder / "sources.toml").write_text(
        "[[external]]\nname = 'plug'\ncommand = ['/no/such/program']\ngain_95 = 0.01\n"
    )
    out = shell("doctor", CARBONLENS_SOURCES="sources.toml").stdout
    assert "external:plug: does not answer" in out
    assert "->" in out


METER = """\
[[external]]
name = "plug"
command = ["sh", "-c", "while :; do echo $(date +%s%N | cut -c1-16),50; sleep 0.1; done"]
gain_95 = 0.01
"""


def test_it_says_which_source_becomes_the_total(shell):
    (shell.folder / "s.toml").write_text(METER)
    told = shell.json("doctor", CARBONLENS_SOURCES="s.toml")
    assert told["total"].startswith("external:plug alone")
    assert "cpu_model" in told["total"]
    assert "plug" not in shell.json("doctor")["total"]
    assert any(line.startswith("total   ") for line in shell("doctor").stdout.splitlines())


def test_a_sensor_that_was_left_out_is_not_said_to_be_silent(shell):
    (shell.folder / "s.toml").write_text("leave_out = ['ram_model', 'ram_model']\n")
    out = shell("doctor", CARBONLENS_SOURCES="s.toml").stdout
    assert out.count("ram_model: left out, as declared") == 1
    assert "does not answer" not in out


def test_prose_is_wrapped_to_a_narrow_terminal(shell):
    lines = shell("doctor", COLUMNS="60").stdout.splitlines()
    prose = [line for line in lines if line.startswith("      ") and str(shell.folder) not in line]
    assert prose
    assert max(map(len, prose)) <= 60


def test_watts_in_a_csv_file_are_played_as_a_meter_at_the_plug(shell):
    lines = [f"{t * 100_000},{100 if t != 7 else ''}" for t in range(60)]
    (shell.folder / "plug.csv").write_text("\n".join(["t_us,watts", *lines]) + "\n")
    command = [sys.executable, "-c", "import time; time.sleep(1)"]
    done = shell("run", "--", *command, CARBONLENS_REPLAY="plug.csv")
    assert "played from a recording, not measured" in done.stderr
    (run,) = shell.json("runs")["runs"]
    assert {"CL157"} <= {f["code"] for f in run["findings"]}
    assert run["energy"]["wall"]["value"] / run["duration_s"] == pytest.approx(100, rel=0.1)
    assert run["energy"]["wall"]["low"] is None
