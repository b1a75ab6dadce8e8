"""Every block of docs/costs.md is what the program reads and prints, and every code stands there."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from carbonlens.accounting.charge_joining import TAG_KEYS
from carbonlens.app.charges import RESOURCE_TAGS
from carbonlens.importers.focus_cells import LONGEST_TAG

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "costs.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))
MODULES = [
    *("importers/focus", "importers/focus_cells", "app/importing_charges", "app/charges"),
    *(f"accounting/{n}" for n in ("charges", "charge_joining", "tariff", "cost", "hardware_cost")),
    *(f"accounting/{n}" for n in ("exchange", "price_choice", "electricity_bill", "metered_cost")),
    *(f"accounting/{n}" for n in ("cloud_hours", "expenses", "reported_cost", "statement_cost")),
    *("app/statement_bills", "app/statement_costs", "app/statement_cloud", "app/statement_prices"),
    "accounting/bill_energy",
]


def test_no_block_is_left_out():
    assert len(BLOCKS) + PAGE.count("```python") == PAGE.count("```") // 2
    assert set(BLOCKS) == {"bill.csv", "import", "runs.csv", "charges", "prices"}


def test_the_python_examples_give_what_stands_there():
    found = doctest.testfile(str(ROOT / "docs" / "costs.md"), module_relative=False)
    assert found.attempted >= 15
    assert found.failed == 0


@pytest.mark.slow
def test_the_commands_print_what_stands_below_them(shell):
    for name in ("bill.csv", "runs.csv"):
        (shell.folder / name).write_text(BLOCKS[name], "utf-8")
    for name in ("import", "charges", "prices"):
        lines = BLOCKS[name].splitlines()
        commands = [line.removeprefix("$ carbonlens ") for line in lines if line.startswith("$ ")]
        done = [shell(*shlex.split(command)) for command in commands][-1]
        printed = done.stdout.replace(f"{shell.folder}/", "").splitlines()
        assert printed == [line for line in lines if not line.startswith("$ ")]


def test_every_code_stands_on_the_page():
    used = set()
    for name in MODULES:
        text = (ROOT / "carbonlens" / f"{name}.py").read_text("utf-8")
        used |= set(re.findall(r"\"(CL\d{3})\"", text))
    assert used == set(re.findall(r"CL\d{3}", PAGE))


def test_the_names_in_the_text_are_those_of_the_program():
    words = set(re.findall(r"`([\w-]+)`", PAGE))
    assert {*RESOURCE_TAGS, *TAG_KEYS} <= words
    assert f"{LONGEST_TAG} characters" in PAGE
