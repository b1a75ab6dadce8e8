"""Assumptions that name a place: what they leave out is filled in from the tables, and named."""

import pytest

from carbonlens.app.assumptions import filled, load_assumptions, mixed_spans
from carbonlens.domain.factor import NamedPlace, Vector
from carbonlens.errors import ConfigError, SelectionError
from carbonlens.inventory import assumptions


def load(tmp_path, text):
    file = tmp_path / "assumptions.toml"
    file.write_text(text)
    return load_assumptions(file)


def messages(vector, code):
    return [f.message for f in vector.findings if f.code == code]


def test_a_zone_fills_in_the_location_factor_and_names_its_source(tmp_path):
    vector = load(tmp_path, '[place]\nzone = "FR"\nyear = 2025\n')
    assert vector.place == "France (FR)"
    assert vector.location.zone == "FR"
    assert vector.location.period == "2025"
    assert 0 < vector.location.value_kg_per_kwh < 0.1
    assert vector.location.u_relative > 0
    (told,) = messages(vector, "CL352")
    assert f"{vector.location.value_kg_per_kwh:g} kg/kWh of FR (2025 figure;" in told
    (note,) = [n for n in vector.notes if told.removeprefix("l") in n]
    assert "https://" in note  # where it can be read, and under which licence
    assert vector.named is None


def test_nobody_knows_the_site_of_a_zone_and_nothing_else_is_filled_in(tmp_path):
    vector = load(tmp_path, '[place]\nzone = "FR"\nyear = 2025\n')
    assert (vector.pue, vector.market, vector.electricity, vector.machine, vector.embodied) == (None,) * 5


def test_a_cloud_region_fills_in_what_its_provider_publishes(tmp_path):
    vector = load(tmp_path, '[place]\ncloud = "aws:us-east-1"\nyear = 2025\n')
    assert vector.location.zone == "US-MIDA-PJM"
    assert vector.pue == 1.15
    assert "Amazon Web Services" in vector.pue_source
    assert vector.pue_u_relative == 0.023
    assert "2024 figure used for 2025" in messages(vector, "CL352")[1]


def test_a_region_without_a_figure_takes_the_providers_own_average_and_says_so(tmp_path):
    vector = load(tmp_path, '[place]\ncloud = "aws:eu-west-3"\nyear = 2025\n')
    assert vector.pue == 1.14
    assert "aws:eu-west-3 has no pue figure: that of aws is used" in messages(vector, "CL351")


def test_a_provider_that_published_nothing_yet_leaves_the_pue_unknown(tmp_path):
    vector = load(tmp_path, '[place]\ncloud = "aws:eu-west-3"\nyear = 2022\n')
    assert vector.pue is None
    assert len(messages(vector, "CL358")) == 1


def test_what_the_file_states_is_kept(tmp_path):
    vector = load(
        tmp_path,
        '[place]\nname = "my hall"\ncloud = "aws:eu-west-3"\nyear = 2025\n'
        '[facility]\npue = 1.6\nsource = "a meter"\n'
        '[grid.location]\nid = "own"\nzone = "FR"\nperiod = "2025"\nsource = "mine"\n'
        "value_kg_per_kwh = 0.03\n",
    )
    assert (vector.place, vector.pue, vector.pue_source) == ("my hall", 1.6, "a meter")
    assert vector.location.source == "mine"
    assert messages(vector, "CL352") == []


def test_without_a_named_place_nothing_is_filled_in(tmp_path):
    vector = load(tmp_path, '[place]\nname = "Paris"\n')
    assert (vector.location, vector.pue, vector.findings, vector.notes) == (None, None, (), ())
    assert filled(Vector()) == Vector()


def test_life_cycle_and_marginal_only_where_asked(tmp_path):
    direct = load(tmp_path, '[place]\nzone = "US-CA"\nyear = 2025\n')
    assert "direct (combustion)" in direct.location.basis
    life = load(tmp_path, '[place]\nzone = "US-CAL-CISO"\nyear = 2025\nspan = "life_cycle"\n')
    assert "life-cycle" in life.location.basis
    assert messages(life, "CL354") == []
    marginal = load(tmp_path, '[place]\nzone = "FR"\nyear = 2025\naveraging = "marginal"\n')
    assert marginal.location is None
    assert len(messages(marginal, "CL358")) == 1


@pytest.mark.parametrize(
    "place",
    [
        'zone = "XXX"\nyear = 2025',
        'zone = "Frnace"\nyear = 2025',
        'cloud = "aws:us-east1"\nyear = 2025',
        'cloud = "aws us-east-1"\ncountry = "FRA"\nyear = 2025',
        'zone = "FR"\nperiod = "summer"',
        'cloud = "FR"\nyear = 2025',
    ],
)
def test_what_is_no_place_or_contradicts_itself_is_refused(tmp_path, place):
    with pytest.raises(SelectionError):
        load(tmp_path, f"[place]\n{place}\n")


@pytest.mark.parametrize(
    "place",
    [
        "",
        'zone = "FR"',
        'name = "hall"\nyear = 2025',
        'zone = "FR"\ncloud = "aws:eu-west-3"\nyear = 2025',
        'zone = "FR"\nyear = 2025\nperiod = "2025"',
        'zone = "FR"\nyear = 2025\nspan = "both"',
    ],
)
def test_a_place_that_is_half_stated_is_refused(tmp_path, place):
    with pytest.raises(ConfigError):
        load(tmp_path, f"[place]\n{place}\n")


def test_a_named_place_can_be_written_and_read_before_and_after_it_is_filled_in():
    named = Vector(named=NamedPlace(cloud="gcp:europe-west1", country="BE", period="2024"))
    assert assumptions.from_tables(assumptions.to_tables(named), where="x") == named
    done = filled(named)
    again = assumptions.from_tables(assumptions.to_tables(done), where="x")
    assert (again.location, again.pue, again.place, again.notes) == (
        done.location,
        done.pue,
        done.place,
        done.notes,
    )
    assert filled(again) == again


def test_factors_of_one_comparison_that_do_not_count_the_same_are_said():
    direct = filled(Vector(named=NamedPlace(zone="US-CA", period="2025")))
    life = filled(Vector(named=NamedPlace(zone="FR", period="2025")))
    (finding,) = mixed_spans((direct, life, Vector()))
    assert finding.code == "CL359"
    assert "life-cycle of FR" in finding.message
    assert mixed_spans((direct, direct)) == mixed_spans((life, Vector())) == ()
