"""Every block of docs/drivers.md is what the program prints of the illustrative quarters."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from carbonlens.cli.drivers_savings import _adjustment
from carbonlens.errors import UsageError
from tests.app.quarters_case import FIXTURE
from tests.cli.commands import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "drivers.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))
WHERE = {
    "CARBONLENS_LEDGER": "ledger",
    "CARBONLENS_INVENTORY": "quarters/inventory",
    "CARBONLENS_FACTORS": "quarters/factors.csv",
}


def test_no_block_is_left_out():
    assert len(BLOCKS) == PAGE.count("```") // 2
    assert list(BLOCKS) == ["import", "energy", "cost", "explain", "initiatives"]


@pytest.mark.slow
def test_the_commands_print_what_stands_below_them(tmp_path):
    shutil.copytree(FIXTURE, tmp_path / "quarters")
    shell = Shell(tmp_path)
    for block in BLOCKS.values():
        lines = block.splitlines()
        commands = [line.removeprefix("$ carbonlens ") for line in lines if line.startswith("$ ")]
        done = [shell(*shlex.split(command), **WHERE) for command in commands][-1]
        wanted = [line for line in lines if not line.startswith("$ ")]
        printed = [line.replace(f"{tmp_path}/", "") for line in done.stdout.splitlines()]
        if wanted[-1] == "...":
            wanted, printed = wanted[:-1], printed[: len(wanted) - 1]
        assert printed == wanted
        assert all(len(line) <= 80 for line in printed)
    refusals(shell)


def refusals(shell):
    """Bad input ends in one plain line and code 2; in the same ledger, as to import it takes longest."""
    for arguments, words in (
        (("--period", "2026Q3", "--against", "2026-09"), "overlap"),
        (("--period", "2026Q2"), "could have changed from"),
        (("--period", "2026Q3", "--measure", "water"), "no measure 'water'"),
        (("--period", "2026Q3", "--same", "chat"), "write OLD=NEW"),
    ):
        done = shell("drivers", *arguments, code=2, **WHERE)
        assert words in done.stderr
        assert done.stdout == ""
    done = shell("initiatives", "--period", "2026Q3", "--adjust", "int8-chat=nan:x", code=2, **WHERE)
    assert "is no adjustment" in done.stderr
    shape = shell.json("drivers", "--period", "2026Q3", "--measure", "all", **WHERE)
    assert [b["measure"] for b in shape["bridges"]] == ["energy", "carbon-location", "carbon-market", "cost"]
    assert shape["labels"] == {"period": "DRAFT", "against": "DRAFT"}
    register = shell.json("initiatives", "--period", "2026Q3", **WHERE)
    assert register["initiatives"][0]["verdict"] == "confirmed"


@pytest.mark.parametrize("kwh", ["nan", "inf", "1e308", "-1e308", "1e12", "", "x"])
def test_an_adjustment_is_an_energy_that_a_record_could_hold(kwh):
    with pytest.raises(UsageError, match="is no adjustment"):
        _adjustment(f"int8={kwh}:new data")


def test_an_adjustment_may_take_away():
    assert _adjustment("int8=-120.5: new data ").kwh == -120.5
