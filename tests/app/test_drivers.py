"""The bridge between two quarters of a ledger, against plain sums, statements and refusals."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from carbonlens.app.drivers import before, make_drivers
from carbonlens.app.explain import explain
from carbonlens.app.explain_drivers import OF_INITIATIVES, question_of
from carbonlens.app.explain_known import Options
from carbonlens.compare.drivers_bridge import closes
from carbonlens.domain.drivers import MEASURES, NO_UNIT
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError, UsageError
from carbonlens.factors.store import FactorSet
from carbonlens.factors.table_file import read_csv
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger
from carbonlens.reporting.drivers_json import drivers_json
from carbonlens.reporting.explanation import walk
from scripts import write_quarters
from tests.app import quarters_case as case


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return case.write(tmp_path_factory.mktemp("quarters"))


@pytest.fixture(scope="module")
def made(ledger):
    return make_drivers("2026Q3", "2026Q2", measures=MEASURES, listed=True, **case.given(ledger))


@pytest.fixture(scope="module")
def energy(made):
    return made.drivers.bridges[0]


def change_of(held, name):
    return next(e.change for e in held.effects if e.name == name)


def test_the_fixture_is_what_its_script_writes(tmp_path):
    write_quarters.write(tmp_path)
    for file in sorted(p for p in tmp_path.rglob("*") if p.is_file()):
        kept = case.FIXTURE / file.relative_to(tmp_path)
        assert kept.read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("key", ["energy", "carbon-location", "carbon-market", "cost.EUR"])
def test_every_bridge_closes_between_both_statements(made, key):
    bridge = next(b for b in made.drivers.bridges if b.key == key)
    names = {"energy": "facility_kwh", "carbon-location": "location_kg", "carbon-market": "market_kg"}
    for end, statement in ((bridge.before, made.before.statement), (bridge.after, made.after.statement)):
        name = names.get(key, "electricity.EUR")
        assert end.value == pytest.approx(statement.total.estimate(name).value, rel=1e-12)
    assert closes(bridge)
    assert abs(bridge.remainder) <= 1e-9 * bridge.after.value
    sums = math.fsum(e.change.value for e in bridge.effects)
    assert sums + bridge.remainder == pytest.approx(bridge.after.value - bridge.before.value)


def test_energy_is_that_of_plain_sums(energy):
    for quarter, end in (("2026Q2", energy.before), ("2026Q3", energy.after)):
        wanted = sum(
            float(r["energy_j"]) / 3.6e6 * case.pue(r) for r in case.rows() if r["quarter"] == quarter
        )
        assert end.value == pytest.approx(wanted)


def test_volume_is_the_logarithmic_mean_of_each_row_times_the_growth_of_its_unit(energy):
    """By the formula of Ang, from the rows of the tables: rows of both quarters by class and site."""
    wanted = 0.0
    for unit in ("token", "request"):
        growth = math.log(case.units("2026Q3", unit=unit) / case.units("2026Q2", unit=unit))
        for name, site in {(r["workload"], r["site"]) for r in case.rows() if r["unit"] == unit}:
            ends = [
                sum(
                    float(r["energy_j"]) / 3.6e6 * case.pue(r)
                    for r in case.rows()
                    if (r["quarter"], r["workload"], r["site"]) == (q, name, site)
                )
                for q in ("2026Q2", "2026Q3")
            ]
            if all(ends):
                wanted += (ends[1] - ends[0]) / math.log(ends[1] / ends[0]) * growth
    assert change_of(energy, "volume").value == pytest.approx(wanted)


def test_units_stand_apart_and_new_and_gone_work_is_named(energy):
    assert {p.unit for p in energy.parts} == {"token", "request", NO_UNIT}
    for part in energy.parts:
        if part.unit != NO_UNIT:
            assert part.volumes == tuple(case.units(q, unit=part.unit) for q in ("2026Q2", "2026Q3"))
    assert {(c.kind, c.name) for c in energy.changes} == {("new", "guard"), ("vanished", "translate")}


def test_the_change_is_surer_than_two_totals_that_share_their_meters(energy):
    apart = math.hypot(energy.before.u_total, energy.after.u_total)
    assert energy.change.u_total < 0.5 * apart


def test_an_unchanged_market_rate_has_no_effect(made):
    market = next(b for b in made.drivers.bridges if b.key == "carbon-market")
    assert abs(change_of(market, "grid").value) < 1e-12 * market.after.value


def test_every_figure_rests_on_figures_records_or_lists_of_runs(made):
    from carbonlens.factors.store import open_factors

    known = {f.figure_id for f in made.drivers.figures}
    known |= {f.figure_id for s in (made.before, made.after) for f in s.statement.figures}
    known |= {row.factor_id for row in open_factors(case.FIXTURE / "factors.csv").rows}
    named = {i for f in made.drivers.figures for i in f.inputs}
    missing = {i for i in named - known if not i.startswith("runs.drivers.")}
    assert missing == set()
    assert len({f.figure_id for f in made.drivers.figures}) == len(made.drivers.figures)


def test_a_figure_is_explained_down_to_runs_and_factors(ledger):
    found = case.given(ledger)
    options = Options(ledger=found["ledger"], inventory=found["inventory"], factors=found["factors"])
    node = explain("drivers.2026Q3.2026Q2.workload.carbon-location.pue", options)
    kinds = {n.item.kind for n in walk(node)}
    assert {"runs", "run", "reading", "factor"} <= kinds
    assert "unknown" not in kinds


def test_json_holds_no_nan(made):
    import json

    import msgspec

    text = msgspec.json.encode(drivers_json(made.drivers)).decode()

    def refuse(word):
        raise AssertionError(word)

    shape = json.loads(text, parse_constant=refuse)
    assert shape["schema"] == "carbonlens/drivers/1"
    assert {b["measure"] for b in shape["bridges"]} == set(MEASURES)


@pytest.mark.parametrize(
    ("period", "against", "words"),
    [
        ("2026Q3", "2026-09", "overlap"),
        ("2026Q2", "2026Q3", "lies after"),
        ("2026", "2026Q2", "overlap"),
        ("2026Q3", "next", "is no period"),
    ],
)
def test_periods_that_cannot_be_compared_are_refused(ledger, period, against, words):
    with pytest.raises(UsageError, match=words):
        make_drivers(period, against, **case.given(ledger))


def test_one_period_only_is_said_in_plain_words(ledger):
    with pytest.raises(SelectionError, match="nothing that 2026Q2 could have changed from"):
        make_drivers("2026Q2", **case.given(ledger))
    with pytest.raises(SelectionError, match="no runs in 2026Q4"):
        make_drivers("2026Q4", **case.given(ledger))


def test_no_label_and_no_such_work_are_refused(ledger):
    with pytest.raises(SelectionError, match="no label"):
        make_drivers("2026Q3", by="colour", **case.given(ledger))
    with pytest.raises(SelectionError, match="no work is named 'chatt'"):
        make_drivers("2026Q3", same={"chatt": "chat"}, **case.given(ledger))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026Q3", "2026Q2"),
        ("2026Q1", "2025Q4"),
        ("2026", "2025"),
        ("2026-01", "2025-12"),
        ("2026-03-01", "2026-02-28"),
    ],
)
def test_the_period_before(text, wanted):
    assert before(text, Calendar()) == wanted


def test_an_id_tells_what_was_asked_for():
    asked = question_of("drivers.2026Q3.2026Q2.tag:a.b+x=y.cost.EUR.unit:token.class:z.volume")
    assert asked == ("2026Q3", "2026Q2", "tag:a.b", "cost", {"x": "y"})
    assert question_of("statement.2026Q3.total.it_kwh") is None
    match = OF_INITIATIVES.fullmatch("initiatives.2026Q3.2026Q2.workload.int8.x~-12.5.saving.energy_kwh")
    assert (match["name"], match["kwh"]) == ("int8.x", "-12.5")


def run(name, month, *, kwh=10, units=100, site="lab", boundary="it", unit="token", workload="chat", **tags):
    start = (Calendar().period(f"2026-{month:02}").first_hour + 5) * US_PER_HOUR
    reading = Reading(
        component="total",
        energy_j=Decimal(kwh) * 3_600_000,
        boundary=boundary,
        grade="B",
        method="counter",
        u_by_source_j={"sensor:x": kwh * 3_600_000 * 0.02},
    )
    return Run(
        run_id=f"{name}-{month}",
        start_us=start,
        end_us=start + US_PER_HOUR,
        duration_s=3600.0,
        site=site,
        unit=unit,
        units=None if units is None else Decimal(units),
        workload=workload,
        energy=(reading,),
        tags=tags,
    )


SITE = '[[site]]\nid = "lab"\nkind = "own"\nentity = "T"\nzone = "DE"\nmarket = "DE"\n'
PUE = 'pue = 1.25\npue_source = "t"\npue_u_relative = 0.02\n'
NEGATIVE = (
    '[[tariff]]\nid = "t{n}"\nsite = "lab"\ncurrency = "{currency}"\ntimezone = "UTC"\nvalid_from = {begin}\n'
    'valid_to = {end}\nu_relative = 0.0\nsource = "t"\n[[tariff.band]]\nname = "all"\n'
    'amount_per_kwh = "{price}"\nstart_hour = 0\nend_hour = 24\n'
)


def asked(folder, runs, *, sites=SITE + PUE, tariffs=(), factors=None, whole=None, **options):
    """Return the drivers of June against May of a ledger of these runs."""
    Ledger(folder / "ledger").add_batch(runs, source_sha256="cd" * 32, importer="test-1")
    inventory = folder / "inventory"
    inventory.mkdir()
    (inventory / "sites.toml").write_text(sites)
    (inventory / "reporting.toml").write_text('entity = "T"\ntimezone = "UTC"\ncurrency = "EUR"\n')
    spans = (("2026-05-01", "2026-06-01"), ("2026-06-01", "2026-07-01"))
    texts = [
        NEGATIVE.format(n=n, begin=a, end=b, price=price, currency=currency)
        for n, ((a, b), held) in enumerate(zip(spans, tariffs, strict=False))
        if held is not None
        for price, currency in (held,)
    ]
    if texts:
        (inventory / "tariffs.toml").write_text("\n".join(texts))
    rows = case.FIXTURE.joinpath("factors.csv").read_text().splitlines()
    (folder / "factors.csv").write_text("\n".join([rows[0], *(factors if factors is not None else rows[1:])]))
    where = {"ledger": folder / "ledger", "inventory": inventory, "factors": whole or folder / "factors.csv"}
    return make_drivers("2026-06", "2026-05", now_us=case.NOW_US, **where, **options)


def codes(found):
    return [f.code for f in found.drivers.findings]


def test_no_volume_is_said_and_all_energy_has_one_line(tmp_path):
    found = asked(tmp_path, [run("a", 5, units=None), run("a", 6, units=None, kwh=14)])
    (bridge,) = found.drivers.bridges
    assert change_of(bridge, "uncounted").value == pytest.approx(4 * 1.25)
    assert change_of(bridge, "volume").value == 0
    assert "CL652" in codes(found)
    assert "CL653" in codes(found)


def test_lower_bounds_have_a_bridge_of_their_own(tmp_path):
    runs = [run("a", m, kwh=m, boundary="device") for m in (5, 6)]
    runs += [run("b", m, kwh=m, boundary="facility", workload="b") for m in (5, 6)]
    found = asked(tmp_path, runs, sites=SITE)
    assert [b.is_least for b in found.drivers.bridges] == [False, True]
    true, least = found.drivers.bridges
    assert (true.before.value, true.after.value) == pytest.approx((5, 6))
    assert (least.before.value, least.after.value) == pytest.approx((5, 6))
    assert least.change.state == "unbounded"
    assert closes(true)
    assert closes(least)


def test_a_class_without_a_factor_in_one_period_is_named_and_no_driver(tmp_path):
    rows = case.FIXTURE.joinpath("factors.csv").read_text().splitlines()
    later = [r for r in rows[1:] if not r.startswith(("own/DE-2026-04", "own/DE-2026-05"))]
    runs = [run("a", m, site="x1", boundary="facility") for m in (5, 6)]
    runs += [run("b", m, site="x2", boundary="facility", workload="b") for m in (5, 6)]
    sites = SITE.replace("lab", "x1") + SITE.replace("lab", "x2").replace("DE", "FR")
    # A whole set of its own: the bundled factors know May too.
    text = "\n".join([rows[0], *later])
    only = FactorSet(rows=read_csv(text, where="factors.csv").rows, overrides=())
    found = asked(tmp_path, runs, sites=sites, whole=only, measures=("carbon-location",))
    (bridge,) = found.drivers.bridges
    assert change_of(bridge, "basis").value > 0
    assert closes(bridge)
    said = next(f for f in found.drivers.findings if f.code == "CL657")
    assert "no factor in 2026-05" in said.message
    assert "chat at x1" in said.message


def test_a_price_below_nothing_is_split_by_shapley_values(tmp_path):
    runs = [run("a", 5), run("a", 6, kwh=12)]
    found = asked(tmp_path, runs, tariffs=(("-0.10", "EUR"), ("0.20", "EUR")), measures=("cost",))
    (bridge,) = found.drivers.bridges
    assert bridge.method == "shapley"
    assert (bridge.before.value, bridge.after.value) == pytest.approx((-1.25, 3.0))
    assert closes(bridge)
    assert "CL656" in codes(found)
    assert change_of(bridge, "price").value == pytest.approx((12.5 + 15.0) / 2 * 0.3)


def test_two_currencies_are_never_added_nor_told_as_one_change(tmp_path):
    runs = [run("a", 5), run("a", 6, kwh=12)]
    found = asked(tmp_path, runs, tariffs=(("0.10", "EUR"), ("0.20", "USD")), measures=("cost",))
    assert {b.unit for b in found.drivers.bridges} == {"EUR", "USD"}
    for bridge in found.drivers.bridges:
        assert closes(bridge)
        assert {e.name for e in bridge.effects if e.change.value} == {"basis"}
    assert "CL657" in codes(found)


def test_no_price_at_all_is_said_in_plain_words(tmp_path):
    with pytest.raises(SelectionError, match="cost is not known"):
        asked(tmp_path, [run("a", 5), run("a", 6)], measures=("cost",))


def test_a_unit_that_vanished_is_a_matter_of_volume(tmp_path):
    runs = [run("a", 5), run("b", 5, unit="image", workload="draw"), run("a", 6)]
    found = asked(tmp_path, runs)
    (bridge,) = found.drivers.bridges
    image = next(p for p in bridge.parts if p.unit == "image")
    assert image.volumes == (100.0, None)
    assert change_of(image, "volume").value == pytest.approx(-12.5)
    assert [(c.kind, c.unit) for c in bridge.changes] == [("vanished", "image")]


def test_work_under_another_name_is_told_and_joined_on_request(tmp_path):
    runs = [run("a", 5, workload="old", model="m"), run("a", 6, workload="new", model="m", kwh=8)]
    found = asked(tmp_path, runs)
    said = next(f for f in found.drivers.findings if f.code == "CL658")
    assert "--same old=new" in said.mend
    where = {
        "ledger": tmp_path / "ledger",
        "inventory": tmp_path / "inventory",
        "factors": tmp_path / "factors.csv",
        "now_us": case.NOW_US,
    }
    one = make_drivers("2026-06", "2026-05", same={"old": "new"}, **where)
    (bridge,) = one.drivers.bridges
    assert [(c.kind, c.name, c.to) for c in bridge.changes] == [("retagged", "old", "new")]
    assert change_of(bridge, "energy").value == pytest.approx(-2.5)
    assert change_of(bridge, "mix").value == 0
    assert "CL658" not in codes(one)


def test_a_pue_known_in_one_period_only_is_said(tmp_path):
    rows = case.FIXTURE.joinpath("factors.csv").read_text().splitlines()
    dated = [r for r in rows[1:] if not r.startswith(("own/pue", "own/DE-2026-05", "own/DE-2026-04"))]
    dated.append("own/pue-lab,pue,lab,lab,2026-06,1.3,,,,,0.01,s,s,CC0,2026")
    found = asked(tmp_path, [run("a", 5), run("a", 6)], sites=SITE, factors=dated)
    assert "CL659" in codes(found)
    assert all(closes(b) for b in found.drivers.bridges)


def test_a_period_that_is_not_over_and_one_of_another_length_are_said(tmp_path):
    found = asked(tmp_path, [run("a", 5), run("a", 6)])
    assert "CL651" not in codes(found)
    where = {
        "ledger": tmp_path / "ledger",
        "inventory": tmp_path / "inventory",
        "factors": tmp_path / "factors.csv",
    }
    early = Calendar().period("2026-06-11").first_hour * US_PER_HOUR
    half = make_drivers("2026-06", "2026-05", now_us=early, **where)
    said = next(f for f in half.drivers.findings if f.code == "CL650" and "2026-06" in f.message)
    assert "10 of 30 days" in said.message


def test_periods_of_differing_length_are_said(tmp_path):
    found = asked(tmp_path, [run("a", 1), run("a", 5), run("a", 6)])
    assert found.drivers.period == "2026-06"
    where = {
        "ledger": tmp_path / "ledger",
        "inventory": tmp_path / "inventory",
        "factors": tmp_path / "factors.csv",
        "now_us": case.NOW_US,
    }
    longer = make_drivers("2026Q2", "2026-01", **where)
    assert "CL651" in codes(longer)


def test_what_meters_count_beyond_runs_has_a_line(tmp_path):
    meters = (
        '[[meter]]\nid = "m"\nsite = "lab"\nboundary = "facility"\ncovers = "site"\naccuracy_class = 0.01\n'
    )
    folder = tmp_path
    runs = [run("a", 5), run("a", 6, kwh=12)]
    Ledger(folder / "ledger").add_batch(runs, source_sha256="cd" * 32, importer="test-1")
    inventory = folder / "inventory"
    inventory.mkdir()
    (inventory / "sites.toml").write_text(SITE + PUE)
    (inventory / "reporting.toml").write_text('entity = "T"\ntimezone = "UTC"\ncurrency = "EUR"\n')
    (inventory / "meters.toml").write_text(meters)
    (inventory / "readings.csv").write_text(
        "meter,start,end,energy,unit\nm,2026-05-01T00:00Z,2026-06-01T00:00Z,20,kWh\n"
        "m,2026-06-01T00:00Z,2026-07-01T00:00Z,31,kWh\n"
    )
    found = make_drivers(
        "2026-06",
        "2026-05",
        ledger=folder / "ledger",
        inventory=inventory,
        factors=case.FIXTURE / "factors.csv",
        now_us=case.NOW_US,
    )
    (bridge,) = found.drivers.bridges
    assert (bridge.before.value, bridge.after.value) == pytest.approx((20, 31))
    assert change_of(bridge, "unattributed").value == pytest.approx((31 - 15) - (20 - 12.5))
    assert change_of(bridge, "energy").value == pytest.approx(2.5)
    assert closes(bridge)
