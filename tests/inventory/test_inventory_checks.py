"""What is well-formed and yet suspicious: each a Finding at its place."""

import pytest

from carbonlens.domain.pricing import TariffBand
from tests.inventory.inventory_files import (
    ANSWERED,
    CERTIFICATE,
    METER,
    SITE,
    TERMS,
    codes,
    inventory_of,
    loaded,
)

TARIFF = (
    '[[tariff]]\nid = "t"\nsite = "berlin"\ncurrency = "EUR"\ntimezone = "Europe/Berlin"\n'
    'valid_from = 2026-01-01\nsource = "bill"\n'
)


def band(name: str, *keys: str) -> str:
    return "\n".join(("[[tariff.band]]", f'name = "{name}"', 'amount_per_kwh = "0.2"', *keys, ""))


@pytest.mark.parametrize(
    ("keys", "severity"),
    [
        ('pue = 0.9\npue_source = "s"', "error"),
        ('pue = 3.2\npue_source = "s"', "warning"),
        ('wue_l_per_kwh = 18\nwue_source = "s"', "warning"),
        ('host_overhead = 0.8\nhost_overhead_source = "s"', "error"),
    ],
)
def test_figures_of_a_site_beyond_their_bounds(tmp_path, keys, severity):
    (finding,) = inventory_of(tmp_path, sites_toml=f"\n{SITE}{keys}\n").findings
    assert (finding.code, finding.severity, finding.file, finding.line) == (
        "CL368",
        severity,
        "sites.toml",
        2,
    )


def test_figures_of_a_site_within_their_bounds(tmp_path):
    keys = 'pue = 1.0\npue_source = "s"\nwue_l_per_kwh = 1.8\nwue_source = "s"\n'
    assert codes(inventory_of(tmp_path, sites_toml=SITE + keys)) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("pue_valid_from = 2026-01-15", "the first day of a month"),
        ("pue_valid_from = 2026-02-01\npue_valid_to = 2026-02-01", "ends 2026-02-01, not after it begins"),
        ("wue_valid_from = 2026-02-01", "a figure holds that it does not have: wue_l_per_kwh"),
    ],
)
def test_when_a_figure_holds_is_checked(tmp_path, keys, said):
    (fault,) = loaded(tmp_path, sites_toml=f'{SITE}pue = 1.2\npue_source = "s"\n{keys}\n').faults
    assert (fault.file, said in f"{fault.what} {fault.mend}") == ("sites.toml", True), fault


def test_a_site_that_nobody_declared(tmp_path):
    asset = "id,hardware,purchased,site,life_years,embodied_kg,embodied_source\na,S,2026-01-01,paris,4,5,s\n"
    inventory = inventory_of(
        tmp_path,
        meters_toml=METER,
        assets_csv=asset,
        deliveries_toml='[[delivery]]\nteam = "t"\nwhat = "meter"\nsite = "rome"\nmonths = ["2026-01"]\n',
        tariffs_toml=TARIFF + band("all"),
    )
    assert codes(inventory) == ["CL365"] * 4
    assert [(f.file, f.line) for f in inventory.findings] == [
        *(("assets.csv", 2), ("deliveries.toml", 1), ("meters.toml", 1), ("tariffs.toml", 1)),
    ]


def test_a_certificate_in_order_has_no_finding(tmp_path):
    assert codes(inventory_of(tmp_path, sites_toml=SITE, certificates_toml=CERTIFICATE)) == []


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ('market = "DE"', 'market = "US"', "CL370", "of the market US"),
        ('entity = "E"', 'entity = "Other"', "CL370", "Other has no site there"),
        ("retired = 2026-04-30\n", "", "CL371", "although tracked_and_retired is answered yes"),
        ("unique_claim = true\n", "", "CL372", "1 quality criterion unanswered"),
        (f"[certificate.criteria]\n{ANSWERED}", "", "CL372", "8 quality criteria unanswered"),
    ],
)
def test_a_certificate_that_may_not_be_claimed(tmp_path, old, new, code, said):
    assert old in CERTIFICATE
    text = CERTIFICATE.replace(old, new)
    (finding,) = inventory_of(tmp_path, sites_toml=SITE, certificates_toml=text).findings
    assert (finding.code, said in finding.message, finding.subject) == (code, True, "C1"), finding


