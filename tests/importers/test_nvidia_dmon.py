"""nvidia-smi dmon: two header lines, whole watts, seldom a time."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.nvidia_dmon import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import parsed, real_file, right_totals, taken
from tests.importers.reading import claimed, codes, read_text

HEAD = (
    "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem\n"
    "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %\n"
)
PLAIN = "# gpu    pwr  gtemp  mtemp     sm    mem\n# Idx      W      C      C      %      %\n"


def dated(seconds=10):
    return "".join(
        f" 20260302   10:00:{s:02}      {gpu}    {(gpu + 1) * 100}     45      -     13      6 \n"
        for s in range(seconds + 1)
        for gpu in range(2)
    )


class TestConformance(ImporterContract):
    """The contract of importers, on two GPUs over 10 s: 1 kJ and 2 kJ."""

    importer = IMPORTER
    files: ClassVar = {"dmon.txt": HEAD + dated()}
    options: ClassVar = Options(tz="UTC")
    runs = 1
    energy_j = 3000.0
    clocks = True
    header_lines = 2


class TestConformanceWithoutTimes(ImporterContract):
    """The contract on the default form: ten samples a GPU, 2 s apart."""

    importer = IMPORTER
    files: ClassVar = {"dmon.txt": PLAIN + "    0    100     45      -     13      6\n" * 10}
    options: ClassVar = Options(interval_s=2.0)
    runs = 1
    energy_j = 2000.0
    header_lines = 2
    repeats_count_once = False


def test_a_real_output_comes_to_what_is_told():
    name = "dmon01_20streams.txt"
    path, told = real_file(name), right_totals(name)
    ((times, watts),) = parsed(IMPORTER, path).values()
    assert times is None
    assert len(watts) == told["samples"]
    assert watts.sum() == told["sum_W"]
    got = taken(IMPORTER, path)
    assert got.records[0].stated_j is None, "an energy without an interval"
    assert got.records[0].measured.mean_power_w == pytest.approx(144 / 23)
    assert [f.code for f in got.findings] == ["CL244"]
    (record,) = taken(IMPORTER, path, Options(interval_s=told["period_s"])).records
    assert float(record.stated_j) == pytest.approx(told["energy_J"], rel=1e-3)
    assert record.run.duration_s == pytest.approx(told["duration_s"])


def test_a_header_that_repeats_is_no_row(tmp_path):
    row = "    0    100     45      -     13      6\n"
    got = read_text(IMPORTER, tmp_path, (PLAIN + row * 5) * 3, Options(interval_s=1.0))
    assert (got.rows, got.rows_rejected) == (15, 0)
    assert float(got.energy_j) == pytest.approx(1500)


def test_a_dash_is_a_failed_reading(tmp_path):
    rows = ["100"] * 5 + ["-"] * 10 + ["100"] * 5
    body = "".join(f"    0    {w}     45      -     13      6\n" for w in rows)
    got = read_text(IMPORTER, tmp_path, PLAIN + body, Options(interval_s=1.0))
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    assert got.records[0].measured.uncovered_s > 0
    assert "CL125" in codes(got)


def test_several_gpus_without_times_have_a_time_each(tmp_path):
    body = "".join(f"    {g}    {100 * (g + 1)}     45      -     13      6\n" for g in (0, 1)) * 10
    got = read_text(IMPORTER, tmp_path, PLAIN + body, Options(interval_s=1.0))
    assert float(got.energy_j) == pytest.approx(3000)
    assert got.records[0].measured.mean_power_w == pytest.approx(300)


def test_time_of_day_alone_runs_on_over_midnight(tmp_path):
    head = "#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n"
    times = [f"23:59:{s:02}" for s in range(55, 60)] + [f"00:00:{s:02}" for s in range(6)]
    body = "".join(f" {t}      0    100\n" for t in times)
    got = read_text(IMPORTER, tmp_path, head + body)
    assert float(got.energy_j) == pytest.approx(1000)
    assert codes(got) == ["CL245"]
    start_us = 1_772_409_595_000_000
    got = read_text(IMPORTER, tmp_path, head + body, Options(start_us=start_us))
    assert got.runs[0].start_us == start_us
    assert got.runs[0].end_us == start_us + 10_000_000


def test_output_parted_by_commas_is_read(tmp_path):
    text = "#gpu, pwr, gtemp\n#Idx, W, C\n" + "0, 100, 45\n" * 5
    got = read_text(IMPORTER, tmp_path, text, Options(interval_s=1.0))
    assert float(got.energy_j) == pytest.approx(500)


def test_output_without_power_is_refused(tmp_path):
    text = "# gpu     sm    mem\n# Idx      %      %\n" + "    0     13      6\n" * 5
    with pytest.raises(InputFileError, match="no pwr column"):
        read_text(IMPORTER, tmp_path, text)


def test_power_in_no_row_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no power in any row"):
        read_text(IMPORTER, tmp_path, PLAIN + "    0      -     45      -     13      6\n" * 5)


def test_the_output_of_pmon_is_not_claimed(tmp_path):
    path = tmp_path / "pmon.txt"
    path.write_text(
        "# gpu        pid  type    sm   mem\n# Idx          #   C/G     %     %\n    0  123 C 1 1\n"
    )
    assert not claimed(IMPORTER, path)


@pytest.mark.parametrize(
    "head",
    [
        "# gpu  gtemp    pwr  mtemp     sm    mem\n# Idx      C      W      C      %      %\n",
        "# gpu    pwr  gtemp  mtemp     sm    mem\n# Idx     mW      C      C      %      %\n",
        "# gpu  gtemp    pwr    mem\n# Idx      C      W      %\n",
    ],
    ids=["order", "unit", "columns"],
)
def test_a_header_that_is_another_is_refused_with_its_line(tmp_path, head):
    """The power would be read from the column that it stood in before."""
    row = "    0    300     60      -     10      1\n"
    text = PLAIN + row * 5 + head + "    0     60    300      -     10      1\n"
    with pytest.raises(InputFileError, match=r"another header on line [89]") as error:
        read_text(IMPORTER, tmp_path, text, Options(interval_s=1.0))
    assert "part the file" in error.value.mend


def test_a_header_that_was_cut_off_at_the_end_is_no_other(tmp_path):
    row = "    0    300     60      -     10      1\n"
    for cut in range(1, len(PLAIN)):
        got = read_text(IMPORTER, tmp_path, PLAIN + row * 5 + PLAIN[:cut], Options(interval_s=1.0))
        assert float(got.energy_j) == pytest.approx(1500)
