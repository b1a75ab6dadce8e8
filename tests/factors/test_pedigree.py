"""A pedigree of a user's factor is its width, through to the location-based figure of a statement."""

import math

import pytest

from carbonlens.app.statement import make_statement
from carbonlens.domain.units import Z_95
from carbonlens.errors import ConfigError
from carbonlens.factors.store import open_factors
from carbonlens.factors.table_file import read_csv, write_csv
from tests.app import statement_case as case

HEAD = "factor_id,kind,subject,period,value,method,averaging,source,address,licence,vintage,pedigree"
ROW = "own/DE,grid,DE,2026,0.4,location,average,Test table,test,CC0,2026"
CELL = '"basic=1.05, reliability=1.1, technology=1.2"'
SIGMA = math.hypot(*(math.log(f) for f in (1.05, 1.1, 1.2))) / Z_95


def table(cell, head=HEAD, row=ROW):
    return read_csv(f"{head}\n{row},{cell}\n", where="own.csv")


def test_a_pedigree_is_the_rows_width_and_stays_in_its_note():
    (row,) = table(CELL).rows
    assert row.u_relative == pytest.approx(SIGMA)
    assert "reliability=1.1" in row.note
    assert read_csv(write_csv([row]), where="again").rows == (row,)


def test_an_empty_cell_is_no_pedigree():
    (row,) = table("").rows
    assert (row.u_relative, row.note) == (None, "")


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("reliability=0.9", "factor 0.9 is below 1"),
        ("reliability=good", "reliability=good"),
        ("colour=1.1", "colour=1.1"),
        ("reliability=nan", "reliability=nan"),
        ("reliability=inf", "reliability=inf"),
        ('"reliability=1.1, reliability=1.2"', "reliability=1.2"),
    ],
)
def test_what_is_no_pedigree_is_refused_with_its_line(cell, words):
    with pytest.raises(ConfigError) as caught:
        table(cell)
    assert words in str(caught.value)
    assert "own.csv, line 2" in str(caught.value)


def test_a_row_with_two_widths_is_refused():
    with pytest.raises(ConfigError, match="pedigree and u_relative"):
        table(CELL, HEAD.replace("vintage,", "vintage,u_relative,"), f"{ROW},0.1")


def test_toml_states_it_alike(tmp_path):
    path = tmp_path / "own.toml"
    names = HEAD.split(",")
    values = [*ROW.split(","), "basic=1.05, reliability=1.1, technology=1.2"]
    text = "\n".join(f'{n} = "{v}"' for n, v in zip(names, values, strict=True))
    path.write_text(f"[[factor]]\n{text}\n")
    (row,) = open_factors(path).own
    assert row.u_relative == pytest.approx(SIGMA)


def test_it_is_the_factors_part_of_a_statements_error(tmp_path):
    case.write(tmp_path)
    wide = case.FACTORS.replace("u_relative", "pedigree").replace(",0.1,", ",technology=1.5,")
    (tmp_path / "factors.csv").write_text(wide)
    made = make_statement(
        case.PERIOD,
        ledger=tmp_path / "ledger",
        inventory=tmp_path / "inventory",
        factors=tmp_path / "factors.csv",
        now_us=case.NOW_US,
    )
    kg = {f.figure_id: f.estimate for f in made.statement.figures}[f"statement.{case.PERIOD}.lab.location_kg"]
    share = kg.u_by_source["own/DE"] / kg.value
    assert share == pytest.approx(math.log(1.5) / Z_95)
