"""A closed period says for ever what changed after it, and adds nothing over boundaries or calendars."""

import json
from decimal import Decimal

import msgspec
import pytest

from carbonlens.app import ledger_care
from carbonlens.app.ledger_care import span_of, supersede
from carbonlens.app.restatement import prior_periods
from carbonlens.cli import ledger_view, restate_view
from carbonlens.domain.charge import Charge
from carbonlens.domain.run import Reading, Run
from carbonlens.errors import RecordError, SelectionError, UsageError
from carbonlens.ledger import activity, closes, redaction
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.closes import ClosedEnergy
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_closing import HOUR_US, SEP_US, close, faults, status
from tests.ledger.test_compaction import NOW_US, fill, runs_over
from tests.ledger.test_store import make_run


@pytest.fixture
def folder(tmp_path):
    fill(tmp_path, runs_over(60, 12))
    return tmp_path


def test_an_adjustment_stays_one_after_a_later_close_named_it(folder):
    close(folder, "2026-09")
    Ledger(folder).append(make_run("late", "5", SEP_US + 10))
    named = close(folder, "2026-10")
    assert [(a.period, a.name, a.kind) for a in named.adjustments] == [("2026-09", "late", "late")]
    Ledger(folder).append(make_run("later", "5", SEP_US + 20))
    done = status(folder, "2026-09")
    assert [(a.name, a.taken_up) for a in done.adjustments] == [("late", "2026-10"), ("later", None)]
    assert (done.state, done.label) == ("closed", "ADJUSTED")
    assert status(folder, "2026-10").label == ""
    (said,) = [f for f in verify(folder, now_us=NOW_US).findings if f.code == "CL517"]
    assert "2 records" in said.message
    assert "2026-10" in said.message
    # Nothing is named twice: the next close takes up the rest.
    Ledger(folder).append(make_run("nov", "5", span_of("2026-10").end_us))
    rest = closes.load(folder)
    assert [a.name for a in closes.late_records(folder, Ledger(folder).holdings(), rest)] == ["later"]


def test_a_quarter_closed_after_its_month_is_adjusted_by_what_came_after_itself(folder):
    close(folder, "2026-09")
    Ledger(folder).append(make_run("late", "5", SEP_US + 10))
    close(folder, "2026Q3")
    assert (status(folder, "2026-09").label, status(folder, "2026Q3").label) == ("ADJUSTED", "")
    assert status(folder, "2026Q3").state == "closed"
    Ledger(folder).append(make_run("later", "5", SEP_US + 20))
    assert {a.name for a in status(folder, "2026Q3").adjustments} == {"later"}
    assert {a.name for a in status(folder, "2026-09").adjustments} == {"late", "later"}


def redact(folder, name, field):
    family = [r for r in Ledger(folder).view().runs if r.run_id == name]
    from carbonlens.ledger.redacting import redact as carry_out

    carry_out(folder, family, [field], by="me", when_us=NOW_US, why="w")


def test_a_redaction_in_a_closed_period_is_an_adjustment_of_it(folder):
    one = make_run("mine", "5", SEP_US, tags={"a": "b"}, error="x")
    Ledger(folder).append(one)
    redact(folder, one.run_id, "error")
    close(folder, "2026-09")
    assert status(folder, "2026-09").adjustments == ()
    redact(folder, one.run_id, "energy")
    (made,) = status(folder, "2026-09").adjustments
    assert (made.kind, made.name, made.taken_up) == ("redacted", one.run_id, None)
    assert faults(folder) == [("CL517", "info")]
    assert [a.kind for a in close(folder, "2026-10").adjustments] == ["redacted"]
    assert status(folder, "2026-09").label == "ADJUSTED"
    assert status(folder, "2026-09").adjustments[0].taken_up == "2026-10"
    assert faults(folder) == [("CL517", "info")]
    redact(folder, one.run_id, "tags")
    assert [a.taken_up for a in status(folder, "2026-09").adjustments] == ["2026-10", None]
    assert redaction.CODE not in [code for code, _ in faults(folder)]


