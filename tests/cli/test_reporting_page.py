"""The commands of docs/reporting.md print what stands there, but for counts of this study's own."""

import re
import shlex
from pathlib import Path

from tests.app.test_verify import filled_ledger
from tests.cli.commands import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "reporting.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))


ROOT = Path(__file__).parents[2]
EXACT = {"allocation.md": "tests/cli/test_allocation_page.py"}
"""Pages whose blocks are held word for word against what the program prints, and the test that does it."""


def without_counts(lines):
    return [
        re.sub(r"\d+ (figures|runs)", lambda m: {"figures": "N ", "runs": "M "}[m[1]] + m[1], line)
        for line in lines
    ]


def test_no_page_states_a_count_of_figures_that_nothing_computes():
    # docs/findings.md is written from the codes, and quotes a message of each.
    pages = [ROOT / "README.md", *(p for p in (ROOT / "docs").rglob("*.md") if p.name != "findings.md")]
    stated = {p.name for p in pages if re.search(r"\d[\d,. ]* figures\b", p.read_text("utf-8"))}
    assert stated == EXACT.keys()
    for page, test in EXACT.items():
        text = (ROOT / "docs" / page).read_text("utf-8")
        outside = re.sub(r"<!-- example: [\w.]+ -->\n```\w*\n.*?```", "", text, flags=re.DOTALL)
        assert not re.search(r"\d+ figures\b", outside)
        assert page in (ROOT / test).read_text("utf-8")


def test_report_and_verify_print_what_the_page_says(tmp_path):
    filled_ledger(tmp_path / ".carbonlens")
    shell = Shell(tmp_path)
    study = shell.json("runs")["runs"][0]["study"]
    assert set(BLOCKS) == {"report", "verify"}
    for block in BLOCKS.values():
        lines = block.splitlines()
        (command,) = [line.removeprefix("$ carbonlens ") for line in lines if line.startswith("$ ")]
        done = shell(*shlex.split(command.replace("--study sort", f"--study {study}")))
        assert without_counts(done.stdout.splitlines()) == lines[1:]
