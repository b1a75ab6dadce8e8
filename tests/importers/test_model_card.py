"""Model cards and tables as claims: words of headers, numbers as people print them, lines."""

from __future__ import annotations

from decimal import Decimal

import pytest

from carbonlens.audit.claims import check_claims
from carbonlens.errors import InputFileError
from carbonlens.importers.claim_cells import column_of, number_in, unit_of
from carbonlens.importers.model_card import claims_of, read_claims
from tests.audit import examples


@pytest.mark.parametrize(
    ("header", "field", "unit"),
    [
        ("Time (GPU hours)", "hours", None),
        ("Training Time (GPU hours)", "hours", None),
        ("GPU-hours", "hours", None),
        ("Hours", "elapsed", None),
        ("Power Consumption (W)", "watts", "W"),
        ("Carbon Emitted(tCO<sub>2</sub>eq)", "emissions", "t"),
        ("CO₂ (lbs)", "emissions", "lb"),
        ("Training Location-Based Greenhouse Gas Emissions (tons CO2eq)", "emissions", "t"),
        ("Training Market-Based Greenhouse Gas Emissions (tons CO2eq)", "market_emissions", "t"),
        ("Energy (MWh)", "energy", "MWh"),
        ("Carbon Intensity (kgCO2e/kWh)", "factor", "kg/kWh"),
        ("gCO2eq/kWh", "factor", "g/kWh"),
        ("PUE", "pue", None),
        ("Water (kL)", "water", "kL"),
        ("Number of GPUs", "devices", None),
        ("GPU Type", "hardware", None),
        ("Region", "region", None),
        ("Scope", "scope", None),
        ("Energy saved (%)", "saving", None),
        ("Energy before (kWh)", "baseline", "kWh"),
        ("Requests", "units", None),
        ("CO2 per request (g)", "per_unit", "g"),
    ],
)
def test_header_words(header, field, unit):
    column = column_of(header)
    assert column is not None
    assert (column.field, column.unit) == (field, unit)


@pytest.mark.parametrize("header", ["Model", "emissions_rate", "Share of energy (%)", "Accuracy"])
def test_a_header_of_no_use(header):
    assert column_of(header) is None


@pytest.mark.parametrize(
    ("cell", "value", "unit"),
    [
        ("1,720,320", "1720320", None),
        ("1 234 567", "1234567", None),
        ("39.3 k", "39300", None),
        ("≈1.3M", "1300000", None),
        ("about 1.3 million", "1300000", None),
        ("**7.0M**", "7000000", None),
        ("12,5", "12.5", None),
        ("24.1 MWh", "24.1", "MWh"),
        ("400W", "400", "W"),
        ("0.43 kgCO2e", "0.43", "kg"),
        ("3.2e-05", "0.000032", None),
        ("\\-", None, None),
        ("Negligible\\*\\*", None, None),
        ("1,2,3", None, None),
        ("", None, None),
    ],
)
def test_numbers_as_printed(cell, value, unit):
    number = number_in(cell, None)
    assert (None if number is None else number.value) == (None if value is None else Decimal(value))
    assert number is None or number.unit == unit


def test_the_width_is_that_of_the_last_digit_printed():
    number = number_in("1.3M", None)
    assert number is not None
    assert number.half == 50_000


@pytest.mark.parametrize(
    ("text", "unit"),
    [("kg CO2 per kWh", "kg/kWh"), ("lb/MWh", "lb/MWh"), ("tCO2eq", "t"), ("kWh", "kWh"), ("runs", None)],
)
def test_units(text, unit):
    assert unit_of(text) == unit


def of(text: str) -> list[tuple[str, str, int | None]]:
    """Return code, first words and line of what the audit finds in a card."""
    return [(f.code, f.message, f.line) for f in check_claims(claims_of(text, "card.md"))]


def test_llama_2_lacks_a_row():
    found = of(examples.LLAMA_2)
    off = [m for code, m, line in found if code == "CL706" and line == 7]
    assert any("a row of 1038336 h is missing" in m for m in off)
    assert any("a row of 153920 kg is missing" in m for m in off)
    assert {code for code, _, _ in found} == {"CL706", "CL710"}


def test_llama_3_1_adds_up():
    assert {code for code, _, _ in of(examples.LLAMA_3_1)} == {"CL710"}


def test_llama_3_2_states_other_hours_in_its_text():
    off = [(m, line) for code, m, line in of(examples.LLAMA_3_2) if code == "CL706"]
    assert [line for _, line in off] == [2]
    assert "sums to 919000 h" in off[0][0]


