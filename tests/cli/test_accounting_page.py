"""The commands of docs/accounting.md run as they stand there."""

import shlex
from pathlib import Path

import pytest

from tests.app import statement_case as case
from tests.cli.commands import Shell

PAGE = Path(__file__).parents[2] / "docs" / "accounting.md"


def commands():
    block = PAGE.read_text().partition("<!-- executed -->\n```console\n")[2].partition("```")[0]
    return [line.removeprefix("$ carbonlens ") for line in block.splitlines()]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    case.write(folder)
    return Shell(folder)


@pytest.mark.parametrize("line", commands())
def test_each_command_of_the_page_runs(shell, line):
    done = shell(*shlex.split(line), CARBONLENS_LEDGER="ledger", CARBONLENS_FACTORS="factors.csv")
    assert "2026-05" in done.stdout


def test_the_page_names_commands():
    assert len(commands()) >= 3
