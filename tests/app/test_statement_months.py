"""What differs between the months of a period: overheads, water, vintages; and sites with meters alone."""

import pytest

from carbonlens.app.importing import import_files
from carbonlens.app.sci import make_sci
from carbonlens.app.statement import make_statement
from carbonlens.app.statement_ledger import month_of, months_of
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger.calendar import Calendar, Period
from tests.app import statement_case as case
from tests.app.test_statement_terms import FACTORS, RUNS, factor, near

REPORTING = 'entity = "E"\ntimezone = "UTC"\nfiscal_year_start = 10\n'
SITE = '[[site]]\nid = "fr"\nkind = "own"\nentity = "E"\nzone = "FR"\nmarket = "FR"\n'
PUE_1 = 'pue = 1.0\npue_source = "t"\n'
GRID = factor("FR", "FR", "2025", "0.05") + factor("FR-residual", "FR", "2025", "0.5", method="residual")
METER = '[[meter]]\nid = "m"\nsite = "fr"\nboundary = "{boundary}"\ncovers = "{covers}"\n'
YEAR = "2026"
"""Fiscal: October 2025 to September 2026."""


def run(name, start, kwh=1000, boundary="it"):
    return f"{name},s,base,{kwh * 3_600_000},1,{start}T00:00:00Z,3600,{boundary},B,fr\n"


def of_site(kind, period, value):
    return f"own/{kind}-{period},{kind},fr,site,{period},{value},,,,,0.01,Test table,test,CC0,2026\n"


def certificate(name, period, mwh):
    answers = case.CERTIFICATES.partition("[certificate.criteria]")[2]
    return (
        f'[[certificate]]\nid = "{name}"\nkind = "certificate"\nentity = "E"\nmarket = "FR"\n'
        f'energy_mwh = {mwh}\nperiod = "{period}"\nvalue_kg_per_kwh = 0\nregistry = "t"\n'
        f'retired = 2026-06-30\nevidence = "t"\n[certificate.criteria]{answers}\n'
    )


def stated(folder, runs, *, site=PUE_1, more="", period=YEAR, by=None, **files):
    """Write it all, and return the statement."""
    inventory = folder / "inventory"
    inventory.mkdir()
    texts = {"reporting_toml": REPORTING, "sites_toml": SITE + site} | files
    for name, text in texts.items():
        (inventory / name.replace("_toml", ".toml").replace("_csv", ".csv")).write_text(text)
    (folder / "factors.csv").write_text(FACTORS + GRID + more)
    (folder / "runs.csv").write_text(RUNS + runs)
    import_files([folder / "runs.csv"], ledger=folder / "ledger", tags={"team": "red"})
    where = {"ledger": folder / "ledger", "inventory": inventory, "factors": folder / "factors.csv"}
    return make_statement(period, **where, by=by, now_us=case.NOW_US).statement


def codes(statement):
    return {f.code for f in statement.findings}


TWO = run("a", "2025-11-05") + run("b", "2026-05-05")


def test_each_month_takes_its_own_overheads_and_water(tmp_path):
    more = of_site("pue", "2025", "1.5") + of_site("pue", "2026", "1.2")
    more += of_site("wue", "2025-11", "2") + of_site("wue", "2026-05", "4")
    found = stated(tmp_path, TWO, site="", more=more, by="team")
    near(found.total.estimate("facility_kwh"), 1500 + 1200)
    near(found.total.estimate("location_kg"), 2700 * 0.05)
    near(found.total.estimate("market_kg"), 2700 * 0.5)
    near(found.total.estimate("water_site_l"), 2000 + 4000)
    (team,) = found.groups
    near(team.estimate("facility_kwh"), 2700)
    ids = {f.figure_id: f for f in found.figures}
    assert {"own/pue-2025", "own/pue-2026"} <= set(ids)
    used = {i for f in found.figures for i in f.inputs}
    assert {"own/pue-2025", "own/pue-2026", "own/wue-2025-11", "own/wue-2026-05"} <= used


def test_a_later_months_figure_is_never_used_for_an_earlier_one(tmp_path):
    found = stated(tmp_path, TWO, site="", more=of_site("pue", "2026", "1.2"))
    near(found.total.estimate("facility_kwh"), 1200)
    near(found.at_least.estimate("facility_kwh"), 1000)
    (said,) = [f.message for f in found.findings if f.code == "CL490"]
    assert "3 months (2025-10 to 2025-12)" in said
    assert {"CL304", "CL381"} <= codes(found)


