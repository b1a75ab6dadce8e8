"""Live runs that a period needs, also while they are folded into months."""

import os

import pytest

from carbonlens.domain.identity import uuid7
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger import compaction, live
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.frames import View
from carbonlens.ledger.store import Ledger
from tests.ledger.test_sharing import MONTHS, NOV, OCT, SEP, fill, make, seen, total


def contents(ledger):
    return {f: f.read_bytes() for f in (ledger / "runs").rglob("*.json")}


def edge():
    """Runs of a device that draws 100 J an hour: each overlaps the next, one reaches over the edge."""
    spans = [(-10, 8), (-4, 8), (2, 6), (6, 6)]
    return [make(f"r{i}", NOV + at * US_PER_HOUR, h, str(100 * h)) for i, (at, h) in enumerate(spans)]


def test_a_month_written_while_its_live_runs_still_lie_there_counts_once(tmp_path):
    fill(tmp_path, *edge())
    expected = [seen(tmp_path, m) for m in (None, *MONTHS)]
    assert [total(tmp_path, m) for m in (None, *MONTHS)] == [2200, 0, 1000, 1200]
    files = contents(tmp_path)
    compaction.compact(tmp_path, before="202512")
    for left in (files, {f: raw for f, raw in files.items() if f.parent.name == "202510"}):
        for file, raw in left.items():
            file.write_bytes(raw)
        assert [seen(tmp_path, m) for m in (None, *MONTHS)] == expected
        compaction.compact(tmp_path, before="202512")
    assert [seen(tmp_path, m) for m in (None, *MONTHS)] == expected


@pytest.mark.parametrize("files_stay", [True, False])
def test_a_month_written_while_a_query_reads_changes_nothing(tmp_path, monkeypatch, files_stay):
    """Between the months being listed and the neighbours of the period being read."""
    fill(tmp_path, *edge())
    expected = seen(tmp_path, "2025-11")
    divide, times = View._divide, []

    def late(view, *given):
        if not times:
            files = contents(tmp_path)
            compaction.compact(tmp_path, before="202511")
            for file, raw in files.items() if files_stay else ():
                file.write_bytes(raw)
        times.append(1)
        divide(view, *given)

    monkeypatch.setattr(View, "_divide", late)
    assert seen(tmp_path, "2025-11") == expected
    assert len(times) == (1 if files_stay else 2)


def test_a_link_to_nothing_holds_no_query_up(tmp_path):
    fill(tmp_path, *edge())
    joules, said = seen(tmp_path, "2025-11")
    (tmp_path / "runs" / "202510" / "lost.json").symlink_to(tmp_path / "none")
    assert seen(tmp_path, "2025-11") == (joules, ["CL506", *said])


@pytest.mark.parametrize("timed", [True, False], ids=["id of the start", "id that does not tell"])
def test_a_run_is_not_lost_by_its_files_time(tmp_path, timed):
    start = NOV - 4 * US_PER_HOUR
    name = uuid7(start // 1000, bytes(10)) if timed else "long"
    file = Ledger(tmp_path).append(make(name, start, 10, "1000"))
    os.utime(file, (SEP / 1e6, SEP / 1e6))
    assert [total(tmp_path, m) for m in (None, *MONTHS)] == [1000, 0, 400, 600]
    compaction.compact(tmp_path, before="202512")
    assert [total(tmp_path, m) for m in (None, *MONTHS)] == [1000, 0, 400, 600]


def test_of_older_runs_those_are_read_that_reach_into_the_period(tmp_path):
    store = Ledger(tmp_path)
    hours = (NOV - SEP) // US_PER_HOUR
    stamped = {
        name: store.append(make(uuid7(start // 1000, bytes(9) + bytes([i])), start, h))
        for i, (name, start, h) in enumerate(
            [("over", OCT, 1), ("long", SEP, hours + 1), ("over in October", SEP, 1000), ("own", NOV, 1)]
        )
    }
    files, undated = live.files_of(live.listing(tmp_path)[0], Calendar().period("2025-11"))
    assert sorted(files) == sorted([stamped["long"], stamped["own"]])
    assert undated == []


def test_a_file_that_goes_away_or_is_a_loop_stops_no_period(tmp_path, monkeypatch):
    store = Ledger(tmp_path)
    store.append(make("own", NOV))
    for start in (SEP, OCT):
        gone = store.append(make(uuid7(start // 1000, bytes(10)), start))
        loop = gone.with_name(f"{uuid7(start // 1000, b'1' * 10)}.json")
        loop.symlink_to(loop)
    listing = live.listing

    def then_folded(ledger):
        found, said = listing(ledger)
        for file in (f for files in found.values() for f in files if not f.is_symlink()):
            if file.parent.name != "202511":
                file.unlink(missing_ok=True)
        return found, said

    monkeypatch.setattr(live, "listing", then_folded)
    found, codes = seen(tmp_path, "2025-11")
    assert found == {"own": 100}
    assert set(codes) == {"CL501"}


def test_a_run_of_months_is_found_however_old_its_file_seems(tmp_path):
    hours = (NOV - SEP) // US_PER_HOUR
    file = Ledger(tmp_path).append(make(uuid7(SEP // 1000, bytes(10)), SEP, hours + 100, "1000"))
    inside = total(tmp_path, "2025-11")
    assert inside > 0
    os.utime(file, (SEP / 1e6, SEP / 1e6))
    assert total(tmp_path, "2025-11") == inside
