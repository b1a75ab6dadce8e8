"""amd-smi: CSV with banner and repeated headers, counters and power, JSON."""

import json
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.amd_smi import IMPORTER
from carbonlens.importers.contract import Options
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

T0 = 1_772_445_600
BANNER = "'CTRL' + 'C' to stop watching output:\n"


def power(head="timestamp,gpu,socket_power", count=11):
    return f"{head}\n" + "".join(f"{T0 + s},{g},{(g + 1) * 100}\n" for s in range(count) for g in (0, 1))


class TestConformance(ImporterContract):
    """The contract of importers, on two GPUs over 10 s: 1 kJ and 2 kJ."""

    importer = IMPORTER
    files: ClassVar = {"power.csv": power()}
    runs = 1
    energy_j = 3000.0
    delimiter = ","
    essential = ("socket_power", "timestamp")
    clocks = True


class TestConformanceOfCounters(ImporterContract):
    """The contract on energy counters that rise by 100 J a second."""

    importer = IMPORTER
    files: ClassVar = {
        "energy.csv": "timestamp,gpu,total_energy_consumption\n"
        + "".join(f"{T0 + s},0,{20909145.914 + 100 * s:.3f}\n" for s in range(11))
    }
    runs = 1
    energy_j = 1000.0
    delimiter = ","
    essential = ("total_energy_consumption", "timestamp")
    clocks = True


def test_banner_and_repeated_headers_are_no_rows(tmp_path):
    head, *rows = power().splitlines(keepends=True)
    text = BANNER + "".join(head + row for row in rows)
    got = read_text(IMPORTER, tmp_path, text)
    assert (got.rows, got.rows_rejected) == (22, 0)
    assert float(got.energy_j) == pytest.approx(3000)


def test_what_is_not_there_is_no_zero(tmp_path):
    rows = "".join(f"{T0 + s},0,{'N/A' if 4 < s < 15 else 100}\n" for s in range(20))
    got = read_text(IMPORTER, tmp_path, "timestamp,gpu,socket_power\n" + rows)
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    assert got.records[0].measured.uncovered_s > 0


def test_the_power_that_a_board_tells_counts(tmp_path):
    head = "timestamp,gpu,current_socket_power,average_socket_power\n"
    rows = "".join(f"{T0 + s},0,N/A,100\n{T0 + s},1,200,N/A\n" for s in range(11))
    got = read_text(IMPORTER, tmp_path, head + rows)
    assert float(got.energy_j) == pytest.approx(3000)


def test_the_counter_goes_before_power(tmp_path):
    head = "timestamp,gpu,socket_power,total_energy_consumption\n"
    rows = "".join(f"{T0 + s},0,90,{1000 + 100 * s}\n" for s in range(11))
    got = read_text(IMPORTER, tmp_path, head + rows)
    assert float(got.energy_j) == pytest.approx(1000)
    assert [float(b.energy_j) for b in got.runs[0].beside] == [pytest.approx(900)]


def test_partitions_repeat_their_gpu(tmp_path):
    head = "timestamp,gpu,xcp,power_usage\n"
    rows = "".join(f"{T0 + s},0,{x},{'100' if x == 0 else 'N/A'}\n" for s in range(11) for x in range(4))
    got = read_text(IMPORTER, tmp_path, head + rows)
    assert float(got.energy_j) == pytest.approx(1000)
    assert not got.findings


def test_local_times_are_read_and_said(tmp_path):
    rows = "".join(f"2026-03-02T10:00:{s:02}.000,0,100\n" for s in range(11))
    got = read_text(IMPORTER, tmp_path, "timestamp,gpu,socket_power\n" + rows)
    assert float(got.energy_j) == pytest.approx(1000)
    assert codes(got) == ["CL241"]


def document(watts, joules=None, listed=True):
    metrics = {"gpu": 0, "usage": {}, "power": {"socket_power": {"value": watts, "unit": "W"}}}
    if joules is not None:
        metrics["energy"] = {"total_energy_consumption": {"value": joules, "unit": "J"}}
    return json.dumps([metrics] if listed else {"gpu_data": [metrics]}, indent=2)


@pytest.mark.parametrize("listed", [True, False])
def test_json_has_no_times(tmp_path, listed):
    text = "\n".join(document(100, 5 + i, listed) for i in range(10))
    got = read_text(IMPORTER, tmp_path, text)
    assert got.energy_j is None
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    got = read_text(IMPORTER, tmp_path, text, Options(interval_s=1.0))
    assert float(got.energy_j) == pytest.approx(1000)


def test_json_that_was_cut_off_gives_its_whole_documents(tmp_path):
    text = "\n".join(document(100) for _ in range(10))[:-30]
    got = read_text(IMPORTER, tmp_path, text, Options(interval_s=1.0))
    assert got.rows_rejected == 1
    assert float(got.energy_j) == pytest.approx(900)


def test_nothing_told_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no power and no energy"):
        read_text(IMPORTER, tmp_path, f"timestamp,gpu,socket_power\n{T0},0,N/A\n")


def test_a_file_of_rows_that_cannot_be_read_is_refused_with_the_reason(tmp_path):
    """Microseconds since 1970: not one row has a time, and that is why there is no power."""
    rows = "".join(f"{1722959154000000 + n * 1000000},0,200\n" for n in range(10))
    with pytest.raises(InputFileError, match=r"tells no power.*line 2 has the time .* outside the years"):
        read_text(IMPORTER, tmp_path, f"timestamp,gpu,socket_power\n{rows}")


@pytest.mark.parametrize("name", ["total_energy_consumption", "socket_power"])
@pytest.mark.parametrize("told", [range(1), range(3, 5), range(590, 600)], ids=["first", "early", "last"])
def test_a_figure_that_is_told_now_and_then_does_not_count(tmp_path, name, told):
    """It stands beside; the power that is told throughout counts, wherever the others are told."""
    head = f"timestamp,gpu,{name},average_socket_power\n"
    rows = "".join(f"{T0 + s},0,{1000 + 90 * s if s in told else 'N/A'},100\n" for s in range(600))
    got = read_text(IMPORTER, tmp_path, head + rows)
    assert float(got.energy_j) == pytest.approx(59_900)
    assert got.runs[0].energy[0].method == "amd-smi average_socket_power"


def test_a_counter_that_is_told_a_little_later_than_power_counts(tmp_path):
    head = "timestamp,gpu,socket_power,total_energy_consumption\n"
    rows = "".join(f"{T0 + s},0,90,{1000 + 100 * s if s > 1 else 'N/A'}\n" for s in range(40))
    got = read_text(IMPORTER, tmp_path, head + rows)
    assert got.runs[0].energy[0].method == "amd-smi total_energy_consumption"
