"""Corrections by several hosts, of several studies, and by clocks that jumped."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.ledger_care import redact, supersede, tag
from carbonlens.app.runs import find_record
from carbonlens.domain.identity import uuid7
from carbonlens.domain.run import Origin
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError, UsageError
from carbonlens.ledger import compaction
from carbonlens.ledger.editing import corrected
from carbonlens.ledger.latest import latest
from carbonlens.ledger.reading import open_view
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_store import make_run

NOW_US = 1_795_000_000_000_000
START = 1_790_000_000_000_000


def runs_of(folder):
    return current(Ledger(folder).view().runs)


def ids_in_view(folder):
    with open_view(folder) as view:
        rows = view.rows(view.parts.select("run_id").unique().sort("run_id"))
        return [r["run_id"] for r in rows], [f.code for f in view.findings]


def faults(folder):
    return [f.code for f in verify(folder, now_us=NOW_US).findings if f.severity == "error"]


def imported(folder, study, energy, sha, us=START):
    origin = Origin(instrument="t", imported_us=us)
    run = make_run("r1", energy, START, study=study, origin=origin)
    Ledger(folder).add_batch([run], source_sha256=sha * 32, importer="t-1")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("before", ["A", None])
def test_a_later_import_of_the_same_id_does_not_undo_a_rename(tmp_path, named, before):
    imported(tmp_path, before, "7", "ab")
    renamed = supersede("r1", {"study": "C"}, ledger=tmp_path).after
    assert renamed.supersedes_study == (before or "")
    if not named:
        # As versions wrote it that did not keep the study.
        (file,) = (tmp_path / "runs" / "corrections").iterdir()
        file.write_bytes(msgspec.json.encode(msgspec.structs.replace(renamed, supersedes_study=None)))
    imported(tmp_path, "B", "100", "cd", us=10**15 * 4)
    runs, findings = runs_of(tmp_path)
    assert sorted(r.energy[0].energy_j for r in runs) == [7, 100]
    assert findings == ()
    assert ids_in_view(tmp_path) == (sorted([renamed.run_id, "r1"]), [])


def fork(folder):
    """Two hosts tag one run, each unaware of the other."""
    Ledger(folder).append(make_run("abcd", "5", START, tags={"old": "1", "kept": "k"}))
    first = tag("abcd", {"team": "vision", "old": ""}, ledger=folder).after
    away = folder / "runs" / "corrections"
    (file,) = away.iterdir()
    hidden = folder / "hidden"
    file.rename(hidden)
    second = tag("abcd", {"owner": "me"}, ledger=folder).after
    hidden.rename(file)
    return first, second


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("how", ["tag", "supersede"])
def test_one_more_correction_settles_two(tmp_path, how, folded):
    first, second = fork(tmp_path)
    assert "CL507" in faults(tmp_path)
    if folded:
        compaction.compact(tmp_path, before="209912")
    if how == "tag":
        done = tag("abcd", {"cost": "c"}, ledger=tmp_path)
    else:
        done = supersede("abcd", {"site": "paris"}, ledger=tmp_path)
    assert done.settles == 1
    assert {done.after.supersedes, *done.after.supersedes_also} == {first.run_id, second.run_id}
    mine = {"cost": "c"} if how == "tag" else {}
    # What each of the two changed is kept: a tag added, a tag taken out.
    assert done.after.tags == {"team": "vision", "owner": "me", "kept": "k"} | mine
    assert faults(tmp_path) == []
    assert [r.run_id for r in runs_of(tmp_path)[0]] == [done.after.run_id]
    assert ids_in_view(tmp_path) == ([done.after.run_id], [])
    compaction.compact(tmp_path, before="209912")
    assert ids_in_view(tmp_path) == ([done.after.run_id], [])
    later = tag("abcd", {"more": "m"}, ledger=tmp_path)
    assert (later.settles, later.after.supersedes_also) == (0, ())


def test_a_tag_that_adds_nothing_settles_two_all_the_same(tmp_path):
    fork(tmp_path)
    done = tag("abcd", {"kept": "k"}, ledger=tmp_path)
    assert done.settles == 1
    assert faults(tmp_path) == []


def test_ids_that_studies_share_are_told_apart_by_the_study(tmp_path):
    imported(tmp_path, "A", "7", "ab")
    imported(tmp_path, "B", "100", "cd")
    for work in (
        lambda: tag("r1", {"k": "v"}, ledger=tmp_path),
        lambda: supersede("r1", {"site": "x"}, ledger=tmp_path),
        lambda: redact("r1", ["units"], why="w", ledger=tmp_path),
        lambda: find_record("r1", ledger=tmp_path),
    ):
        with pytest.raises(SelectionError, match="--study"):
            work()
    assert find_record("r1", study="B", ledger=tmp_path).run.energy[0].energy_j == 100
    assert tag("r1", {"k": "v"}, study="A", ledger=tmp_path).after.study == "A"
    supersede("r1", {"site": "x"}, study="B", ledger=tmp_path)
    redact("r1", ["units"], why="w", study="A", ledger=tmp_path)
    runs, findings = runs_of(tmp_path)
    assert {r.study: (r.units, r.site, dict(r.tags)) for r in runs} == {
        "A": (None, None, {"k": "v"}),
        "B": (Decimal(3), "x", {}),
    }
    assert findings == ()
    with pytest.raises(SelectionError):
        tag("r1", {"k": "v"}, study="Z", ledger=tmp_path)


@pytest.mark.parametrize("folded", [(), ("run",), ("run", "correction")])
@pytest.mark.parametrize("n", [1, 3])
def test_a_clock_that_jumped_back_shows_no_superseded_figure(tmp_path, folded, n):
    """The correction seems years older than its run: it is among the latest all the same."""
    store = Ledger(tmp_path)

    def name(ms, place):
        return uuid7(ms, bytes([place] * 10))

    for i in range(20):
        store.append(make_run(name(START // 1000 + i, i), str(i), START + i * 1000))
    newest = name(START // 1000 + 19, 19)
    if "run" in folded:
        compaction.compact(tmp_path, before="209912")
    older = name(START // 1000 - 10**10, 77)
    store.append(make_run(older, "999", START, supersedes=newest))
    store.append(make_run(name(START // 1000 - 10**10, 78), "1000", START, supersedes=older))
    if "correction" in folded:
        compaction.compact(tmp_path, before="209912")
    shown = latest(tmp_path, n).runs
    assert [r.energy[0].energy_j for r in shown] == [1000, 18, 17][:n]


def test_a_superseded_record_is_shown_and_says_what_counts(tmp_path):
    Ledger(tmp_path).append(make_run("abcd-old", "5", START))
    assert find_record("abcd-old", ledger=tmp_path).superseded_by is None
    first = tag("abcd-old", {"k": "v"}, ledger=tmp_path).after
    last = tag("abcd-old", {"k": "w"}, ledger=tmp_path).after
    for text in ("abcd-old", "abcd", first.run_id):
        found = find_record(text, ledger=tmp_path)
        assert found.superseded_by == last.run_id
    assert find_record("abcd-old", ledger=tmp_path).run.tags == {}
    assert find_record(last.run_id, ledger=tmp_path).superseded_by is None
    with pytest.raises(SelectionError, match="no run"):
        find_record("zzzz", ledger=tmp_path)


def two_hosts(folder, first, second):
    """Two hosts correct one run, each unaware of the other; the first of them several times."""
    base = make_run("abcd", "5", START)
    records = [base]
    for change in first:
        records.append(corrected(records[-1], change))
    records.append(corrected(base, second))
    for record in records:
        Ledger(folder).append(record)


def test_a_tag_settles_two_and_drops_no_correction_of_either(tmp_path):
    two_hosts(tmp_path, [{"units": "77"}, {"tags": {"env": "prod"}}], {"site": "paris"})
    after = tag("abcd", {"n": "1"}, ledger=tmp_path).after
    assert (after.units, after.site, after.tags) == (77, "paris", {"env": "prod", "n": "1"})
    assert faults(tmp_path) == []


def test_corrections_that_differ_are_settled_by_giving_the_field_only(tmp_path):
    two_hosts(tmp_path, [{"units": "77"}], {"units": "78"})
    with pytest.raises(UsageError, match="differ in units"):
        tag("abcd", {"n": "1"}, ledger=tmp_path)
    with pytest.raises(UsageError, match="differ in units"):
        supersede("abcd", {"site": "paris"}, ledger=tmp_path)
    assert supersede("abcd", {"units": "77"}, ledger=tmp_path).after.units == 77
    assert faults(tmp_path) == []


def test_tags_that_differ_are_named_and_settled_by_a_tag(tmp_path):
    two_hosts(tmp_path, [{"tags": {"env": "a"}}], {"tags": {"env": "b"}})
    with pytest.raises(UsageError, match=r"tags\.env"):
        tag("abcd", {"n": "1"}, ledger=tmp_path)
    assert tag("abcd", {"env": "a"}, ledger=tmp_path).after.tags == {"env": "a"}


def test_hours_of_one_side_are_not_put_on_the_times_of_the_other(tmp_path):
    component = make_run().energy[0].component
    hours = [{"hour_utc": START // US_PER_HOUR, "component": component, "energy_j": "5"}]
    two_hosts(tmp_path, [{"energy_by_hour": hours}], {"start_us": START - 50 * US_PER_HOUR, "end_us": None})
    with pytest.raises(UsageError, match="energy_by_hour"):
        tag("abcd", {"n": "1"}, ledger=tmp_path)


def test_a_correction_names_its_study_and_means_no_other(tmp_path):
    imported(tmp_path, "A", "7", "ab")
    (lost,) = (tmp_path / "imports").glob("*.parquet")
    imported(tmp_path, "B", "100", "cd")
    assert tag("r1", {"k": "v"}, study="A", ledger=tmp_path).after.supersedes_study == "A"
    lost.unlink()
    assert sorted(r.energy[0].energy_j for r in runs_of(tmp_path)[0]) == [7, 100]
