"""``run --trace`` and ``calibrate --against RUN`` as users type them."""

import gzip
import json
import os
import stat
import sys

import pytest

from carbonlens.metering.trace_file import read_run_trace
from tests.metering.traces import GAIN, GPU, OFFSET_W, RUN_ID, board, meter, put_trace

# The load takes its next step when the controller was asked ten times more: what it answers is
# true until it is asked again, however long a busy machine lets its program wait.
LEVEL = "(200.0, 420.0, 300.0)[os.stat({asked!r}).st_size // 10 % 3]"
METER = """\
import os, time
while True:
    print(f"{{time.monotonic() * 1e6:.0f}},{{LEVEL}}", flush=True)
    time.sleep(0.05)
"""
IPMITOOL = """\
#!{python}
import os
with open({asked!r}, "a") as asked:
    asked.write(".")
print(f"    Instantaneous power reading:  {{round((LEVEL - 20) / 1.1)}} Watts")
print("    Power reading state is:                   activated")
"""
ASKED_TIMES = """\
import os, time
while os.stat({asked!r}).st_size < {times}: time.sleep(0.1)
"""
SOURCES = """\
[[external]]
name = "plug"
command = ["{python}", "meter.py"]
gain_95 = 0.01
period_s = 0.2

[controller]
kind = "ipmi"
"""


def declared(folder):
    """A plug meter, and a management controller that reads a line of its own."""
    asked = folder / "asked"
    asked.touch()
    (folder / "meter.py").write_text(METER.replace("LEVEL", LEVEL).format(asked=str(asked)))
    tool = folder / "bin" / "ipmitool"
    tool.parent.mkdir()
    tool.write_text(IPMITOOL.replace("LEVEL", LEVEL).format(python=sys.executable, asked=str(asked)))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    (folder / "sources.toml").write_text(SOURCES.format(python=sys.executable))
    return {
        "CARBONLENS_SOURCES": str(folder / "sources.toml"),
        "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}",
    }


def record(shell, run="latest", **env):
    run_id = shell.json("runs", **env)["runs"][-1]["run_id"] if run == "latest" else run
    return shell.json("runs", "show", run_id, **env)["record"]


def test_a_run_keeps_its_readings_and_names_the_file(shell):
    env = declared(shell.folder)
    said = shell(
        "run", "--trace", "t.csv.gz", "--", sys.executable, "-c", "import time; time.sleep(1)", **env
    )
    assert "no trace" not in said.stderr
    trace = record(shell, **env)["trace"]
    assert trace["file"] == "t.csv.gz"
    read = read_run_trace(shell.folder / "t.csv.gz")
    assert {c.sensor.name for c in read.columns} == {"external:plug", "ipmi", "cpu_model"}
    plug = next(i for i, c in enumerate(read.columns) if c.sensor.name == "external:plug")
    assert len(read.readings(plug)) > 3
    with gzip.open(shell.folder / "t.csv.gz", "rt") as stream:
        assert stream.readline().startswith('# {"schema":')


def test_a_command_goes_on_whatever_becomes_of_its_trace(shell):
    (shell.folder / "mine.txt").write_text("mine")
    for name in ("mine.txt", "none/t.csv", ".", ""):
        said = shell("run", "--trace", name, "--", "sh", "-c", "echo out; exit 3", code=3)
        assert said.stdout == "out\n"
        if name:
            assert "carbonlens: no trace was written: " in said.stderr
        kept = record(shell)
        assert kept["trace"] is None
        assert {f["code"] for f in kept["findings"]} & {"CL161", "CL110"}
    assert (shell.folder / "mine.txt").read_text() == "mine"


def test_track_keeps_a_trace_too(shell):
    code = "import carbonlens\nwith carbonlens.track('a', trace='t.csv'): pass\n"
    done = shell("run", "--", sys.executable, "-c", code)
    assert done.stdout == ""
    traced = [record(shell, r["run_id"]) for r in shell.json("runs")["runs"]]
    (inner,) = [r for r in traced if r["trace"]]
    assert read_run_trace(shell.folder / "t.csv").head.run_id == inner["run_id"]


def test_a_later_run_names_the_calibration_from_a_trace(shell):
    put_trace(shell.folder / "t.csv", board(), meter())
    found = shell.json("calibrate", GPU, "--against", "t.csv")
    assert found["gain"]["low"] < GAIN < found["gain"]["high"]
    assert (found["device"], found["sensor"], found["meter"]) == (GPU, "nvml_power", "pmd")
    assert found["run_id"] == RUN_ID
    assert f"against pmd in run {RUN_ID}" in shell("calibrate", GPU, "--against", "t.csv").stdout
    recording = shell.folder / "board.trace"
    sensor = {
        **{"name": "nvml_power", "kind": "instant", "unit": "W", "scope": "board", "boundary": "device"},
        **{"grade": "C", "update_period_s": 0.1, "method": "NVML power now"},
        "channels": [{"device": GPU, "component": "gpu"}],
    }
    lines = [json.dumps({"schema": "carbonlens/trace/1", "sensor": sensor})]
    lines += [json.dumps([i * 100_000, [200.0]]) for i in range(600)]
    recording.write_text("\n".join(lines) + "\n")
    shell("run", "--", "sleep", "1", CARBONLENS_REPLAY=str(recording))
    shown = shell("runs", "show", record(shell)["run_id"]).stdout
    assert "against pmd in run 00000000abcd" in shown
    kept = record(shell)
    (reading,) = [r for r in kept["energy"] if r["component"] == "gpu"]
    watts = float(reading["energy_j"]) / reading["covered_s"]
    assert watts == pytest.approx(GAIN * 200.0 + OFFSET_W, rel=0.02)


@pytest.mark.slow
def test_a_controller_is_calibrated_against_a_plug_that_the_same_run_read(shell):
    env = declared(shell.folder)
    work = ASKED_TIMES.format(asked=str(shell.folder / "asked"), times=38)
    shell("run", "--trace", "t.csv", "--", sys.executable, "-c", work, **env)
    found = shell.json("calibrate", "controller", "--against", "latest", **env)
    assert (found["sensor"], found["meter"]) == ("ipmi", "plug")
    assert found["gain"]["value"] == pytest.approx(1.1, abs=0.08)
    assert found["run_id"] == record(shell, **env)["run_id"]
    shell("run", "--", "sleep", "4", **env)
    kept = record(shell, **env)
    # Which of the two is the figure is a matter of their intervals.
    told = next(r for r in (*kept["energy"], *kept["beside"]) if r["devices"] == ["controller"])
    assert "against plug in run " + found["run_id"][-12:] in told["method"]


def test_refusals_are_one_line_with_a_mend(shell):
    for arguments, code, text in (
        (("0", "--against", "latest"), 2, "run --trace FILE -- CMD"),
        ((GPU, "--against", "t.csv"), 3, "is not there"),
        (("cpu", "--against", "latest"), 2, "the CPU time of its own work"),
    ):
        said = shell("calibrate", *arguments, code=code).stderr
        assert text in said
        assert said.startswith("carbonlens: ")
        assert said.count("\n") == 1
    shell("run", "--trace", "t.csv", "--", "true")
    said = shell("calibrate", "0", "--against", "latest", code=2).stderr
    assert "no device '0' whose power was read in the run (there: none)" in said
    with (shell.folder / "t.csv").open("a") as stream:
        stream.write("1,1\n")
    assert "has changed since" in shell("calibrate", "0", "--against", "latest", code=3).stderr
    (shell.folder / "t.csv").unlink()
    assert "cannot be read" in shell("calibrate", "0", "--against", "latest", code=3).stderr
