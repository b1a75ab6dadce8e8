"""Every block of docs/business.md is what the program reads and prints; its words are the program's."""

import re
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest

from carbonlens.domain.business import (
    CarbonPrice,
    Embedded,
    OneOff,
    RunningCost,
    SavingRule,
    Scenario,
    Trajectory,
)
from carbonlens.domain.finding_codes.business import BUSINESS
from carbonlens.inventory.business_file import Head

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "business"
PAGE = (ROOT / "docs" / "business.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))


def test_no_block_is_left_out():
    assert len(BLOCKS) == PAGE.count("```") // 2
    assert set(BLOCKS) == {"business.toml", "demo", "options", "embedded.toml", "devices"}


@pytest.mark.parametrize("name", ["business.toml", "embedded.toml"])
def test_the_files_are_those_of_the_examples(name):
    assert (EXAMPLES / name).read_text("utf-8") == BLOCKS[name]


@pytest.mark.slow
def test_the_commands_print_what_stands_below_them(shell):
    for file in EXAMPLES.iterdir():
        shutil.copy(file, shell.folder)
    for name in ("demo", "options", "devices"):
        lines = BLOCKS[name].splitlines()
        commands = [line.removeprefix("$ carbonlens ") for line in lines if line.startswith("$ ")]
        done = [shell(*shlex.split(command)) for command in commands][-1]
        printed = done.stdout.splitlines()
        assert printed == [line for line in lines if not line.startswith("$ ")]
        assert len(printed) <= 20
        assert max(map(len, printed)) <= 80


def test_every_code_stands_on_the_page():
    assert {c.code for c in BUSINESS} == set(re.findall(r"CL8\d\d", PAGE))


@pytest.mark.parametrize(
    "kind", [Head, Scenario, SavingRule, OneOff, RunningCost, CarbonPrice, Trajectory, Embedded]
)
def test_every_key_stands_on_the_page(kind):
    words = set(re.findall(r"\w+", PAGE))
    assert {f.name for f in msgspec.structs.fields(kind)} <= words
