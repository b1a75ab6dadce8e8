"""Traces told anew with other options, after parts of others were left out: no second goes silently."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carbonlens.app.importing import Placing, import_files
from tests.app.test_importing_overlaps import OTHER, UUID, by_index, imported, log, said
from tests.app.test_importing_rest import counting, told

__all__ = ["imported"]

PARIS_S = 3600
"""Seconds by which a log of March is earlier where its times are those of Paris."""


def again(ledger, *paths, tz="Europe/Paris", **placing):
    return import_files(list(paths), ledger=ledger, placing=Placing(tz=tz, **placing))


def lengths(imported):
    return [r.duration_s for r in counting(imported.ledger)]


def starts(imported):
    return [r.start_us for r in counting(imported.ledger)]


def test_other_times_for_a_grown_log_that_another_one_is_cut_beside_are_refused(imported, tmp_path):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 90)})
    (tmp_path / "one.csv").write_text(log(0, 66))
    (file,) = again(imported.ledger, tmp_path / "one.csv").files
    assert file.status == "refused"
    assert "is left out of two.csv" in file.findings[0].message
    assert lengths(imported) == [59, 30]
    (file,) = again(imported.ledger, tmp_path / "one.csv", tz="UTC").files
    assert file.status == "duplicate"
    assert sum(lengths(imported)) == 89


def test_other_times_for_a_log_that_grew_after_another_one_was_cut_beside_it_are_refused(imported, tmp_path):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 90)})
    imported({"one.csv": log(0, 66)})
    again(imported.ledger, tmp_path / "one.csv", tz="UTC", tags={"team": "nlp"})
    (file,) = again(imported.ledger, tmp_path / "one.csv").files
    assert file.status == "refused"
    assert sum(lengths(imported)) == 89


def test_a_quiet_time_between_the_left_out_part_and_the_rest_hides_neither(imported, tmp_path):
    two = (log(4, 10) + "".join(log(60, 90).splitlines(keepends=True)[1:])).replace(".000, ", ".400, ")
    result = imported({"one.csv": log(0, 11), "two.csv": two})
    assert f"tells of 5.6 s of {UUID} that one.csv told of: 6 samples" in told(result).message
    (file,) = again(imported.ledger, tmp_path / "one.csv").files
    assert file.status == "refused"
    assert "is left out of two.csv" in file.findings[0].message


@pytest.mark.parametrize("order", [("one.csv", "two.csv"), ("two.csv", "one.csv")])
def test_the_zone_that_was_taken_without_a_word_may_be_told(tmp_path, order):
    """CL241 asks for it: the times that result are those that are there."""
    (tmp_path / "one.csv").write_text(log(0, 60))
    (tmp_path / "two.csv").write_text(log(30, 90))
    paths = [tmp_path / name for name in order]
    first = import_files(paths, ledger=tmp_path / "ledger")
    assert ("CL241", "warning") in said(first)
    result = again(tmp_path / "ledger", *paths, tz="UTC")
    assert [f.status for f in result.files] == ["duplicate", "duplicate"]
    (tmp_path / "one.csv").write_text(log(0, 63))
    result = again(tmp_path / "ledger", *paths, tz="UTC")
    assert {f.status for f in result.files} <= {"imported", "duplicate"}
    assert sum(r.duration_s for r in counting(tmp_path / "ledger")) == 89


def prometheus(first, end):
    series = {
        "metric": {"__name__": "DCGM_FI_DEV_POWER_USAGE", "UUID": UUID, "gpu": "0"},
        "values": [[1_772_359_200 + s, str(100 + s % 7)] for s in range(first, end)],
    }
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}})


@pytest.mark.parametrize("option", [{"tz": "Europe/Paris"}, {"start_us": 1_700_000_000_000_000}])
def test_an_option_that_changes_no_time_is_not_refused(imported, tmp_path, option):
    """Times that are seconds since 1970 are in no zone, and given for a folder an option meets them too."""
    imported({"one.json": prometheus(0, 60), "two.json": prometheus(30, 90)})
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    result = import_files(paths, ledger=imported.ledger, placing=Placing(**option))
    assert [f.status for f in result.files] == ["duplicate", "duplicate"]
    assert lengths(imported) == [59, 30]


def test_of_two_options_the_one_that_changes_times_is_named(imported, tmp_path):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 90)})
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    result = again(imported.ledger, *paths, start_us=1, boundary="it")
    one, two = (f.findings[0].message for f in result.files)
    assert one == "has a time that is left out of two.csv, and tz would change it"
    assert two == "is counted in part, beside another trace, and tz would change its times"


@pytest.mark.parametrize("third", [(92, 150), (88, 150)], ids=["apart", "at a seam"])
def test_a_log_that_nothing_was_cut_beside_may_have_other_times(imported, tmp_path, third):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 90)})
    imported({"three.csv": log(*third), "other.csv": log(30, 90, device=OTHER)})
    before = starts(imported)
    result = again(imported.ledger, tmp_path / "three.csv", tmp_path / "other.csv")
    assert [f.status for f in result.files] == ["imported", "imported"]
    assert len(set(before) & set(starts(imported))) == 2


def test_a_log_that_is_cut_no_more_holds_nobody(imported, tmp_path):
    """The log that was cut was told of another machine: then it counts as a whole."""
    imported({"one.csv": by_index(0, 60), "two.csv": by_index(30, 90)}, host="n1")
    two = tmp_path / "two.csv"
    import_files([two], ledger=imported.ledger, placing=Placing(tz="UTC", host="n2"))
    assert sorted(lengths(imported)) == [30, 59, 59]
    # What is counted of it in n1 was cut there, and stays so.
    (file,) = again(imported.ledger, tmp_path / "one.csv", host="n1").files
    assert file.status == "refused"


def test_a_trace_that_comes_to_stand_on_another_ones_time_is_said(imported, tmp_path):
    imported({"one.csv": log(0, 59), "two.csv": log(0, 59).replace(" 10:", " 11:").replace("W\n", " W\n")})
    (file,) = again(imported.ledger, tmp_path / "two.csv").files
    (finding,) = [f for f in file.findings if f.code == "CL296"]
    assert finding.severity == "warning"
    assert f"tells of 58 s of {UUID} that one.csv tells of too, now that" in finding.message
    assert "its times are others: both are counted" in finding.message


def test_of_a_device_without_an_id_it_is_said_too(imported, tmp_path):
    later = by_index(0, 59).replace(" 10:", " 11:")
    imported({"one.csv": by_index(0, 59), "two.csv": later})
    (file,) = again(imported.ledger, tmp_path / "two.csv").files
    assert ("CL296", "warning") in [(f.code, f.severity) for f in file.findings]


@pytest.mark.parametrize("make", [log, by_index])
def test_logs_that_all_get_the_same_zone_stand_on_nobodys_time(imported, tmp_path, make):
    """One after the other they stand where the next one stood, until that is moved too."""
    hours = {f"log{h}.csv": make(0, 59).replace(" 10:", f" {h}:") for h in (10, 11, 12)}
    imported(hours)
    for names in (list(hours), list(reversed(hours))):
        result = again(imported.ledger, *(tmp_path / n for n in names), tz="Europe/Paris")
        assert "CL296" not in {f.code for file in result.files for f in file.findings}
        again(imported.ledger, *(tmp_path / n for n in names), tz="UTC")


def test_an_older_copy_with_another_zone_is_no_further_log(imported, tmp_path):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 600)})
    (tmp_path / "two.csv").write_text(log(30, 500))
    (file,) = again(imported.ledger, tmp_path / "two.csv").files
    assert (file.status, [f.code for f in file.findings]) == ("duplicate", ["CL292"])
    assert "--tz left aside for it" in file.findings[0].message
    assert sum(lengths(imported)) == 599


@pytest.mark.parametrize("option", [{"tz": "Europe/Paris"}, {"tags": {"team": "nlp"}}, {"tz": "UTC"}])
def test_the_content_that_a_log_had_before_it_grew_takes_nothing_back(imported, tmp_path, option):
    imported({"one.csv": log(0, 60)})
    imported({"one.csv": log(0, 90)})
    (tmp_path / "one.csv").write_text(log(0, 60))
    result = import_files([tmp_path / "one.csv"], ledger=imported.ledger, placing=Placing(**option))
    assert [f.status for f in result.files] == ["duplicate"]
    assert lengths(imported) == [89]


# Seconds after 10:00, with places an hour apart: what is moved to Paris and back meets what stands there.
PLACES = st.tuples(st.sampled_from([0, PARIS_S]), st.integers(0, 7), st.integers(2, 6)).map(
    lambda told: (told[0] + 10 * told[1], told[0] + 10 * (told[1] + told[2]))
)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["as it is", "grown", "older"]),
        st.sampled_from([None, "UTC", "UTC", "Europe/Paris"]),
    ),
    min_size=2,
    max_size=7,
)


def clocked(index, first, end):
    """Return a log of seconds of a day from 10:00 on; each index has bytes of its own."""
    unit = "W".rjust(index + 2)
    rows = (
        f"2026/03/01 {10 + s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}.000, {UUID}, {100 + s % 7}.00{unit}\n"
        for s in range(first, end + 1)
    )
    return "timestamp, uuid, power.draw [W]\n" + "".join(rows)


class Model:
    """What the ledger must tell of: each file that it took, whole, at its times."""

    def __init__(self, folder, places):
        self.folder, self.places = folder, list(places)
        self.taken = {}
        self.is_doubled = False

    def begin(self):
        """Import all of them at once."""
        paths = [self.folder / f"log{index}.csv" for index in range(len(self.places))]
        for index, (path, place) in enumerate(zip(paths, self.places, strict=True)):
            path.write_text(clocked(index, *place))
        for index, file in enumerate(import_files(paths, ledger=self.folder / "ledger").files):
            if file.status == "imported":
                self.taken[index] = *self.places[index], 0

    def step(self, index, kind, tz):
        first, end = self.places[index]
        if kind == "grown":
            end += 10
        path = self.folder / f"log{index}.csv"
        path.write_text(clocked(index, first, end - 10 if kind == "older" else end))
        placing = Placing() if tz is None else Placing(tz=tz)
        (file,) = import_files([path], ledger=self.folder / "ledger", placing=placing).files
        self.is_doubled |= any(f.code == "CL296" for f in file.findings)
        if file.status != "imported":
            return
        if kind == "grown":
            self.places[index] = first, end
        elif kind == "older":
            assert index not in self.taken, "an older copy took the place of a longer log"
            end -= 10
        before_s = self.taken.get(index, (first, end, 0))[2]
        moved_s = {None: before_s, "UTC": 0, "Europe/Paris": PARIS_S}[tz]
        self.taken[index] = first, end, moved_s

    def check(self):
        seconds = {s for a, b, moved in self.taken.values() for s in range(a - moved, b - moved)}
        epoch = 1_772_359_200
        found = [s for r in counting(self.folder / "ledger") for s in spans(r, epoch)]
        # A seam is a step long: the second between the last sample of one log and the first of the next.
        assert len(seconds - set(found)) <= len(self.taken), "seconds are lost"
        if not self.is_doubled:
            assert len(found) - len(set(found)) <= len(self.taken), "seconds are doubled"


def spans(run, epoch):
    return range(run.start_us // 1_000_000 - epoch, run.end_us // 1_000_000 - epoch)


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(places=st.lists(PLACES, min_size=4, max_size=4), steps=STEPS)
def test_no_second_is_lost_or_doubled_without_a_word(places, steps):
    with tempfile.TemporaryDirectory() as name:
        model = Model(Path(name), places)
        model.begin()
        for step in steps:
            model.check()
            model.step(*step)
        model.check()
