"""Logs that overlap others in part: what is counted already is left out, said, and the rest is counted."""

import json
from itertools import pairwise

import pytest

from carbonlens.app.importing import Placing, import_files
from carbonlens.domain.finding import Finding
from carbonlens.ledger.store import Ledger
from tests.app.test_importing_overlaps import OTHER, UUID, alone, by_index, imported, joules, log, said

__all__ = ["imported"]

LEFT_OUT = [("CL297", "warning")]


def told(result) -> Finding:
    (finding,) = [f for file in result.files for f in file.findings if f.code == "CL297"]
    return finding


def counting(ledger):
    """Return the runs that count, by their start."""
    runs = list(Ledger(ledger).view().runs)
    replaced = {run.supersedes for run in runs}
    return sorted((r for r in runs if r.run_id not in replaced), key=lambda r: r.start_us)


@pytest.mark.parametrize("is_one_import", [True, False])
@pytest.mark.parametrize(
    ("files", "whole"),
    [
        ([(0, 60), (30, 90)], (0, 90)),
        ([(30, 90), (0, 60)], (0, 90)),
        ([(0, 60), (57, 90)], (0, 90)),
        ([(0, 30), (60, 90), (20, 70)], (0, 90)),
        ([(0, 30), (25, 60), (55, 90)], (0, 90)),
        ([(0, 30), (20, 60), (10, 90)], (0, 90)),
        ([(0, 60), (0, 90)], (0, 90)),
    ],
    ids=["start", "end", "few lines", "between two", "chain", "over two", "same begin"],
)
def test_each_second_of_a_device_counts_once(imported, tmp_path, files, whole, is_one_import):
    named = {f"log{i}.csv": log(*times) for i, times in enumerate(files)}
    if files[0][0] == files[1][0]:
        # What begins with all of another one is that log, grown: this one has other bytes.
        named["log1.csv"] = named["log1.csv"].replace(" W\n", "  W\n")
    if is_one_import:
        imported(named)
    else:
        for name, content in named.items():
            imported({name: content})
    runs = counting(imported.ledger)
    assert sum(float(run.energy[0].energy_j) for run in runs) == pytest.approx(alone(tmp_path, log(*whole)))
    for run in runs:
        assert run.coverage == 1
        assert run.lost_s == 0
    spans = [(run.start_us, run.end_us) for run in runs]
    assert sum(end - start for start, end in spans) == (whole[1] - whole[0] - 1) * 1_000_000
    assert all(end == start for (_, end), (start, _) in pairwise(spans))


def test_what_is_left_out_is_said_with_its_size_and_what_counts(imported):
    result = imported({"one.csv": log(0, 60), "two.csv": log(30, 90)})
    assert (result.totals.runs, said(result)) == (2, LEFT_OUT)
    finding = told(result)
    assert f"29 s of {UUID} that one.csv told of: 29 samples of that time left out" in finding.message
    assert "from 2026-03-01 10:00:59 UTC to 2026-03-01 10:01:29 UTC" in finding.message
    assert finding.file.endswith("two.csv")
    assert "--host" in finding.mend
    assert [f.status for f in result.files] == ["imported", "imported"]


def test_the_content_of_a_log_that_is_counted_in_part_is_a_duplicate_later(imported, tmp_path):
    files = {"one.csv": log(0, 60), "two.csv": log(30, 90)}
    imported(files)
    again = imported({**files, "copy of two.csv": files["two.csv"]})
    assert again.totals.runs == 0
    assert {f.status for f in again.files} == {"duplicate"}
    assert len(counting(imported.ledger)) == 2


def test_a_log_that_is_counted_in_part_and_grows_is_counted_to_its_end(imported, tmp_path):
    imported({"one.csv": log(0, 60)})
    imported({"two.csv": log(30, 90)})
    grown = imported({"two.csv": log(30, 120)})
    assert sorted(said(grown)) == [("CL292", "info"), *LEFT_OUT]
    runs = counting(imported.ledger)
    assert [r.duration_s for r in runs] == [59, 60]
    assert sum(float(r.energy[0].energy_j) for r in runs) == pytest.approx(alone(tmp_path, log(0, 120)))


def test_a_log_whose_end_was_left_out_and_grows_beyond_is_not_counted_twice(imported):
    imported({"two.csv": log(30, 90)})
    imported({"one.csv": log(0, 60)})
    imported({"one.csv": log(0, 70)})
    assert [r.duration_s for r in counting(imported.ledger)] == [30, 59]
    beyond = imported({"one.csv": log(0, 120)})
    assert [f.status for f in beyond.files] == ["refused"]
    assert [r.duration_s for r in counting(imported.ledger)] == [30, 59]


def test_an_older_copy_of_a_log_that_is_counted_in_part_adds_nothing(imported):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 600)})
    older = imported({"two.csv": log(30, 500)})
    assert (older.totals.runs, said(older)) == (0, [("CL292", "info")])


