"""The demo from a shell: real models, real reports, the same figures everywhere."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.commands import Shell

pytestmark = pytest.mark.slow

TOKEN = "sk-live-planted-0123456789abcdef"  # noqa: S105  # planted, to be looked for


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Run the small demo once, with a secret in the environment."""
    shell = Shell(tmp_path_factory.mktemp("demo"))
    printed = shell.json("demo", "-o", "out", "--small", API_TOKEN=TOKEN, HF_TOKEN=TOKEN)
    return shell, printed


def test_it_writes_what_it_promises_and_nothing_else(demo):
    shell, printed = demo
    out = shell.folder / "out"
    assert sorted(p.name for p in out.iterdir()) == ["ledger", "report.html", "report.pdf", "study.toml"]
    assert printed["files"] == {"html": "out/report.html", "pdf": "out/report.pdf"}
    assert (out / "report.pdf").read_bytes().startswith(b"%PDF-")


def test_compare_json_has_the_promised_shape_and_its_parts_sum(demo):
    shell, _ = demo
    result = shell.json("compare", "--ledger", "out/ledger")
    assert (result["baseline"], result["unit"], result["basis"], result["mode"]) == (
        "torch-fp32",
        "image",
        "per_unit",
        "ladder",
    )
    assert [s["step"] for s in result["steps"]] == ["ort-fp32", "pruned", "dynamic-int8", "static-int8"]
    for step in result["steps"]:
        assert step["status"] in {"accepted", "rejected", "undetermined"}
        assert step["verdict"] in {"better", "same", "worse", "inconclusive"}
        assert step["decision"] in {"adopt", "reject", "undetermined"}
        assert step["energy_per_unit_j"]["grade"] in {"B", "D"}
        ratio = step["vs_previous"]["ratio"]
        assert ratio["low"] < ratio["value"] < ratio["high"]
        if step["status"] != "accepted":
            assert step["attribution"]["ladder_j"] is None
    accepted = [s for s in result["steps"] if s["status"] == "accepted"]
    assert result["total"]["path"] == ["torch-fp32", *(s["step"] for s in accepted)]
    for ladder, total in (
        ("ladder_j", "energy_j"),
        ("ladder_location_kg", "emissions_location_kg"),
        ("ladder_market_kg", "emissions_market_kg"),
        ("ladder_cost", "cost"),
    ):
        parts = [s["attribution"][ladder]["value"] for s in accepted]
        assert math.fsum(parts) == pytest.approx(result["total"]["savings"][total]["value"], rel=1e-12)


def test_absolute_figures_are_wide_and_ratios_narrow_where_energy_is_modelled(demo):
    shell, _ = demo
    step = shell.json("compare", "--ledger", "out/ledger")["steps"][0]
    energy, ratio = step["energy_per_unit_j"], step["vs_previous"]["ratio"]
    if energy["grade"] != "D":
        pytest.skip("this machine has an energy counter")
    assert energy["high"] / energy["value"] >= 1.79
    assert ratio["high"] / ratio["value"] < 1.5


def test_effort_runs_are_recorded_apart(demo):
    shell, _ = demo
    runs = shell.json("runs", "--ledger", "out/ledger")["runs"]
    efforts = {r["step"] for r in runs if r["role"] == "effort"}
    assert {"torch-fp32", "pruned", "static-int8"} <= efforts
    assert all(r["status"] == "complete" for r in runs)


def test_compare_reads_well_in_80_columns(demo):
    shell, _ = demo
    lines = shell("compare", "--ledger", "out/ledger").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 14
    assert any("Frankfurt" in line and "example" in line for line in lines)


def test_no_planted_secret_is_in_any_output(demo):
    shell, printed = demo
    ledger = ["--ledger", "out/ledger"]
    code = "import sys; print(len(sys.argv[1]))"
    run = shell("run", *ledger, "--", sys.executable, "-c", code, TOKEN, API_TOKEN=TOKEN)
    shown = shell("runs", *ledger, API_TOKEN=TOKEN)
    assert TOKEN not in run.stdout + run.stderr + shown.stdout + json.dumps(printed)
    for file in shell.folder.rglob("*"):
        if file.is_file():
            assert TOKEN.encode() not in file.read_bytes(), file


def test_the_same_ledger_gives_the_same_bytes_in_two_processes(demo):
    shell, _ = demo
    made = []
    for folder, seed in (("a", "1"), ("b", "2")):
        shell("report", "business-case", "--ledger", "out/ledger", "-o", folder, PYTHONHASHSEED=seed)
        shell("report", "engineering", "--ledger", "out/ledger", "-o", folder, PYTHONHASHSEED=seed)
        made.append({p.name: p.read_bytes() for p in (shell.folder / folder).iterdir()})
    assert sorted(made[0]) == [
        "business-case.html",
        "business-case.pdf",
        "engineering.html",
        "engineering.pdf",
    ]
    assert made[0] == made[1]


def test_a_second_demo_replaces_the_first_and_nothing_else_is_touched(demo):
    shell, _ = demo
    other = shell.folder / "other"
    other.mkdir()
    (other / "precious.txt").write_text("mine")
    done = shell("demo", "-o", "other", "--small", code=2)
    assert "former demo" in done.stderr
    assert (other / "precious.txt").read_text() == "mine"


def test_an_unwritable_folder_is_refused_before_the_work(demo):
    shell, _ = demo
    (shell.folder / "file").write_text("")
    began = time.monotonic()
    done = shell("demo", "-o", "file/out", code=2)
    assert "cannot be written" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert time.monotonic() - began < 20
    for command in (["report", "engineering", "--ledger", "out/ledger", "-o", "file/x"],):
        assert "cannot be written" in shell(*command, code=2).stderr


def test_ctrl_c_keeps_finished_rounds_and_reports_on_them(tmp_path):
    shell = Shell(tmp_path)
    command = [
        sys.executable,
        "-m",
        "carbonlens.cli.main",
        "demo",
        "-o",
        "out",
        "--small",
        "--rounds",
        "2000",
    ]
    child = subprocess.Popen(
        command, cwd=tmp_path, env=shell.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    runs = tmp_path / "out" / "ledger" / "runs"
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and sum(1 for _ in runs.glob("*/*.json")) < 60:
        time.sleep(0.3)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 130, err
    assert re.search(r"interrupted: (\d+) complete rounds? (is|are) reported", err)
    assert (tmp_path / "out" / "report.pdf").is_file()
    assert "saved" in out
