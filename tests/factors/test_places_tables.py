"""The bundled tables of places, PUE, WUE and embodied emissions, each row with its source."""

import csv
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from carbonlens.accounting.embodied_range import embodied_range, sources_of
from carbonlens.accounting.factor_choice import DEFAULT_PUE_U_RELATIVE
from carbonlens.accounting.places import resolve
from carbonlens.factors.places_file import bundled_places
from carbonlens.factors.store import bundled

SHARED = Path(__file__).parents[2] / ".." / "shared" / "sources"
PLACES = bundled_places()

needs_sources = pytest.mark.skipif(not SHARED.exists(), reason="../shared/sources is not here")


def test_every_zone_has_a_country_that_is_known_and_every_row_a_source():
    assert len(PLACES.zones) >= 450
    assert sum(z.kind == "country" for z in PLACES.zones.values()) >= 220
    for zone in PLACES.zones.values():
        assert zone.source
        assert PLACES.chain(zone.zone)[-1] == zone.alpha2
        assert PLACES.zones[zone.alpha2].kind == "country"
        assert (zone.parent is None) == (zone.kind == "country")


def test_every_zone_is_found_by_its_id_and_every_country_by_its_codes_and_no_other():
    for zone in PLACES.zones.values():
        assert resolve(zone.zone, PLACES).zone == zone.zone
        if zone.kind == "country":
            assert resolve(zone.alpha3, PLACES).zone == zone.zone


def test_no_two_countries_share_a_name():
    countries = [z for z in PLACES.zones.values() if z.kind == "country"]
    names = Counter(text.casefold() for z in countries for text in {z.name, *z.aliases})
    assert [name for name, count in names.items() if count > 1] == []


def test_every_cloud_region_lies_in_a_zone_of_its_country():
    assert Counter(r.provider for r in PLACES.regions.values()) == {"aws": 39, "gcp": 44, "azure": 73}
    for region in PLACES.regions.values():
        assert PLACES.zones[region.zone].alpha2 == region.country, region
        assert resolve(region.key, PLACES).cloud == region.key
        assert region.source
        assert region.zone_source


@pytest.mark.parametrize(
    ("written", "zone"),
    [
        ("United Kingdom", "GB"),
        ("UK", "GB"),
        ("USA", "US"),
        ("South Korea", "KR"),
        ("Czech Republic", "CZ"),
        ("SE3", "SE-SE3"),
        ("NO2", "NO-NO2"),
        ("California", "US-CA"),
        ("CAMX", "US-CAMX"),
        ("US-CAL-CISO", "US-CAL-CISO"),
        ("Québec", "CA-QC"),
        ("CN-BJ", "CN-BJ"),
        ("aws:eu-west-3", "FR"),
        ("gcp europe-west4", "NL"),
        ("azure:northeurope", "IE"),
        ("azure West US 2", "US-NW-BPAT"),
    ],
)
def test_places_that_people_write(written, zone):
    assert resolve(written, PLACES).zone == zone


def test_every_zone_of_a_cloud_region_has_a_grid_factor_or_its_country_has():
    rows = bundled()
    for region in PLACES.regions.values():
        subjects = (region.key, *PLACES.chain(region.zone))
        assert any(rows.find("grid", subject) for subject in subjects), region.key


@needs_sources
def test_the_cloud_regions_of_google_are_those_of_its_latest_table():
    with (SHARED / "gcp-region-carbon-info" / "2024.csv").open(encoding="utf-8") as table:
        listed = {row["Google Cloud Region"] for row in csv.DictReader(table)}
    assert listed == {r.region for r in PLACES.regions.values() if r.provider == "gcp"}


@needs_sources
@pytest.mark.parametrize(
    ("kind", "column"), [("pue", "power-usage-effectiveness"), ("wue", "water-usage-effectiveness")]
)
def test_what_was_read_from_real_time_cloud_stands_there(kind, column):
    providers = {"Amazon Web Services": "aws", "Google Cloud": "gcp", "Microsoft Azure": "azure"}
    with (SHARED / "gsf-real-time-cloud" / "Cloud_Region_Metadata.csv").open(encoding="utf-8") as table:
        found = {
            (f"{providers[r['cloud-provider']]}:{r['cloud-region']}", r["year"], Decimal(r[column]))
            for r in csv.DictReader(table)
            if r[column]
        }
    read = [
        r for r in bundled().rows if r.kind == kind and "real-time-cloud" in r.address and ":" in r.subject
    ]
    assert len(read) >= 11
    assert [r.factor_id for r in read if (r.subject, r.period, r.value) not in found] == []


def test_published_figures_name_their_provider_and_lie_where_they_can():
    names = {"aws": "Amazon Web Services", "gcp": "Google", "azure": "Microsoft"}
    rows = [r for r in bundled().rows if r.kind in ("pue", "wue")]
    assert Counter(r.kind for r in rows) == {"pue": 113, "wue": 29}
    for row in rows:
        provider, _, region = row.subject.partition(":")
        assert row.source.startswith(names[provider])
        assert not region or row.subject in PLACES.regions
        assert row.value >= 1 or row.kind == "wue"
        # Nothing stands where nothing is published.
        assert row.value > 0


def test_the_default_width_of_a_pue_is_what_a_year_changes_in_the_table():
    by_region = {}
    for row in bundled().rows:
        if row.kind == "pue" and ":" in row.subject:
            by_region.setdefault(row.subject, {})[int(row.period)] = float(row.value)
    changes = [
        math.log(values[year + 1] / values[year])
        for values in by_region.values()
        for year in values
        if year + 1 in values
    ]
    assert len(changes) == 61
    rms = math.sqrt(sum(change**2 for change in changes) / len(changes))
    assert round(rms, 3) == DEFAULT_PUE_U_RELATIVE


def test_an_h100_spans_its_sources_and_one_of_them_can_be_chosen():
    rows = bundled().find("embodied", "nvidia-h100-sxm-80gb")
    assert sources_of(rows, "nvidia-h100-sxm-80gb") == ("boavizta", "morrison-2025", "nvidia-pcf")
    whole = embodied_range(rows, "nvidia-h100-sxm-80gb")
    assert (whole.kg.low, whole.kg.high) == (pytest.approx(164), pytest.approx(575.1))
    assert embodied_range(rows, "nvidia-h100-sxm-80gb", "boavizta").kg.value == pytest.approx(575.1)


@pytest.mark.parametrize(
    ("device", "kg"),
    [
        ("nvidia-a100-sxm4-40gb", 319.3),
        ("nvidia-a100-pcie-40gb", 321.6),
        ("nvidia-a100", 318),
        ("nvidia-l4", 123.5),
        ("gpu", 150),
    ],
)
def test_embodied_figures_of_devices(device, kg):
    assert embodied_range(bundled().find("embodied", device), device).kg.value == pytest.approx(kg)
