"""Tags and corrections are new records; the old ones stay and no longer count."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.ledger_care import supersede, tag
from carbonlens.domain.identity import uuid7
from carbonlens.domain.run import HourEnergy
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError, UsageError
from carbonlens.ledger.accounts import account
from carbonlens.ledger.editing import corrected, parse_changes, select, tagged
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_store import make_run


def counting(folder):
    runs, findings = current(Ledger(folder).view().runs)
    assert findings == ()
    return list(runs)


def test_a_tag_is_a_new_record_and_the_old_one_stays(tmp_path):
    Ledger(tmp_path).append(make_run("abcd1", tags={"team": "vision", "old": "x"}))
    edited = tag("abcd", {"team": "speech", "cost": "c=1", "old": ""}, ledger=tmp_path)
    assert edited.after.tags == {"team": "speech", "cost": "c=1"}
    assert counting(tmp_path) == [edited.after]
    assert len(Ledger(tmp_path).view().runs) == 2
    assert (edited.after.energy, edited.after.supersedes) == (edited.before.energy, "abcd1")


def test_corrections_follow_the_chain_whichever_record_is_named(tmp_path):
    Ledger(tmp_path).append(make_run("abcd1"))
    first = tag("abcd1", {"a": "1"}, ledger=tmp_path)
    second = supersede("abcd1", {"units": "7"}, why="typo", ledger=tmp_path)
    third = tag(first.after.run_id, {"b": "2"}, ledger=tmp_path)
    assert (second.before, third.before) == (first.after, second.after)
    (last,) = counting(tmp_path)
    assert (last.tags, last.units) == ({"a": "1", "b": "2"}, Decimal(7))
    assert [f.code for f in last.findings] == ["CL509"]
    assert "units (typo)" in last.findings[0].message


def test_a_correction_keeps_its_place_among_the_steps():
    run = make_run("abcd1")
    assert corrected(run, {"site": "x"}).recorded_us == run.recorded_us


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"joules": 1}, "no field 'joules'"),
        ({"attempt": "many"}, "no run"),
        ({"role": "boss"}, "no run"),
        ({}, "changes nothing"),
        ({"units": "3"}, "changes nothing"),
        ({"run_id": "mine", "supersedes": "x"}, "changes nothing"),
    ],
)
def test_a_correction_that_makes_no_run_is_refused(changes, said):
    with pytest.raises(UsageError, match=said):
        corrected(make_run(), changes)


def test_tags_that_change_nothing_are_refused():
    with pytest.raises(UsageError, match="already"):
        tagged(make_run(tags={"a": "1"}), {"a": "1"})


def test_fields_are_read_as_json_and_exact_amounts_as_text():
    changes = parse_changes(
        ["units=0.10", "model_bytes=12", "site=paris", 'on=["a"]', "zone=null", "step=a=b"]
    )
    assert changes == {
        "units": "0.10",
        "model_bytes": 12,
        "site": "paris",
        "on": ["a"],
        "zone": None,
        "step": "a=b",
    }
    run = corrected(make_run(zone="FR"), changes)
    assert (str(run.units), run.on, run.zone) == ("0.10", ("a",), None)
    with pytest.raises(UsageError, match="no field=value"):
        parse_changes(["units"])


def test_a_text_that_fits_no_run_or_several_is_refused():
    runs = [make_run("aaaa1"), make_run("aaaa2"), make_run("1", study="a"), make_run("1", study="b")]
    for text, said in (("aaaa", "2 runs"), ("zzzz", "no run"), ("aa", "no run"), ("1", "2 runs")):
        with pytest.raises(SelectionError, match=said):
            select(text, runs, where="l")
    assert select("aaaa2", runs, where="l") is runs[1]


def test_a_correction_follows_the_chain_whatever_clocks_say(tmp_path):
    ahead = uuid7(4_000_000_000_000, bytes(10))
    Ledger(tmp_path).append(make_run(ahead))
    first = supersede(ahead, {"units": "99"}, ledger=tmp_path)
    second = tag(ahead, {"k": "2"}, ledger=tmp_path)
    assert second.after.supersedes == first.after.run_id
    (last,) = counting(tmp_path)
    assert (last.units, last.tags) == (Decimal(99), {"k": "2"})
    assert verify(tmp_path, now_us=5_000_000_000_000_000).sound


JULY = 1_782_864_000_000_000  # 2026-07-01
AUGUST = JULY + 31 * 24 * US_PER_HOUR


def hourly(start_us=JULY, joules=("4", "6")):
    rows = [
        HourEnergy(hour_utc=start_us // US_PER_HOUR + i, component="cpu", energy_j=Decimal(j))
        for i, j in enumerate(joules)
    ]
    return make_run("abcd1", "10", start_us, end_us=start_us + 2 * US_PER_HOUR, energy_by_hour=tuple(rows))


def months(folder):
    return [
        sum((t.energy.exact for t in account(view).totals), Decimal(0))
        for month in ("2026-07", "2026-08")
        for view in [Ledger(folder).query(month)]
    ]


def test_hours_follow_a_correction_of_times_or_energy(tmp_path):
    run = hourly()
    energy = msgspec.to_builtins(run.energy[0])
    cases = (
        ({"start_us": AUGUST, "end_us": AUGUST + US_PER_HOUR}, [0, 10]),
        ({"start_us": AUGUST - US_PER_HOUR, "end_us": AUGUST + US_PER_HOUR}, [5, 5]),
        ({"energy": [{**energy, "energy_j": "7"}]}, [7, 0]),
        ({"energy": [{**energy, "energy_j": None, "state": "unknown"}]}, None),
    )
    for i, (changes, expected) in enumerate(cases):
        folder = tmp_path / str(i)
        Ledger(folder).append(run)
        after = supersede("abcd1", changes, ledger=folder).after
        assert after.energy_by_hour == ()
        assert "energy_by_hour" in after.findings[-1].message
        assert expected is None or months(folder) == expected
        assert verify(folder, now_us=AUGUST * 2).sound


def test_hours_that_still_fit_stay_and_given_ones_are_checked():
    run = hourly()
    assert corrected(run, {"site": "x"}).energy_by_hour == run.energy_by_hour
    regraded = [{**msgspec.to_builtins(run.energy[0]), "grade": "C"}]
    assert corrected(run, {"energy": regraded}).energy_by_hour == run.energy_by_hour
    moved = msgspec.to_builtins(hourly(AUGUST).energy_by_hour)
    times = {"start_us": AUGUST, "end_us": AUGUST + 2 * US_PER_HOUR}
    assert len(corrected(run, {**times, "energy_by_hour": moved}).energy_by_hour) == 2
    for wrong in (moved, msgspec.to_builtins(hourly(joules=("4", "7")).energy_by_hour)):
        with pytest.raises(UsageError, match="hours do not fit"):
            corrected(run, {"energy_by_hour": wrong})