@pytest.mark.parametrize("kind", ["charges", "readings"])
def test_a_damaged_bill_or_meter_batch_stops_the_close(folder, kind):
    if kind == "charges":
        bill = Charge(charge_id="c1", start_us=SEP_US, end_us=SEP_US + HOUR_US)
        file = Ledger(folder).add_rows(activity.CHARGES, [bill], source_sha256="cd" * 32, importer="t-1")
        file.write_bytes(file.read_bytes()[:50])
    else:
        (folder / "readings").mkdir()
        (folder / "readings" / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordError, match="would leave out"):
        close(folder, "2026-09")
    assert not (folder / "closes").exists()


def test_two_corrections_of_one_run_stop_the_close(folder):
    one = min(Ledger(folder).view().runs, key=lambda r: r.start_us)
    for name in ("fix1", "fix2"):
        Ledger(folder).append(msgspec.structs.replace(one, run_id=name, supersedes=one.run_id))
    with pytest.raises(RecordError, match="corrected twice"):
        close(folder, "2026-09")
    supersede(one.run_id, {"site": "x"}, ledger=folder)
    assert close(folder, "2026-09").counting == 2


def test_energies_of_two_boundaries_are_never_added(tmp_path):
    for i, (boundary, energy) in enumerate(
        [("device", "1"), ("device", "2"), ("facility", "100"), (None, None), ("it", None)]
    ):
        value = None if energy is None else Decimal(energy)
        state = "unknown" if energy is None else "known"
        part = Reading(component="cpu", energy_j=value, boundary=boundary, grade="B", method="m", state=state)
        Ledger(tmp_path).append(Run(run_id=f"r{i}", start_us=SEP_US, energy=(part,)))
    done = close(tmp_path, "2026-09")
    assert {e.boundary: e.energy_j for e in done.energy} == {
        "device": 3,
        "facility": 100,
        None: None,
        "it": None,
    }
    assert (done.counting, done.unknown_energy) == (5, 2)


OLD = {
    "period": "2026-08",
    "start_us": span_of("2026-08").start_us,
    "end_us": span_of("2026-08").end_us,
    "closed_us": NOW_US - 10,
    "by": "tester",
    "runs": [],
    "counting": 3,
    "energy_j": "12.500000",
    "unknown_energy": 0,
    "carbonlens": "0.1.0",
    "schema_version": 1,
}


def test_a_manifest_of_the_version_before_is_read_and_chained_to(folder):
    (folder / "closes").mkdir()
    file = folder / "closes" / "2026-08.json"
    file.write_text(json.dumps(OLD))
    (old,) = closes.load(folder).closes.values()
    assert old.energy == (ClosedEnergy(boundary=None, energy_j=Decimal("12.5")),)
    assert old.schema_version == closes.VERSION
    done = close(folder, "2026-09")
    assert done.previous == "2026-08"
    assert faults(folder) == []
    assert closes.decode(msgspec.json.encode(done)) == done
    file.write_text(json.dumps(OLD | {"schema_version": 99}))
    (said,) = closes.load(folder).findings
    assert said.mend == "upgrade carbonlens"


APRIL = Calendar(fiscal_year_start=4)
BERLIN = Calendar(reporting_timezone="Europe/Berlin")


def test_periods_of_one_text_and_several_calendars_are_closed_beside_each_other(folder):
    calendars = [None, APRIL, BERLIN, Calendar(reporting_timezone="Europe/Berlin", fiscal_year_start=4)]
    done = [close(folder, "2026Q1", c) for c in calendars]
    assert [d.period for d in done] == [
        "2026Q1",
        "2026Q1~fy04",
        "2026Q1~Europe-Berlin",
        "2026Q1~fy04~Europe-Berlin",
    ]
    assert [(d.reporting_timezone, d.fiscal_year_start) for d in done[1:3]] == [
        ("UTC", 4),
        ("Europe/Berlin", 1),
    ]
    assert APRIL.name_of("2026-09") == "2026-09"
    assert faults(folder) == []


def test_a_close_of_another_calendar_under_the_plain_name_is_said(folder):
    (folder / "closes").mkdir()
    (folder / "closes" / "2026Q3.json").write_text(json.dumps(OLD | {"period": "2026Q3"}))
    with pytest.raises(UsageError, match="covers other days"):
        close(folder, "2026Q3")