def test_llama_3_3_implies_no_grid():
    assert [code for code, _, _ in of(examples.LLAMA_3_3)] == ["CL701", "CL710"]


def test_llama_1_names_an_energy_power_consumption():
    first, second = claims_of(examples.LLAMA_1, "t.md")
    assert first.energy is not None
    assert (first.energy.value, first.energy.unit) == (36, "MWh")
    assert first.watts is not None
    assert first.watts.value == 400
    assert second.line == 5


CARD = """---
license: mit
co2_eq_emissions:
  emissions: 1.87  # of the whole training
  source: "CodeCarbon"
  training_type: fine-tuning
  geographical_location: 'Paris, France'
  hardware_used: 1 x A100
---
# A card

Training emitted about 1.87 kg of CO2.
"""


def test_front_matter_as_a_mapping():
    card, text = claims_of(CARD, "card.md")
    assert card.front_matter
    assert card.line == 4
    assert (card.region, card.hardware) == ("Paris, France", "1 x A100")
    assert card.emissions is not None
    assert (card.emissions.value, card.emissions.unit) == (Decimal("1.87"), "g")
    assert text.line == 12
    assert [f.code for f in check_claims((card,))] == []
    assert "CL711" in [code for code, _, _ in of(CARD)]


@pytest.mark.parametrize("value", ["0.73", "'0.73'", "0.73 # grams"])
def test_front_matter_as_a_number(value):
    (card,) = claims_of(f"---\nco2_eq_emissions: {value}\n---\n", "card.md")
    assert card.emissions is not None
    assert card.emissions.value == Decimal("0.73")


def test_a_table_with_delimiters():
    text = "model;energy (kWh);PUE;emissions (kg);country\na;1,5;1,2;0,3;FR\nTotal;1,5;;0,3;\n"
    row, total = claims_of(text, "t.csv")
    assert row.energy is not None
    assert row.energy.value == Decimal("1.5")
    assert row.region == "FR"
    assert total.parts == (row,)
    assert total.line == 3


def test_energies_of_components_are_summed_where_no_whole_is_stated():
    header = "model,cpu_energy (kWh),gpu energy (kWh),emissions (kg),hardware,country"
    (row,) = claims_of(f"{header}\na,1.5,8.5,4,A100,DE\n", "t.csv")
    assert row.energy is not None
    assert (row.energy.value, row.energy.unit) == (10, "kWh")
    assert row.components == ("cpu", "gpu")
    (whole,) = claims_of(f"{header},energy (kWh)\na,1.5,8.5,4,A100,DE,11\n", "t.csv")
    assert whole.energy is not None
    assert whole.energy.value == 11


def test_scopes_with_and_without_the_word():
    found = of("site,scope,energy (kWh)\nhall,Scope 2,500\nhall,3,500\n")
    assert [code for code, _, _ in found] == ["CL717"]


def test_a_unit_that_is_missing_is_told_once_a_table():
    found = of("model,energy,emissions (kg),country\na,1,4,DE\nb,2,5,DE\n")
    assert [code for code, _, _ in found] == ["CL708"]
    assert "1 row more likewise" in found[0][1]


def test_a_file_that_states_nothing(tmp_path):
    file = tmp_path / "notes.md"
    file.write_text("# Notes\n\nNothing here.\n")
    with pytest.raises(InputFileError, match="states no energy or emissions"):
        read_claims(file)
    with pytest.raises(InputFileError, match="cannot be read"):
        read_claims(tmp_path / "gone.md")
    file.write_bytes(b"\xff\x00\xd8\x99")
    with pytest.raises(InputFileError):
        read_claims(file)


@pytest.mark.parametrize(
    ("front", "text", "found"),
    [
        ("1.87", "Training emitted 1.87 kilograms of CO2.", True),
        ("1.87", "The carbon footprint of training was about 1,870 g.", True),
        ("0.00187", "We estimate 1.87 kg CO₂eq in total.", True),
        ("31.2", "Estimated total emissions were 31.2 metric tons of CO2eq.", True),
        ("1870", "Training emitted 1.87 kg of CO2eq.", False),
        ("1870", "CO$_2$ emissions: 1.9 kg; a whole year of our office emits 1870 kg of CO2.", False),
        ("432", "The grid has a carbon efficiency of 432 kgCO2eq/kWh.", False),
        ("1.87", "It has 1.87 g of something; carbon is not told.", False),
        ("15", "Emissions of a model trained on 15T tokens were not measured.", False),
        ("1870", "Training emitted 52 kg of CO2eq with all experiments.", False),
    ],
)
def test_grams_of_the_front_matter_against_the_text(front, text, found):
    from carbonlens.audit.claims import check_claims

    claims = claims_of(f"---\nco2_eq_emissions:\n  emissions: {front}\n---\n# Model\n\n{text}\n", "card.md")
    assert [f.code for f in check_claims(claims) if f.code == "CL711"] == (["CL711"] if found else [])


