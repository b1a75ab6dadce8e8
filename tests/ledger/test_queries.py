"""Queries against independent sums, for every backend, thread and time zone."""

import importlib
import importlib.util
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from carbonlens.domain.estimate import add
from carbonlens.domain.factor import Factor, Price
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import ConfigError, RecordError, SelectionError
from carbonlens.ledger import calendar as calendars
from carbonlens.ledger import parquet, queries, rates, schema
from carbonlens.ledger.accounts import account, read_total
from carbonlens.ledger.amounts import COST, EMISSIONS, ENERGY
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.frames import View
from carbonlens.ledger.records import Stored
from carbonlens.ledger.store import Ledger

FIRST = Calendar().period("2026-03").first_hour
ZONES = ("DE", "FR", None)
TEAMS = ("a", "b", None)
SPARK = "pyspark==4.0.5"
DATES = Calendar(reporting_timezone="Asia/Kolkata", fiscal_year_start=4)


def reading(energy, component="cpu", **more):
    value = None if energy is None else Decimal(energy)
    given = {"boundary": "it", "grade": "D", "method": "m", "state": "unknown" if value is None else "known"}
    return Reading(component=component, energy_j=value, **given | more)


def runs(n=200, seed=1):
    """Return runs of every kind: known, unknown, two boundaries, several hours, no zone, no team."""
    dice = random.Random(seed)
    found = []
    for i in range(n):
        joules = f"{dice.randrange(10**7)}.{dice.randrange(10**6):06}"
        cpu = reading(
            None if i % 17 == 0 else joules,
            boundary="device" if i % 5 == 0 else "it",
            u_by_source_j={f"cpu_model:{i % 3}": 0.3 * float(joules)} if i % 17 else {},
        )
        gpu = reading(joules, "gpu", grade="B", u_random_j=1.5, u_by_source_j={f"sensor:{i % 2}": 9.0 + i})
        start = FIRST * US_PER_HOUR + dice.randrange(60 * 24 * US_PER_HOUR)
        tags = {k: v for k, v in (("team", TEAMS[i % 3]), ("cost=x", f"p{i % 2}")) if v}
        found.append(
            Run(
                run_id=f"r{i}",
                start_us=start,
                end_us=start + dice.randrange(1, 3 * US_PER_HOUR),
                energy=(cpu,) if i % 5 == 0 else (cpu, gpu),
                units=Decimal(i) if i % 4 else None,
                unit="img" if i % 2 else "tok",
                zone=ZONES[i % 7 % 3],
                tags=tags,
            )
        )
    return found


def rate_of(zone, hour):
    return Decimal("0.25") + (hour % 24) * Decimal("0.0125") + (Decimal("0.1") if zone == "FR" else 0)


def factors(view, zones=("DE", "FR")):
    rows = [
        {"zone": z, "hour_utc": h, "rate": rate_of(z, h), "source_id": f"grid:{z}", "u_relative": 0.1}
        for z in zones
        for h in range(FIRST, FIRST + 63 * 24)
    ]
    return rates.load(view, "emissions", rows)


def prices(view):
    given = [
        Price(price_id="tariff", amount=Decimal("0.3"), currency="EUR", per="kWh", period="2026", source="s")
    ]
    return rates.load(view, "cost", rates.price_rows(given))


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger")
    store = Ledger(path)
    every = runs()
    store.add_batch(every[20:], source_sha256="ab" * 32, importer="t-1")
    for run in every[:20]:
        store.append(run)
    return path


def parts_of(every):
    return [row for run in every for row in schema.rows(Stored(run=run, text=b"{}", file="f"))]


def test_sums_and_intervals_are_those_of_adding_estimates(ledger):
    """The oracle adds each reading's estimate, as the domain does for one run."""
    with View(ledger) as view:
        found = {(t.group["team"], t.boundary): t for t in account(view, ["team"]).totals}
    groups = {}
    for run in runs():
        for r in run.energy:
            groups.setdefault((run.tags.get("team"), r.boundary), []).append(r)
    assert found.keys() == groups.keys()
    for key, readings in groups.items():
        expected, total = add([r.estimate for r in readings], "J"), found[key]
        assert total.energy.exact == sum(r.energy_j for r in readings if r.energy_j is not None)
        got = total.energy.estimate
        assert got.u_by_source == pytest.approx(expected.u_by_source)
        assert (got.state, got.grade) == (expected.state, expected.grade)
        assert got.u_random == pytest.approx(expected.u_random, rel=1e-6)
        assert (got.low, got.high) == pytest.approx((expected.low, expected.high))