def test_rows_of_host_overhead_make_device_energy_it_energy(tmp_path):
    more = of_site("host_overhead", "2025", "1.1") + of_site("host_overhead", "2026", "1.3")
    runs = run("a", "2025-11-05", boundary="device") + run("b", "2026-05-05", boundary="device")
    found = stated(tmp_path, runs, more=more)
    near(found.total.estimate("facility_kwh"), 1100 + 1300)
    assert found.at_least is None


def test_a_meter_takes_the_overheads_of_its_months(tmp_path):
    more = of_site("pue", "2025", "1.5") + of_site("pue", "2026", "1.2")
    readings = (
        "meter,start,end,energy,unit\nm,2025-10-01T00:00Z,2026-01-01T00:00Z,3000,kWh\n"
        "m,2026-01-01T00:00Z,2026-09-21T13:33:20Z,9000,kWh\n"
    )
    meters = METER.format(boundary="it", covers="site")
    found = stated(tmp_path, TWO, site="", more=more, meters_toml=meters, readings_csv=readings)
    near(found.total.estimate("facility_kwh"), 3000 * 1.5 + 9000 * 1.2)
    near(found.total.estimate("location_kg"), (3000 * 1.5 + 9000 * 1.2) * 0.05)
    (beside,) = found.reconciliations
    near(beside.metered_kwh, 3000 * 1.5 + 9000 * 1.2)


def test_a_vintage_covers_the_load_of_its_own_year_alone(tmp_path):
    """400 kWh in 2025, 1600 in 2026: 1 MWh of 2025 covers 400, and its rest nothing of 2026."""
    runs = run("a", "2025-11-05", 400) + run("b", "2026-05-05", 1600)
    both = certificate("old", "2025", 1) + certificate("new", "2026", 1)
    found = stated(tmp_path, runs, certificates_toml=both)
    (blend,) = found.blends
    near(found.total.estimate("market_kg"), 600 * 0.5)
    near(blend.emissions_kg, 300)
    assert sum(p.kwh.value for p in blend.parts) == pytest.approx(2000)
    assert [f.subject for f in found.findings if f.code == "CL391"] == ["old"]


def test_a_vintage_of_a_year_without_load_is_not_counted(tmp_path):
    found = stated(tmp_path, run("b", "2026-05-05"), certificates_toml=certificate("old", "2025", 1))
    near(found.total.estimate("market_kg"), 500)
    assert [f.subject for f in found.findings if f.code == "CL390"] == ["old"]


READINGS = "meter,start,end,energy,unit\nm,2026-07-01T00:00Z,2026-08-01T00:00Z,5000,kWh\n"


def test_a_metered_lower_bound_is_no_part_of_the_true_total(tmp_path):
    meters = METER.format(boundary="it", covers="site")
    found = stated(
        tmp_path,
        run("a", "2026-07-05"),
        site="",
        meters_toml=meters,
        readings_csv=READINGS,
        period="2026-07",
    )
    assert found.total.estimate("facility_kwh").value is None
    near(found.at_least.estimate("facility_kwh"), 5000)
    assert "CL381" in codes(found)


@pytest.mark.parametrize(
    ("covers", "heading"),
    [
        ("site", "of the metered sites"),
        ("ai", "attributable to recorded AI workloads, as meters that feed these alone count them"),
    ],
)
def test_the_heading_says_what_meters_cover(tmp_path, covers, heading):
    meters = METER.format(boundary="facility", covers=covers)
    found = stated(
        tmp_path, run("a", "2026-07-05"), meters_toml=meters, readings_csv=READINGS, period="2026-07"
    )
    assert found.heading == heading


def test_a_period_with_meters_and_no_runs_is_all_unattributed(tmp_path):
    meters = METER.format(boundary="facility", covers="site")
    found = stated(
        tmp_path, run("a", "2026-05-05"), meters_toml=meters, readings_csv=READINGS, period="2026-07"
    )
    assert [line.kind for line in found.lines] == ["metered", "unattributed"]
    near(found.lines[1].estimate("facility_kwh"), 5000)
    near(found.total.estimate("location_kg"), 250)


def test_a_period_without_runs_whose_meters_have_gaps_is_a_lower_bound(tmp_path):
    meters = METER.format(boundary="facility", covers="site")
    gap = READINGS.replace("2026-08-01", "2026-07-09")
    found = stated(tmp_path, run("a", "2026-05-05"), meters_toml=meters, readings_csv=gap, period="2026-07")
    assert [line.kind for line in found.lines] == ["metered", "unattributed"]
    assert found.total.amounts == {}
    least = found.at_least.estimate("facility_kwh")
    assert (least.value, least.state) == (pytest.approx(5000), "unbounded")


