"""Any CSV by a map of its columns: units by name, nothing guessed, nothing lost without a word."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.app.importing import import_files
from carbonlens.app.importing_placing import Said, placing_of
from carbonlens.domain.import_map import TableRule
from carbonlens.errors import ConfigError, InputFileError, UsageError
from carbonlens.importers.contract import Options
from carbonlens.importers.mapped_table import ENERGY_J, IMPORTER
from carbonlens.ledger.store import Ledger
from tests.importers.reading import codes, read_any

COLUMNS = {
    "run_id": "Name",
    "energy_wh": "Energy (Wh)",
    "duration_s": "Time",
    "emissions_g": "CO2 [g]",
    "start": "Started",
    "project": "Project",
}
HEAD = "Name,Started,Time,Energy (Wh),CO2 [g],Project"
ROWS = "a,2026-03-01 10:00:00,0:01:40,5,1.9,x\nb,2026-03-01T11:00:00Z,100,2.5,0.95,y\n"


@pytest.fixture
def read(tmp_path):
    def text(content, columns=None, **more):
        file = tmp_path / "any.csv"
        file.write_text(content)
        rule = TableRule(columns=columns or COLUMNS, **more)
        return read_any(IMPORTER, file, Options(table=rule, tz="Europe/Paris"))

    return text


def test_columns_come_in_the_units_that_the_map_names(read):
    got = read(f"{HEAD}\n{ROWS}", boundary="it", grade="A")
    one, other = got.runs
    assert [float(r.stated_j) for r in got.records] == [18_000.0, 9_000.0]
    assert (one.duration_s, one.emissions_reported_kg) == (100.0, Decimal("0.0019"))
    assert (one.energy[0].boundary, one.energy[0].grade) == ("it", "A")
    assert other.start_us - one.start_us == 2 * 3_600_000_000
    assert got.rows == 2


def test_an_unknown_grade_is_d(read):
    assert read(f"{HEAD}\n{ROWS}").runs[0].energy[0].grade == "D"


def test_semicolons_and_decimal_commas(read):
    text = (
        f"{HEAD}\n{ROWS}".replace(",", ";")
        .replace("2.5", "2,5")
        .replace("1.9", "1,9")
        .replace("0.95", "0,95")
    )
    assert [float(r.stated_j) for r in read(text).records] == [18_000.0, 9_000.0]


@pytest.mark.parametrize("field", ENERGY_J)
@given(amount=st.decimals("0.001", "1000000", places=3))
def test_every_unit_is_exact(tmp_path_factory, field, amount):
    file = tmp_path_factory.mktemp("m") / "t.csv"
    file.write_text(f"id,e\nx,{amount:f}\n")
    rule = TableRule(columns={"run_id": "id", field: "e"})
    (record,) = read_any(IMPORTER, file, Options(table=rule)).records
    assert record.stated_j == (amount * ENERGY_J[field]).quantize(Decimal("0.000001"))


def test_power_and_time_give_energy(read):
    (record,) = read("w,t\n200,60\n", {"power_w": "w", "duration_min": "t"}).records
    assert float(record.stated_j) == 720_000.0
    assert "power times" in record.run.energy[0].method


def test_emissions_alone_are_a_run_of_unknown_energy(read):
    got = read("method,kg\np,0.01\nq,0.02\n", {"step": "method", "emissions_kg": "kg"})
    assert [r.emissions_reported_kg for r in got.runs] == [Decimal("0.01"), Decimal("0.02")]
    assert {r.energy[0].state for r in got.runs} == {"unknown"}


def test_rows_without_an_id_are_known_by_their_content(read):
    got = read("e,x\n1,a\n1,b\n1,a\n", {"energy_j": "e"})
    assert (len(got.runs), got.rows_repeated, codes(got)) == (2, 1, ["CL201"])


def test_bad_rows_are_left_out_with_their_lines(read):
    got = read(f"{HEAD}\na,x,1,5,1,p\nb,2026-03-01,1,-5,1,p\nc,2026-03-01,1,5\nd,2026-03-01,1,,,p\n{ROWS}")
    assert [f.line for f in got.findings if f.code == "CL202"] == [2, 3, 4, 5]
    assert (got.rows, got.rows_rejected, len(got.runs)) == (6, 4, 2)


def test_a_unit_that_lies_is_said(read):
    got = read("id,kwh,s\nx,360000,3600\n", {"run_id": "id", "energy_kwh": "kwh", "duration_s": "s"})
    assert " J would fit" in next(f.message for f in got.findings if f.code == "CL248")
    got = read(
        "id,j,s,a,b\nx,5000,5000,2026-01-01T00:00:00Z,2026-01-01T00:00:05Z\n",
        {"run_id": "id", "energy_j": "j", "duration_s": "s", "start": "a", "end": "b"},
    )
    assert "5000 ms would fit" in next(f.message for f in got.findings if f.code == "CL249")


def test_a_column_that_is_not_there_or_a_field_that_is_none_is_refused(read):
    with pytest.raises(InputFileError, match="lacks the column 'name'"):
        read("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="no field 'enrgy_j'"):
        read("a,b\n1,2\n", {"enrgy_j": "a"})


MAP = """
[[place]]
path = "vision/*"
team = "vision"
site = "lyon"
tz = "Europe/Paris"
tags = { cost_center = "12" }

