"""The training examples and every block of docs/training.md, run as users run them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.metering.processes import clean_environment, runs

pytest.importorskip("torch", reason="torch is of an extra that is not installed")

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "training.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NODE_RANK")


def environment(folder, **more):
    env = clean_environment(folder, CARBONLENS_LEDGER=str(folder / "ledger"), OMP_NUM_THREADS="1", **more)
    return {k: v for k, v in env.items() if k not in LAUNCHER and not k.startswith("TORCHELASTIC")}


def completed(command, folder, **more):
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def by_two(folder, *command, **more):
    """Run two ranks; return the folder they ran in, and the CPU seconds that all of it took.

    On a machine that stands still for a while gloo's ranks do not find each other in time,
    with or without carbonlens: then they start anew.
    """
    for left in (2, 1, 0):
        place = folder / str(left)
        place.mkdir()
        before = os.times()
        try:
            completed([*TORCHRUN, *command], place, **more)
        except AssertionError as error:
            if not left or "Gloo connectFullMesh failed" not in str(error):
                raise
            continue
        after = os.times()
        children = after.children_user - before.children_user
        return place, children + after.children_system - before.children_system
    raise AssertionError("the last try returns or raises")


def recorded(folder):
    return sorted(runs(folder / "ledger"), key=lambda r: (r.attempt, r.rank or 0))


def listed(folder):
    return json.loads(
        completed([sys.executable, "-m", "carbonlens.cli.main", "runs", "--json"], folder).stdout
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["huggingface", "lightning"])
def test_a_framework_trains_and_resumes(tmp_path, name):
    pytest.importorskip(
        {"huggingface": "transformers", "lightning": "lightning"}[name],
        reason="the library that this example is for is not installed",
    )
    completed([sys.executable, DOCS / "examples" / f"train_{name}.py"], tmp_path)
    first, second = recorded(tmp_path)
    assert (first.job_id, first.attempt, second.attempt) == (second.job_id, 1, 2)
    assert (first.status, first.units, first.role) == ("complete", 390, "training")
    assert (second.status, second.units) == ("complete", 195)
    for run in (first, second):
        assert {"load", "warm-up", "steady", "evaluation"} <= {p.name for p in run.phases}
        assert sum(p.units or 0 for p in run.phases) == run.units
        assert any(q.name.endswith("accuracy") and q.n == 50 for q in run.quality)
        assert run.total_energy.value > 0


@pytest.mark.slow
def test_two_processes_are_one_run_and_a_restart_is_another_attempt(tmp_path):
    """Real torchrun, gloo on the CPU: rank 1 raises in the first attempt, and both start again."""
    script = DOCS / "examples" / "train_ddp.py"
    place, used = by_two(tmp_path, "--max-restarts", "1", script, CRASH="1")
    records = recorded(place)
    assert [(r.attempt, r.rank) for r in records] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert len({r.job_id for r in records}) == 1
    assert [r.status for r in records] == ["failed", "failed", "complete", "complete"]
    # 400 images, 4 epochs, half of them each: none counted twice.
    assert [r.units for r in records[2:]] == [800, 800]
    # No second of CPU time stands in two records: they sum to less than all that torchrun took.
    assert 0 < sum(r.conditions.cpu_s for r in records) < used
    printed = listed(place)
    assert [(j["attempt"], j["ranks"], j["status"]) for j in printed["jobs"]] == [
        (1, [0, 1], "failed"),
        (2, [0, 1], "complete"),
    ]
    assert printed["jobs"][1]["units"] == 1600
    whole = sum(r["energy"]["total"]["value"] for r in printed["runs"])
    assert sum(j["energy_billed"]["value"] for j in printed["jobs"]) == pytest.approx(whole)
    assert printed["totals"]["energy_billed"]["value"] == pytest.approx(whole)


def test_no_block_of_the_page_is_left_out():
    assert len(BLOCKS) == PAGE.count("```python")
    assert set(BLOCKS) == {"loop", "resume", "huggingface", "lightning", "ddp"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["loop", "resume"])
def test_a_block_of_the_page_without_a_framework(tmp_path, name):
    block = tmp_path / "block.py"
    block.write_text(BLOCKS[name], "utf-8")
    completed([sys.executable, block], tmp_path)
    records = recorded(tmp_path)
    assert {(r.status, r.role, r.unit) for r in records} == {("complete", "training", "image")}
    if name == "loop":
        assert {p.name for p in records[0].phases} == {
            "load",
            "warm-up",
            "steady",
            "evaluation",
            "checkpoint",
        }
    else:
        assert [(r.job_id, r.attempt) for r in records] == [(records[0].job_id, 1), (records[0].job_id, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["huggingface", "lightning"])
def test_a_block_of_the_page_with_a_framework(tmp_path, name):
    pytest.importorskip(
        {"huggingface": "transformers", "lightning": "lightning"}[name],
        reason="the library that this example is for is not installed",
    )
    block = tmp_path / "block.py"
    block.write_text(BLOCKS[name], "utf-8")
    completed([sys.executable, block], tmp_path)
    (run,) = recorded(tmp_path)
    assert (run.status, run.role, run.units) == ("complete", "training", 64)


@pytest.mark.slow
def test_the_block_of_the_page_for_torchrun(tmp_path):
    block = tmp_path / "block.py"
    block.write_text(BLOCKS["ddp"], "utf-8")
    completed([*TORCHRUN, block], tmp_path)
    assert [(r.rank, r.status, r.units) for r in recorded(tmp_path)] == [
        (0, "complete", 32),
        (1, "complete", 32),
    ]
