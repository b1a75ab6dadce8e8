"""What holds at the places of a statement: markets, bases of hours, days of prices, zones, runs."""

import pytest

from carbonlens.app.charges import charges_of_runs
from carbonlens.app.importing import import_files
from carbonlens.app.ledger_care import supersede
from carbonlens.app.statement import make_statement
from tests.app import statement_case as case

RUNS = "run_id,study,step,energy_j,units,start_utc,duration_s,boundary,energy_grade,site\n"
FACTORS = case.FACTORS.splitlines()[0] + "\n"
PRICES = "id,subject,region,per,amount,currency,cost_kind,valid_from,valid_to,source,address,read_on\n"
BILL = (
    "ChargeCategory,ChargePeriodStart,ChargePeriodEnd,BillingCurrency,BilledCost,EffectiveCost,"
    "ConsumedQuantity,ConsumedUnit,ResourceId,ChargeDescription,ServiceProviderName\n"
    "Usage,2026-07-01,2026-08-01,EUR,310,310,1,Hours,i-1,vm,util\n"
)


def site(name, zone, market, kind="own", more=""):
    return (
        f'[[site]]\nid = "{name}"\nkind = "{kind}"\nentity = "E"\nzone = "{zone}"\nmarket = "{market}"\n'
        f'pue = 1.0\npue_source = "test"\n{more}\n'
    )


def run(name, start, place):
    return f"{name},s,base,3600000000,1,{start}T00:00:00Z,3600,it,B,{place}\n"


def factor(name, zone, period, value, *, method="location", averaging="average", span="direct"):
    basis = f"{method},{averaging},{span},consumption,0.1,Test table,test,CC0,2026"
    return f"own/{name},grid,{zone},Zone,{period},{value},{basis}\n"


def price(name, amount, *, region="", currency="EUR", start="2026-01-01", end=""):
    return f"{name},electricity,{region},kWh,{amount},{currency},list,{start},{end},test,https://example.org,2026-01-05\n"


def stated(folder, runs, factors, bill=None, **files):
    """Write it all, and return the statement of July."""
    inventory = folder / "inventory"
    inventory.mkdir()
    (inventory / "reporting.toml").write_text('entity = "E"\ntimezone = "UTC"\n')
    for name, text in files.items():
        (inventory / name.replace("_toml", ".toml").replace("_csv", ".csv")).write_text(text)
    (folder / "factors.csv").write_text(FACTORS + factors)
    (folder / "runs.csv").write_text(RUNS + runs)
    import_files([folder / "runs.csv"], ledger=folder / "ledger")
    if bill is not None:
        (folder / "bill.csv").write_text(bill)
        import_files([folder / "bill.csv"], ledger=folder / "ledger", site="fr")
    where = {"ledger": folder / "ledger", "inventory": inventory, "factors": folder / "factors.csv"}
    return make_statement("2026-07", **where, now_us=case.NOW_US).statement


def near(estimate, value):
    assert estimate.value == pytest.approx(value, rel=1e-9)


YEARS = factor("FR", "FR", "2026", "0.05") + factor("PL", "PL", "2026", "0.65")


BOTH = run("a", "2026-07-05", "fr") + run("b", "2026-07-06", "pl")


def test_sites_of_one_market_in_two_zones_take_a_weighted_rest(tmp_path):
    sites = site("fr", "FR", "EU") + site("pl", "PL", "EU")
    found = stated(tmp_path, BOTH, YEARS, sites_toml=sites)
    near(found.total.estimate("market_kg"), 1000 * 0.05 + 1000 * 0.65)


def test_a_residual_mix_of_one_zone_alone_is_weighted_with_the_average_of_the_other(tmp_path):
    sites = site("fr", "FR", "EU") + site("pl", "PL", "EU")
    more = YEARS + factor("FR-residual", "FR", "2026", "0.1", method="residual")
    found = stated(tmp_path, BOTH, more, sites_toml=sites)
    near(found.total.estimate("market_kg"), 1000 * 0.1 + 1000 * 0.65)


@pytest.mark.parametrize("basis", [{"averaging": "marginal"}, {"span": "life_cycle"}])
def test_hours_of_another_basis_are_not_taken(tmp_path, basis):
    hour = factor("hour", "FR", "2026-07-05T00", "0.9", **basis)
    found = stated(tmp_path, run("a", "2026-07-05", "fr"), YEARS + hour, sites_toml=site("fr", "FR", "FR"))
    near(found.total.estimate("location_kg"), 50)
    assert "CL488" in {f.code for f in found.findings}


