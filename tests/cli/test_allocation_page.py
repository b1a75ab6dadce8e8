"""docs/allocation.md: its examples give what stands there, and every code is explained."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "allocation.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))
INVENTORY = ("sites.toml", "services.toml", "service_uses.csv", "reporting.toml")
MODULES = (
    *("accounting/sharing", "accounting/shared_costs", "accounting/service_shares", "app/allocation"),
    *("accounting/restatement", "app/restatement"),
)


def test_the_python_examples_give_what_stands_there():
    found = doctest.testfile(str(ROOT / "docs" / "allocation.md"), module_relative=False)
    assert found.attempted >= 20
    assert found.failed == 0


@pytest.mark.slow
def test_the_commands_print_what_stands_below_them(shell):
    (shell.folder / "inventory").mkdir()
    for name, text in BLOCKS.items():
        if "." in name:
            place = shell.folder / "inventory" if name in INVENTORY else shell.folder
            (place / name).write_text(text, "utf-8")
    (shell.folder / "new.csv").write_text(BLOCKS["old.csv"].replace("0.40", "0.36"))
    for name in ("allocate", "restate"):
        lines = BLOCKS[name].splitlines()
        commands = [line.removeprefix("$ carbonlens ") for line in lines if line.startswith("$ ")]
        done = [shell(*shlex.split(command)) for command in commands][-1]
        assert done.stdout.splitlines() == [line for line in lines if not line.startswith("$ ")]


def test_every_code_is_explained():
    used = set()
    for name in MODULES:
        used |= set(re.findall(r"\"(CL\d{3})\"", (ROOT / "carbonlens" / f"{name}.py").read_text("utf-8")))
    assert used == set(re.findall(r"^\| (CL\d{3}) \|", PAGE, re.MULTILINE))