@pytest.mark.parametrize(
    "care",
    [
        lambda place: ledger_care.verify(ledger=place),
        lambda place: ledger_care.close("2026-09", ledger=place),
        lambda place: ledger_care.compact(ledger=place),
        lambda place: ledger_care.export(format_="csv", ledger=place),
        lambda place: ledger_care.tag("r", {"k": "v"}, ledger=place),
        lambda place: ledger_care.redact("r", ["tags"], why="w", ledger=place),
    ],
)
def test_a_ledger_that_is_not_there_is_neither_made_nor_praised(tmp_path, care):
    place = tmp_path / "mistyped"
    with pytest.raises(SelectionError, match="no ledger") as told:
        care(place)
    assert told.value.exit_code == 2
    assert not place.exists()


def over_two_months(name):
    edge = span_of("2026-10").start_us
    return msgspec.structs.replace(make_run(name, "1000", edge - HOUR_US), end_us=edge + HOUR_US)


@pytest.mark.parametrize("kind", ["late", "redacted"])
def test_a_run_over_two_closed_months_adjusts_both(folder, kind):
    if kind == "redacted":
        Ledger(folder).append(over_two_months("over"))
    close(folder, "2026-09")
    close(folder, "2026-10")
    if kind == "late":
        Ledger(folder).append(over_two_months("over"))
    else:
        redact(folder, "over", "units")
    for period in ("2026-09", "2026-10"):
        done = status(folder, period)
        assert [(a.name, a.period, a.kind) for a in done.adjustments] == [("over", period, kind)]
        assert done.label == "ADJUSTED"


def test_a_redacted_adjustment_adjusts_the_period_it_was_one_of(folder):
    close(folder, "2026-09")
    Ledger(folder).append(make_run("late", "5", SEP_US + 10))
    close(folder, "2026-10")
    redact(folder, "late", "units")
    assert [a.kind for a in status(folder, "2026-09").adjustments] == ["late", "redacted"]
    assert status(folder, "2026-10").adjustments == ()


def test_a_manifest_of_version_1_does_not_say_its_calendar(folder):
    made = msgspec.to_builtins(close(folder, "2026-09"))
    for name in ("energy", "reporting_timezone", "fiscal_year_start"):
        del made[name]
    old = closes.decode(msgspec.json.encode(made | {"energy_j": "5", "schema_version": 1}))
    assert (old.reporting_timezone, old.fiscal_year_start) == (None, None)


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_changes_of_a_period_whose_manifest_is_lost_are_refused(folder, how):
    close(folder, "2026-09")
    Ledger(folder).append(make_run("late", "5", SEP_US + 10))
    close(folder, "2026-10")
    file = folder / "closes" / "2026-09.json"
    if how == "damaged":
        file.write_text("{")
    else:
        file.unlink()
    with pytest.raises(RecordError, match="2026-09"):
        prior_periods(ledger=folder, now_us=NOW_US)


def test_a_month_of_a_closed_quarter_says_in_what_it_lies(folder):
    close(folder, "2026Q3")
    with pytest.raises(UsageError, match="lies in 2026Q3, closed already"):
        close(folder, "2026-09")
    with pytest.raises(UsageError, match="the period is closed already"):
        close(folder, "2026Q3")


def test_a_period_has_the_name_its_users_gave_it_wherever_it_is_said(folder, capsys):
    paris = Calendar(reporting_timezone="Europe/Paris", fiscal_year_start=4)
    for name in ("2026-09", "2027Q2"):
        done = close(folder, name, paris)
        assert done.period != name
        ledger_view.print_close(done, json=False)
        printed = capsys.readouterr().out
        assert f"Closed {name}: " in printed
        assert "~" not in printed
    Ledger(folder).append(make_run("late", "5", SEP_US + 10))
    said = [f.message for f in verify(folder, now_us=NOW_US).findings if f.code == "CL517"]
    assert all(any(f"after {name} was closed" in text for text in said) for name in ("2026-09", "2027Q2"))
    restate_view.print_adjustments(prior_periods(ledger=folder), json=False)
    assert "~" not in capsys.readouterr().out


def test_two_closes_of_one_name_are_told_apart(folder, capsys):
    close(folder, "2026-09")
    close(folder, "2026-09", Calendar(reporting_timezone="Europe/Paris"))
    Ledger(folder).append(make_run("late", "5", SEP_US + 10))
    restate_view.print_adjustments(prior_periods(ledger=folder), json=False)
    assert "2026-09~Europe-Paris" in capsys.readouterr().out
