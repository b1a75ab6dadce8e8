"""The commands of docs/auditing.md run as they stand there, and say what the page says."""

import re
import shlex
from pathlib import Path

import pytest

from carbonlens.domain.finding_codes import CODES
from tests.cli.commands import Shell
from tests.cli.test_accounting_page import write_files

PAGE = Path(__file__).parents[2] / "docs" / "auditing.md"


def commands():
    block = PAGE.read_text().partition("<!-- executed -->\n```console\n")[2].partition("```")[0]
    return [line.removeprefix("$ carbonlens ") for line in block.splitlines()]


def test_the_commands_of_the_page_run(tmp_path):
    write_files(tmp_path)
    shell = Shell(tmp_path)
    lines = commands()
    assert len(lines) == 6
    for line in lines:
        command, _, file = line.partition(" > ")
        done = shell(*shlex.split(command))
        if file:
            (tmp_path / file).write_text(done.stdout)
        told = ("2026-05", "pue:lab", "account.json", "saved 2 runs")
        assert any(words in done.stdout for words in told), done.stdout
        # The folder of the test is longer than one that a user works in.
        lines_told = done.stdout.replace(f"{tmp_path}/", "").splitlines()
        assert all(len(text) <= 80 for text in lines_told) or file


def test_the_page_names_every_check_by_its_code():
    named = set(re.findall(r"CL7\d\d", PAGE.read_text()))
    audit = {c.code for c in CODES if c.code.startswith("CL7")}
    assert named <= audit
    assert audit - named == {"CL707", "CL708", "CL716"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["card.json", "--period", "2026"], "files and a ledger are audited apart"),
        (["--period", "2026", "--assumptions", "a.toml"], "a period has the factors of its statement"),
    ],
)
def test_what_is_asked_together_and_means_nothing_is_refused(shell, options, said):
    assert said in " ".join(shell("audit", *options, code=2).stderr.split())