def test_the_error_of_a_shared_source_does_not_average_away(tmp_path):
    store = Ledger(tmp_path)
    many = [
        Run(run_id=f"r{i}", start_us=1, energy=(reading("100", u_by_source_j={"cpu_model:x": 30.0}),))
        for i in range(500)
    ]
    store.add_batch(many, source_sha256="ab" * 32, importer="t-1")
    with View(tmp_path) as view:
        (total,) = account(view).totals
        (row,) = view.rows(queries.totals(view.parts, []))
    assert total.energy.estimate.u_total == pytest.approx(500 * 30)
    assert read_total(row, [], [ENERGY]).energy.estimate.u_total == pytest.approx(500 * 30)


def test_emissions_and_cost_by_hour_are_exact(ledger):
    with View(ledger) as view:
        given = [factors(view), prices(view)]
        found = account(view, ["zone", "fiscal_quarter"], rates=given, calendar=DATES)
        local = {r.hour_utc: r.fiscal_quarter for r in view_calendar(view)}
    kg, money, unrated = {}, {}, {}
    for part in parts_of(runs()):
        key = (part.zone, local[part.hour_utc], part.boundary)
        if part.energy_j is None:
            continue
        money[key] = money.get(key, 0) + part.energy_j * Decimal("0.3") / 3_600_000
        if part.zone is None:
            unrated[key] = unrated.get(key, 0) + part.energy_j
        else:
            rate = rate_of(part.zone, part.hour_utc)
            kg[key] = kg.get(key, 0) + part.energy_j * rate / 3_600_000
    assert len(found.totals) > 6
    for total in found.totals:
        key = (*total.group.values(), total.boundary)
        assert total.currency == "EUR"
        assert total.cost.exact == pytest.approx(money[key], abs=Decimal("1e-11"))
        assert total.emissions.unrated_j == unrated.get(key, 0)
        if key[0] is None:
            assert total.emissions.exact is None
            assert total.emissions.estimate.state == "unknown"
        else:
            assert total.emissions.exact == pytest.approx(kg[key], abs=Decimal("1e-11"))
            u = total.emissions.estimate.u_by_source[f"grid:{key[0]}"]
            assert u == pytest.approx(0.1 * float(kg[key]))
    assert "CL522" in [f.code for f in found.findings]


def view_calendar(view):
    return DATES.rows_of(view._hours())


def test_unknown_energy_is_counted_and_named_never_zero(tmp_path):
    store = Ledger(tmp_path)
    store.append(Run(run_id="dark", start_us=1, energy=(reading(None),), tags={"team": "x"}))
    store.append(Run(run_id="nothing", start_us=1, tags={"team": "y"}))
    with View(tmp_path) as view:
        found = account(view, ["team"])
    assert [(t.energy.exact, t.energy.estimate.state, t.runs_unknown) for t in found.totals] == [
        (None, "unknown", 1)
    ] * 2
    (said,) = [f for f in found.findings if f.code == "CL521"]
    assert "dark" in said.message
    assert "nothing" in said.message


def test_boundaries_are_never_added(ledger):
    with View(ledger) as view:
        found = account(view)
    assert [t.boundary for t in found.totals] == ["device", "it"]
    assert "CL523" in [f.code for f in found.findings]


def test_currencies_are_never_added(ledger):
    with View(ledger) as view:
        rows = [
            {"zone": z, "rate": Decimal(1), "source_id": c, "currency": c}
            for z, c in (("DE", "EUR"), ("FR", "CHF"))
        ]
        found = account(view, rates=[rates.load(view, "cost", rows)])
    assert {t.currency for t in found.totals} == {"EUR", "CHF", None}
    assert all((t.cost.exact is None) == (t.currency is None) for t in found.totals)


def test_only_root_runs_are_summed(tmp_path):
    store = Ledger(tmp_path)
    store.append(Run(run_id="whole", start_us=1, energy=(reading("5"),)))
    store.append(Run(run_id="stage", start_us=1, energy=(reading("4"),), parent_run_id="whole"))
    with View(tmp_path) as view:
        (total,) = account(view).totals
    assert (total.energy.exact, total.runs) == (5, 1)


def test_any_tag_can_be_grouped_by(ledger):
    with View(ledger) as view:
        found = account(view, ["tag:cost=x", "tag:none"]).totals
    counted = {}
    for run in runs():
        key = run.tags.get("cost=x")
        counted[key] = counted.get(key, 0) + 1
    got = {}
    for t in found:
        assert t.group["tag:none"] is None
        got[t.group["tag:cost=x"]] = got.get(t.group["tag:cost=x"], 0) + t.runs
    assert got == counted


@pytest.mark.parametrize("label", ["energy_j", "tag:", "nothing", "record"])
def test_an_unknown_label_is_refused(ledger, label):
    with View(ledger) as view, pytest.raises(SelectionError, match="no label"):
        account(view, [label])


