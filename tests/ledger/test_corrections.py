"""A correction may move a run to another month: each month alone, and the whole, count it once."""

import os
import tempfile
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.app.ledger_care import close, export, redact, span_of, supersede, tag
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError
from carbonlens.ledger import closing, compaction, queries
from carbonlens.ledger.accounts import account
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.reading import open_view
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify

MONTHS = ("2025-09", "2025-10", "2025-11")
STARTS = [Calendar().period(m).first_hour * US_PER_HOUR for m in MONTHS]
SEP, OCT, NOV = STARTS
NOW_US = NOV + 90 * 24 * US_PER_HOUR


def make(name, start_us=OCT, energy="1", **more):
    reading = Reading(component="cpu", energy_j=Decimal(energy), boundary="it", grade="D", method="m")
    return Run(run_id=name, start_us=start_us, energy=(reading,), **more)


def total(ledger, period=None):
    """The energy and the runs that the view of a period gives."""
    with open_view(ledger, period) as view:
        rows = view.rows(queries.run_table(view.parts))
    return sum((r["energy_j"] for r in rows), Decimal(0)), sorted(r["run_id"] for r in rows)


def ids(ledger, period=None):
    return total(ledger, period)[1]


def live(ledger):
    return sorted(f.relative_to(ledger / "runs").as_posix() for f in ledger.glob("runs/*/*.json"))


def test_a_run_moved_to_another_month_counts_in_one_of_them(tmp_path):
    store = Ledger(tmp_path)
    store.append(make("a", OCT, "5"))
    moved = supersede("a", {"start_us": NOV}, ledger=tmp_path).after
    assert live(tmp_path) == ["202510/a.json", f"corrections/{moved.run_id}.json"]
    assert [ids(tmp_path, m) for m in MONTHS] == [[], [], [moved.run_id]]
    assert total(tmp_path) == (5, [moved.run_id])


def test_compaction_folds_each_correction_into_its_own_month(tmp_path):
    store = Ledger(tmp_path)
    for name in "abc":
        store.append(make(name, OCT))
    one = supersede("a", {"start_us": SEP}, ledger=tmp_path).after.run_id
    two = supersede("b", {"start_us": NOV}, ledger=tmp_path).after.run_id
    compaction.compact(tmp_path, before="202511")
    assert live(tmp_path) == [f"corrections/{two}.json"]
    assert sorted(f.parent.name for f in tmp_path.glob("months/*/*.parquet")) == ["202509", "202510"]
    assert [ids(tmp_path, m) for m in MONTHS] == [[one], ["c"], [two]]
    done = compaction.compact(tmp_path, before="202512")
    assert [m.month for m in done.months] == ["202511"]
    assert live(tmp_path) == []
    assert [ids(tmp_path, m) for m in MONTHS] == [[one], ["c"], [two]]
    assert verify(tmp_path, now_us=NOW_US).sound


def test_a_fold_cut_off_before_it_removed_a_correction_is_told_and_counts_once(tmp_path):
    store = Ledger(tmp_path)
    store.append(make("a", OCT))
    new = supersede("a", {"start_us": NOV}, ledger=tmp_path).after
    file = tmp_path / "runs" / "corrections" / f"{new.run_id}.json"
    content = file.read_bytes()
    compaction.compact(tmp_path, before="202512")
    file.write_bytes(content)
    assert [ids(tmp_path, m) for m in MONTHS] == [[], [], [new.run_id]]
    found = verify(tmp_path, now_us=NOW_US)
    assert found.sound
    assert [f.message for f in found.findings if f.code == "CL515"] == [
        "month 202511 is half folded (1 run lies there twice); each counts once"
    ]
    compaction.compact(tmp_path, before="202512")
    assert live(tmp_path) == []


def test_a_correction_that_cannot_be_read_is_named_and_stays(tmp_path):
    Ledger(tmp_path).append(make("a", OCT))
    torn = tmp_path / "runs" / "corrections" / "torn.json"
    torn.parent.mkdir()
    torn.write_text("{")
    done = compaction.compact(tmp_path, before="202512")
    assert [(f.code, f.file) for f in done.findings] == [("CL501", str(torn))]
    assert torn.exists()
    assert ids(tmp_path, "2025-10") == ["a"]


def test_two_corrections_of_one_run_count_once_wherever_they_moved_it(tmp_path):
    """The run itself lies in neither period asked for."""
    store = Ledger(tmp_path)
    store.append(make("a", SEP))
    os.utime(tmp_path / "runs" / "202509" / "a.json", (SEP / 1e6, SEP / 1e6))
    store.append(make("b", OCT, supersedes="a"))
    store.append(make("c", NOV, supersedes="a"))
    assert ids(tmp_path) == ["c"]
    assert [ids(tmp_path, m) for m in MONTHS] == [[], [], ["c"]]
    compaction.compact(tmp_path, before="202511")
    assert [ids(tmp_path, m) for m in MONTHS] == [[], [], ["c"]]


