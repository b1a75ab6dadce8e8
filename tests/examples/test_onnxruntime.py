"""The ONNX Runtime example and every block of docs/onnxruntime.md, run as users run them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from carbonlens.instrument import onnxruntime_findings
from carbonlens.instrument.onnxruntime_profile import _MOST_BYTES
from tests.metering.processes import clean_environment, runs

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "onnxruntime.md").read_text("utf-8")
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


def test_no_block_of_the_page_is_left_out():
    assert len(BLOCKS) == PAGE.count("```") // 2
    assert list(BLOCKS) == ["model", "block", "alone", "units", "profile", "read"]


def test_the_blocks_of_the_page_do_what_they_say(tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(BLOCKS.values()), "utf-8")
    printed = run_script(script, tmp_path).stdout.splitlines()
    assert {line.partition(":")[0] for line in printed} == {
        "CPUExecutionProvider MatMul",
        "CPUExecutionProvider Softmax",
    }
    records = runs(tmp_path / ".carbonlens")
    assert [(r.step, r.units) for r in records] == [
        ("fp32", 320),
        ("fp32", 32),
        (None, 32),
        ("fp32-profile", 384),
    ]


def test_the_findings_of_the_page_are_those_of_the_program():
    text = Path(onnxruntime_findings.__file__).read_text("utf-8")
    told = set(re.findall(r"\| (CL1\d\d) \|", PAGE))
    assert told - {"CL198"} <= set(re.findall(r'code="(CL1\d\d)"', text))
    assert _MOST_BYTES == 64 * 1024**2


@pytest.mark.slow
def test_the_example_measures_both_versions_and_profiles_them(tmp_path):
    ledger = tmp_path / "ledger"
    printed = run_script(DOCS / "examples" / "onnxruntime_session.py", tmp_path, str(ledger)).stdout
    records = runs(ledger)
    variants = [r for r in records if r.study == "digits-onnx"]
    assert {(r.step, r.repeat) for r in variants} == {(s, k) for s in ("fp32", "int8") for k in range(1, 7)}
    assert all(r.units == 32 * r.latency.n for r in variants)
    used = {
        step: sum(r.conditions.cpu_s for r in variants if r.step == step)
        / float(sum(r.units for r in variants if r.step == step))
        for step in ("fp32", "int8")
    }
    # Four to one in bytes: on a processor with integer products the work is less, too.
    sizes = {r.step: r.model_bytes for r in variants}
    assert sizes["int8"] < sizes["fp32"] / 3
    assert used["int8"] < 1.5 * used["fp32"]
    profiled = {r.step: r for r in records if r.step.endswith("-profile")}
    assert set(profiled) == {"fp32-profile", "int8-profile"}
    for record in profiled.values():
        assert record.execution[0].share == 1.0
        assert {f.code for f in record.findings if f.code >= "CL190"} == {"CL197"}
    assert re.search(r"^int8: [+-]\d+ % energy an image \((better|same|worse|inconclusive)\)", printed, re.M)
    assert re.search(r"^int8 on CPUExecutionProvider: .*(QGemm|QLinearMatMul)", printed, re.M)
    assert not list(tmp_path.glob("onnxruntime_profile*"))