def test_drivers_keep_volumes_of_different_units_apart_and_unknown_volumes_unknown(ledger):
    with View(ledger) as view:
        parts = queries.labelled(view.parts, ["month"], view.calendar(DATES))
        rows = view.rows(queries.drivers(parts, "month", ["team"]))
    volumes = {}
    for run in runs():
        volumes[run.unit] = volumes.get(run.unit, 0) + (run.units or 0)
    for unit, volume in volumes.items():
        assert sum(r["units"] or 0 for r in rows if r["unit"] == unit) == volume
    assert [r["month"] for r in rows] == sorted(r["month"] for r in rows)


def test_a_group_without_any_volume_has_none(tmp_path):
    Ledger(tmp_path).append(Run(run_id="r", start_us=1, energy=(reading("5"),), unit="img"))
    with View(tmp_path) as view:
        (total,) = account(view, ["unit"]).totals
    assert total.units is None


def test_top_and_trend_are_cuts_of_the_totals(ledger):
    with View(ledger) as view:
        parts = queries.labelled(view.parts, ["team", "date"], view.calendar(DATES))
        every = view.rows(queries.totals(parts, ["team", "zone"]))
        best = view.rows(queries.top(parts, ["team", "zone"], ENERGY, 3))
        days = view.rows(queries.trend(parts, "date"))
    assert best == sorted(every, key=lambda r: -r["value_energy"])[:3]
    assert [r["date"] for r in days] == sorted(r["date"] for r in days)
    assert sum(r["value_energy"] or 0 for r in days) == sum(r["value_energy"] for r in every)


def test_a_second_rate_for_one_place_and_time_is_refused(ledger):
    row = {"zone": "DE", "rate": Decimal(1), "source_id": "f"}
    with View(ledger) as view, pytest.raises(ConfigError, match="2 rates for zone=DE"):
        rates.load(view, "emissions", [row, row])


def test_a_second_price_for_everywhere_is_refused(ledger):
    row = {"rate": Decimal(1), "source_id": "f", "currency": "EUR"}
    with View(ledger) as view, pytest.raises(ConfigError, match="2 rates"):
        rates.load(view, "cost", [row, row])


def test_rates_of_a_file_are_checked_as_others(ledger, tmp_path):
    columns = {"zone": "VARCHAR", "hour_utc": "BIGINT"} | dict(rates.COLUMNS)
    rows = [
        {"zone": "DE", "hour_utc": h, "rate": rate_of("DE", h), "source_id": "f"} for h in (FIRST, FIRST + 1)
    ]
    parquet.write(tmp_path / "f", columns, rows)
    parquet.write(tmp_path / "twice", columns, [*rows, rows[0]])
    parquet.write(tmp_path / "bare", {"zone": "VARCHAR"}, [{"zone": "DE"}])
    (tmp_path / "torn").write_bytes(b"PAR1")
    with View(ledger) as view:
        read = rates.load_file(view, "emissions", tmp_path / "f")
        assert read.keys == ("zone", "hour_utc")
        assert [r["rate"] for r in view.rows(read.frame.sort("hour_utc"))] == [r["rate"] for r in rows]
        with pytest.raises(ConfigError, match="2 rates"):
            rates.load_file(view, "emissions", tmp_path / "twice")
        with pytest.raises(ConfigError, match="no column"):
            rates.load_file(view, "emissions", tmp_path / "bare")
        with pytest.raises(RecordError):
            rates.load_file(view, "emissions", tmp_path / "torn")


def test_values_alone_are_the_same_values(ledger):
    with View(ledger) as view:
        both = [view.rows(queries.totals(view.parts, ["team"], intervals=i)) for i in (True, False)]
    left = {n for n, value in both[1][0].items() if value is None} - {"team"}
    assert {"var_common_energy", "var_random_energy", "grade_d_j", "wide_j"} <= left
    assert max(row["var_common_energy"] for row in both[0]) > 0
    for name in left:
        assert [row.pop(name) for row in both[1]] == [None] * len(both[1])
        assert None not in [row.pop(name) for row in both[0]]
    assert both[0] == both[1]


@pytest.mark.parametrize("rate", [None, 0.3, Decimal("1e5")])
def test_a_rate_that_is_no_exact_number_is_refused(ledger, rate):
    with View(ledger) as view, pytest.raises(ConfigError):
        rates.load(view, "emissions", [{"zone": "DE", "rate": rate, "source_id": "f"}])


def test_published_factors_hold_for_their_months():
    factor = Factor(
        factor_id="f", zone="DE", period="2026-03", method="location", value_kg_per_kwh=0.1, source="s"
    )
    (row,) = rates.factor_rows([factor])
    assert (row["month_utc"], row["rate"]) == (202603, Decimal("0.1"))
    assert len(rates.months("2026")) == 12
    for text in ("26", "2026-13", "2026-", "2026Q1"):
        with pytest.raises(ConfigError):
            rates.months(text)


