"""What the report says beside its figures: late records, with where they were found, and Findings."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.drivers import Source
from carbonlens.app.inventory import load_inventory
from carbonlens.app.ledger_care import close, span_of
from carbonlens.app.statement import make_statement
from carbonlens.app.sustainability import gather
from carbonlens.app.sustainability_records import prior_of
from carbonlens.app.sustainability_scores import scores_of, works_of
from carbonlens.domain.run import Origin
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError, UsageError
from carbonlens.factors.store import open_factors
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.store import Ledger
from carbonlens.reporting.sustainability import build_sustainability
from carbonlens.reporting.sustainability_input import NOT_TAKEN_UP
from tests.app import statement_case as case
from tests.reporting.sustainability_case import rows, words

QUARTER, BEFORE = "2026Q3", "2026Q2"
NONE_CAME = "no record came after a close"


def at(day):
    return Calendar().period(day).first_hour * US_PER_HOUR


def run(name, day, imported=None):
    """Return one of the case's runs on another day, imported at an instant."""
    origin = None if imported is None else Origin(instrument="test-1", imported_us=imported)
    return msgspec.structs.replace(
        case.runs()[1], run_id=name, start_us=at(day), end_us=at(day) + US_PER_HOUR, origin=origin
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("CARBONLENS_FACTORS", raising=False)
    case.write(tmp_path)
    Ledger(tmp_path / "ledger").append(run("own", "2026-08-03"))
    return tmp_path


def said(folder, now_us=None):
    """Return what the whole report is made of, and its view."""
    given = gather(
        QUARTER,
        ledger=folder / "ledger",
        inventory=folder / "inventory",
        factors=folder / "factors.csv",
        now_us=now_us or at("2026-11-20"),
    ).given
    return given, build_sustainability(given)


def late(folder, now_us=None):
    """Return the adjustments that the report would tell."""
    source = Source(
        kept=load_inventory(folder / "inventory"),
        factors=open_factors(folder / "factors.csv"),
        ledger=folder / "ledger",
        inventory=folder / "inventory",
        now_us=now_us or at("2026-10-01"),
    )
    span = msgspec.structs.replace(span_of(QUARTER), start_us=at("2025-07-01"))
    with open_ledger(folder / "ledger") as store:
        return prior_of(store, source, span)


def test_a_ledger_without_a_close_has_no_late_record(folder):
    assert late(folder) == ()


@pytest.mark.slow
def test_a_late_record_of_an_earlier_quarter_is_told_by_a_draft_report(folder):
    close(BEFORE, ledger=folder / "ledger", by="tester")
    assert NONE_CAME in words(said(folder)[1], "restatements")
    store = Ledger(folder / "ledger")
    store.append(run("late", "2026-06-10", at("2026-11-05")))
    store.append(msgspec.structs.replace(run("stray", "2026-08-10"), start_us=10**18, end_us=None))
    given, view = said(folder)
    # Runs that no calendar holds are told, though the quarter was named.
    assert "CL512" in {f.code for f in given.findings}
    assert "CL512" in rows(view, "Findings")
    assert given.label == "DRAFT"
    assert NONE_CAME not in words(view, "restatements")
    assert rows(view, "Prior periods")[BEFORE][0] == "2026-11"
    assert rows(view, "Statement")[""][:2] == [QUARTER, f"{BEFORE} ADJUSTED"]


def scored(folder, unit):
    """Return the scores of a quarter whose runs count one unit."""
    counted = msgspec.structs.replace(run("counted", "2026-08-04"), unit=unit, units=Decimal(7))
    Ledger(folder / "ledger").append(counted)
    places = {"ledger": folder / "ledger", "inventory": folder / "inventory"}
    factors = open_factors(folder / "factors.csv")
    made = make_statement(QUARTER, factors=factors, now_us=at("2026-11-20"), **places)
    kept = load_inventory(folder / "inventory")
    source = Source(kept=kept, factors=factors, now_us=at("2026-11-20"), held={QUARTER: made}, **places)
    return scores_of(works_of([QUARTER], source, "workload"), source)


@pytest.mark.slow
def test_findings_of_the_score_are_among_those_of_the_report(folder):
    found = scored(folder, "request")
    (score,) = found.scores
    assert "sci_score" in score.figures
    assert [f.message for f in found.findings if f.code == "CL300"]


@pytest.mark.parametrize("error", [SelectionError, UsageError])
def test_a_score_that_cannot_be_made_says_why(error, folder, monkeypatch):
    def refuse(unit, **_):
        raise error("no run belongs to it", mend="count the work")

    monkeypatch.setattr("carbonlens.app.sustainability_scores.make_sci", refuse)
    found = scored(folder, "request")
    assert not [s for s in found.scores if "sci_score" in s.figures]
    (why,) = found.findings
    assert (why.code, why.mend) == ("CL300", "count the work")
    assert why.message == f"no SCI score per request of {QUARTER}: no run belongs to it"


@pytest.mark.parametrize(
    ("imported", "found_in"), [("2026-11-05", "2026-11"), ("2026-08-31", "2026-08"), (None, NOT_TAKEN_UP)]
)
def test_a_late_record_was_found_in_the_month_of_its_import(folder, imported, found_in):
    close(BEFORE, ledger=folder / "ledger", by="tester")
    Ledger(folder / "ledger").append(run("late", "2026-06-10", at(imported) if imported else None))
    (line,) = late(folder)
    assert (line.period, line.found_in) == (BEFORE, (found_in,))
    # On another day the same is said of the same ledger.
    assert late(folder, at("2027-02-01")) == (line,)


def test_a_closed_month_of_an_open_quarter_has_late_records(folder):
    close("2026-08", ledger=folder / "ledger", by="tester")
    Ledger(folder / "ledger").append(run("late", "2026-08-10", at("2026-10-02")))
    (line,) = late(folder)
    assert (line.period, line.found_in) == ("2026-08", ("2026-10",))


def test_a_close_that_took_a_record_up_is_where_it_was_found(folder):
    close(BEFORE, ledger=folder / "ledger", by="tester")
    Ledger(folder / "ledger").append(run("late", "2026-06-10", at("2026-11-05")))
    close("2026-07", ledger=folder / "ledger", by="tester")
    (line,) = late(folder)
    assert line.found_in == ("2026-07",)


@pytest.mark.parametrize(("imported", "told"), [("2026-07-15", True), ("2026-11-05", False)])
def test_of_a_close_outside_the_report_only_what_was_found_in_it_is_told(folder, imported, told):
    store = Ledger(folder / "ledger")
    store.append(run("old", "2025-02-01"))
    close("2025-02", ledger=folder / "ledger", by="tester")
    store.append(run("late", "2025-02-03", at(imported)))
    assert bool(late(folder)) is told
