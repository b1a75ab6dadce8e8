"""Tables of others: known by their columns, read line by line, and what is not taken is counted."""

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from carbonlens.errors import ConfigError, InputFileError
from carbonlens.factors.foreign import read
from carbonlens.factors.table_file import write_csv
from tests.factors.rows import row

SHARED = Path(__file__).parents[2] / ".." / "shared" / "cases" / "files"

OLD = (
    "Datetime (UTC),Country,Zone Name,Zone Id,Carbon Intensity gCO₂eq/kWh (direct),"
    "Carbon Intensity gCO₂eq/kWh (LCA),Low Carbon Percentage,Renewable Percentage,Data Source,"
    "Data Estimated,Data Estimation Method"
)
NEW = (
    "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct),"
    "Carbon intensity gCO₂eq/kWh (Life cycle),Carbon-free energy percentage (CFE%),"
    "Renewable energy percentage (RE%),Data source,Data estimated,Data estimation method"
)
HEADINGS = {"old": OLD, "new": NEW, "old ascii": OLD.replace("₂", "2"), "new ascii": NEW.replace("₂", "2")}
STEPS = {
    "hourly": (["2024-03-01 00:00:00", "2024-03-01 01:00:00", "2024-03-01 05:00:00"], "2024-03-01T00"),
    "daily": (["2024-03-01 00:00:00", "2024-03-02 00:00:00"], "2024-03-01T00"),
    "monthly": (["2024-01-01 00:00:00", "2024-02-01 00:00:00", "2024-03-01 00:00:00"], "2024-01"),
    "yearly": (["2023-01-01 00:00:00", "2024-01-01 00:00:00"], "2023"),
}


def maps(times, heading=NEW, zones=("FR",), direct="21.5", whole="33", estimated="false,"):
    lines = [f"{t},France,France,{z},{direct},{whole},95,30,source,{estimated}" for z in zones for t in times]
    return "\n".join([heading, *lines]) + "\n"


def take(tmp_path, text, name="download.csv", since=2019):
    file = tmp_path / name
    file.write_text(text, "utf-8")
    return read(file, since=since)


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("step", STEPS)
def test_downloads_of_electricity_maps(tmp_path, heading, step):
    times, first = STEPS[step]
    taken = take(tmp_path, maps(times, HEADINGS[heading], zones=("FR", "ES")))
    assert taken.format == "Electricity Maps CSV"
    rows = taken.table.rows
    assert len(rows) == 2 * 2 * len(times) * (24 if step == "daily" else 1)
    direct = next(r for r in rows if r.span == "direct")
    assert (direct.period, direct.value, direct.subject) == (first, Decimal("0.0215"), "FR")
    assert (direct.method, direct.averaging, direct.flow) == ("location", "average", "consumption")
    whole = next(r for r in rows if r.span == "life_cycle")
    assert (whole.value, whole.source) == (Decimal("0.033"), f"Electricity Maps {step} download")
    assert len({r.factor_id for r in rows}) == len(rows)


def test_a_daily_mean_stands_for_each_hour_of_its_day(tmp_path):
    rows = take(tmp_path, maps(STEPS["daily"][0])).table.rows
    hours = [r.period for r in rows if r.span == "direct"]
    assert hours == [f"2024-03-{d:02}T{h:02}" for d in (1, 2) for h in range(24)]
    assert {r.note for r in rows} == {"mean of its day"}


def test_one_line_is_told_by_the_files_name_or_not_at_all(tmp_path):
    one = maps(["2024-01-01 00:00:00"])
    assert take(tmp_path, one, "FR_2024_yearly.csv").table.rows[0].period == "2024"
    assert take(tmp_path, one, "FR_2024_hourly.csv").table.rows[0].period == "2024-01-01T00"
    with pytest.raises(ConfigError, match="nobody can tell hour from year"):
        take(tmp_path, one, "FR.csv")


def test_five_minutes_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="a line every 5 minutes"):
        take(tmp_path, maps(["2024-01-01 00:00:00", "2024-01-01 00:05:00"]))


