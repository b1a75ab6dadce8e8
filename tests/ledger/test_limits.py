"""Figures that no column holds are refused on every way in, and one that lies there spoils no sum."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.importing import import_files
from carbonlens.app.ledger_care import supersede
from carbonlens.app.statement import make_statement
from carbonlens.domain.finding import Finding
from carbonlens.domain.limits import MOST, MOST_HOURS, misfit, oversize, stands_in_one_hour
from carbonlens.domain.money import Money
from carbonlens.domain.run import HourEnergy
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import RecordError, UnwritableError, UsageError
from carbonlens.ledger import compaction, parquet, rates, schema
from carbonlens.ledger.accounts import account
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.frames import View
from carbonlens.ledger.records import Stored
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from carbonlens.metering.deposit import deposit
from carbonlens.metering.recorder import Recorder
from tests.ledger.test_store import make_run

NOW_US = 1_800_000_000_000_000
START = 1_790_000_000_000_000
HEADER = "run_id,study,step,energy_j,units,start_utc,duration_s,energy_grade,boundary\n"


def reading_with(**change):
    return (msgspec.structs.replace(make_run().energy[0], **change),)


MISFITS = {
    "energy": {"energy": reading_with(energy_j=Decimal("2e18"))},
    "energy NaN": {"energy": reading_with(energy_j=Decimal("NaN"))},
    "energy infinite": {"energy": reading_with(energy_j=Decimal("-Infinity"))},
    "sigma": {"energy": reading_with(u_random_j=1e19)},
    "sigma NaN": {"energy": reading_with(u_random_j=float("nan"))},
    "common sigma": {"energy": reading_with(u_by_source_j={"s": 1e19})},
    "units": {"units": Decimal("NaN")},
    "units large": {"units": MOST},
    "duration": {"duration_s": 1e13},
    "duration infinite": {"duration_s": float("inf")},
    "cost": {"cost": Money(amount=Decimal("1e17"), currency="EUR")},
    "emissions": {"emissions_reported_kg": Decimal("1e16")},
    "start": {"start_us": 2**63},
    "end": {"end_us": -(2**70)},
    "hours": {"energy_by_hour": (HourEnergy(hour_utc=1, component="cpu", energy_j=Decimal("sNaN")),)},
    "hour": {"energy_by_hour": (HourEnergy(hour_utc=2**64, component="cpu", energy_j=Decimal(1)),)},
    "bytes": {"model_bytes": 2**63},
}
STORABLE = {k: v for k, v in MISFITS.items() if k not in {"sigma NaN", "duration infinite", "hour"}}
"""Those that JSON holds and a reader gets so far with."""


def strange(name, run_id="bad"):
    return msgspec.structs.replace(make_run(run_id, start_us=START), **MISFITS[name])


@pytest.mark.parametrize("name", MISFITS)
def test_no_way_in_takes_what_no_column_holds(tmp_path, name):
    run = strange(name)
    assert misfit(run) is not None
    with pytest.raises(RecordError, match="cannot be kept"):
        Ledger(tmp_path).append(run)
    with pytest.raises(RecordError, match="cannot be kept"):
        Ledger(tmp_path).add_batch([run], source_sha256="ab" * 32, importer="t-1")
    with pytest.raises(RecordError, match="fits no column"):
        schema.rows(Stored(run=run, text=b"{}", file="f"))
    assert not list(tmp_path.rglob("*.parquet")) + list(tmp_path.rglob("runs/*/*.json"))


def test_the_largest_that_fit_are_taken_and_summed(tmp_path):
    most = Decimal("999999999999999999")
    run = make_run("big", str(most), START, duration_s=9e11, emissions_reported_kg=Decimal("9e14"))
    run = msgspec.structs.replace(run, energy=reading_with(energy_j=most, u_random_j=9e17))
    for i in range(3):
        Ledger(tmp_path).append(msgspec.structs.replace(run, run_id=f"big{i}"))
    with View(tmp_path) as view:
        (total,) = account(view).totals
    assert total.energy.exact == 3 * most
    assert total.energy.estimate.u_random == pytest.approx(3**0.5 * 9e17, rel=1e-6)


@pytest.mark.parametrize("change", ["units=NaN", "units=1e25", "duration_s=1e13"])
def test_a_correction_that_no_column_holds_is_refused(tmp_path, change):
    Ledger(tmp_path).append(make_run("abcd", start_us=START))
    from carbonlens.ledger.editing import changes_from

    with pytest.raises(UsageError, match="cannot be kept"):
        supersede("abcd", changes_from([change]), ledger=tmp_path)
    assert [r.run_id for r in Ledger(tmp_path).view().runs] == ["abcd"]


@pytest.mark.parametrize("name", STORABLE)
def test_one_such_record_is_left_out_with_a_finding_and_the_others_count(tmp_path, name):
    Ledger(tmp_path).append(make_run("good", "7", START))
    (folder,) = (tmp_path / "runs").iterdir()
    (folder / "bad.json").write_bytes(msgspec.json.encode(strange(name)))
    with View(tmp_path) as view:
        found = account(view, calendar=Calendar())
    assert [t.energy.exact for t in found.totals] == [7]
    assert [f.code for f in found.findings] == ["CL519"]
    said = verify(tmp_path, now_us=NOW_US)
    assert ("CL519", "error") in [(f.code, f.severity) for f in said.findings]
    assert "bad" in next(f.message for f in said.findings if f.code == "CL519")
    done = compaction.compact(tmp_path, before="209912")
    assert [m.runs for m in done.months] == [1]
    assert (folder / "bad.json").exists()


def test_rows_that_do_not_fit_are_rejected_and_the_others_imported(tmp_path):
    source = tmp_path / "runs.csv"
    rows = [
        "a,s,base,1.5,1,2026-03-05T10:00:00Z,5,B,device",
        "b,s,fast,2,1,2026-03-05T10:00:00Z,1e13,B,device",
    ]
    source.write_text(HEADER + "\n".join(rows) + "\n")
    result = import_files([source], ledger=tmp_path / "l")
    assert (result.totals.runs, result.totals.rows_rejected) == (1, 1)
    assert "CL217" in [f.code for f in result.files[0].findings]
    assert [r.run_id for r in Ledger(tmp_path / "l").view().runs] == ["a"]


def test_a_run_of_many_years_is_said_and_not_spread(tmp_path):
    source = tmp_path / "runs.csv"
    source.write_text(HEADER + "a,s,base,1.5,1,2007-03-05T10:00:00Z,6e8,B,device\n")
    result = import_files([source], ledger=tmp_path / "l")
    assert "CL216" in [f.code for f in result.files[0].findings]
    with View(tmp_path / "l") as view:
        assert len(view.rows(view.parts)) == 1
    said = [f.message for f in verify(tmp_path / "l", now_us=NOW_US).findings if f.code == "CL512"]
    assert len(said) == 1
    assert "366 days" in said[0]


@pytest.mark.parametrize("hours", [1, MOST_HOURS, MOST_HOURS + 1, 10**9])
def test_hours_of_a_run_are_bounded(hours):
    run = msgspec.structs.replace(make_run(start_us=0), end_us=hours * US_PER_HOUR)
    for energy in ("5", None):
        one = msgspec.structs.replace(run, energy=make_run(energy=energy).energy)
        made = schema.rows(Stored(run=one, text=b"{}", file="f"))
        assert len(made) == (hours if hours <= MOST_HOURS else 1)


def test_a_start_in_nanoseconds_does_not_make_the_calendar_long(tmp_path):
    Ledger(tmp_path).append(make_run("ns", "5", START * 1000))
    Ledger(tmp_path).append(make_run("good", "7", START))
    with View(tmp_path) as view:
        assert len(view.rows(view.calendar(Calendar()))) == 1
        totals = account(view, ["fiscal_year"], calendar=Calendar()).totals
    assert {t.group["fiscal_year"]: t.energy.exact for t in totals} == {None: 5, 2026: 7}
    said = [f.message for f in verify(tmp_path, now_us=NOW_US).findings]
    assert any("starts in the future" in m for m in said)


def test_an_end_in_the_future_is_an_oddity_like_a_start(tmp_path):
    Ledger(tmp_path).append(
        msgspec.structs.replace(make_run(start_us=START), end_us=NOW_US + 24 * US_PER_HOUR)
    )
    said = [f.message for f in verify(tmp_path, now_us=NOW_US).findings if f.code == "CL512"]
    assert any("ends in the future" in m for m in said)


def test_a_value_that_fits_no_column_is_not_called_a_full_disk(tmp_path):
    with pytest.raises(RecordError, match="does not fit its column"):
        parquet.write(tmp_path / "f.parquet", {"a": "DECIMAL(24,6)"}, [{"a": "1e30"}])
    with pytest.raises(UnwritableError):
        parquet.merge([tmp_path / "none.parquet"], tmp_path / "f.parquet", order=("a",))


def test_the_recorder_has_the_ledgers_limit():
    recorder = Recorder()
    recorder.add_units(10.0**17)
    assert recorder.units == Decimal(10) ** 17
    recorder.add_units(10.0**18)
    assert recorder.units == Decimal(10) ** 17


@pytest.mark.parametrize("rate", ["2000", "25000"])
@pytest.mark.parametrize("joules", ["0.001", "540000000000", "900000000000000000"])
def test_intervals_hold_for_currencies_of_small_units(tmp_path, rate, joules):
    """150 MWh at 2000 dong a kWh: squares of sigmas have more digits than one decimal."""
    energy = Decimal(joules)
    part = reading_with(
        energy_j=energy, u_random_j=float(energy) * 0.3, u_by_source_j={"m": float(energy) * 0.4}
    )
    Ledger(tmp_path).append(msgspec.structs.replace(make_run("a", start_us=START), energy=part))
    with View(tmp_path) as view:
        price = {"rate": Decimal(rate), "source_id": "p", "u_relative": 0.2, "currency": "VND"}
        (total,) = account(view, rates=[rates.load(view, "cost", [price])]).totals
        row = view.rows(_totals(view, price))[0]
    value = float(energy) / 3.6e6 * float(rate)
    assert total.cost.estimate.value == pytest.approx(value, rel=1e-6, abs=1e-9)
    assert total.cost.estimate.u_random == pytest.approx(0.3 * value, rel=1e-4, abs=1e-6)
    common = (0.4**2 + 0.2**2) ** 0.5 * value
    assert (row["var_common_cost"] ** 0.5) / 3.6e6 == pytest.approx(common, rel=1e-4, abs=1e-6)


def _totals(view, price):
    from carbonlens.ledger import amounts, queries

    parts = queries.rated(view.parts, [rates.load(view, "cost", [price])])
    return queries.totals(parts, [], [amounts.ENERGY, amounts.COST])


def test_an_error_without_a_source_is_refused_not_dropped(tmp_path):
    from carbonlens.errors import ConfigError

    Ledger(tmp_path).append(make_run("a", start_us=START))
    with View(tmp_path) as view, pytest.raises(ConfigError, match="source_id"):
        rates.load(view, "emissions", [{"rate": Decimal(1), "u_relative": 0.2}])
    with View(tmp_path) as view:
        assert rates.load(view, "emissions", [{"rate": Decimal(1), "u_relative": 0.0}]).name == "emissions"


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_figure_that_its_column_rounds_to_the_bound_is_refused(sign):
    near = Decimal(f"{sign}999999999999999999.9999999")
    assert misfit(msgspec.structs.replace(make_run(), units=near)) is not None
    below = Decimal(f"{sign}999999999999999999.9999994")
    assert oversize(msgspec.structs.replace(make_run(), units=below)) is None


def test_a_misfit_is_unstorable_and_not_given_another_id(tmp_path):
    done = deposit(strange("energy"), tmp_path / "l")
    assert (done.unstorable, done.ledger, done.run.run_id) == (True, None, "bad")
    assert "cannot be kept" in done.fault


def test_a_long_run_with_recorded_hours_is_not_said_to_stand_in_one(tmp_path):
    run = msgspec.structs.replace(make_run(start_us=0), end_us=(MOST_HOURS + 1) * US_PER_HOUR)
    assert stands_in_one_hour(run)
    part = run.energy[0]
    hours = (HourEnergy(hour_utc=3, component=part.component, energy_j=part.energy_j),)
    recorded = msgspec.structs.replace(run, energy_by_hour=hours)
    assert not stands_in_one_hour(recorded)
    Ledger(tmp_path).append(recorded)
    assert not any("366 days" in f.message for f in verify(tmp_path, now_us=NOW_US).findings)


def test_the_last_quarter_is_that_of_runs_that_the_calendar_has(tmp_path):
    Ledger(tmp_path).append(make_run("ns", "5", START * 1000))
    Ledger(tmp_path).append(make_run("good", "7", START))
    made = make_statement(ledger=tmp_path, now_us=NOW_US)
    assert made.period.text == "2026Q3"
    assert any("1 run with a time that no calendar has" in f.message for f in made.statement.findings)


def test_what_waits_to_be_sent_is_said_of_a_query_too(tmp_path):
    Ledger(tmp_path).append(make_run("good", "7", START))
    waiting = Finding(code="CL526", severity="warning", message="m")
    with Ledger(tmp_path, address="s3://b/l", waiting=[waiting]).query() as view:
        assert view.findings == [waiting]