PLACED = "---\nco2_eq_emissions:\n  emissions: {}\n  geographical_location: France\n---\n{}\n"


@pytest.mark.parametrize(
    ("stated", "prose", "masses"),
    [
        ("432", "Grid: 0.432 kg CO2-eq/kWh.", []),
        ("0.5", "The grid intensity was 0.5 kg CO2-eq per kWh.", []),
        ("12", "Carbon emissions were offset; the dataset holds 12 t of text. Total carbon 12 g.", ["12 g"]),
        ("25000000", "It emitted 25 t CO2 for one, and 30 t CO2 with tuning.", ["25 t", "30 t"]),
        ('"2.5 kg"', "Text.", []),
    ],
)
def test_masses_in_prose_are_emissions_below_the_front_matter(stated, prose, masses):
    claims = [c for c in claims_of(PLACED.format(stated, prose), "card.md") if not c.front_matter]
    assert [f"{c.emissions.value} {c.emissions.unit}" for c in claims] == masses
    assert {c.region for c in claims} <= {"France"}
    assert len({c.what for c in claims}) == len(claims)
    assert {f.code for f in check_claims(claims)} & {"CL707", "CL710"} == set()


@pytest.mark.parametrize(
    ("header", "field", "unit"), [("energy_kwh", "energy", "kWh"), ("emissions_kg", "emissions", "kg")]
)
def test_a_unit_behind_an_underscore(header, field, unit):
    assert (column_of(header).field, column_of(header).unit) == (field, unit)
    assert column_of("cpu_power") is None


CELLS = "model,energy (kWh),emissions (kg),PUE,CPU energy (kWh)\n"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a,nan,1,1.2,", ["energy 'nan' is no figure"]),
        ("a,NaN,-inf,1.2,", ["energy 'NaN' is no figure", "emissions '-inf' is no figure"]),
        ("a,-10,1,1.2,", ["energy '-10' is below 0, which it cannot be"]),
        ("a,10,Infinity,-1.2,", ["emissions 'Infinity' is no figure", "pue '-1.2' is below 1"]),
        ("a,10,4,0,", ["pue '0' is below 1, which it cannot be"]),
        ("a,1e400,1,1.2,", ["energy '1e400' cannot be read as one figure"]),
        ("a,10,1,1.2,-3", ["cpu energy '-3' is below 0"]),
        ('a,"1,23,45",1,1.2,', ["energy '1,23,45' cannot be read as one figure"]),
        ("a,-,n/a,,unknown", []),
        ("a,,,,", []),
    ],
)
def test_a_cell_that_no_figure_can_be_is_a_finding_at_its_line(row, said):
    claims = claims_of(CELLS + "b,10,4,1.1,\n" + row + "\n", "t.csv")
    found = [f for f in check_claims(claims) if f.code == "CL719"]
    assert len(found) == len(said), found
    for finding, words in zip(found, said, strict=True):
        assert words in finding.message
        assert (finding.severity, finding.file, finding.line) == ("error", "t.csv", 3)


def test_such_a_cell_is_not_used_in_a_sum():
    claims = claims_of(CELLS + "a,-10,4,,\nb,30,12,,\nTotal,30,16,,\n", "t.csv")
    assert [f.code for f in check_claims(claims) if f.code in {"CL706", "CL719"}] == ["CL719"]


@pytest.mark.parametrize("text", ["nan", "-12", ".inf"])
def test_front_matter_that_no_figure_can_be(text):
    card = f"---\nco2_eq_emissions:\n  emissions: {text}\n---\n"
    found = [f for f in check_claims(claims_of(card, "c.md")) if f.code == "CL719"]
    assert [(f.file, f.line) for f in found] == [("c.md", 3)]


def test_a_saving_may_be_below_0():
    table = "step,energy (kWh),saving (%)\na,10,-5\n"
    assert [f for f in check_claims(claims_of(table, "t.csv")) if f.code == "CL719"] == []


def test_a_second_header_of_a_csv_begins_another_table():
    text = "model,energy (kWh),emissions (kg)\na,1.5,0.3\nmodel,emissions (kg),energy (kWh)\nb,0.4,2.5\n"
    first, second = claims_of(text, "t.csv")
    assert (first.energy.value, first.emissions.value) == (Decimal("1.5"), Decimal("0.3"))
    assert (second.energy.value, second.emissions.value) == (Decimal("2.5"), Decimal("0.4"))