def answer(path):
    """Return the bytes of all queries over the ledger."""
    with View(Path(path)) as view:
        zone = os.environ.get("SESSION_ZONE")
        if zone:
            view.connection.execute(f"SET TimeZone = '{zone}'")
        view.connection.execute("SET threads = 2")
        parts = queries.labelled(queries.roots(view.parts), ["team", "fiscal_quarter"], view.calendar(DATES))
        parts = queries.rated(parts, [factors(view), prices(view)])
        by = ["team", "fiscal_quarter", "zone"]
        frames = [queries.totals(parts, by, [ENERGY, EMISSIONS, COST]), queries.run_table(view.parts)]
        found = [view.rows(f) for f in frames]
        found += [str(account(view, by, rates=[factors(view)], calendar=DATES))]
    return msgspec.json.encode(found)


def test_fifteen_times_the_same_bytes_by_two_threads(ledger):
    assert len({answer(ledger) for _ in range(15)}) == 1


def test_a_session_time_zone_changes_no_byte(ledger):
    work = "sys.stdout.buffer.write(answer(sys.argv[1]))"
    code = f"import sys; from tests.ledger.test_queries import answer; {work}"
    found = set()
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        env = os.environ | {"TZ": zone, "SESSION_ZONE": zone}
        found.add(
            subprocess.run(
                [sys.executable, "-c", code, ledger], env=env, capture_output=True, check=True
            ).stdout
        )
    assert len(found) == 1
    assert len(found.pop()) > 1000


@pytest.fixture
def spark_sql(tmp_path, monkeypatch):
    """PySpark, installed for this test alone: no extra of ours needs it."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    if importlib.util.find_spec("pyspark") is None:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-compile"]
        pip += ["--target", str(tmp_path / "spark"), SPARK]
        done = subprocess.run(pip, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            pytest.skip(f"{SPARK} cannot be installed here: {done.stderr.strip().splitlines()[-1:]}")
        monkeypatch.syspath_prepend(str(tmp_path / "spark"))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "spark"))
    usual = signal.getsignal(signal.SIGINT)
    yield importlib.import_module("pyspark.sql")
    signal.signal(signal.SIGINT, usual)  # a session of Spark's leaves its own, for all tests after it


@pytest.mark.slow
def test_spark_gives_the_same_decimals(ledger, spark_sql):
    """The same expressions on PySpark: exact columns equal to the last digit."""
    import narwhals as nw

    spark = (
        spark_sql.SparkSession.builder.master("local[2]")
        .config("spark.sql.session.timeZone", "Asia/Kolkata")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    by = ["team", "fiscal_quarter", "tag:cost=x", "unit"]

    def query(parts, dates, given):
        parts = queries.rated(queries.labelled(queries.roots(parts, ["gone"]), by, dates), given)
        yield queries.totals(parts, by, [ENERGY, EMISSIONS, COST])
        yield queries.sources(parts, by, [ENERGY, EMISSIONS, COST])
        yield queries.top(parts, ["zone"], EMISSIONS, 3)
        yield queries.run_table(parts.filter(nw.col("parent_run_id").is_null()))
        yield queries.without_rate(parts, given[0])

    def sent(frame, columns):
        names = ", ".join(f"`{n}` {_spark_type(k)}" for n, k in columns.items())
        native = frame.select(*columns).to_native().fetchall()
        return nw.from_native(spark.createDataFrame(native, names)).lazy()

    with View(ledger) as view:
        given, dates = [factors(view), prices(view)], view.calendar(DATES)
        here = [view.rows(f) for f in query(view.parts, dates, given)]
        columns = {k: v for k, v in schema.COLUMNS.items() if k != "record"}
        parts, there_dates = sent(view.parts, columns), sent(dates, calendars.COLUMNS)
        moved = [
            rates.Rates(
                r.name, sent(r.frame, {**{k: rates.KEYS[k] for k in r.keys}, **rates.COLUMNS}), r.keys
            )
            for r in given
        ]
    there = [[r.asDict() for r in f.to_native().collect()] for f in query(parts, there_dates, moved)]
    spark.stop()
    for ours, theirs in zip(here, there, strict=True):
        assert len(ours) == len(theirs) > 0
        for a, b in itertools.zip_longest(sorted(ours, key=str), sorted(theirs, key=str)):
            assert a.keys() == b.keys()
            for name in a:
                if name.startswith(("var_", "u_")) and a[name] is not None:
                    assert float(b[name]) == pytest.approx(float(a[name]), rel=1e-9, abs=1e-6), name
                else:
                    assert a[name] == b[name], name


def _spark_type(kind):
    return {"VARCHAR": "STRING", "INTEGER": "INT"}.get(kind, kind)
