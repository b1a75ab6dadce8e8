"""Clocks that cannot be right and machines that share an id are told, never repaired."""

import re

import msgspec
import pytest

from carbonlens.domain.identity import uuid7
from carbonlens.ledger.oddities import clock_oddities, machine_oddities, unbalanced_hours
from tests.ledger.test_compaction import realistic
from tests.ledger.test_store import make_run

NOW_US = 1_795_000_000_000_000
START_US = NOW_US - 86_400_000_000
S = 1_000_000


def live(start_us=START_US, length_s=60.0, **more):
    values = {
        "host_id": "h",
        "machine_id": "m",
        "end_us": start_us + int(length_s * S),
        "duration_s": length_s,
    }
    return make_run(uuid7(max(start_us, 0) // 1000, b"\x01" * 10), "1", start_us, **{**values, **more})


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (live(NOW_US + 3600 * S), "in the future"),
        (live(5 * S), "before 2000"),
        (live(end_us=START_US - 10 * S), "ends 10 s before it starts"),
        (live(end_us=START_US + 30 * S), "jumped by -30 s"),
        (live(end_us=START_US + 4000 * S), r"jumped by \+3940 s"),
        (make_run(uuid7(START_US // 1000 + 7_200_000, b"\x01" * 10), "1", START_US, host_id="h"), "-7200 s"),
    ],
)
def test_times_that_cannot_be_right_are_told(run, said):
    findings = clock_oddities([live(), run], now_us=NOW_US)
    assert [(f.code, f.severity, f.subject) for f in findings] == [("CL512", "warning", run.run_id)]
    assert re.search(said, findings[0].message)


def test_usual_times_are_not_told():
    imported = make_run("row-1", "1", START_US, end_us=START_US + 90 * S, duration_s=60.0)
    corrected = make_run(uuid7(NOW_US // 1000, b"\x01" * 10), "1", START_US, host_id="h", supersedes="x")
    undated = make_run("u", start_us=None)
    ahead = live(NOW_US + 60 * S)
    slow = live(end_us=START_US + 61 * S)
    assert clock_oddities([live(), imported, corrected, undated, ahead, slow], now_us=NOW_US) == []


def test_boots_of_one_machine_that_follow_each_other_are_usual():
    boots = [live(START_US + i * 1000 * S, host_id=f"boot-{i // 3}") for i in range(9)]
    assert machine_oddities(boots) == []


@pytest.mark.parametrize(
    ("hardware", "said"), [(("a", "b"), "two machines have it;"), (("a", "a"), "or its clock")]
)
def test_boots_of_one_machine_that_overlap_are_told(hardware, said):
    runs = [live(START_US + i * 100 * S, host_id=f"boot-{i % 2}", hardware=hardware[i % 2]) for i in range(4)]
    (finding,) = machine_oddities(runs)
    assert (finding.code, finding.severity) == ("CL513", "warning")
    assert said in finding.message


def test_hours_that_do_not_sum_to_the_energy_are_told():
    good = realistic(5)
    assert unbalanced_hours([good]) == []
    first, *others = good.energy_by_hour
    hours = (msgspec.structs.replace(first, energy_j=first.energy_j + 1), *others)
    bad = msgspec.structs.replace(good, energy_by_hour=hours)
    assert [f.code for f in unbalanced_hours([bad])] == ["CL516"]