def test_a_criterion_answered_no_is_an_answer_and_not_met(tmp_path):
    text = CERTIFICATE.replace("same_market = true", "same_market = false")
    inventory = inventory_of(tmp_path, sites_toml=SITE, certificates_toml=text)
    assert (codes(inventory), inventory.certificates[0].unmet) == ([], ("same_market",))


@pytest.mark.parametrize("kind", ["certificate", "contract", "supplier"])
def test_an_instrument_that_does_not_say_what_it_emits_is_a_fault(tmp_path, kind):
    """Nobody's silence is 0 kg: the mend says to write 0 where it conveys none."""
    text = CERTIFICATE.replace("value_kg_per_kwh = 0\n", "").replace('"certificate"', f'"{kind}"')
    (fault,) = loaded(tmp_path, sites_toml=SITE, certificates_toml=text).faults
    assert "value_kg_per_kwh" in str(fault)
    assert "write 0" in str(fault)
    head = "id,kind,entity,market,energy_mwh,period,value_kg_per_kwh"
    rows = f"{head}\nC1,{kind},E,DE,10,2026,\n"
    (fault,) = loaded(tmp_path, sites_toml=SITE, certificates_csv=rows, certificates_toml="").faults
    assert "write 0" in str(fault)


def test_a_certificate_claimed_twice(tmp_path):
    other = CERTIFICATE.replace('entity = "E"', 'entity = "F"')
    sites = SITE + SITE.replace('"berlin"', '"bonn"').replace('"E"', '"F"')
    inventory = inventory_of(tmp_path, sites_toml=sites, certificates_toml=CERTIFICATE + other)
    (finding,) = inventory.findings
    assert (finding.code, "2 times (by E, F)" in finding.message) == ("CL373", True)
    assert [c.unmet for c in inventory.certificates] == [("unique_claim",)] * 2
    head = "id,kind,entity,market,energy_mwh,period,value_kg_per_kwh,retired,"
    names = ANSWERED.replace(" = true", "").replace("\n", ",")
    again = f"{head}{names}\nC1,certificate,E,DE,10,2026,0,2026-04-30{',yes' * 8}\n"
    inventory = inventory_of(tmp_path, certificates_toml=CERTIFICATE, certificates_csv=again)
    assert codes(inventory) == ["CL373"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("C1,2026-05-01T10:00Z,4\n", "sum to 4 MWh, not to its 10"),
        ("C1,2026-05-01T10:00Z,-1\nC1,2026-05-01T11:00Z,11\n", "below 0"),
        ("C1,2027-03-01T10:00Z,10\n", "1 hour outside its period 2026"),
    ],
)
def test_hours_that_do_not_fit_their_certificate(tmp_path, rows, said):
    hours = f"certificate,hour_utc,mwh\n{rows}"
    inventory = inventory_of(
        tmp_path, sites_toml=SITE, certificates_toml=CERTIFICATE, certificate_hours_csv=hours
    )
    (finding,) = inventory.findings
    assert (finding.code, said in finding.message) == ("CL374", True), finding


def test_assets_and_initiatives_that_lack_what_counts(tmp_path):
    inventory = inventory_of(
        tmp_path,
        assets_toml='[[asset]]\nid = "a"\nhardware = "S"\npurchased = 2026-01-01\n',
        initiatives_toml=(
            '[[initiative]]\nid = "i"\ntitle = "t"\nstart = 2026-01-01\nverified = { energy_kwh = 5 }\n'
        ),
    )
    assert codes(inventory) == ["CL375", "CL375", "CL376", "CL376"]
    mends = " ".join(f.mend for f in inventory.findings)
    assert all(word in mends for word in ("embodied_kg", "life_years", "claimed", "verified_by"))


