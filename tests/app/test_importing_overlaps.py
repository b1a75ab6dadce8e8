"""Traces of one device over the same time: never twice without a word, however files are encoded."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from carbonlens.app.importing import Placing, import_files
from carbonlens.app.importing_devices import sure_devices
from carbonlens.domain.run import Reading, Run
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


def rows(seconds, *, device=UUID, column="uuid", watts=300, step=7):
    """Return a log of rows at these seconds; of step 1 all of one power."""
    text = "".join(
        f"2026/03/01 {10 + s // 3600}:{s // 60 % 60:02}:{s % 60:02}.000, {device}, {watts + s % step}.00 W\n"
        for s in seconds
    )
    return f"timestamp, {column}, power.draw [W]\n" + text


def dmon(temperature, *, power=lambda n: 9, times=True):
    """Return a log of a board in whole watts, whose temperature makes its bytes others."""
    clock, unit = ("Date Time ", "YYYYMMDD HH:MM:SS ") if times else ("", "")
    return f"#{clock}gpu pwr gtemp\n#{unit}Idx W C\n" + "".join(
        (f"20260301 10:00:{n:02} " if times else "") + f"0 {power(n)} {temperature}\n" for n in range(60)
    )


@pytest.mark.parametrize("times", [True, False], ids=["equal times", "no times"])
def test_one_power_of_two_idle_boards_is_no_copy(imported, tmp_path, times):
    """However the files are given: as many whole watts all the time prove nothing."""
    placing = {} if times else {"interval_s": 1.0}
    one, two = dmon(31, times=times), dmon(38, times=times)
    result = imported({"one.txt": one, "two.txt": two}, **placing)
    assert (result.totals.runs, joules(result)) == (2, pytest.approx(2 * 9 * (59 if times else 60)))
    assert [code for code, _ in said(result) if code != "CL245"] == ["CL296"]


def test_equal_changes_at_equal_times_are_a_copy_without_an_id(imported):
    def power(n):
        return 60 + n % 5

    result = imported({"one.txt": dmon(31, power=power), "two.txt": dmon(38, power=power)})
    assert (result.totals.runs, said(result)) == (1, [("CL291", "warning")])
    apart = {f"{n}.txt": dmon(n, power=power, times=False) for n in (31, 38)}
    timeless = imported(apart, interval_s=1.0)
    assert timeless.totals.runs == 2
    assert ("CL296", "warning") in said(timeless)


def test_one_power_of_one_board_at_equal_times_is_a_copy(imported):
    one = rows(range(60), step=1)
    result = imported({"one.csv": one, "two.csv": one.replace("\n", "\r\n")})
    assert (result.totals.runs, said(result)) == (1, [("CL291", "warning")])


@pytest.mark.parametrize("is_one_import", [True, False])
@pytest.mark.parametrize(
    ("one", "two", "seconds"),
    [
        ([0, 3600], [1, 3601], 3601),
        ([0, 600, 1200], [601, 1201, 1801], 1801),
        (range(600), [0, 600, 1200], 1200),
        ([0, 600, 1200], range(620, 1820), 1820),
        ([*range(60), *range(1260, 3000)], range(2100, 5000), 59 + 3739),
    ],
    ids=["two rows", "coarse", "coarse over fine", "fine over coarse", "a gap elsewhere"],
)
def test_rows_far_apart_and_gaps_elsewhere_excuse_no_overlap(imported, one, two, seconds, is_one_import):
    files = {"one.csv": rows(one, step=1), "two.csv": rows(two, step=1)}
    parts = [files] if is_one_import else [{name: text} for name, text in files.items()]
    results = [imported(part) for part in parts]
    assert sum(joules(r) for r in results) == pytest.approx(300 * seconds, rel=0.015)
    codes = {code for result in results for code, _ in said(result)}
    assert codes & {"CL295", "CL297"}
    assert "CL296" not in codes


def test_gaps_that_are_not_known_excuse_no_overlap_of_a_uuid(imported):
    """The ledger keeps no samples: where the gaps of an earlier import lie nobody knows."""
    imported({"train.csv": rows([*range(60), *range(540, 600)])})
    later = imported({"evaluation.csv": rows(range(120, 480))})
    assert (later.totals.runs, said(later)) == (0, [("CL295", "error")])
    assert "import both at once" in later.files[0].findings[0].mend


def test_what_fills_a_gap_is_said_to_do_so(imported):
    result = imported(
        {"train.csv": rows([*range(60), *range(540, 600)]), "evaluation.csv": rows(range(120, 480))}
    )
    (finding,) = [f for file in result.files for f in file.findings if f.code == "CL296"]
    assert f"359 s of {UUID} that train.csv reaches over" in finding.message
    assert "nobody can tell" not in finding.message
    back = rows([*range(60), *range(540, 600), *range(60, 540)])
    filled = imported(
        {"filled.csv": back.replace(UUID, OTHER), "more.csv": rows(range(120, 480), device=OTHER)}
    )
    assert ("CL295", "error") in said(filled)


def test_the_time_that_a_power_is_held_for_is_no_gap(imported, tmp_path):
    """A sample is counted for three usual steps: what another log tells of that time would count twice."""

    def text(seconds):
        stamps = ((s, f"2026/03/01 10:{int(s) // 60:02}:{s % 60:06.3f}") for s in seconds)
        lines = "".join(f"{stamp}, {UUID}, {100 + int(s) % 7}.00 W\n" for s, stamp in stamps)
        return "timestamp, uuid, power.draw [W]\n" + lines

    slower = text([*range(200), *(200 + 3.25 * n for n in range(60))])
    result = imported({"slower.csv": slower, "beside.csv": text(range(202, 380))})
    assert (result.totals.runs, said(result)) == (1, [("CL121", "warning"), ("CL295", "error")])
    assert joules(result) == alone(tmp_path, slower)


@pytest.mark.parametrize("is_one_import", [True, False])
@pytest.mark.parametrize(("first", "end", "code"), [(0, 60, "CL291"), (20, 40, "CL295"), (30, 90, "CL297")])
def test_a_uuid_is_one_device_in_logs_of_two_formats(imported, is_one_import, first, end, code):
    one = log(0, 60)
    bare = "".join(
        ", ".join((line.split(", ")[1], line.split(", ")[0], line.split(", ")[2])) + "\n"
        for line in log(first, end).splitlines()[1:]
    )
    if is_one_import:
        result = imported({"one.csv": one, "bare.csv": bare})
    else:
        imported({"one.csv": one})
        result = imported({"bare.csv": bare})
    assert {f.path.rpartition("/")[2]: f.format for f in result.files}["bare.csv"] == "nvidia-smi-bare"
    assert [c for c, _ in said(result)] == [code]
    assert result.totals.runs == is_one_import + (code == "CL297")


def test_another_uuid_in_another_format_counts(imported):
    bare = "".join(f"{OTHER}, 2026/03/01 10:00:{s:02}.000, {100 + s % 7}.00 W\n" for s in range(60))
    result = imported({"one.csv": log(0, 60), "bare.csv": bare})
    assert (result.totals.runs, said(result)) == (2, [])


def test_the_one_board_of_a_named_host_is_one_device(imported):
    """A log without a column of ids has one board: of one host it is the same one."""

    def plain(first, end):
        return log(first, end, column="x").replace("x, ", "").replace(f"{UUID}, ", "")

    result = imported({"one.csv": plain(0, 60), "two.csv": plain(20, 40)}, host="n1")
    assert (result.totals.runs, said(result)) == (1, [("CL295", "error")])
    assert "GPU 0" in result.files[1].findings[0].message
    unnamed = imported({"three.csv": plain(10, 50)})
    assert said(unnamed) == [("CL296", "warning")]


@pytest.mark.parametrize("device", ["0", "GPU 0", "card1", "package-0", "host", "0000:3b:00.0", UUID])
def test_devices_that_are_one_in_a_machine(device):
    told = Reading(
        component="gpu", energy_j=Decimal(5), boundary="device", grade="C", method="m", devices=(device,)
    )
    run = Run(run_id="a", host_id="n1", energy=(told,))
    assert list(sure_devices(run, replace(run, run_id="b"))) == [device]
    assert list(sure_devices(replace(run, host_id=None), run)) == ([UUID] if device == UUID else [])


def test_what_else_is_left_out_with_a_refused_log_is_named(imported):
    both = log(30, 50) + "".join(log(30, 90, device=OTHER).splitlines(keepends=True)[1:])
    result = imported({"one.csv": log(0, 60), "both.csv": both})
    (refused,) = [f for file in result.files for f in file.findings if f.code == "CL295"]
    assert f"what it tells of {OTHER} is left out with it" in refused.message
