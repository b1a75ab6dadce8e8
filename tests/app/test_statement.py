"""The statement of a period against plain sums, with meters, prices, certificates and unknown places."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.ledger_care import close, verify
from carbonlens.app.statement import make_statement
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError, UsageError
from carbonlens.ledger import schema
from carbonlens.ledger.activity import SNAPSHOTS
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger
from tests.app import statement_case as case

EXACT = 1e-9


def made(folder, **options):
    given = {
        "ledger": folder / "ledger",
        "inventory": folder / "inventory",
        "factors": folder / "factors.csv",
        "now_us": case.NOW_US,
    }
    return make_statement(options.pop("period", case.PERIOD), **given | options)


def values(statement):
    return {f.figure_id: f.estimate for f in statement.figures}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("statement")
    case.write(path)
    return path


@pytest.fixture(scope="module")
def metered_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("metered")
    case.write(path, with_meter=Decimal(2500))
    return path


@pytest.fixture(scope="module")
def plain(folder):
    return made(folder).statement


def near(estimate, expected):
    assert estimate.value == pytest.approx(float(expected), rel=EXACT)


def test_energy_carbon_and_cost_are_those_of_plain_decimals(plain):
    found = values(plain)
    at = f"statement.{case.PERIOD}.lab"
    near(found[f"{at}.it_kwh"], case.it_kwh())
    facility = case.it_kwh() * case.PUE
    near(found[f"{at}.facility_kwh"], facility)
    near(found[f"{at}.location_kg"], facility * case.GRID)
    near(found[f"{at}.market_kg"], (facility - case.CERTIFIED_KWH) * case.RESIDUAL)
    near(found[f"{at}.water_site_l"], case.it_kwh() / 2)
    near(found[f"{at}.electricity.EUR"], case.cost())


def test_the_total_is_the_sum_of_the_sites(plain):
    found = values(plain)
    for name in ("it_kwh", "facility_kwh", "location_kg", "market_kg"):
        parts = [found[f"statement.{case.PERIOD}.{site}.{name}"].value for site in ("lab", "edge")]
        near(found[f"statement.{case.PERIOD}.total.{name}"], sum(parts))


def test_the_error_of_one_sensor_is_not_averaged_over_sites(plain):
    """All runs share ``sensor:gpu``: its part of the total is the sum of its parts."""
    found = values(plain)
    parts = [found[f"statement.{case.PERIOD}.{s}.it_kwh"].u_by_source["sensor:gpu"] for s in ("lab", "edge")]
    total = found[f"statement.{case.PERIOD}.total.it_kwh"]
    assert total.u_by_source["sensor:gpu"] == pytest.approx(sum(parts))


def test_scopes_follow_the_kind_of_site_and_hold_all_emissions(plain):
    places = {(t.place.key, t.method): t for t in plain.scopes}
    found = values(plain)
    near(places["scope_2", "location"].kg, found[f"statement.{case.PERIOD}.lab.location_kg"].value)
    # Grid losses of the customers' electricity are unknown, and stay in the same category.
    edge = places["scope_3_category_11", "location"]
    assert edge.kg.state == "unbounded"
    near(edge.kg, found[f"statement.{case.PERIOD}.edge.location_kg"].value)


def test_lines_by_team_sum_to_the_sites(folder, plain):
    by_team = made(folder, by="team").statement
    for name in ("facility_kwh", "location_kg", "market_kg"):
        parts = [line.estimate(name).value for line in by_team.groups]
        assert len(parts) == 2
        near(plain.total.estimate(name), sum(parts))


@pytest.mark.parametrize("label", ["team", "model", "zone", "tag:service", "tag:team"])
def test_lines_by_any_label_and_what_no_run_explains_sum_to_the_total(metered_folder, label):
    statement = made(metered_folder, by=label).statement
    for name in ("facility_kwh", "location_kg", "market_kg"):
        parts = [line.estimate(name).value for line in (*statement.groups, *statement.unattributed)]
        near(statement.total.estimate(name), sum(parts))


def test_runs_without_a_zone_lie_in_that_of_their_site(folder, plain):
    by_zone = made(folder, by="zone").statement
    found = {line.key.rpartition(".")[2]: line.estimate("facility_kwh").value for line in by_zone.groups}
    sites = {line.site_id: line.estimate("facility_kwh").value for line in plain.lines}
    assert found == pytest.approx({"DE": sites["lab"], "FR": sites["edge"]})


def test_inputs_of_every_figure_are_figures_records_or_lists_of_runs(folder):
    from carbonlens.factors.store import open_factors

    statement = made(folder, by="team").statement
    known = {f.figure_id for f in statement.figures} | {"GO-1"}
    known |= {row.factor_id for row in open_factors(folder / "factors.csv").rows}
    missing = {
        i
        for f in statement.figures
        for i in f.inputs
        if i not in known and not i.startswith(("runs.", "asset:"))
    }
    assert missing == set()


def test_a_meter_is_the_activity_data_and_runs_allocate_it(tmp_path):
    case.write(tmp_path, with_meter=Decimal(1000))
    statement = made(tmp_path).statement
    found = values(statement)
    at = f"statement.{case.PERIOD}.lab"
    for name in ("facility_kwh", "location_kg", "market_kg", "electricity.EUR"):
        parts = (found[f"{at}.{name}"].value, found[f"{at}.unattributed.{name}"].value)
        near(found[f"{at}.metered.{name}"], sum(parts))
    near(found[f"{at}.metered.facility_kwh"], 1000)
    near(found[f"{at}.metered.location_kg"], 400)
    near(found[f"{at}.metered.market_kg"], 900 * 0.7)
    near(
        found[f"statement.{case.PERIOD}.total.location_kg"],
        400 + found[f"statement.{case.PERIOD}.edge.location_kg"].value,
    )
    assert statement.heading != "attributable to recorded AI workloads"


def test_runs_beyond_a_meter_are_a_finding_and_a_negative_rest(tmp_path):
    case.write(tmp_path, with_meter=Decimal(500))
    statement = made(tmp_path).statement
    (rest,) = [line for line in statement.lines if line.kind == "unattributed"]
    assert rest.estimate("facility_kwh").value < 0
    assert "CL483" in {f.code for f in statement.findings}
    near(values(statement)[f"statement.{case.PERIOD}.lab.metered.facility_kwh"], 500)


def test_a_meter_with_a_gap_keeps_what_it_counted_as_a_lower_bound(tmp_path):
    case.write(tmp_path, with_meter=Decimal(1000))
    (tmp_path / "inventory" / "readings.csv").write_text(
        "meter,start,end,energy,unit\nmain,2026-05-01T00:00Z,2026-05-20T00:00Z,1000,kWh\n"
    )
    statement = made(tmp_path).statement
    found = values(statement)
    at = f"statement.{case.PERIOD}"
    metered = found[f"{at}.lab.metered.facility_kwh"]
    assert (metered.value, metered.state) == (pytest.approx(1000), "unbounded")
    assert found[f"{at}.total.at_least.location_kg"].value == pytest.approx(400)
    # The true total holds the other site alone.
    near(found[f"{at}.total.facility_kwh"], found[f"{at}.edge.facility_kwh"].value)
    cost = found[f"{at}.lab.metered.electricity.EUR"]
    assert (cost.value, cost.state) == (pytest.approx(250), "unbounded")
    assert statement.cost.totals["EUR"].state == "unbounded"
    assert "CL482" in {f.code for f in statement.findings}


def test_a_certificate_that_metered_months_claimed_is_not_claimed_again_after_a_gap(tmp_path):
    """January took all of it by meter; February has no reading, and a run in May finds nothing left."""
    case.write(tmp_path)
    inventory = tmp_path / "inventory"
    (inventory / "meters.toml").write_text(case.METER)
    (inventory / "readings.csv").write_text(
        "meter,start,end,energy,unit\nmain,2026-01-01T00:00Z,2026-02-01T00:00Z,100,kWh\n"
    )
    found = values(made(tmp_path, period="2026-01").statement)
    near(found["statement.2026-01.lab.metered.market_kg"], 0)
    after = values(made(tmp_path).statement)[f"statement.{case.PERIOD}.lab.market_kg"]
    near(after, case.it_kwh() * case.PUE * case.RESIDUAL)


def test_a_factor_of_the_hour_is_used_in_that_hour(tmp_path):
    """The user's rows of single hours stand before the year's, each in its hour."""
    case.write(tmp_path)
    hours = sorted({(r.start_us or 0) // US_PER_HOUR for r in case.runs() if r.site == "lab"})
    stamp = {
        h: f"2026-05-{(h - case.FIRST_HOUR) // 24 + 1:02}T{(h - case.FIRST_HOUR) % 24:02}" for h in hours
    }
    rates = {h: Decimal("0.1") + n * Decimal("0.01") for n, h in enumerate(hours[: len(hours) // 2])}
    rows = [
        f"hour/{stamp[h]},grid,DE,Germany,{stamp[h]},{rate},location,average,direct,consumption,0.1,Hours,test,CC0,2026"
        for h, rate in rates.items()
    ]
    file = tmp_path / "factors.csv"
    file.write_text(file.read_text() + "\n".join(rows) + "\n")
    expected = Decimal(0)
    for run in case.runs():
        if run.site == "lab":
            (reading,) = run.energy
            kwh = (
                (reading.energy_j or Decimal(0))
                / 3_600_000
                * (case.HOST if reading.boundary == "device" else 1)
            )
            expected += kwh * case.PUE * rates.get((run.start_us or 0) // US_PER_HOUR, case.GRID)
    near(values(made(tmp_path).statement)[f"statement.{case.PERIOD}.lab.location_kg"], expected)


@pytest.mark.slow
def test_earlier_months_take_from_certificates_first(tmp_path):
    case.write(tmp_path)
    april = Calendar().period("2026-04").first_hour * US_PER_HOUR
    reading = Reading(
        component="gpu", energy_j=Decimal(3_600_000) * 64, boundary="it", grade="B", method="counter"
    )
    run = Run(run_id="april", start_us=april, end_us=april + US_PER_HOUR, site="lab", energy=(reading,))
    Ledger(tmp_path / "ledger").append(run)
    left = case.CERTIFIED_KWH - 64 * case.PUE
    found = values(made(tmp_path).statement)[f"statement.{case.PERIOD}.lab.market_kg"]
    near(found, (case.it_kwh() * case.PUE - left) * case.RESIDUAL)


def test_unknown_places_are_unknown_and_said(tmp_path):
    case.write(tmp_path)
    store = Ledger(tmp_path / "ledger")
    for name, site, zone in (("a", None, None), ("b", "nowhere", "XXX"), ("c", None, "FRA")):
        reading = Reading(component="cpu", energy_j=Decimal(36_000_000), boundary="it", grade="B", method="m")
        start = (case.FIRST_HOUR + 3) * US_PER_HOUR
        run = Run(run_id=name, start_us=start, end_us=start + 1000, site=site, zone=zone, energy=(reading,))
        store.append(run)
    statement = made(tmp_path).statement
    lines = {line.key: line for line in statement.lines}
    assert lines["no_place.at_least"].estimate("location_kg").value is None
    assert lines["nowhere.at_least"].estimate("location_kg").value is None
    near(lines["zone:FRA.at_least"].estimate("location_kg"), Decimal("0.5"))
    assert {"CL480", "CL481"} <= {f.code for f in statement.findings}
    # Lower bounds stand beside the true sum, and are not in it: its lines and they are all lines.
    assert {line.key for line in statement.beside} == {x for x in lines if x.endswith(".at_least")}
    assert {"no_place", "nowhere", "zone:FRA"} == {line.site_id for line in statement.beside}
    near(statement.total.estimate("it_kwh"), case.it_kwh() + case.it_kwh("edge"))
    assert statement.at_least is not None
    near(statement.at_least.estimate("it_kwh"), 30)
    assert statement.at_least.estimate("location_kg").state == "unbounded"


@pytest.mark.slow
def test_a_closed_period_is_no_draft(tmp_path):
    case.write(tmp_path)
    assert made(tmp_path).is_draft
    close(case.PERIOD, ledger=tmp_path / "ledger", by="test")
    closed = made(tmp_path)
    assert not closed.is_draft
    # It was closed with the factors that come with carbonlens, and this is made with others.
    assert "CL400" in {f.code for f in closed.statement.findings}
    assert "CL400" not in {f.code for f in made(tmp_path, factors=None).statement.findings}
    assert not any(b.is_provisional for b in closed.statement.blends)


@pytest.mark.slow
def test_a_close_keeps_the_inventory_and_a_statement_names_what_it_used(tmp_path):
    case.write(tmp_path)
    before = made(tmp_path)
    assert set(before.snapshots) == {f.name for f in (tmp_path / "inventory").iterdir()}
    store = Ledger(tmp_path / "ledger")
    # A statement writes nothing.
    assert store.rows(SNAPSHOTS)[0] == []
    closed = close(case.PERIOD, ledger=store.path, by="test", inventory=tmp_path / "inventory")
    assert closed.inventory == before.snapshots
    assert {s.snapshot_id for s in store.rows(SNAPSHOTS)[0]} == set(before.snapshots.values())
    same = made(tmp_path)
    assert (same.inventory_sha256, same.is_draft) == (before.inventory_sha256, False)
    assert "CL469" not in {f.code for f in same.statement.findings}
    tariffs = tmp_path / "inventory" / "tariffs.toml"
    tariffs.write_text(tariffs.read_text().replace("0.30", "0.90"))
    changed = made(tmp_path)
    assert changed.inventory_sha256 != before.inventory_sha256
    (said,) = [f for f in changed.statement.findings if f.code == "CL469"]
    assert "another tariffs.toml" in said.message
    assert verify(ledger=store.path).sound


def test_the_last_quarter_with_runs_is_taken_where_none_is_named(folder):
    assert made(folder, period=None).period.text == "2026Q2"


def test_an_empty_period_and_an_unknown_label_are_refused(folder):
    with pytest.raises(SelectionError, match="no runs in 2026-06"):
        made(folder, period="2026-06")
    with pytest.raises(SelectionError, match="no label"):
        made(folder, by="colour")
    with pytest.raises(UsageError):
        made(folder, period="May")


@pytest.mark.slow
def test_a_quarter_of_1e5_model_graded_runs_keeps_the_models_common_error(tmp_path):
    """One model's error of 30 % is 30 % of the quarter, not 30 % over the root of the runs."""
    import duckdb

    first, end = (getattr(Calendar().period("2026Q2"), n) for n in ("first_hour", "end_hour"))
    own = {
        "run_id": "lpad(i::VARCHAR, 8, '0')",
        "zone": "'FR'",
        "hour_utc": f"{first} + i % {end - first}",
        "start_us": f"({first} + i % {end - first}) * 3600000000",
        "month_utc": "202604",
        "part": "0",
        "is_first": "true",
        "counts": "true",
        "component": "'cpu'",
        "boundary": "'facility'",
        "grade": "'D'",
        "state": "'known'",
        "energy_j": "3600000",
        "u_random_j": "0",
        "model_source_id": "'cpu_model:example'",
        "u_model_j": "1080000",
        "run_state": "'known'",
        "duration_s": "60",
        "record_sha256": "'0'",
        "row_schema": str(schema.VERSION),
    }
    columns = ", ".join(f"({own.get(n, 'NULL')})::{kind} AS {n}" for n, kind in schema.COLUMNS.items())
    target = tmp_path / "ledger" / "months" / "202604"
    target.mkdir(parents=True)
    duckdb.connect().execute(f"COPY (SELECT {columns} FROM range(100000) t(i)) TO '{target}/m.parquet'")  # noqa: S608 - our own names
    statement = make_statement("2026Q2", ledger=tmp_path / "ledger", now_us=case.NOW_US).statement
    energy = statement.total.estimate("facility_kwh")
    near(energy, 100_000)
    assert energy.u_total / energy.value == pytest.approx(0.3)
    carbon = statement.total.estimate("location_kg")
    assert carbon.u_total / carbon.value == pytest.approx((0.3**2 + 0.24**2) ** 0.5, rel=1e-3)


def test_the_statement_is_the_same_however_it_is_asked(folder, plain):
    again = made(folder, listed=True)
    assert msgspec.json.encode([f.estimate.value for f in again.statement.figures]) == msgspec.json.encode(
        [f.estimate.value for f in plain.figures]
    )
    assert sorted(again.runs_of[f"runs.{case.PERIOD}.edge.it"]) == [
        r.run_id for r in case.runs() if r.site == "edge"
    ]
