"""Cases of other tools' users (C27, C39, C40, C58), through what the program itself calls."""

import csv
from pathlib import Path

import pytest

from carbonlens.accounting.amounts import account, facility_energy
from carbonlens.accounting.factor_choice import as_factor
from carbonlens.app.assumptions import load_assumptions
from carbonlens.app.places import find_place, grid_factor, site_figure
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Vector
from carbonlens.factors.store import bundled, open_factors

FILES = Path(__file__).parents[2] / ".." / "shared" / "cases" / "files"
needs_files = pytest.mark.skipif(not FILES.exists(), reason="../shared/cases is not here")


def energy(kwh):
    return Estimate(value=kwh * 3.6e6, unit="J", bounds=(kwh * 3.6e6, kwh * 3.6e6))


def kg(kwh, factor):
    return account(energy(kwh), "facility", None, Vector(location=factor))[0].emissions_location_kg


def chosen(written, when, factors=None):
    return grid_factor(find_place(written), when, factors or bundled())


def test_c39_each_year_is_computed_with_the_factor_of_its_time():
    kilograms, years = [], []
    for year in ("2019", "2024"):
        choice = chosen("gcp:europe-west1", year)
        kilograms.append(kg(100, as_factor(choice.row)).value)
        years.append(choice.how.split()[0])
    assert kilograms == [pytest.approx(19.6), pytest.approx(10.337)]
    assert sum(kilograms) == pytest.approx(29.937)
    assert years == ["2019", "2024"]


def test_c39_the_break_in_definition_is_said():
    # Google's table of 2019 counts life cycles, that of 2024 operation.
    assert "CL354" in {f.code for f in chosen("gcp:europe-west1", "2019").findings}
    assert "CL354" not in {f.code for f in chosen("gcp:europe-west1", "2024").findings}


@needs_files
@pytest.mark.parametrize(("file", "year"), [("ci04_gcp_2019.csv", "2019"), ("ci03_gcp_2024.csv", "2024")])
def test_c39_the_bundled_figures_are_those_of_googles_files(file, year):
    with (FILES / file).open(encoding="utf-8-sig", newline="") as table:
        rows = list(csv.DictReader(table))
    grid = next(name for name in rows[0] if "carbon intensity" in name)
    stated = {r["Google Cloud Region"]: float(r[grid]) / 1000 for r in rows if r[grid]}
    for region in ("europe-west1", "us-central1"):
        assert float(chosen(f"gcp:{region}", year).row.value) == pytest.approx(stated[region])


def test_c40_an_administrative_region_takes_the_country_and_says_so():
    place = find_place("SWE", region="stockholm county")
    choice = grid_factor(place, "2025", bundled())
    (finding,) = place.findings
    assert "no zone for this region, country value used" in finding.message
    assert choice.row.subject == "SE"
    country = chosen("SE", "2025").row
    assert kg(2, as_factor(choice.row)).value == pytest.approx(2 * float(country.value))


def test_c40_a_zone_is_accepted_when_given():
    place = find_place("SWE", region="SE3")
    assert (place.zone, place.findings) == ("SE-SE3", ())
    assert grid_factor(place, "2025", bundled()).row.subject == "SE-SE3"


def test_c58_one_of_two_published_values_is_used_and_both_are_told_with_their_source():
    choice = site_figure("pue", find_place("azure:uksouth"), "2021", bundled())
    vector = Vector(pue=float(choice.row.value), pue_source=choice.row.source)
    kwh, _ = facility_energy(energy(10), "it", vector)
    assert kwh.value == pytest.approx(11.85)
    (told,) = [f for f in choice.findings if f.code == "CL357"]
    assert "1.185 (Microsoft, fleet-wide" in told.message
    assert "1.125 (Microsoft, annual PUE of its latest designs" in told.message
    # It is the provider's average, not that of the region, and that is said too.
    assert "CL351" in {f.code for f in choice.findings}


def test_c58_the_choice_is_the_same_each_time():
    first = site_figure("pue", find_place("azure:uksouth"), "2021", bundled())
    assert site_figure("pue", find_place("azure uksouth"), "2021", bundled()) == first


OWN = """factor_id,kind,subject,period,value,method,averaging,span,flow,source,address,licence,vintage
mine/FR/2025,grid,FR,2025,0.424584,location,average,{span},consumption,{source},none,none,2025
"""
SOURCE = "a mix without its low-carbon share"


@pytest.mark.parametrize("span", ["direct", "life_cycle"])
def test_c27_an_override_is_used_named_and_said_to_be_far_off(tmp_path, span):
    file = tmp_path / "mine.csv"
    file.write_text(OWN.format(span=span, source=SOURCE))
    factors = open_factors(file)
    choice = chosen("FRA", "2025", factors)
    factor = as_factor(choice.row)
    assert kg(10, factor).value == pytest.approx(4.24584)
    assert SOURCE in factor.source
    (far,) = [f for f in factors.findings if f.code == "CL347"]
    assert far.severity == "warning"
    assert "FR" in far.message


def test_c27_so_is_a_factor_that_the_assumptions_state(tmp_path):
    file = tmp_path / "assumptions.toml"
    file.write_text(
        '[place]\nzone = "FRA"\nyear = 2025\n[grid.location]\nid = "mine"\nzone = "FR"\nperiod = "2025"\n'
        f'value_kg_per_kwh = 0.424584\nsource = "{SOURCE}"\n'
    )
    vector = load_assumptions(file)
    assert kg(10, vector.location).value == pytest.approx(4.24584)
    assert vector.location.source == SOURCE
    assert "CL347" in {f.code for f in vector.findings}
