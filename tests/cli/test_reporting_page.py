"""The commands of docs/reporting.md print what stands there, but for counts of this study's own."""

import re
import shlex
from pathlib import Path

from tests.app.test_verify import filled_ledger
from tests.cli.commands import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "reporting.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))


def without_counts(lines):
    return [re.sub(r"\d+ (figures|runs)", r"N \1", line) for line in lines]


def test_report_and_verify_print_what_the_page_says(tmp_path):
    filled_ledger(tmp_path / ".carbonlens")
    shell = Shell(tmp_path)
    study = shell.json("runs")["runs"][0]["study"]
    assert set(BLOCKS) == {"report", "verify"}
    for block in BLOCKS.values():
        lines = block.splitlines()
        (command,) = [line.removeprefix("$ carbonlens ") for line in lines if line.startswith("$ ")]
        done = shell(*shlex.split(command.replace("--study sort", f"--study {study}")))
        assert without_counts(done.stdout.splitlines()) == without_counts(lines[1:])