def test_a_tag_that_is_told_later_does_not_bring_back_what_was_left_out(imported, tmp_path):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 90)})
    tagged = import_files(
        [tmp_path / "two.csv"], ledger=imported.ledger, placing=Placing(tz="UTC", tags={"team": "nlp"})
    )
    assert tagged.totals.runs == 1
    runs = counting(imported.ledger)
    assert [(r.duration_s, r.tags.get("team")) for r in runs] == [(59, None), (30, "nlp")]


def test_another_zone_for_a_log_that_is_counted_in_part_is_refused(imported, tmp_path):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 90)})
    moved = import_files([tmp_path / "two.csv"], ledger=imported.ledger, placing=Placing(tz="Europe/Paris"))
    (file,) = moved.files
    assert file.status == "refused"
    assert "counted in part" in file.findings[0].message
    assert [r.duration_s for r in counting(imported.ledger)] == [59, 30]


@pytest.mark.parametrize("first", [(0, 60), (60, 120)])
def test_another_zone_for_the_log_that_another_one_is_cut_beside_is_refused(imported, tmp_path, first):
    """Its time would be nobody's: what the other told of it was left out."""
    imported({"one.csv": log(*first), "two.csv": log(30, 90)})
    before = [r.duration_s for r in counting(imported.ledger)]
    moved = import_files([tmp_path / "one.csv"], ledger=imported.ledger, placing=Placing(tz="Europe/Paris"))
    (file,) = moved.files
    assert file.status == "refused"
    assert "is left out of two.csv" in file.findings[0].message
    assert [r.duration_s for r in counting(imported.ledger)] == before
    same = import_files([tmp_path / "one.csv"], ledger=imported.ledger, placing=Placing(tz="UTC"))
    assert same.files[0].status == "duplicate"


def test_another_device_is_untouched(imported, tmp_path):
    """A board that only the later log tells of keeps all of its time: then nothing is cut, and it is said."""
    one, two = log(0, 60), log(30, 90)
    both = two + "".join(log(30, 90, device=OTHER).splitlines(keepends=True)[1:])
    result = imported({"one.csv": one, "both.csv": both})
    assert said(result) == [("CL295", "error")]
    other = imported({"other.csv": log(30, 90, device=OTHER)})
    assert (said(other), joules(other)) == ([], alone(tmp_path, two))


def test_boards_that_are_all_told_before_are_cut_together(imported, tmp_path):
    def both(first, end):
        return log(first, end) + "".join(log(first, end, device=OTHER).splitlines(keepends=True)[1:])

    result = imported({"one.csv": both(0, 60), "two.csv": both(30, 90)})
    assert said(result) == LEFT_OUT
    assert joules(result) == pytest.approx(alone(tmp_path, both(0, 90)))


def test_an_index_in_a_named_host_is_cut(imported, tmp_path):
    result = imported({"one.csv": by_index(0, 60), "two.csv": by_index(30, 90)}, host="n1")
    assert (result.totals.runs, said(result)) == (2, LEFT_OUT)
    assert joules(result) == pytest.approx(alone(tmp_path, by_index(0, 90)))


@pytest.mark.parametrize("kind", ["counter", "delta"])
def test_energies_are_cut_at_the_same_time_as_powers(tmp_path, kind):
    """A counter's difference, or an energy since the sample before, is of the time before its sample."""
    serial = "0123456789"

    def text(first, end):
        if kind == "counter":
            rows = [
                {
                    "metric": {"__name__": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "UUID": UUID, "gpu": "0"},
                    "values": [[1_772_000_000 + s, str(s * 100_000 + 7_000)] for s in range(first, end)],
                }
            ]
            return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}})
        head = "metric;timestamp;value;resource_kind;resource_id;consumer_kind;consumer_id;domain;"
        head += "__late_attributes\n"
        return head + "".join(
            f"nvml_energy_consumption_mJ;2026-03-01T10:{s // 60:02}:{s % 60:02}.5Z;100000;gpu;{serial};"
            "local_machine;;;\n"
            for s in range(first, end)
        )

    def of(ledger, *files):
        paths = []
        for name, content in files:
            paths.append(tmp_path / name)
            paths[-1].write_text(content)
        return import_files(paths, ledger=tmp_path / ledger, placing=Placing(tz="UTC"))

    suffix = "json" if kind == "counter" else "csv"
    whole = of("whole", (f"whole.{suffix}", text(0, 90)))
    for order in ([(0, 60), (30, 90)], [(30, 90), (0, 60)]):
        files = [(f"{a}-{order[0][0]}.{suffix}", text(a, b)) for a, b in order]
        parts = of(f"parts{order[0][0]}", *files)
        assert said(parts).count(("CL297", "warning")) == 1
        assert joules(parts) == pytest.approx(joules(whole))
