"""Assumptions: what is stated is kept, what is not stays unknown."""

from decimal import Decimal

import pytest

from carbonlens.domain.factor import Vector
from carbonlens.errors import ConfigError, InputFileError
from carbonlens.inventory import assumptions, study_file

FULL = """
notes = ["example"]
[place]
name = "Frankfurt"
[grid.location]
id = "l"
zone = "DE"
period = "2024"
value_kg_per_kwh = 0.27582
u_relative = 0.1
source = "a table"
example = true
[grid.market]
id = "m"
zone = "DE"
period = "2024"
value_kg_per_kwh = 0.1655
source = "a contract"
[facility]
pue = 1.2
source = "assumed"
[electricity]
id = "e"
amount_per_kwh = "0.20"
currency = "eur"
period = "2024"
source = "a tariff"
[machine]
id = "c"
amount_per_core_hour = "0.015"
currency = "EUR"
period = "2024"
source = "a quote"
[embodied]
id = "b"
value_kg_per_core_hour = 0.0006
u_relative = 0.4
source = "a table"
"""


def load(tmp_path, text):
    file = tmp_path / "assumptions.toml"
    file.write_text(text)
    return assumptions.load(file)


def test_everything_stated_is_kept_and_written_back(tmp_path):
    vector = load(tmp_path, FULL)
    assert vector.location.value_kg_per_kwh == 0.27582
    assert vector.electricity.amount == Decimal("0.20")
    assert vector.currency == "EUR"
    assert vector.example
    assert assumptions.from_tables(assumptions.to_tables(vector), where="x") == vector


def test_an_empty_file_assumes_nothing(tmp_path):
    assert load(tmp_path, "") == Vector()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("0.27582", "275.82"), "grid.location.value_kg_per_kwh"),
        (("0.27582", "nan"), "grid.location.value_kg_per_kwh"),
        (("pue = 1.2", "pue = 0.9"), "facility.pue"),
        (("pue = 1.2", 'pue = "1.2"'), "pue"),
        (("[place]", "[plaice]"), "plaice"),
        (('currency = "EUR"', 'currency = "USD"'), "EUR and USD"),
        (('"0.20"', '"-0.20"'), "electricity.amount"),
        (("zone = ", "zonne = "), "zon"),
    ],
)
def test_a_fault_is_named(tmp_path, change, named):
    with pytest.raises(ConfigError, match=named):
        load(tmp_path, FULL.replace(*change))


def test_a_missing_file_and_broken_toml_are_told_apart(tmp_path):
    with pytest.raises(InputFileError):
        assumptions.load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="line 1"):
        load(tmp_path, "[[[")


STUDY = """
[study]
name = "s"
baseline = "base"
unit = "image"
[[step]]
name = "fast"
[[step]]
name = "small"
measured_on = "base"
[[gate]]
name = "accuracy"
metric = "accuracy"
kind = "max_loss"
limit = 0.01
"""


def load_study(tmp_path, text):
    file = tmp_path / "study.toml"
    file.write_text(text)
    return study_file.load(file)


def test_a_study_file_round_trips(tmp_path):
    study, vector = load_study(tmp_path, STUDY)
    assert [s.name for s in study.steps] == ["fast", "small"]
    assert vector == Vector()
    full = assumptions.from_tables(assumptions.to_tables(load(tmp_path, FULL)), where="x")
    assert load_study(tmp_path, study_file.dumps(study, full)) == (study, full)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (('name = "fast"', 'name = "base"'), "base twice"),
        (('measured_on = "base"', 'measured_on = "none"'), "does not stand before it"),
        (('unit = "image"', 'unit = "image"\nmargin = 5'), "margin"),
        (('kind = "max_loss"', 'kind = "least"'), "least"),
        (("[study]", "[studdy]"), "stud"),
    ],
)
def test_a_study_that_contradicts_itself_is_refused(tmp_path, change, named):
    with pytest.raises(ConfigError, match=named):
        load_study(tmp_path, STUDY.replace(*change))


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("host_overhead = 1.1", "has no source"),
        ('host_overhead = 0.9\nhost_overhead_source = "x"', "outside the possible"),
        ('host_overhead = nan\nhost_overhead_source = "x"', "outside the possible"),
        ("pue = 1.2", "has no source"),
        ("", "neither pue nor host_overhead"),
    ],
)
def test_a_facility_without_source_or_sense_is_refused(tmp_path, section, words):
    file = tmp_path / "a.toml"
    file.write_text(f"[facility]\n{section}\n", "utf-8")
    with pytest.raises(ConfigError, match=words):
        assumptions.load(file)


def test_a_host_overhead_is_read_and_written_back(tmp_path):
    file = tmp_path / "a.toml"
    stated = ("host_overhead = 1.1", 'host_overhead_source = "wall"', "host_overhead_u_relative = 0.02")
    file.write_text("\n".join(["[facility]", *stated]), "utf-8")
    vector = assumptions.load(file)
    assert (vector.pue, vector.host_overhead, vector.host_overhead_u_relative) == (None, 1.1, 0.02)
    assert assumptions.from_tables(assumptions.to_tables(vector), where="again") == vector