def test_a_rate_twice_for_a_day(tmp_path):
    head = "base,quote,date,rate,source\n"
    rows = f"{head}USD,EUR,2026-01-02,0.9,s\nUSD,EUR,2026-01-02,0.90,s\nUSD,EUR,2026-01-03,0.9,s\n"
    inventory = inventory_of(tmp_path, exchange_rates_csv=rows)
    assert (codes(inventory), len(inventory.exchange_rates)) == ([], 2)
    inventory = inventory_of(tmp_path, exchange_rates_csv=f"{rows}USD,EUR,2026-01-03,0.8,t\n")
    (finding,) = inventory.findings
    assert (finding.code, finding.line, "0.8 and 0.9" in finding.message) == ("CL377", 4, True)
    assert [r.date for r in inventory.exchange_rates] == ["2026-01-02"]


DAY = ("start_hour = 6", "end_hour = 22")
NIGHT = ("start_hour = 22", "end_hour = 6")
WEEK = 'weekdays = ["mon", "tue", "wed", "thu", "fri"]'


@pytest.mark.parametrize(
    ("bands", "said"),
    [
        ((band("all"),), []),
        ((band("day", *DAY), band("night", *NIGHT)), []),
        ((band("week", WEEK),), ["no band for 48 hours of the week, such as sat 0:00"]),
        ((band("all"), band("peak", WEEK, "start_hour = 8", "end_hour = 9")), ["5 hours of the week"]),
        (
            (band("summer", "months = [4, 5, 6, 7, 8, 9]"), band("winter", "months = [1, 2, 3, 10, 11]")),
            ["no band for 168 hours of the week in 1 month, first in month 12"],
        ),
        (
            (
                band("day", WEEK, *DAY),
                band("night", WEEK, *NIGHT),
                band("weekend", 'weekdays = ["sat", "sun"]'),
            ),
            ["no band for 6 hours of the week, such as mon 0:00", "6 hours of the week, such as sat 0:00"],
        ),
    ],
)  # fmt: skip
def test_hours_of_a_tariff_in_no_band_or_in_two(tmp_path, bands, said):
    inventory = inventory_of(tmp_path, sites_toml=SITE, tariffs_toml=TARIFF + "".join(bands))
    assert codes(inventory) == ["CL378"] * len(said)
    assert all(any(words in f.message for f in inventory.findings) for words in said), inventory.findings


def test_two_tariffs_of_a_site_at_one_time(tmp_path):
    first, second = TARIFF + band("all"), TARIFF.replace('"t"', '"u"').replace("2026", "2027") + band("all")
    inventory = inventory_of(tmp_path, sites_toml=SITE, tariffs_toml=first + second)
    assert codes(inventory) == ["CL378"]
    ended = first.replace("valid_from", "valid_to = 2027-01-01\nvalid_from")
    assert codes(inventory_of(tmp_path, tariffs_toml=ended + second)) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("start_hour = 8\nend_hour = 8", "22 to 6 goes over midnight"),
        ("end_hour = 25", "22 to 6 goes over midnight"),
        ("months = [13]", "months from 1 to 12"),
        ("weekdays = [0]", "a list of mon"),
        ("hours = 3", "unknown key 'hours'"),
    ],
)
def test_a_band_that_is_none(tmp_path, keys, said):
    faults = loaded(tmp_path, tariffs_toml=TARIFF + band("all", keys)).faults
    assert any(said in str(f) for f in faults), faults


def test_a_band_over_midnight_belongs_to_the_day_it_begins_on():
    friday = TariffBand(name="n", amount_per_kwh=1, weekdays=(4,), start_hour=22, end_hour=6, months=(1,))
    assert [(d, h) for d in range(7) for h in range(24) if friday.covers(1, d, h)] == [
        *((4, 22), (4, 23)),
        *((5, h) for h in range(6)),
    ]
    assert not friday.covers(2, 4, 22)


def test_terms_are_in_the_inventory(tmp_path):
    terms = inventory_of(tmp_path, reporting_toml=TERMS + "example = true\n").terms
    assert (terms.example, terms.fiscal_year_start) == (True, 1)