def test_what_instruments_gave_before_is_counted_with_the_overheads_of_that_time(tmp_path):
    """The quarter has a PUE of 1, the one before 2: 500 kWh there took 1000 of 1 MWh."""
    more = of_site("pue", "2026-02", "2") + of_site("pue", "2026-05", "1")
    runs = run("a", "2026-02-05", 500) + run("b", "2026-05-05", 1000)
    found = stated(
        tmp_path, runs, site="", more=more, certificates_toml=certificate("go", "2026", 1), period="2026-05"
    )
    near(found.total.estimate("market_kg"), 500)


BERLIN = REPORTING.replace("UTC", "Europe/Berlin").replace("= 10", "= 1")
MONTHS = factor("FR-01", "FR", "2026-01", "0.1") + factor("FR-12", "FR", "2025-12", "0.4")
FIRST_HOUR_OF_JANUARY = "2025-12-31T23"


def at(name, hour, kwh=1000):
    return f"{name},s,base,{kwh * 3_600_000},1,{hour}:00:00Z,3600,it,B,fr\n"


def test_months_are_those_of_the_reporting_time_zone(tmp_path):
    """The first hour of January in Berlin is of December in UTC: factor and vintage are January's."""
    runs = at("first", FIRST_HOUR_OF_JANUARY) + at("later", "2026-01-15T12")
    old, new = certificate("old", "2025", 9), certificate("new", "2026", 9)
    files = {"reporting_toml": BERLIN, "certificates_toml": old + new}
    found = stated(tmp_path, runs, more=MONTHS, period="2026-01", **files)
    near(found.total.estimate("location_kg"), 200)
    assert found.terms["fr"].input_ids == ("own/FR-01",)
    (blend,) = found.blends
    assert [p.source_id for p in blend.parts if p.kwh.value] == ["new"]
    near(blend.emissions_kg, 0)


def test_monthly_statements_sum_to_the_year_in_any_time_zone(tmp_path):
    more = MONTHS + "".join(factor(f"FR-{m:02}", "FR", f"2026-{m:02}", f"0.{m:02}1") for m in range(2, 10))
    runs = "".join(at(f"r{m}", f"2026-{m:02}-01T04") for m in range(1, 10))
    reporting = BERLIN.replace("Europe/Berlin", "America/Los_Angeles")
    whole = stated(tmp_path, runs, more=more, period="2026", reporting_toml=reporting)
    where = {"ledger": tmp_path / "ledger", "inventory": tmp_path / "inventory"}
    parts = [
        make_statement(f"2026-{m:02}", **where, factors=tmp_path / "factors.csv", now_us=case.NOW_US)
        .statement.total.estimate("location_kg")
        .value
        for m in range(1, 9)
    ]
    # The run of the first of January at 04:00 in UTC is of December there.
    assert sum(parts) == pytest.approx(whole.total.estimate("location_kg").value)


def test_a_month_without_load_names_no_factor(tmp_path):
    late = factor("FR-02", "FR", "2026-02", "0.9", span="life_cycle")
    found = stated(
        tmp_path, at("a", "2026-01-15T12"), more=MONTHS + late, period="2026Q1", reporting_toml=BERLIN
    )
    assert found.terms["fr"].input_ids == ("own/FR-01",)
    assert found.terms["fr"].span == "direct"
    assert "CL354" not in codes(found)


def test_hours_of_a_factor_lie_in_the_month_of_the_reporting_time_zone(tmp_path):
    hours = factor("h", "FR", FIRST_HOUR_OF_JANUARY, "0.3")
    found = stated(
        tmp_path,
        at("first", FIRST_HOUR_OF_JANUARY),
        more=MONTHS + hours,
        period="2026-01",
        reporting_toml=BERLIN,
    )
    near(found.total.estimate("location_kg"), 300)


def test_a_meter_counts_in_the_months_of_the_reporting_time_zone(tmp_path):
    readings = "meter,start,end,energy,unit\nm,2026-01-01,2026-02-01,744,MWh\n"
    files = {"meters_toml": METER.format(boundary="facility", covers="site"), "readings_csv": readings}
    found = stated(
        tmp_path, at("a", "2026-01-15T12"), more=MONTHS, period="2026-01", reporting_toml=BERLIN, **files
    )
    near(found.total.estimate("location_kg"), 74_400)
    assert found.terms["fr"].input_ids == ("own/FR-01",)


