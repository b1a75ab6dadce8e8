"""Imports count each run once, whichever files, copies, ranks and flushes tell of it."""

import itertools
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.app.importing import import_files
from carbonlens.app.importing_placing import Placing
from carbonlens.domain.import_map import ImportMap, PlaceRule
from carbonlens.ledger.accounts import account
from carbonlens.ledger.store import Ledger

HEAD = (
    "timestamp,project_name,run_id,duration,emissions,energy_consumed,country_iso_code,"
    "tracking_mode,cpu_model"
)


def line(run_id, at, seconds, kwh, *, mode="machine", cpu="Some CPU", project="p", country="FRA"):
    return f"2026-01-05T{at},{project},{run_id},{seconds},{kwh * 0.05:.9f},{kwh},{country},{mode},{cpu}"


@pytest.fixture
def case(tmp_path):
    numbers = itertools.count()

    def run(*files, ledger="ledger", **placing):
        folder = tmp_path / f"c{next(numbers)}"
        for name, *rows in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("\n".join((HEAD, *rows)) + "\n")
        return import_files([folder], ledger=tmp_path / ledger, placing=Placing(**{"tz": "UTC"} | placing))

    run.ledger = tmp_path / "ledger"
    return run


def codes(result):
    return [f.code for file in result.files for f in file.findings]


def energy_j(ledger):
    """Return what the ledger's own sum counts."""
    with Ledger(ledger).query() as view:
        return sum((total.energy.exact for total in account(view).totals), Decimal(0))


def test_a_run_that_is_written_twice_counts_by_its_last_row(case):
    """mlco2/codecarbon issue 1307."""
    rows = line("r1", "10:00:02", 2.010, 1.00e-5), line("r1", "10:00:02", 2.020, 1.01e-5)
    result = case(("e.csv", *rows))
    assert (result.totals.runs, result.totals.duration_s) == (1, 2.020)
    assert result.totals.energy_kwh == pytest.approx(1.01e-5)
    (found,) = (f for f in result.files[0].findings if f.code == "CL252")
    assert "1 superseded row was dropped" in found.message


def test_copies_that_overlap_count_each_run_once(case):
    """mlco2/codecarbon issues 987 and 1092."""
    r1, r2, r3 = (line(f"r{n}", f"1{n}:00:00", 10, kwh) for n, kwh in ((0, 1.0), (1, 0.5), (2, 0.25)))
    result = case(("emissions.csv", r2, r3), ("emissions.csv_1.bak", r1, r2))
    assert result.totals.runs == 3
    assert result.totals.energy_kwh == pytest.approx(1.75)
    assert [f.status for f in result.files] == ["imported", "imported"]
    assert "CL212" in codes(result)


def test_a_copy_that_is_further_replaces_an_earlier_one_in_any_order(case):
    early, late = line("r1", "10:00:10", 10, 0.1), line("r1", "10:00:20", 20, 0.2)
    forth = case(("a.csv", early), ("b.csv", late), ledger="forth")
    back = case(("a.csv", late), ("b.csv", early), ledger="back")
    for result in (forth, back):
        assert (result.totals.runs, result.totals.energy_kwh) == (1, pytest.approx(0.2))
        assert "CL252" in codes(result)


def test_a_correction_stands_in_the_ledger_instead_of_what_it_corrects(case):
    case(("a.csv", line("r1", "10:00:10", 10, 0.1)))
    case(("a.csv", line("r1", "10:00:20", 20, 0.2)))
    assert float(energy_j(case.ledger)) == pytest.approx(0.2 * 3.6e6)


def test_one_id_at_two_times_is_two_runs(case):
    result = case(("a.csv", line("r1", "10:00:00", 10, 0.2), line("r1", "12:00:00", 10, 0.1)))
    assert (result.totals.runs, result.totals.energy_kwh) == (2, pytest.approx(0.3))


def test_ranks_of_one_machine_count_once(case):
    rows = [line(f"rank{n}", f"10:00:0{n % 2}", 100, 1.0) for n in range(8)]
    result = case(("e.csv", *rows))
    assert (result.totals.runs, result.totals.energy_kwh) == (1, pytest.approx(1.0))
    (found,) = (f for f in result.files[0].findings if f.code == "CL251")
    assert all(f"'rank{n}'" in found.message for n in range(1, 8))


def test_ranks_of_one_machine_count_once_over_files_and_imports(case):
    files = [(f"rank{n}.csv", line(f"rank{n}", "10:00:00", 100, 1.0)) for n in range(4)]
    assert case(*files).totals.runs == 1
    assert case(("late.csv", line("rank9", "10:00:01", 100, 1.0))).totals.runs == 0