[[table]]
path = "vision/*.csv"
columns = { run_id = "id", energy_kwh = "kWh" }
boundary = "it"
grade = "B"
"""


def test_a_map_file_claims_tables_and_places_runs(tmp_path):
    (tmp_path / "in" / "vision").mkdir(parents=True)
    (tmp_path / "in" / "vision" / "odd.csv").write_text("id,kWh\nr,0.5\n")
    (tmp_path / "in" / "other.csv").write_text("id,kWh\ns,0.5\n")
    (tmp_path / "map.toml").write_text(MAP)
    placing = placing_of(Said(map_file=tmp_path / "map.toml"))
    result = import_files([tmp_path / "in"], ledger=tmp_path / "l", placing=placing)
    assert [f.status for f in result.files] == ["refused", "imported"]
    assert result.totals.energy_kwh == pytest.approx(0.5)
    (run,) = Ledger(tmp_path / "l").view().runs
    assert (run.site, dict(run.tags)) == ("lyon", {"team": "vision", "cost_center": "12"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[place]]\ntz = "Mars/Olympus"\n', "no time zone"),
        ('[[place]]\nteem = "x"\n', "teem"),
        ("[[table]]\ncolumns = {}\n", "names no columns"),
        ("[[place\n", "not valid TOML"),
        ('[[place]]\nboundary = "room"\n', "boundary"),
    ],
)
def test_a_malformed_map_says_where(tmp_path, text, said):
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        placing_of(Said(map_file=tmp_path / "map.toml"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"tz": "Paris"},
        {"boundary": "room"},
        {"voltage_v": 0.0},
        {"voltage_v": float("nan")},
        {"interval_s": -1.0},
        {"start": "noon"},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UsageError):
        placing_of(Said(**wrong))


def test_a_start_goes_by_its_own_offset_else_by_the_zone():
    assert placing_of(Said(start="2026-01-01T01:00:00+01:00")).start_us == 1_767_225_600_000_000
    assert placing_of(Said(start="2026-01-01T01:00:00", tz="Europe/Paris")).start_us == 1_767_225_600_000_000
    assert placing_of(Said(start="2026-01-01")).start_us == 1_767_225_600_000_000


def test_what_is_wrong_with_the_letters_of_a_table_is_said_once(tmp_path):
    """The table is read twice: to see how it marks decimals, and for its rows."""
    file = tmp_path / "any.csv"
    file.write_bytes("Name;Energy (Wh);Ort\na;10,5;Münch\nb;11,5;Köln\n".encode("latin-1"))
    rule = TableRule(columns={"run_id": "Name", "energy_wh": "Energy (Wh)"})
    got = read_any(IMPORTER, file, Options(table=rule))
    assert codes(got).count("CL240") == 1
    assert len(got.runs) == 2
