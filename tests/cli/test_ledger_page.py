"""Every example of docs/ledger.md is run as it stands; ``...`` stands for what differs each time."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from carbonlens.domain import limits
from carbonlens.ledger.closes import Close
from carbonlens.ledger.redacting import GONE_S

PAGE = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text("utf-8")
FILES = dict(re.findall(r"<!-- file: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))
EXAMPLES = re.findall(r"<!-- example -->\n```\n(.*?)```", PAGE, re.DOTALL)


def test_no_block_is_left_out():
    assert len(FILES) + len(EXAMPLES) == PAGE.count("```") // 2
    assert len(EXAMPLES) == 5


@pytest.mark.slow
def test_the_commands_print_what_stands_below_them(shell):
    for name, content in FILES.items():
        (shell.folder / name).write_text(content, "utf-8")
    for part in re.split(r"^\$ ", "\n".join(EXAMPLES), flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        program, *arguments = shlex.split(command)
        done = shell(*arguments) if program == "carbonlens" else _python(*arguments, folder=shell.folder)
        expected = re.escape(printed.strip()).replace(r"\.\.\.", ".*")
        assert re.fullmatch(expected, done.stdout.strip(), re.DOTALL), (command, done.stdout)


def _python(*arguments, folder):
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)


def test_every_field_of_a_manifest_stands_on_the_page():
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert {f.name for f in msgspec.structs.fields(Close)} - {"period"} <= named


def test_the_limits_in_the_text_are_those_of_the_program():
    for most in (limits.MOST, limits.MOST_S, limits.MOST_KG, limits.MOST_MONEY):
        assert f"{most:.0e}".replace("e+", "e") in PAGE
    assert f"{limits.MOST_HOURS // 24} days" in PAGE
    assert GONE_S == 3600
    assert "after an hour" in PAGE