def test_a_run_without_a_start_that_got_one_is_undated_no_more(tmp_path):
    store = Ledger(tmp_path)
    store.append(make("a", None))
    store.append(make("b", None))
    store.append(make("c", OCT, supersedes="a"))
    with open_view(tmp_path, "2025-10") as view:
        assert view.undated == 1
    assert ids(tmp_path, "2025-10") == ["c"]


def test_a_move_out_of_a_closed_period_is_an_adjustment_of_both(tmp_path):
    store = Ledger(tmp_path)
    for name, start in (("a", SEP), ("b", OCT)):
        store.append(make(name, start))
    close("2025-09", ledger=tmp_path)
    close("2025-10", ledger=tmp_path)
    edited = supersede("a", {"start_us": OCT + US_PER_HOUR}, ledger=tmp_path)
    assert edited.adjusts == "2025-09"
    held = store.holdings()
    for period in ("2025-09", "2025-10"):
        late = closing.period_status(tmp_path, held, span_of(period)).adjustments
        assert [a.name for a in late] == [edited.after.run_id], period
    tagged = tag("b", {"x": "y"}, ledger=tmp_path)
    last = close("2025-11", ledger=tmp_path)
    assert sorted((a.period, a.name) for a in last.adjustments) == sorted(
        [
            ("2025-09", edited.after.run_id),
            ("2025-10", edited.after.run_id),
            ("2025-10", tagged.after.run_id),
        ]
    )
    assert verify(tmp_path, now_us=NOW_US).sound


def test_a_manifest_keeps_the_correction_that_took_a_run_out_of_its_period(tmp_path):
    Ledger(tmp_path).append(make("a", SEP))
    moved = supersede("a", {"start_us": NOV}, ledger=tmp_path).after
    manifest = close("2025-09", ledger=tmp_path)
    assert (manifest.counting, manifest.energy, len(manifest.runs)) == (0, (), 2)
    (tmp_path / "runs" / "corrections" / f"{moved.run_id}.json").unlink()
    assert "CL511" in [f.code for f in verify(tmp_path, now_us=NOW_US).findings]


def test_redaction_and_export_find_corrections_in_their_folder_and_folded(tmp_path):
    Ledger(tmp_path).append(make("a", OCT, tags={"owner": "somebody"}))
    moved = supersede("a", {"start_us": NOV}, ledger=tmp_path).after
    with pytest.raises(SelectionError):
        export(format_="csv", ledger=tmp_path, period="2025-10")
    assert moved.run_id in export(format_="csv", ledger=tmp_path, period="2025-11").content.decode()
    done = redact("a", ["tags.owner"], why="asked", ledger=tmp_path)
    assert set(done.run_ids) == {"a", moved.run_id}
    assert not [f for f in tmp_path.glob("runs/*/*.json") if b"somebody" in f.read_bytes()]
    compaction.compact(tmp_path, before="202512")
    assert verify(tmp_path, now_us=NOW_US).sound
    assert export(format_="csv", ledger=tmp_path, period="2025-11").runs == 1


def test_the_account_of_a_month_does_not_hold_what_was_moved_away(tmp_path):
    Ledger(tmp_path).append(make("a", OCT, "7"))
    supersede("a", {"start_us": NOV}, ledger=tmp_path)
    with open_view(tmp_path, "2025-10") as view:
        assert account(view, []).totals == ()
    with open_view(tmp_path, "2025-11") as view:
        assert [t.energy.exact for t in account(view, []).totals] == [7]


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(STARTS), st.integers(1, 99)),
        st.tuples(st.just("supersede"), st.integers(0, 50), st.sampled_from(STARTS), st.integers(1, 99)),
        st.tuples(st.just("compact"), st.sampled_from(["202510", "202511", "202512"])),
        st.tuples(st.just("import"), st.sampled_from(STARTS), st.integers(1, 99)),
    ),
    min_size=2,
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(actions=ACTIONS, long=st.booleans())
def test_any_history_gives_the_same_whole_and_by_month(actions, long):
    """Puts, corrections of any record (also of corrected ones), compactions, imports."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder)
        store, made = Ledger(ledger), []
        for i, (what, *given_) in enumerate(actions):
            if what == "compact":
                compaction.compact(ledger, before=given_[0])
                continue
            *place, start, energy = given_
            old = made[place[0] % len(made)] if place and made else None
            # As in life, a file is written at the end of its run.
            run = make(f"r{i:02}", start, str(energy), supersedes=old, end_us=start + 3 * US_PER_HOUR)
            if long:
                run = msgspec.structs.replace(run, start_us=start - US_PER_HOUR)
            made.append(run.run_id)
            if what == "import":
                store.add_batch([run], source_sha256=f"{i:064}", importer="t-1")
            else:
                file = store.append(run)
                os.utime(file, (start / 1e6, start / 1e6))
        expected = {r.run_id for r in current([r.run for r in store.holdings().records])[0]}
        whole, names = total(ledger)
        months = [total(ledger, m) for m in (*MONTHS, "2025-08")]
        assert sum(j for j, _ in months) == whole
        assert set(names) == expected == {n for _, found in months for n in found}
