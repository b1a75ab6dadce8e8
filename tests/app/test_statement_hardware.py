"""Hours of hardware in a period, as the ledger has them: cut at its ends, by part, with those before."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.app.statement import make_statement
from carbonlens.app.statement_hardware import uses
from carbonlens.domain.asset import Asset
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger
from tests.app import statement_case as case

END = Calendar().period(case.PERIOD).end_hour
GPUS = tuple(f"GPU-{n:08x}" for n in range(8))
BOX = Asset(asset_id="box", hardware="box", site="lab", purchased="2026-01-01", life_years=4.0)


def run(name, first, hours, *devices, host=None, **more):
    """Return a run that draws 1 kW."""
    reading = Reading(
        component="gpu", energy_j=Decimal(3_600_000) * hours, boundary="it", grade="B", method="counter"
    )
    given = {"hardware": "box", "site": "lab"} | more
    return Run(
        run_id=name,
        start_us=first * US_PER_HOUR,
        end_us=(first + hours) * US_PER_HOUR,
        duration_s=hours * 3600.0,
        host_id=host,
        device_uuids=devices,
        energy=(reading,),
        **given,
    )


def used(folder, runs, *assets, period=case.PERIOD, imported=False):
    store = Ledger(folder / "ledger")
    if imported:
        store.add_batch(runs, source_sha256="ab" * 32, importer="test-1")
    else:
        for one in runs:
            store.append(one)
    with store.query(period, Calendar()) as view:
        return {u.asset.asset_id: u for u in uses(view, Inventory(assets=assets))}


@pytest.mark.parametrize("imported", [False, True])
def test_a_run_over_the_end_of_a_period_counts_in_each_with_its_part(tmp_path, imported):
    runs = [run("over", END - 10, 30), run("before", case.FIRST_HOUR - 6, 8)]
    named = Asset(
        **{f: getattr(BOX, f) for f in BOX.__struct_fields__} | {"asset_id": "n", "devices": ("h",)}
    )
    assert used(tmp_path, runs, BOX, named, imported=imported)["box"].hours == pytest.approx(10 + 2)
    with Ledger(tmp_path / "ledger").query("2026-06", Calendar()) as view:
        assert uses(view, Inventory(assets=(BOX,)))[0].hours == pytest.approx(20)


@pytest.mark.parametrize("imported", [False, True])
def test_devices_of_runs_are_met_in_live_runs_and_in_batches(tmp_path, imported):
    eight = Asset(asset_id="e", hardware="x", devices_each=8, devices=("h1",), purchased="2026-01-01")
    named = Asset(asset_id="n", hardware="x", count=2, devices=GPUS[:2], purchased="2026-01-01")
    runs = [run("a", case.FIRST_HOUR, 8, *GPUS[:2], host="h1"), run("b", END - 4, 8, GPUS[0], host="h2")]
    found = used(tmp_path, runs, eight, named, imported=imported)
    assert found["e"].hours == pytest.approx(8 * 2 / 8)
    assert found["n"].hours == pytest.approx(8 * 2 + 4)


def test_hours_before_the_period_are_those_of_the_ledger_and_those_before_it(tmp_path):
    aging = {"site": "lab", "purchased": "2020-01-01", "used_hours": 100.0}
    old = Asset(asset_id="old", hardware="x", **aging)
    told = Asset(asset_id="told", hours_before=50.0, hardware="y", **aging)
    new = Asset(asset_id="new", hardware="z", **aging | {"purchased": "2026-04-30"})
    begin = Calendar().period("2026-04").first_hour
    runs = [run(f"april-{h}", begin, 30, hardware=h) for h in "xyz"]
    runs += [run(f"may-{h}", case.FIRST_HOUR, 40, hardware=h) for h in "xyz"]
    found = used(tmp_path, runs, old, told, new)
    assert {n: u.before for n, u in found.items()} == {"old": None, "told": 80.0, "new": 30.0}


def test_use_beyond_the_expected_hours_carries_nothing_more(tmp_path):
    case.write(tmp_path)
    begin = Calendar().period("2026-04").first_hour
    store = Ledger(tmp_path / "ledger")
    store.append(run("april", begin, 30))
    store.append(run("may", case.FIRST_HOUR, 40))
    (tmp_path / "inventory" / "assets.csv").write_text(
        "id,hardware,site,purchased,used_hours,embodied_kg,embodied_source,cost,currency\n"
        "box,box,lab,2026-04-01,50,100,maker,1000,EUR\n"
    )
    where = {
        "ledger": tmp_path / "ledger",
        "inventory": tmp_path / "inventory",
        "factors": tmp_path / "factors.csv",
    }
    made = make_statement(case.PERIOD, **where, now_us=case.NOW_US).statement
    (one,) = made.amortised
    assert one.used_kg.value == pytest.approx(100 * 20 / 50)
    assert [line.amount.value for line in made.cost.lines if line.name == "hardware"] == [pytest.approx(400)]


ASSETS = (
    "id,hardware,site,purchased,life_years,embodied_from\n"
    "a,nvidia-h100-sxm-80gb,lab,2026-05-02,4,{0}\n"
    "b,nvidia-l4,lab,2026-01-01,4,\n"
)


def stated(folder, text, **options):
    case.write(folder)
    (folder / "inventory" / "assets.csv").write_text(text)
    where = {"ledger": folder / "ledger", "inventory": folder / "inventory"}
    where["factors"] = folder / "factors.csv"
    return make_statement(case.PERIOD, **where, now_us=case.NOW_US, **options).statement


def test_embodied_figures_are_a_range_or_of_the_source_that_is_chosen(tmp_path):
    for name, source, text in (("all", None, ""), ("one", "boavizta", ""), ("own", None, "morrison-2025")):
        folder = tmp_path / name
        folder.mkdir()
        made = stated(folder, ASSETS.format(text), embodied_source=source)
        kg = made.amortised[0].each_kg
        assert made.capital.kg.value == pytest.approx(kg.value)
        if name == "all":
            assert (kg.low, kg.high) == (pytest.approx(164), pytest.approx(575.1))
        else:
            assert kg.value == pytest.approx(575.1 if name == "one" else 462.5)


def test_reporting_terms_may_name_the_source(tmp_path):
    case.write(tmp_path)
    reporting = tmp_path / "inventory" / "reporting.toml"
    reporting.write_text(reporting.read_text() + 'embodied_source = "boavizta"\n')
    (tmp_path / "inventory" / "assets.csv").write_text(ASSETS.format(""))
    where = {"ledger": tmp_path / "ledger", "inventory": tmp_path / "inventory"}
    made = make_statement(case.PERIOD, **where, now_us=case.NOW_US).statement
    assert made.amortised[0].each_kg.value == pytest.approx(575.1)


def test_a_source_that_no_hardware_has_is_refused_and_one_that_some_lack_is_said(tmp_path):
    with pytest.raises(SelectionError, match="no source 'nobody'"):
        stated(tmp_path, ASSETS.format(""), embodied_source="nobody")
    folder = tmp_path / "again"
    folder.mkdir()
    made = stated(folder, ASSETS.format(""), embodied_source="nvidia-pcf")
    assert [f.subject for f in made.findings if f.code == "CL493"] == ["b"]


def test_runs_at_once_use_no_more_pieces_than_there_are(tmp_path):
    at = case.FIRST_HOUR
    runs = [run("a", at, 4), run("b", at, 4), run("c", at + 2, 4)]
    one = used(tmp_path, runs, BOX)["box"]
    assert one.hours == pytest.approx(6)
    assert [f.code for f in one.findings] == ["CL382"]
    for count, hours in ((2, 10), (3, 12), (8, 12)):
        several = msgspec.structs.replace(BOX, count=count)
        with Ledger(tmp_path / "ledger").query(case.PERIOD, Calendar()) as view:
            (found,) = uses(view, Inventory(assets=(several,)))
        assert found.hours == pytest.approx(hours)
        assert bool(found.findings) is (count == 2)


def test_two_purchases_of_one_hardware_share_its_hours(tmp_path):
    second = msgspec.structs.replace(BOX, asset_id="second", count=3)
    found = used(tmp_path, [run("a", case.FIRST_HOUR, 8)], BOX, second)
    assert found["box"].hours == pytest.approx(2)
    assert found["second"].hours == pytest.approx(6)


@given(
    spans=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 8)), min_size=1, max_size=6),
    n=st.integers(1, 4),
)
@settings(max_examples=15)
def test_piece_hours_are_those_of_counting_hour_by_hour(tmp_path_factory, spans, n):
    runs = [run(f"r{i}", case.FIRST_HOUR + first, hours) for i, (first, hours) in enumerate(spans)]
    found = used(tmp_path_factory.mktemp("hours"), runs, msgspec.structs.replace(BOX, count=n))["box"]
    active = [sum(first <= h < first + hours for first, hours in spans) for h in range(30)]
    assert found.hours == pytest.approx(sum(min(a, n) for a in active))


def test_hardware_without_a_price_leaves_the_cost_a_lower_bound(tmp_path):
    case.write(tmp_path)
    (tmp_path / "inventory" / "assets.csv").write_text(
        "id,hardware,count,site,purchased,life_years,embodied_kg,embodied_source\nb,box,1,lab,2026-01-01,4,350,m\n"
    )
    found = make_statement(
        case.PERIOD,
        ledger=tmp_path / "ledger",
        inventory=tmp_path / "inventory",
        factors=tmp_path / "factors.csv",
        now_us=case.NOW_US,
    ).statement
    assert "CL339" in {f.code for f in found.findings}
    assert found.cost.totals["EUR"].state == "unbounded"
    assert "hardware" in {line.name for line in found.cost.lines}