def test_hours_of_the_basis_are_taken_and_named(tmp_path):
    hour = factor("hour", "FR", "2026-07-05T00", "0.9")
    found = stated(tmp_path, run("a", "2026-07-05", "fr"), YEARS + hour, sites_toml=site("fr", "FR", "FR"))
    near(found.total.estimate("location_kg"), 900)
    assert "1 hour by the hour's own figure" in found.terms["fr"].how
    assert "CL488" not in {f.code for f in found.findings}


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        (price("p1", "0.20", end="2026-07-11") + price("p2", "0.40", start="2026-07-11"), 400),
        (price("p1", "0.10", start="2026-06-01") + price("p2", "0.40", region="FR"), 400),
        (price("p1", "0.30", region="fr") + price("p2", "0.40", region="FR"), 300),
    ],
)
def test_the_price_is_that_of_the_day_and_of_the_region(tmp_path, prices, cost):
    sites = site("fr", "FR", "FR")
    found = stated(
        tmp_path, run("a", "2026-07-25", "fr"), YEARS, sites_toml=sites, prices_csv=PRICES + prices
    )
    total = found.cost.totals["EUR"]
    near(total, cost)
    assert total.state == "known"


def test_two_sites_priced_in_two_currencies_are_both_known(tmp_path):
    sites = site("fr", "FR", "FR") + site("pl", "PL", "PL")
    prices = PRICES + (price("p1", "0.1", region="fr") + price("p2", "0.4", region="pl", currency="USD"))
    found = stated(tmp_path, BOTH, YEARS, sites_toml=sites, prices_csv=prices)
    assert {c: (round(e.value, 9), e.state) for c, e in found.cost.totals.items()} == {
        "EUR": (100.0, "known"),
        "USD": (400.0, "known"),
    }


def test_a_cost_beside_unpriced_electricity_is_a_lower_bound(tmp_path):
    assets = (
        "id,hardware,count,site,purchased,life_years,embodied_kg,embodied_source,cost,currency\n"
        "srv,box,1,fr,2026-01-01,5,1000,test,10000,EUR\n"
    )
    sites = site("fr", "FR", "FR")
    found = stated(tmp_path, run("a", "2026-07-05", "fr"), YEARS, sites_toml=sites, assets_csv=assets)
    assert found.cost.totals["EUR"].value > 0
    assert found.cost.totals["EUR"].state == "unbounded"
    assert [f.severity for f in found.findings if f.code == "CL486"] == ["warning"]


def test_a_zone_that_is_not_the_regions_is_said(tmp_path):
    sites = site("aws", "FR", "FR", kind="cloud", more='provider = "aws"\nregion = "us-east-1"')
    found = stated(tmp_path, run("a", "2026-07-05", "aws"), YEARS, sites_toml=sites)
    (said,) = [f.message for f in found.findings if f.code == "CL481"]
    assert "FR" in said
    assert "aws:us-east-1" in said


def test_what_scopes_water_and_upstream_say_is_kept(tmp_path):
    found = stated(
        tmp_path, run("a", "2026-07-05", "fr"), YEARS, sites_toml=site("fr", "FR", "FR", "colocation")
    )
    codes = {f.code: f.severity for f in found.findings}
    assert codes["CL388"] == "error"
    assert {"CL383", "CL398"} <= set(codes)


def test_a_superseded_run_carries_no_charge(tmp_path):
    sites = site("fr", "FR", "FR")
    runs = run("a", "2026-07-01", "fr").replace(",3600,it", f",{5 * 86400},it")
    stated(tmp_path, runs, YEARS, BILL, sites_toml=sites)
    where = {"ledger": tmp_path / "ledger", "inventory": tmp_path / "inventory", "period": "2026-07"}
    before = charges_of_runs(**where).amounts["EUR"]["a"].amount
    supersede("a", {"duration_s": 86400.0}, why="test", ledger=tmp_path / "ledger")
    found = charges_of_runs(**where).amounts["EUR"]
    (carried,) = [name for name in found if name is not None]
    assert carried != "a"
    assert found[carried].amount == before
