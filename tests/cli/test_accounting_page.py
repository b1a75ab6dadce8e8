"""The commands of docs/accounting.md run as they stand there."""

import re
import shlex
from pathlib import Path

from tests.cli.commands import Shell

PAGE = Path(__file__).parents[2] / "docs" / "accounting.md"
FILES = dict(re.findall(r"<!-- example: ([\w./]+) -->\n```\w*\n(.*?)```", PAGE.read_text(), re.DOTALL))


def commands():
    block = PAGE.read_text().partition("<!-- executed -->\n```console\n")[2].partition("```")[0]
    return [line.removeprefix("$ carbonlens ") for line in block.splitlines()]


def write_files(folder):
    """Write what the page defines, and nothing else: a newcomer has no more."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_the_commands_of_the_page_run_with_the_files_of_the_page(tmp_path):
    write_files(tmp_path)
    shell = Shell(tmp_path)
    lines = commands()
    assert lines[0].startswith("import ")
    assert len(lines) >= 5
    for line in lines:
        done = shell(*shlex.split(line))
        assert "2026-05" in done.stdout or line.startswith("import ")


def test_each_id_of_the_page_is_one_of_its_statement(tmp_path):
    """Ids of teams and sites that the page does not define cannot stand in its commands."""
    write_files(tmp_path)
    named = {word for line in commands() for word in line.split() if word.startswith("statement.")}
    assert named
    assert all(".lab." in name or ".red." in name for name in named)
    assert 'id = "lab"' in FILES["inventory/sites.toml"]
    assert any("team=red" in line for line in commands())
