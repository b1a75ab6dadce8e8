"""What a report asks of the same runs is found out once, and is what each question finds by itself."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import msgspec
import pytest

from carbonlens.app import statement_held, statement_last
from carbonlens.app.inventory import load_inventory
from carbonlens.app.sci import make_sci
from carbonlens.app.statement_ledger import PeriodReading
from carbonlens.app.sustainability import gather
from carbonlens.factors.store import open_factors
from carbonlens.ledger import accounts, occupancy, selecting
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.opening import one_opening, open_ledger
from tests.app import sci_case, statement_case

QUARTER = "2026Q2"
LABELS = (None, "team", "model", "hardware")


def runs():
    """Return runs of two roles, of which idle ones lie at one place alone, with labels that cross."""
    held = []
    for i in range(12):
        run = sci_case.run(
            i,
            "idle" if i % 4 == 3 else "serving",
            kwh=i + 1,
            tags={"model": ("m", "n")[i % 2]} | ({"team": "ab"[i % 3]} if i % 3 < 2 else {}),
            site="edge" if i % 4 == 2 else "lab",
            unit=None if i % 4 == 3 else "requests",
            units=None if i % 4 == 3 else Decimal(1000),
        )
        held.append(run if i % 6 else msgspec.structs.replace(run, end_us=None, duration_s=None))
    return held


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    sci_case.write(folder, runs())
    return folder


def places(folder):
    return {
        "inventory": folder / "inventory",
        "factors": folder / "factors.csv",
        "ledger": folder / "ledger",
    }


@pytest.fixture
def view(folder):
    with (
        one_opening(folder / "ledger"),
        open_ledger(folder / "ledger") as store,
        store.query(QUARTER) as held,
    ):
        yield held


def reading(view, folder, **options):
    kept, hours = load_inventory(folder / "inventory").inventory, Calendar().period(QUARTER)
    return PeriodReading(view, kept, open_factors(folder / "factors.csv"), hours, **options)


def test_a_report_finds_out_what_holds_at_a_place_once_a_quarter(folder, monkeypatch):
    asked = Counter()
    real = statement_held.place_terms

    def counting(name, zones, inventory, factors, coarse, months):
        asked[name, months.first_hour] += 1
        return real(name, zones, inventory, factors, coarse, months)

    monkeypatch.setattr(statement_held, "place_terms", counting)
    found = gather(QUARTER, now_us=statement_case.NOW_US, **places(folder))
    assert any("sci_score" in s.figures or "sci_at_least" in s.figures for s in found.given.scores)
    assert asked
    assert set(asked.values()) == {1}


def test_sums_by_several_labels_at_once_are_those_by_each(folder, view, monkeypatch):
    each = reading(view, folder)
    expected = {label: each.activities(label) for label in LABELS}
    work = each.work("workload")
    together = reading(view, folder)
    together.prepare(LABELS, "workload")
    monkeypatch.setattr(accounts, "account_over", None)  # nothing is summed again
    assert {label: together.activities(label) for label in LABELS} == expected
    assert together.work("workload") == work
    assert len({a.group for a in expected["team"][0]}) == 3


def test_a_label_that_is_no_text_is_summed_by_itself(folder, view):
    read = reading(view, folder)
    read.prepare((None, "hour_utc"))
    hours = {a.group for a in read.activities("hour_utc")[0]}
    assert hours == {str(statement_case.FIRST_HOUR + i) for i in range(12)}


@pytest.mark.parametrize("role", ["serving", "idle"])
def test_runs_of_some_kinds_are_read_as_if_there_were_no_others(folder, view, role):
    """Those that serve are at all places of the ledger, those that idle at one of them."""
    kinds = tuple({(g.role, g.stage, g.unit, g.study) for g in selecting.run_groups(view) if g.role == role})
    alone = reading(selecting.only(view, selecting.of_kinds(kinds)), folder)
    read = reading(view, folder, kinds=kinds)
    assert read.sites == alone.sites
    assert read.activities() == alone.activities()
    assert read.activities("team") == alone.activities("team")
    assert read.runs("model") == alone.runs("model")
    assert read.runs_names() == tuple(read.runs()) == tuple(alone.runs())


def test_a_score_without_the_list_of_its_runs_has_the_same_figures(folder):
    whole = make_sci("request", period=QUARTER, **places(folder))
    made = make_sci("request", period=QUARTER, listed=False, **places(folder))
    assert made.figures == whole.figures
    assert made.findings == whole.findings
    assert set(made.runs_of) == set(whole.runs_of)
    assert any(whole.runs_of.values())
    assert not any(made.runs_of.values())


def test_runs_that_state_no_time_are_those_of_the_groups(view):
    assert selecting.untimed_runs(view) == sum(g.untimed for g in selecting.run_groups(view)) == 2


def test_hours_of_use_are_asked_for_once_a_view(view, monkeypatch):
    first = occupancy.hours_by_hardware(view)
    monkeypatch.setattr(occupancy, "_rows", None)
    assert occupancy.hours_by_hardware(view) == first


def test_views_of_one_opening_share_an_engine_and_no_table(folder):
    with (
        one_opening(folder / "ledger"),
        open_ledger(folder / "ledger") as store,
        store.query(QUARTER) as one,
        store.query("2026Q1") as other,
    ):
        assert len(one.rows(one.parts.select("run_id"))) == 12
        assert other.rows(other.parts.select("run_id")) == []
        one.run("CREATE TEMP TABLE mine AS SELECT 1 AS n")
        tables = "SELECT table_name FROM information_schema.tables WHERE table_name = 'mine'"
        assert one.run(tables)
        assert not other.run(tables)


def test_the_last_quarter_is_looked_for_once(folder, monkeypatch):
    with one_opening(folder / "ledger"), open_ledger(folder / "ledger") as store:
        found = statement_last.last_quarter(store, Calendar())
        monkeypatch.setattr(statement_last, "_ends", None)
        assert statement_last.last_quarter(store, Calendar()) == found == (QUARTER, ())
