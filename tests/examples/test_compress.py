"""The compression ladder of the examples, and every block of docs/compressing.md, run as users run them."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.metering.processes import clean_environment, runs

for _library in ("torch", "onnx", "onnxruntime", "sklearn"):
    pytest.importorskip(_library, reason="the library that this example is for is not installed")

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "compressing.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))


def run_script(script, folder, *arguments):
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        env=clean_environment(folder),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.slow
def test_the_ladder_of_the_example(tmp_path):
    ledger = tmp_path / "ledger"
    printed = run_script(DOCS / "examples" / "compress.py", tmp_path, str(ledger)).stdout
    records = runs(ledger)
    effort = {r.step: r for r in records if r.role == "effort"}
    assert list(effort) == ["pruned", "distilled", "export", "int8"]
    sizes = {
        step: {a.direction: (a.parameters, a.macs) for a in effort[step].artefacts}
        for step in ("pruned", "distilled", "int8")
    }

    def weights(*widths):
        sizes = (64, *widths, 10)
        macs = sum(a * b for a, b in pairwise(sizes))
        return macs + sum(sizes[1:]), macs

    assert sizes["pruned"] == {"in": weights(512, 512), "out": weights(256, 256)}
    assert sizes["distilled"] == {"in": weights(256, 256), "out": weights(128)}
    assert sizes["int8"] == {"in": weights(128), "out": weights(128)}
    # The student goes on as a file, and the file that is quantized is the one that was exported.
    exported = {a.name: a for a in effort["export"].artefacts}
    assert effort["distilled"].artefacts[0].sha256 == effort["pruned"].artefacts[1].sha256
    assert effort["int8"].artefacts[0].sha256 == exported["distilled"].sha256
    before, after = effort["int8"].artefacts
    assert after.bytes < before.bytes / 2
    assert [f.code for r in effort.values() for f in r.findings if f.code.startswith("CL14")] == []
    # By how much is the machine's affair; that 84,480 products take less than 300,032 is not.
    lines = {line.split()[0]: line for line in printed.splitlines()[:3]}
    assert set(lines) == {"pruned", "distilled", "int8"}
    variants = [r for r in records if r.role == "variant"]
    assert {(r.step, r.repeat) for r in variants} == {
        (step, k) for step in ("fp32", *lines) for k in range(1, 7)
    }
    used = {
        step: sum(r.conditions.cpu_s for r in variants if r.step == step)
        / float(sum(r.units for r in variants if r.step == step))
        for step in ("fp32", *lines)
    }
    assert used["fp32"] > used["pruned"] > used["distilled"]
    assert all(f"effort {effort[s].total_energy.value:6.2f} J" in lines[s] for s in lines)


def test_no_block_of_the_page_is_left_out():
    assert len(BLOCKS) == PAGE.count("```") // 2
    assert list(BLOCKS) == ["block", "function", "file", "variant"]


@pytest.mark.slow
def test_the_blocks_of_the_page_do_what_they_say(tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(BLOCKS.values()), "utf-8")
    run_script(script, tmp_path)
    records = runs(tmp_path / ".carbonlens")
    assert [(r.step, r.role) for r in records] == [
        ("pruned", "effort"),
        ("int8", "effort"),
        ("export", "effort"),
        ("pruned", "variant"),
    ]
    assert [a.parameters for a in records[1].artefacts] == [9610, 9610]
    assert records[3].macs_per_unit == 9472
    assert records[3].model_bytes == records[2].artefacts[1].bytes
