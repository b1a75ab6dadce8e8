"""A bench's series: two at once, going on after a change, its gates, and the newcomer's job."""

import json
import subprocess
import sys
import time

import pytest

from carbonlens.instrument.bench import TAG
from carbonlens.ledger.store import Ledger

HEAD = '[bench]\nname = "s"\nunit = "call"\nwindow_s = 0.02\nmost_rounds = 10\n'
WORK = "def call():\n    sum(range({n}))\n    return 1\n"


def variant(name, **fields):
    lines = [f"{k} = {json.dumps(v)}" for k, v in {"name": name, **fields}.items()]
    return "[[variant]]\n" + "\n".join(lines) + "\n"


def printing(quality):
    return [sys.executable, "-S", "-c", f"print({json.dumps(json.dumps(quality))})"]


@pytest.fixture
def folder(shell, tmp_path):
    (tmp_path / "first.py").write_text(WORK.format(n=2000))
    (tmp_path / "second.py").write_text(WORK.format(n=200))
    spec = HEAD + variant("a", callable="first:call") + variant("b", callable="second:call")
    (tmp_path / "bench.toml").write_text(spec)
    return tmp_path


@pytest.mark.slow
def test_two_benches_at_once_are_two_studies(shell, folder):
    command = [sys.executable, "-m", "carbonlens.cli.main", "bench", "bench.toml", "--json"]
    both = [
        subprocess.Popen(command, cwd=folder, env=shell.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    found = [json.loads(one.communicate(timeout=300)[0]) for one in both]
    assert {f["study"] for f in found} == {"s", "s-2"}
    for name in ("s", "s-2"):
        mine = [r for r in shell.json("runs", "--study", name)["runs"] if r["role"] == "variant"]
        assert len(mine) == 20
    assert [f["rounds"] for f in found] == [10, 10]


HOLDS = """
import sys
from pathlib import Path
from carbonlens.app import bench_series
from carbonlens.ledger.store import Ledger
with bench_series.alone(sys.argv[1], Ledger(Path(sys.argv[2]))):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_a_series_is_gone_on_with_by_one_bench_at_a_time(shell, folder):
    (folder / "bench.toml").write_text(
        (folder / "bench.toml").read_text().replace("most_rounds = 10", "most_rounds = 12\nhalf_width = 1e-9")
    )
    ledger = shell.json("bench", "bench.toml", "--rounds", 10)["ledger"]
    before = shell.json("runs")["runs"]
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS, "s", ledger],
        cwd=folder,
        env=shell.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout.readline() == b"held\n"
    refused = " ".join(shell("bench", "bench.toml", "--resume", code=2).stderr.split())
    assert "series 's' is being measured by another bench" in refused
    assert shell.json("runs")["runs"] == before
    other.kill()  # its hold ends with it
    other.communicate(timeout=60)
    assert shell.json("bench", "bench.toml", "--resume")["study"] == "s"
    assert shell.json("ledger", "verify")["sound"] is True


@pytest.mark.slow
def test_two_that_go_on_at_once_measure_no_round_twice(shell, folder):
    shell.json("bench", "bench.toml", "--half-width", 1e-9)
    more = ["bench", "bench.toml", "--resume", "--rounds", "14", "--half-width", "1e-9", "--json"]
    command = [sys.executable, "-m", "carbonlens.cli.main", *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [subprocess.Popen(command, cwd=folder, env=shell.env, **pipes) for _ in range(2)]
    for one in both:
        one.communicate(timeout=300)
    # The later one is refused, or it began when the other had ended.
    assert 0 in (codes := {one.returncode for one in both})
    assert codes <= {0, 2}
    mine = [r["step"] for r in shell.json("runs")["runs"] if r["role"] == "variant"]
    assert sorted(mine) == [*14 * "a", *14 * "b"]


TRACKS = """
import carbonlens
for role in ("variant", "evaluation", "effort"):
    with carbonlens.track("{name}", study="s", role=role, unit="call") as run:
        run.add_units(sum(range({n})) and 1)
"""


@pytest.mark.slow
def test_what_commands_track_themselves_is_no_round_of_the_series(shell, folder):
    spec = HEAD.replace("most_rounds = 10", "half_width = 1e-9")
    for name, n in (("a", 2000), ("b", 200)):
        (folder / f"{name}.py").write_text(TRACKS.format(name=name, n=n))
        told = printing({"accuracy": {"value": 0.9, "n": 100}})
        spec += variant(name, command=[sys.executable, f"{name}.py"], units=1, evaluate=told)
    (folder / "bench.toml").write_text(spec)
    assert shell.json("bench", "bench.toml", "--rounds", 10)["rounds"] == 10
    assert shell.json("bench", "bench.toml", "--resume", "--rounds", 12)["rounds"] == 12
    ledger = Ledger(folder / ".carbonlens")
    of_bench = [r for r in ledger.view().runs if TAG in r.tags]
    rounds = sorted((r.step, r.repeat) for r in of_bench if r.role == "variant")
    assert rounds == [(step, number) for step in "ab" for number in range(1, 13)]
    # That of each check and of each ``evaluate``, once.
    assert sum(r.role == "evaluation" for r in of_bench) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "goes_on"),
    [
        (lambda folder: (folder / "second.py").write_text(WORK.format(n=100)), False),
        (lambda folder: edit(folder, 'callable = "second:call"', 'callable = "first:call"'), False),
        (lambda folder: edit(folder, "window_s = 0.02", "window_s = 0.03"), False),
        (lambda folder: edit(folder, 'name = "b"', 'name = "b"\nengineering_hours = 3'), True),
        (lambda folder: edit(folder, "most_rounds = 10", "most_rounds = 11\nmargin = 0.5"), True),
        (lambda folder: (folder / "other.py").write_text("pass"), True),
    ],
)
def test_going_on_needs_the_same_to_be_measured(shell, folder, change, goes_on):
    first = shell.json("bench", "bench.toml")["study"]
    change(folder)
    if goes_on:
        assert shell.json("bench", "bench.toml", "--resume")["study"] == first
    else:
        assert "begins anew" in shell("bench", "bench.toml", "--resume", code=2).stderr


def edit(folder, old, new):
    text = (folder / "bench.toml").read_text()
    assert old in text
    (folder / "bench.toml").write_text(text.replace(old, new))


@pytest.mark.slow
def test_command_lines_go_on_with_the_same_scripts_window_and_folder_only(shell, folder):
    for place in (folder, folder / "other"):
        place.mkdir(exist_ok=True)
        for name in ("x.py", "y.py"):
            (place / name).write_text("sum(range(100))")
    lines = ["--baseline", f"{sys.executable} -S x.py", "--candidate", f"{sys.executable} -S y.py"]
    quick = ["bench", *lines, "--units", 1, "--rounds", 10, "--ledger", folder / "ledger"]
    first = shell.json(*quick, "--window", 0.01)["study"]
    assert shell.json(*quick, "--window", 0.01, "--resume", "--margin", 0.2)["study"] == first
    shell(*quick, "--window", 0.02, "--resume", code=2)
    shell.folder = folder / "other"
    shell(*quick, "--window", 0.01, "--resume", code=2)
    shell.folder = folder
    (folder / "y.py").write_text("sum(range(10))")
    shell(*quick, "--window", 0.01, "--resume", code=2)


@pytest.mark.parametrize(
    ("qualities", "outcome"),
    [
        # A loss that gets worse fails, whoever tells it; of a name that tells nothing nothing is known.
        (({"loss": {"value": 0.10, "n": 1000}}, {"loss": {"value": 0.40, "n": 1000}}), "fail"),
        (({"loss": {"value": 0.40, "n": 1000}}, {"loss": {"value": 0.10, "n": 1000}}), "pass"),
        (({"loss": 0.10}, {"loss": 0.40}), "undetermined"),
        (({"score": {"value": 0.40, "n": 1000}}, {"score": {"value": 0.10, "n": 1000}}), "undetermined"),
        (
            (
                {"score": {"value": 0.10, "n": 1000, "higher_is_better": False}},
                {"score": {"value": 0.40, "n": 1000, "higher_is_better": False}},
            ),
            "fail",
        ),
    ],
)
def test_a_gate_on_a_loss_that_gets_worse_does_not_pass(shell, folder, qualities, outcome):
    first, second = qualities
    (name,) = first
    spec = (
        HEAD
        + variant("a", callable="first:call", evaluate=printing(first))
        + variant("b", callable="second:call", evaluate=printing(second))
        + f'[[gate]]\nname = "g"\nmetric = "{name}"\nkind = "max_loss"\nlimit = 0.01\n'
    )
    (folder / "bench.toml").write_text(spec)
    (step,) = shell.json("bench", "bench.toml")["comparison"]["steps"]
    assert step["gates"][0]["outcome"] == outcome
    if outcome != "pass":
        assert step["decision"] != "adopt"


def test_without_an_energy_source_it_ends_before_the_rounds(shell, folder):
    sources = folder / "none.toml"
    sources.write_text('leave_out = ["cpu_model", "ram_model"]\n')
    done = shell("bench", "bench.toml", code=3, CARBONLENS_SOURCES=str(sources))
    if "nothing here tells the energy" not in done.stderr:
        pytest.skip("this machine has a meter of its own")
    assert done.stdout == ""
    assert not [r for r in shell.json("runs")["runs"] if r["role"] == "variant"]


@pytest.mark.slow
def test_the_newcomers_job_is_one_command_from_two_scripts_to_a_page(shell, folder):
    """No change to the scripts, no file to write, at most ten lines printed, both reports."""
    for name, n in (("base.py", 30_000), ("opt.py", 3_000)):
        text = f"import hashlib\nfor _ in range({n}):\n    hashlib.sha256(b'x' * 2000).digest()\n"
        (folder / name).write_text(text)
    begin = time.time()
    done = shell(
        *("bench", "--baseline", f"{sys.executable} base.py", "--candidate", f"{sys.executable} opt.py"),
        *("--units", 20_000, "--unit", "inference", "--report", "out"),
    )
    lines = done.stdout.splitlines()
    assert 1 <= len(lines) <= 10
    assert all(len(line) <= 80 for line in lines if not line.startswith("saved"))
    for name, start in (("report.html", b"<!"), ("report.pdf", b"%PDF")):
        file = folder / "out" / name
        assert file.read_bytes()[:20].lower().startswith(start.lower())
        assert file.stat().st_mtime >= begin - 2
        assert str(file.relative_to(folder)) in lines[-1]
    assert sorted(p.name for p in (folder / "out").iterdir()) == ["report.html", "report.pdf"]


TRAIN = """
import os, sys
open("model.pt", "wb").write(os.urandom(8))
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_there", [False, True])
def test_a_model_that_the_commands_write_hinders_no_going_on(shell, folder, is_there):
    (folder / "train.py").write_text(TRAIN)
    (folder / "other.py").write_text(TRAIN)
    if is_there:
        (folder / "model.pt").write_text("of the last training")
    lines = [f"{sys.executable} -S {name}.py --out model.pt" for name in ("train", "other")]
    command = ["bench", "--baseline", lines[0], "--candidate", lines[1], "--units", 1]
    command += ["--rounds", 10, "--window", 0.01]
    first = shell.json(*command)["study"]
    assert shell.json(*command, "--resume")["study"] == first
    assert shell.json("ledger", "verify")["sound"] is True
    (folder / "other.py").write_text(TRAIN + "pass")
    refused = " ".join(shell(*command, "--resume", code=2).stderr.split())
    assert "other.py changed" in refused
    assert "model.pt" not in refused
    assert "train.py" not in refused


EVALUATION = """
import pathlib, sys
file = pathlib.Path("evaluated-" + sys.argv[1])
file.write_text(file.read_text() + "x" if file.exists() else "x")
if not pathlib.Path("mended").exists():
    raise SystemExit(7)
print('{"accuracy": {"value": 0.9, "n": 4000}}')
"""


@pytest.mark.slow
@pytest.mark.parametrize("work", ["callable", "command"])
def test_going_on_makes_up_for_an_evaluation_that_did_not_end(shell, folder, work):
    (folder / "evaluation.py").write_text(EVALUATION)
    # A quality that the measured command tells is no evaluation.
    (folder / "script.py").write_text(
        """import os; open(os.environ["CARBONLENS_RESULT"], "w").write('{"quality": {"confidence": 0.5}}')"""
    )
    command = [sys.executable, "-S", "script.py"]
    does = {"callable": "second:call"} if work == "callable" else {"command": command, "units": 1}
    told = {name: [sys.executable, "-S", "evaluation.py", name] for name in "ab"}
    spec = HEAD + variant(
        "a", callable="first:call", evaluate=printing({"accuracy": {"value": 0.9, "n": 4000}})
    )
    spec += variant("b", **does, evaluate=told["b"])
    spec += '[[gate]]\nname = "g"\nmetric = "accuracy"\nkind = "max_loss"\nlimit = 0.05\n'
    (folder / "bench.toml").write_text(spec)
    shell("bench", "bench.toml", code=3)
    (folder / "mended").touch()
    for sitting in (2, 3):
        found = shell.json("bench", "bench.toml", "--resume")
        assert found["comparison"]["steps"][0]["gates"][0]["outcome"] == "pass"
        # Twice in all: what a sitting has told once is not asked again.
        assert (folder / "evaluated-b").read_text() == "xx", sitting
    checked = [r for r in shell.json("runs")["runs"] if r["step"] == "b" and r["role"] == "evaluation"]
    assert sorted(r["status"] for r in checked) == ["complete", "complete", "failed"]
