"""Traces of one device over the same time: never twice without a word, however files are encoded."""

import pytest

from carbonlens.app.importing import Placing, import_files
from carbonlens.ledger.store import Ledger

UUID = "GPU-11111111-2222-3333-4444-555555555555"
OTHER = "GPU-99999999-2222-3333-4444-555555555555"


def log(first, end, *, column="uuid", device=UUID, watts=100):
    """Return a log of power that is another one each second."""
    rows = (
        f"2026/03/01 10:{s // 60:02}:{s % 60:02}.000, {device}, {watts + s % 7}.00 W\n"
        for s in range(first, end)
    )
    return f"timestamp, {column}, power.draw [W]\n" + "".join(rows)


def by_index(first, end, **more):
    return log(first, end, column="index", device="0", **more)


@pytest.fixture
def imported(tmp_path):
    def of(files, **placing):
        paths = []
        for name, content in files.items():
            paths.append(tmp_path / name)
            paths[-1].write_bytes(content if isinstance(content, bytes) else content.encode())
        return import_files(paths, ledger=tmp_path / "ledger", placing=Placing(tz="UTC", **placing))

    of.ledger = tmp_path / "ledger"
    return of


def said(result):
    return [(f.code, f.severity) for file in result.files for f in file.findings]


def joules(result):
    return round((result.totals.energy_known_kwh or 0.0) * 3.6e6, 3)


def alone(tmp_path, content):
    path = tmp_path / "alone.csv"
    path.write_text(content)
    return joules(import_files([path], ledger=tmp_path / "other", placing=Placing(tz="UTC")))


@pytest.mark.parametrize("make", [log, by_index], ids=["uuid", "index"])
def test_a_log_that_was_encoded_anew_counts_once(imported, tmp_path, make):
    text = make(0, 60)
    crlf = text.replace("\n", "\r\n")
    copies = {
        "crlf.csv": crlf,
        "wide.csv": text.encode("utf-16"),
        "mark.csv": text.encode("utf-8-sig"),
        "gpu (1).csv": crlf + "\r\n",
    }
    result = imported({"gpu.csv": text, **copies})
    assert (result.totals.runs, joules(result)) == (1, alone(tmp_path, text))
    assert [f.status for f in result.files] == ["imported", *["duplicate"] * 4]
    assert said(result) == [*[("CL291", "warning")] * 3, ("CL210", "info")]
    again = imported({"later.csv": text.encode("utf-16-be")})
    if make is log:
        assert [f.status for f in again.files] == ["duplicate"]
    else:  # whether an index is that of the machine of an earlier import nobody can tell
        assert said(again) == [("CL296", "warning")]


@pytest.mark.parametrize(("first", "end"), [(20, 40), (7, 60), (0, 90)])
def test_logs_of_one_device_that_leave_no_one_rest_are_refused(imported, tmp_path, first, end):
    one = log(5, 60)
    result = imported({"one.csv": one, "two.csv": log(first, end)})
    assert (result.totals.runs, joules(result)) == (1, alone(tmp_path, one))
    assert said(result) == [("CL295", "error")]
    (refused,) = result.refused
    overlap_s = min(end - 1, 59) - max(first, 5)
    (finding,) = refused.findings
    assert f"{overlap_s} s of {UUID} that one.csv" in finding.message
    assert "--host" in finding.mend
    assert refused.path.endswith("two.csv")


def test_what_lies_within_a_log_of_an_earlier_import_is_refused(imported):
    imported({"one.csv": log(0, 60)})
    later = imported({"two.csv": log(30, 50)})
    assert (later.totals.runs, said(later)) == (0, [("CL295", "error")])
    assert len(list(Ledger(imported.ledger).view().runs)) == 1


@pytest.mark.parametrize(
    "two",
    [log(59, 120), log(60, 120), log(30, 90, device=OTHER)],
    ids=["shares its last row", "follows", "of another device"],
)
def test_logs_that_do_not_overlap_both_count(imported, two):
    result = imported({"one.csv": log(0, 60), "two.csv": two})
    assert (result.totals.runs, said(result)) == (2, [])


def test_machines_that_are_told_both_count(imported):
    one = imported({"one.csv": log(0, 60)}, host="n1")
    two = imported({"two.csv": log(30, 90)}, host="n2")
    assert (one.totals.runs, two.totals.runs, said(one), said(two)) == (1, 1, [], [])


def test_an_index_may_be_of_two_machines_and_it_is_said(imported, tmp_path):
    one, two = by_index(0, 60), by_index(30, 90)
    result = imported({"one.csv": one, "two.csv": two})
    assert (result.totals.runs, said(result)) == (2, [("CL296", "warning")])
    assert joules(result) == pytest.approx(alone(tmp_path, one) + 59 * 103, abs=60)
    finding = result.files[1].findings[0]
    assert "29 s of a device named 0, as one.csv does" in finding.message


def test_an_index_in_a_named_machine_is_one_device(imported):
    result = imported({"one.csv": by_index(0, 60), "two.csv": by_index(30, 50)}, host="n1")
    assert (result.totals.runs, said(result)) == (1, [("CL295", "error")])


def test_files_that_are_named_for_two_machines_are_no_overlap(imported):
    result = imported({"host_a.csv": by_index(0, 60), "host_b.csv": by_index(30, 90)})
    assert (result.totals.runs, said(result)) == (2, [])
    ranks = imported({"rank_0.csv": log(0, 60), "rank_1.csv": log(30, 50)})
    assert said(ranks) == [("CL295", "error")]


def test_a_log_that_has_grown_is_no_overlap_with_itself(imported):
    imported({"one.csv": log(0, 60)})
    grown = imported({"one.csv": log(0, 90)})
    assert (grown.totals.runs, said(grown)) == (1, [("CL292", "info")])
    beside = imported({"two.csv": log(80, 89)})
    assert said(beside) == [("CL295", "error")]


def test_two_idle_boards_of_equal_sums_both_count(imported):
    """Whole watts at whole seconds: as many joules in as long a time are no sign of one board."""
    watts = [60, 61, 60, 62, 60, 61]
    one, two = (
        "timestamp, index, power.draw [W]\n"
        + "".join(f"2026/01/01 00:00:{n:02}.000, 0, {w}.00 W\n" for n, w in enumerate(each))
        for each in (watts, [60, 62, 60, 61, 60, 61])
    )
    assert imported({"one.csv": one}).totals.runs == 1
    later = imported({"two.csv": two})
    assert (later.totals.runs, said(later)) == (1, [("CL296", "warning")])


def test_a_log_that_fills_another_ones_gap_counts(imported):
    """Training was logged before and after an evaluation, which has a log of its own."""
    before, after = log(0, 60), log(540, 600)
    train = before + "".join(after.splitlines(keepends=True)[1:])
    result = imported({"train.csv": train, "evaluation.csv": log(120, 480)})
    assert result.totals.runs == 2
    assert ("CL295", "error") not in said(result)
    assert ("CL296", "warning") in said(result)


def test_what_is_wrong_in_a_refused_log_is_said_too(imported):
    two = log(30, 50).rstrip("\n") + "\nnonsense\n"
    result = imported({"one.csv": log(0, 60), "two.csv": two})
    codes = [f.code for f in result.files[1].findings]
    assert "CL295" in codes
    assert "CL202" in codes
