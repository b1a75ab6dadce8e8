"""The core install measures, lists and recovers without numpy, and beside an old one."""

import json
import signal
import subprocess
import time

import pytest

from tests.packaging.conftest import ENVIRONMENT, run

pytestmark = pytest.mark.slow

LONG_RUN = """
import sys, time, carbonlens
with carbonlens.track("killed", study="s", ledger=sys.argv[1], unit="loop") as job:
    print("up", flush=True)
    while True:
        sum(range(10000))
"""


def check_core(bin_, tmp_path):
    """Measure, list, recover; the same in every core venv."""
    env = {**ENVIRONMENT, "HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "state")}
    ledger = tmp_path / "ledger"

    def carbonlens(*arguments, code=0):
        command = [str(bin_ / "carbonlens"), *arguments]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done

    where = ["--ledger", str(ledger)]
    busy = "sum(i*i for i in range(3_000_000))"
    carbonlens("run", "--step", "a", "--study", "s", *where, "--", str(bin_ / "python"), "-c", busy)
    carbonlens("run", *where, "--", str(bin_ / "python"), "-c", "raise SystemExit(7)", code=7)

    child = subprocess.Popen(
        [str(bin_ / "python"), "-c", LONG_RUN, str(ledger)], env=env, cwd=tmp_path, stdout=subprocess.PIPE
    )
    assert child.stdout.readline() == b"up\n"
    time.sleep(2.5)
    child.send_signal(signal.SIGKILL)
    child.wait()

    listed = json.loads(carbonlens("runs", "--json", *where).stdout)["runs"]
    by_status = {}
    for item in listed:
        by_status.setdefault(item["status"], []).append(item)
    assert {k: len(v) for k, v in by_status.items()} == {"complete": 1, "failed": 1, "recovered": 1}
    energy = by_status["complete"][0]["energy"]["total"]
    assert energy["low"] > 0
    assert energy["low"] < energy["value"] < (energy["high"] or float("inf"))
    recovered = by_status["recovered"][0]
    assert recovered["step"] == "killed"
    assert recovered["energy"]["total"]["value"] > 0
    assert recovered["duration_s"] > 1
    carbonlens("runs", *where)
    carbonlens("runs", "recover", *where)
    # What needs an extra says which, in one line.
    for command in (["compare"], ["report", "engineering", "-o", str(tmp_path / "out")]):
        refused = carbonlens(*command, *where, code=3)
        assert len(refused.stderr.splitlines()) == 1, refused.stderr
        assert "carbonlens[" in refused.stderr


def test_without_numpy(wheel, new_venv, tmp_path):
    bin_ = new_venv(str(wheel))
    probe = "import importlib.util as u; print(u.find_spec('numpy'), u.find_spec('duckdb'))"
    assert run(bin_ / "python", "-c", probe, cwd=tmp_path).stdout.split() == ["None", "None"]
    check_core(bin_, tmp_path)


def test_beside_an_old_numpy(wheel, new_venv, tmp_path):
    bin_ = new_venv(str(wheel), "numpy<2")
    version = run(bin_ / "python", "-c", "import numpy; print(numpy.__version__)", cwd=tmp_path).stdout
    assert version.startswith("1.")
    check_core(bin_, tmp_path)


def test_the_core_brings_no_library_that_it_can_do_without(wheel, new_venv, tmp_path):
    """What the command line needs is click alone: rich and its colours belong to an extra."""
    bin_ = new_venv(str(wheel))
    script = "import importlib.metadata as m; print(*sorted(d.name.lower() for d in m.distributions()))"
    names = set(run(bin_ / "python", "-c", script, cwd=tmp_path).stdout.split())
    assert names - {"pip", "setuptools"} == {"carbonlens", "msgspec", "click", "nvidia-ml-py"}


@pytest.mark.parametrize("version", ["==8.1.0", "==8.2.0", "==8.3.0", ">=8.4"])
def test_beside_any_click(wheel, new_venv, tmp_path, version):
    bin_ = new_venv(str(wheel), f"click{version}")
    carbonlens = str(bin_ / "carbonlens")
    assert "[default: 10]" in run(carbonlens, "runs", "--help", cwd=tmp_path).stdout
    run(carbonlens, "run", "--live", "--tag", "a=b", "--", "true", cwd=tmp_path)
    listed = json.loads(run(carbonlens, "runs", "list", "--json", cwd=tmp_path).stdout)["runs"]
    assert [r["tags"] for r in listed] == [{"a": "b"}]
    wrong = subprocess.run([carbonlens, "rusn"], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "Did you mean 'run', 'runs'?" in wrong.stderr


def test_the_core_is_small(wheel, new_venv, tmp_path):
    """Own and required packages take at most 30 MB (without pip)."""
    bin_ = new_venv(str(wheel))
    script = (
        "import importlib.metadata as m, pathlib\n"
        "total = sum(pathlib.Path(d.locate_file(f)).stat().st_size\n"
        "            for d in m.distributions() if d.name not in ('pip', 'setuptools')\n"
        "            for f in (d.files or []) if pathlib.Path(d.locate_file(f)).is_file())\n"
        "print(total)"
    )
    size = int(run(bin_ / "python", "-c", script, cwd=tmp_path).stdout)
    print(f"core install: {size / 1e6:.1f} MB")
    assert size <= 30e6
