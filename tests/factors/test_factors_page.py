"""docs/factors.md: which kinds have no bundled rows, and that the example fills the lines they leave open."""

import json
import re

import pytest

from carbonlens.app.factors import list_factors
from carbonlens.domain.factor_row import UNITS
from carbonlens.factors.store import bundled, read_table
from tests.app import statement_case as case
from tests.cli.commands import Shell
from tests.factors import pages

TEXT = pages.PAGE.read_text("utf-8")
SECTION = TEXT.partition("## Kinds without bundled rows\n")[2].partition("\n## ")[0]
EXAMPLE = SECTION.partition("<!-- example: kinds.csv -->\n```csv\n")[2].partition("```")[0]
LINES = ("supply_kg", "transmission_kg", "water_source_l")


@pytest.fixture
def shell(tmp_path):
    case.write(tmp_path)
    grid = "".join(line for line in case.FACTORS.splitlines(keepends=True) if "residual" not in line)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "grid.csv").write_text(grid, "utf-8")
    (tmp_path / "own" / "kinds.csv").write_text(EXAMPLE, "utf-8")
    return Shell(tmp_path)


def test_the_kinds_named_are_those_without_a_row():
    held = {row.kind for row in bundled().rows}
    told = set(re.findall(r"^\| `(\w+)`", SECTION, re.MULTILINE))
    assert told == (set(UNITS) - held) | {"grid"}
    assert {row.method for row in bundled().rows if row.kind == "grid"} == {"location"}
    assert {row.averaging for row in bundled().rows if row.kind == "grid"} == {"average"}
    assert all(re.fullmatch(r"\d{4}", row.period) for row in bundled().rows)


def test_the_coverage_is_that_of_the_rows_that_the_command_lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CARBONLENS_FACTORS", raising=False)
    rows = list_factors().rows
    table = [line.strip("| ").split(" | ") for line in pages.coverage_by_source()[2:]]
    counted = sum(int(cell) for line in table for cell in line[2:] if cell.strip().isdigit())
    assert counted == len(rows)
    assert {line[0] for line in table if line[1] == "none"} == set(UNITS) - {row.kind for row in rows}


def test_the_example_holds_a_row_of_each_kind_that_a_table_brings(tmp_path):
    file = tmp_path / "kinds.csv"
    file.write_text(EXAMPLE, "utf-8")
    rows = read_table(file).rows
    assert {(row.kind, row.method) for row in rows} == {
        ("upstream", None), ("transmission", None), ("water_source", None), ("grid", "residual"),
    }  # fmt: skip


def test_the_example_fills_the_lines_of_a_statement(shell):
    options = ("--period", case.PERIOD, "--json")
    done = shell("account", *options, CARBONLENS_LEDGER="ledger", CARBONLENS_FACTORS="own")
    made = json.loads(done.stdout)
    (lab,) = (site for site in made["sites"] if site["line"] == "lab")
    assert {line: lab["amounts"][line]["state"] for line in LINES} == dict.fromkeys(LINES, "known")
    assert "CL392" not in {finding["code"] for finding in made["findings"]}
