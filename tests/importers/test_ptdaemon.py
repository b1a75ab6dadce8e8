"""PTDaemon's log: pairs by name, marks, parts of a whole, errors."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import claims
from carbonlens.importers.contract import Options
from carbonlens.importers.harvest import harvest
from carbonlens.importers.ptdaemon import IMPORTER
from carbonlens.importers.sources import Source
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import SHARED, parsed, real_file, taken, trapezoid_j
from tests.importers.reading import codes, read_text

PAIRS = "Volts,230.100000,Amps,0.500000,PF,0.900000"


def row(second, watts, mark="run1_testing", more=""):
    return f"Time,03-02-2026 10:00:{second:02}.250,Watts,{watts:.6f},{PAIRS},Mark,{mark}{more}\n"


UTC = Options(tz="UTC")


class TestConformance(ImporterContract):
    """The contract of importers: 100 W over 20 s."""

    importer = IMPORTER
    files: ClassVar = {"spl.txt": "".join(row(s, 100) for s in range(21))}
    options: ClassVar = UTC
    runs = 1
    energy_j = 2000.0
    header_lines = 0
    clocks = True


def test_a_real_log_is_read_to_its_last_line(tmp_path):
    text = real_file("mlperf_orin_off_run_1_spl.txt").read_text()
    path = tmp_path / "spl.txt"
    path.write_text(text)
    ((t_s, watts),) = parsed(IMPORTER, path).values()
    told = [line.split(",") for line in text.splitlines()]
    assert len(watts) == len(told) == 611
    assert watts.tolist() == [float(cells[3]) for cells in told]
    (record,) = (got := taken(IMPORTER, path)).records
    measured = record.measured
    assert measured.samples == 611
    assert measured.mean_power_w == pytest.approx(float(watts.mean()))
    assert measured.covered_s + measured.uncovered_s == pytest.approx(t_s[-1] - t_s[0])
    assert float(record.stated_j) == pytest.approx(trapezoid_j(t_s, watts), rel=1e-3)
    assert codes(got) == ["CL241"]
    (reading,) = record.run.energy
    assert (reading.component, reading.grade, reading.boundary) == ("wall", "A", "it")


def test_of_two_analyzers_the_first_watts_is_the_whole():
    path = SHARED / "inputs" / "c08_spl.txt"
    if not path.is_file():
        pytest.skip("the shared cases are not on this machine")
    (claim,), _ = claims([Source(path)], [IMPORTER])
    (record,) = harvest(IMPORTER, claim.group, UTC).records
    assert record.measured.mean_power_w == pytest.approx(450.945, abs=1e-3)
    assert [r.devices for r in record.run.beside] == [("Analyzer1",), ("Analyzer2",)]


def test_channels_stand_beside_the_whole(tmp_path):
    parts = f",Ch1,Watts,60.000000,{PAIRS},Ch2,Watts,40.000000,{PAIRS}"
    text = "".join(row(s, 100, more=parts) for s in range(11))
    (record,) = read_text(IMPORTER, tmp_path, text, UTC).records
    assert float(record.stated_j) == pytest.approx(1000)
    assert [float(r.energy_j) for r in record.run.beside] == pytest.approx([600, 400])


def test_only_a_testing_mark_counts_where_there_is_one(tmp_path):
    text = (
        "".join(row(s, 400, "run1_ranging") for s in range(10))
        + "".join(row(s, 50, "notset") for s in range(10, 20))
        + "".join(row(s, 100) for s in range(20, 31))
    )
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert float(got.energy_j) == pytest.approx(1000)
    (said,) = [f for f in got.findings if f.code == "CL270"]
    assert "20 lines" in said.message


def test_without_a_testing_mark_all_counts_and_a_ranging_run_is_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, "".join(row(s, 100, "notset") for s in range(11)), UTC)
    assert (float(got.energy_j), codes(got)) == (pytest.approx(1000), [])
    got = read_text(IMPORTER, tmp_path, "".join(row(s, 100, "x_ranging") for s in range(11)), UTC)
    assert codes(got) == ["CL270"]


@pytest.mark.parametrize(
    "bad",
    [
        "ERROR,Bad volts reading nan from WT310",
        f"Watts,-1.000000,{PAIRS},Mark,run1_testing",
        f"Watts,nan,{PAIRS},Mark,run1_testing",
    ],
)
def test_a_failed_reading_is_unknown_and_said(tmp_path, bad):
    rows = [row(s, 100) for s in range(21)]
    for place in range(8, 14):
        rows[place] = f"Time,03-02-2026 10:00:{place:02}.250,{bad}\n"
    got = read_text(IMPORTER, tmp_path, "".join(rows), UTC)
    assert got.records[0].measured.uncovered_s > 0
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    assert {"CL271", "CL125"} <= set(codes(got))
    assert float(got.energy_j) < 2000


def test_months_come_first(tmp_path):
    text = row(0, 100).replace("03-02", "12-31") + row(10, 100).replace("03-02", "12-31")
    (run,) = read_text(IMPORTER, tmp_path, text, UTC).runs
    assert run.start_us == 1_798_711_200_250_000


def test_a_log_of_errors_alone_is_refused(tmp_path):
    text = "Time,03-02-2026 10:00:00.250,ERROR,Bad watts reading nan from WT310\n" * 3
    with pytest.raises(InputFileError, match="no power in any line"):
        read_text(IMPORTER, tmp_path, text)


@pytest.mark.parametrize(
    ("watts", "pairs", "said"),
    [
        (100, PAIRS, False),
        (0.1, PAIRS, True),
        (100_000, PAIRS, True),
        (100, "Volts,12.0,Amps,8.0", False),
        (1000, "Volts,12.0,Amps,8.0", True),
        (40, "Volts,230.0,Amps,0.5", False),
        (100, "Volts,-1.000000,Amps,-1.000000,PF,-1.000000", False),
        (0.01, "Volts,230.0,Amps,0.0001,PF,0.4", False),
    ],
)
def test_watts_are_held_against_volts_and_amperes(tmp_path, watts, pairs, said):
    """Kilowatts or milliwatts under Watts; without a power factor they may be fewer than the product."""
    text = "".join(row(s, watts).replace(PAIRS, pairs) for s in range(11))
    got = read_text(IMPORTER, tmp_path, text, UTC)
    found = [f for f in got.findings if f.code == "CL247"]
    assert bool(found) is said
    assert all("11 lines" in f.message for f in found)
    assert float(got.energy_j) == pytest.approx(watts * 10)


def test_parts_are_held_against_their_own_volts(tmp_path):
    parts = f",Ch1,Watts,60.000000,{PAIRS},Ch2,Watts,40000.000000,{PAIRS}"
    got = read_text(IMPORTER, tmp_path, "".join(row(s, 100, more=parts) for s in range(11)), UTC)
    assert "CL247" in codes(got)


def test_channels_without_a_sum_before_them_are_added_up(tmp_path):
    line = "Time,03-02-2026 10:00:{:02}.250,Mark,run1_testing,Ch1,Watts,60.0,Ch2,Watts,40.0\n"
    line = line.replace("Mark,run1_testing,", "Watts,100.0,Mark,run1_testing,", 1)
    with_sum = read_text(IMPORTER, tmp_path, "".join(line.format(s) for s in range(11)), UTC)
    without = line.replace("Watts,100.0,", "", 1)
    head = line.format(0)
    got = read_text(IMPORTER, tmp_path, head + "".join(without.format(s) for s in range(1, 11)), UTC)
    assert got.energy_j == with_sum.energy_j


@pytest.mark.parametrize(
    "stamp", ["02-30-2026 10:00:00", "13-01-2026 10:00:00", "03-02-2026 24:00:00", "03-02-2026 10:00:60", "x"]
)
def test_a_stamp_that_is_no_time_is_named(tmp_path, stamp):
    got = read_text(IMPORTER, tmp_path, row(1, 60) + row(2, 60).replace("03-02-2026 10:00:02", stamp))
    (said,) = (f for f in got.findings if f.code == "CL202")
    assert f"has the time '{stamp}.250', which is none" in said.message
