"""Places: what is written means one zone, or it is an error that names what was perhaps meant."""

import pytest

from carbonlens.accounting.gazetteer import CloudRegion, Gazetteer, Zone
from carbonlens.accounting.places import resolve
from carbonlens.errors import SelectionError


def zone(id_, alpha3, name, kind="country", parent=None, aliases=()):
    return Zone(
        zone=id_,
        alpha2=id_[:2],
        alpha3=alpha3,
        name=name,
        kind=kind,
        parent=parent,
        aliases=aliases,
        source="test",
    )


def region(provider, id_, name, place, country, in_zone):
    return CloudRegion(
        provider=provider,
        region=id_,
        name=name,
        place=place,
        country=country,
        zone=in_zone,
        source="test",
        zone_source="test table",
    )


KNOWN = Gazetteer(
    [
        zone("FR", "FRA", "France"),
        zone("SE", "SWE", "Sweden"),
        zone("SE-SE3", "SWE", "South Central Sweden", "grid", "SE", ("SE3",)),
        zone("US", "USA", "United States", aliases=("United States of America",)),
        zone("US-MIDA-PJM", "USA", "PJM Interconnection", "grid", "US", ("PJM",)),
        zone("US-VA", "USA", "Virginia", "state", "US"),
        zone("US-GA", "USA", "Georgia", "state", "US"),
        zone("GE", "GEO", "Georgia"),
        zone("CA", "CAN", "Canada"),
        zone("CA-QC", "CAN", "Québec", "province", "CA"),
        zone("NL", "NLD", "Netherlands"),
        zone("BE", "BEL", "Belgium"),
    ],
    [
        region("aws", "us-east-1", "US East (N. Virginia)", "N. Virginia", "US", "US-MIDA-PJM"),
        region("aws", "eu-west-3", "Europe (Paris)", "Paris", "FR", "FR"),
        region("gcp", "europe-west1", "Belgium", "Belgium", "BE", "BE"),
        region("gcp", "us-east1", "South Carolina", "South Carolina", "US", "US"),
        region("azure", "westeurope", "West Europe", "Amsterdam", "NL", "NL"),
    ],
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("FR", "FR"),
        ("fra", "FR"),
        (" France ", "FR"),
        ("SE3", "SE-SE3"),
        ("se-se3", "SE-SE3"),
        ("US-VA", "US-VA"),
        ("Virginia", "US-VA"),
        ("quebec", "CA-QC"),
        ("CA", "CA"),
        ("PJM", "US-MIDA-PJM"),
        ("aws:us-east-1", "US-MIDA-PJM"),
        ("aws us-east-1", "US-MIDA-PJM"),
        ("AWS/us-east-1", "US-MIDA-PJM"),
        ("Amazon Web Services us-east-1b", "US-MIDA-PJM"),
        ("us-east-1", "US-MIDA-PJM"),
        ("us-east1", "US"),
        ("europe-west1-b", "BE"),
        ("Google Cloud Belgium", "BE"),
        ("Azure West Europe", "NL"),
        ("West Europe", "NL"),
        ("aws Europe (Paris)", "FR"),
    ],
)
def test_a_place_is_known_in_every_way_people_write_it(written, expected):
    place = resolve(written, KNOWN)
    assert place.zone == expected
    assert place.findings == ()
    assert expected in place.how


def test_a_cloud_region_keeps_its_name_its_provider_and_the_zones_around_it():
    place = resolve("aws us-east-1", KNOWN)
    assert (place.cloud, place.provider, place.country) == ("aws:us-east-1", "aws", "US")
    assert place.chain == ("US-MIDA-PJM", "US")
    assert "test table" in place.how
    assert resolve("FR", KNOWN).cloud is None


@pytest.mark.parametrize("written", ["", "XXX", "xxx", "unknown", "N/A", "World", "Atlantis", "ZZ"])
def test_what_is_no_place_is_an_error_and_no_default(written):
    with pytest.raises(SelectionError):
        resolve(written, KNOWN)


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("aws:us-east1", "aws:us-east-1"),
        ("aws us-eest-1", "aws:us-east-1"),
        ("azure:westerneurope", "azure:westeurope"),
        ("Frnace", "FR (France)"),
        ("eu-west-33", "aws:eu-west-3"),
    ],
)
def test_a_mistyped_place_names_what_was_perhaps_meant(written, near):
    with pytest.raises(SelectionError) as caught:
        resolve(written, KNOWN)
    assert near in caught.value.mend


def test_a_region_of_one_provider_is_no_near_match_of_another():
    with pytest.raises(SelectionError) as caught:
        resolve("gcp:us-east-1", KNOWN)
    assert "aws:" not in caught.value.mend
    assert "gcp:us-east1" in caught.value.mend


def test_a_name_of_two_places_is_refused_and_both_are_named():
    with pytest.raises(SelectionError, match=r"GE \(Georgia\)") as caught:
        resolve("Georgia", KNOWN)
    assert "US-GA" in caught.value.what
    assert resolve("US", KNOWN, region="Georgia").zone == "US-GA"


def test_a_country_that_disagrees_with_a_cloud_region_is_an_error_that_names_both():
    with pytest.raises(SelectionError) as caught:
        resolve("aws us-east-1", KNOWN, country="FRA")
    assert "United States (US)" in caught.value.what
    assert "France (FR)" in caught.value.what
    assert resolve("aws us-east-1", KNOWN, country="usa").zone == "US-MIDA-PJM"


def test_a_country_that_nobody_knows_is_no_agreement():
    with pytest.raises(SelectionError, match="no country 'Frankonia'"):
        resolve("aws us-east-1", KNOWN, country="Frankonia")


def test_a_region_without_a_zone_takes_its_country_and_says_so():
    place = resolve("SWE", KNOWN, region="stockholm county")
    assert (place.zone, place.chain) == ("SE", ("SE",))
    (finding,) = place.findings
    assert finding.code == "CL350"
    assert "no zone for this region, country value used" in finding.message
    assert "stockholm county" in place.how


@pytest.mark.parametrize("written", ["SE3", "SE-SE3", "South Central Sweden"])
def test_a_region_that_is_a_zone_is_taken(written):
    place = resolve("Sweden", KNOWN, region=written)
    assert (place.zone, place.chain, place.findings) == ("SE-SE3", ("SE-SE3", "SE"), ())


def test_a_region_of_another_country_is_not_taken():
    assert resolve("FR", KNOWN, region="SE3").zone == "FR"
    assert resolve("US", KNOWN, region="VA").zone == "US-VA"