def test_the_rank_that_saw_most_stands_for_the_machine(case):
    result = case(("e.csv", line("a", "10:00:00", 100, 1.0), line("b", "10:00:01", 101, 1.01)))
    assert result.totals.energy_kwh == pytest.approx(1.01)


@pytest.mark.parametrize(
    "other",
    [
        line("b", "10:00:00", 100, 1.0, mode="process"),
        line("b", "10:00:00", 100, 1.0, cpu="Another CPU"),
        line("b", "10:00:10", 100, 1.0),
        line("b", "10:00:00", 90, 1.0),
    ],
    ids=["process scope", "other hardware", "ends later", "starts later"],
)
def test_what_is_not_one_machine_over_one_time_counts_apart(case, other):
    assert case(("e.csv", line("a", "10:00:00", 100, 1.0), other)).totals.runs == 2


def test_short_runs_in_one_second_followed_each_other(case):
    rows = [line(f"r{n}", "10:00:00", 0.05, 1e-6) for n in range(20)]
    assert case(("e.csv", *rows)).totals.runs == 20


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 40)), min_size=1, max_size=12),
    st.integers(0, 12),
)
def test_whatever_way_rows_are_spread_over_files_the_sum_is_the_same(tmp_path_factory, flushes, cut):
    """The furthest row of each run counts, once."""
    folder = tmp_path_factory.mktemp("spread")
    furthest = {}
    rows = []
    for run, ticks in flushes:
        furthest[run] = max(furthest.get(run, 0), ticks)
        clock = f"1{run}:{ticks // 60:02}:{ticks % 60:02}"
        rows.append(line(f"r{run}", clock, ticks, ticks / 100, mode="process"))
    (folder / "a.csv").write_text("\n".join((HEAD, *rows[:cut])) + "\n")
    (folder / "b.csv").write_text("\n".join((HEAD, *rows[cut:])) + "\n")
    totals = import_files([folder], ledger=folder / "ledger", placing=Placing(tz="UTC")).totals
    assert totals.runs == len(furthest)
    assert totals.energy_kwh == pytest.approx(sum(furthest.values()) / 100)


def test_a_map_puts_teams_sites_zones_and_clocks_on_runs(case):
    rules = ImportMap(
        place=(
            PlaceRule(path="vision/*", team="vision", site="lyon", zone="FR", tags={"unit": "r&d"}),
            PlaceRule(project="chat-*", team="language", zone="SE-SE3", tz="Asia/Tokyo"),
            PlaceRule(team="others", site="cloud"),
        )
    )
    case(
        ("vision/e.csv", line("v", "10:00:00", 10, 0.1, cpu="A")),
        ("more/e.csv", line("c", "10:00:00", 10, 0.1, project="chat-1", cpu="B")),
        ("more/f.csv", line("o", "10:00:00", 10, 0.1, project="misc", cpu="C")),
        map=rules,
    )
    runs = {r.run_id: r for r in Ledger(case.ledger).view().runs}
    assert [runs[i].tags["team"] for i in "vco"] == ["vision", "language", "others"]
    assert [runs[i].site for i in "vco"] == ["lyon", "cloud", "cloud"]
    assert [runs[i].zone for i in "vco"] == ["FR", "SE-SE3", "FR"]
    assert runs["v"].tags["unit"] == "r&d"
    assert runs["o"].end_us - runs["c"].end_us == 9 * 3_600_000_000


def test_a_place_that_is_none_gives_no_zone_and_is_said_once(case):
    rows = [line(f"r{n}", f"1{n}:00:00", 10, 0.1, country="XXX") for n in range(3)]
    result = case(("e.csv", *rows))
    assert codes(result).count("CL255") == 1
    assert {r.zone for r in Ledger(case.ledger).view().runs} == {None}


def test_tasks_beside_their_run_count_once(case):
    head = f"task_name,{HEAD}"
    result = case(("emissions.csv", line("r1", "10:00:10", 10, 0.2)))
    assert result.totals.energy_kwh == pytest.approx(0.2)
    folder = case.ledger.parent / "tasks"
    folder.mkdir()
    rows = (f"{name},{line('r1', '10:00:05', 5, 0.1)}" for name in ("load", "train"))
    (folder / "t.csv").write_text("\n".join((head, *rows)) + "\n")
    later = import_files([folder], ledger=case.ledger, placing=Placing(tz="UTC"))
    assert later.totals.runs == 2
    assert later.totals.energy_kwh == pytest.approx(0.0)
    assert float(energy_j(case.ledger)) == pytest.approx(0.2 * 3.6e6)