@pytest.mark.parametrize(("zone", "kg"), [("Europe/Berlin", 100), ("UTC", 400)])
def test_a_clock_that_fell_back_to_2000_ends_no_score(tmp_path, zone, kg):
    """Of that year no factor is known, and the months from then on are many."""
    runs = at("unset", "2000-01-05T12") + at("set", FIRST_HOUR_OF_JANUARY)
    stated(tmp_path, runs, more=MONTHS, period=None, reporting_toml=BERLIN.replace("Europe/Berlin", zone))
    where = {name: tmp_path / name for name in ("ledger", "inventory")}
    found = make_sci("request", study="s", units=1.0, factors=tmp_path / "factors.csv", **where)
    near(found.sci.operational_kg, kg)
    assert found.sci.operational_kg.state == "unbounded"


@pytest.mark.parametrize("zone", ["America/St_Johns", "Europe/Berlin", "Asia/Kolkata", "Pacific/Apia"])
def test_each_month_has_an_end_after_its_begin_in_every_hour(zone):
    """In St John's clocks were set back a minute past a month's end, until 2011."""
    calendar = Calendar(reporting_timezone=zone)
    hours = Period(calendar.period("2009").first_hour, calendar.period("2011").end_hour)
    months = months_of(hours, calendar)
    assert len(months.names) == 36
    assert sum(months.hours) == hours.end_hour - hours.first_hour
    of = month_of(calendar)
    assert all(of(h * US_PER_HOUR)[1] > h * US_PER_HOUR for h in range(hours.first_hour, hours.end_hour, 7))


DATED = 'pue = 1.5\npue_source = "t"\npue_valid_from = {start}\npue_valid_to = {end}\n'


def test_a_declared_figure_counts_in_its_months_and_a_row_of_the_site_beside_it(tmp_path):
    site = DATED.format(start="2025-01-01", end="2026-01-01")
    found = stated(tmp_path, TWO, site=site, more=of_site("pue", "2026", "1.2"))
    near(found.total.estimate("facility_kwh"), 1500 + 1200)
    figures = {f.figure_id: f.estimate.value for f in found.figures}
    assert (figures["pue:fr"], figures["own/pue-2026"]) == (1.5, pytest.approx(1.2))
    assert not {"CL466", "CL490"} & codes(found)


def test_where_a_declared_figure_does_not_hold_it_is_unknown_and_that_is_said(tmp_path):
    """The end is exclusive, and the figure of a later year is never used for an earlier one."""
    found = stated(tmp_path, TWO, site=DATED.format(start="2025-12-01", end="2026-06-01"))
    near(found.total.estimate("facility_kwh"), 1500)
    near(found.at_least.estimate("facility_kwh"), 1000)
    said = [f.message for f in found.findings if f.code == "CL490"]
    assert "stated from 2025-12-01 to 2026-06-01 alone" in said[0]
    figures = {f.figure_id: f.estimate.value for f in found.figures}
    assert figures["pue:fr"] == 1.5
    assert figures["pue:fr:other_time"] is None


@pytest.mark.parametrize(
    ("dates", "is_undated"),
    [("", True), ("pue_valid_from = 2025-01-01\n", False), ("pue_valid_to = 2030-01-01\n", False)],
)
def test_a_figure_of_no_time_is_said(tmp_path, dates, is_undated):
    found = stated(tmp_path, TWO, site=PUE_1 + dates)
    assert ("CL466" in codes(found)) == is_undated
    near(found.total.estimate("facility_kwh"), 2000)


def test_water_and_the_host_are_dated_too(tmp_path):
    site = (
        'pue = 1.0\npue_source = "t"\nhost_overhead = 1.1\nhost_overhead_source = "t"\n'
        "host_overhead_valid_from = 2026-01-01\n"
        'wue_l_per_kwh = 2\nwue_source = "t"\nwue_valid_to = 2026-01-01\n'
    )
    runs = run("a", "2025-11-05", boundary="device") + run("b", "2026-05-05", boundary="device")
    found = stated(tmp_path, runs, site=site)
    near(found.total.estimate("facility_kwh"), 1100)
    near(found.at_least.estimate("facility_kwh"), 1000)
    said = " ".join(f.message for f in found.findings if f.code == "CL490")
    assert "host overhead of fr" in said
    assert "WUE of fr" in said