def test_empty_cells_estimates_and_early_years_are_said(tmp_path):
    times = STEPS["yearly"][0]
    taken = take(tmp_path, maps(times, direct="", estimated="true,CONSTRUCT_BREAKDOWN"), since=2024)
    assert [(r.period, r.span, r.note) for r in taken.table.rows] == [
        ("2024", "life_cycle", "estimated: CONSTRUCT_BREAKDOWN")
    ]
    assert taken.left_out == Counter({"before 2024": 1, "without a value": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (maps(["yesterday"]), "line 2: 'yesterday' is no time"),
        (maps(STEPS["yearly"][0], direct="low"), "line 2: 'low' is no number"),
        (maps(STEPS["yearly"][0]) + "2025-01-01 00:00:00,France\n", "line 4: has 2 cells"),
        ("a,b\n1,2\n", "is no table of factors that is known"),
        ("", "is no table of factors that is known"),
    ],
)
def test_a_file_that_cannot_be_read_names_the_line(tmp_path, text, words):
    with pytest.raises(ConfigError) as error:
        take(tmp_path, text)
    assert words in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputFileError, match="cannot be read"):
        read(tmp_path / "none.csv", since=2019)


EMBER_LONG = """Area,ISO 3 code,Year,Area type,Continent,Category,Subcategory,Variable,Unit,Value
France,FRA,2024,Country or economy,Europe,Power sector emissions,CO2 intensity,CO2 intensity,gCO2/kWh,44.18
France,FRA,2018,Country or economy,Europe,Power sector emissions,CO2 intensity,CO2 intensity,gCO2/kWh,60
France,FRA,2024,Country or economy,Europe,Electricity generation,Fuel,Coal,TWh,0.7
Narnia,XNA,2024,Country or economy,Europe,Power sector emissions,CO2 intensity,CO2 intensity,gCO2/kWh,10
Europe,,2024,Region,Europe,Power sector emissions,CO2 intensity,CO2 intensity,gCO2/kWh,280
Kosovo,XKX,2024,Country,Europe,Power sector emissions,CO2 intensity,CO2 intensity,gCO2/kWh,
"""
EMBER_WIDE = """\
Area,ISO 3 code,Year,Area type,Electricity source,Is aggregated source,Emissions intensity (gCO2e/kWh)
France,FRA,2024,Country or economy,Total generation,True,44.18
France,FRA,2024,Country or economy,Coal,False,1000
World,,2024,World,Total generation,True,471.5
"""
NO_CODE = "no country with a code of ours"
OWID = """country,year,iso_code,population,carbon_intensity_elec,energy_per_capita
France,2024,FRA,68,44.18,1
France,2018,FRA,67,60,1
World,2024,,8000,470,1
"""


@pytest.mark.parametrize(
    ("text", "name", "left_out"),
    [
        (EMBER_LONG, "Ember yearly, long", {"before 2019": 1, NO_CODE: 1, "without a value": 1}),
        (EMBER_WIDE, "Ember yearly, wide", {}),
        (OWID, "OWID energy", {"before 2019": 1, NO_CODE: 1}),
    ],
)  # fmt: skip
def test_tables_by_country(tmp_path, text, name, left_out):
    taken = take(tmp_path, text)
    assert (taken.format, dict(taken.left_out)) == (name, left_out)
    found = taken.table.rows[0]
    assert len(taken.table.rows) == 1
    assert (found.subject, found.period, found.value) == ("FR", "2024", Decimal("0.04418"))
    assert (found.span, found.flow, found.licence) == ("life_cycle", "production", "CC-BY-4.0")
    assert taken.table.places == ("line 2",)


def test_our_own_table(tmp_path):
    taken = take(tmp_path, write_csv([row(), row(period="2010")]))
    assert taken.format == "carbonlens table"
    assert taken.table.rows == (row(), row(period="2010"))


@pytest.mark.skipif(not SHARED.exists(), reason="../shared/cases is not here")
def test_a_real_download_of_a_year_of_hours():
    taken = read(SHARED / "em01_ES_2023_hourly.csv", since=2019)
    assert len(taken.table.rows) == 2 * 8760
    first = taken.table.rows[:2]
    assert [(r.subject, r.period, r.value, r.span) for r in first] == [
        ("ES", "2023-01-01T00", Decimal("0.08299"), "direct"),
        ("ES", "2023-01-01T00", Decimal("0.11442"), "life_cycle"),
    ]
