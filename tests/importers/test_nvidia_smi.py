"""nvidia-smi --query-gpu: any set of columns, units, failed readings, GPUs told apart."""

from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carbonlens.errors import InputFileError
from carbonlens.importers import nvidia_smi
from carbonlens.importers.contract import Options
from carbonlens.importers.nvidia_smi import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import assert_as_told, parsed, real_file, taken
from tests.importers.reading import codes, read_text

HEAD = "timestamp, index, name, utilization.gpu [%], power.draw [W]"
UTC = Options(tz="UTC")


def rows(seconds=10, gpus=2, watts=(100.0, 200.0)):
    """Return rows of GPUs that are read one after another, some ms apart."""
    return "".join(
        f"2026/03/02 10:00:{s:02}.{gpu * 3:03}, {gpu}, Board A, {40 + gpu} %, {watts[gpu]:.2f} W\n"
        for s in range(seconds + 1)
        for gpu in range(gpus)
    )


class TestConformance(ImporterContract):
    """The contract of importers, on two GPUs over 10 s: 1 kJ and 2 kJ."""

    importer = IMPORTER
    files: ClassVar = {"log.csv": f"{HEAD}\n{rows()}"}
    options: ClassVar = UTC
    runs = 1
    energy_j = 3000.0
    delimiter = ","
    essential = ("power.draw [w]", "timestamp")
    clocks = True


@pytest.mark.parametrize("name", ["smi01_idle.csv", "smi02_torch.csv", "smi04_rtx4090_6col.csv"])
def test_real_logs_come_to_what_is_told(name):
    got = assert_as_told(IMPORTER, name)
    assert "CL241" in [f.code for f in got.findings], "local times were taken as UTC without a word"


def test_the_board_of_a_real_log_is_named():
    (record,) = taken(IMPORTER, real_file("smi04_rtx4090_6col.csv"), UTC).records
    assert record.run.hardware == "NVIDIA GeForce RTX 4090"


def test_a_real_log_without_power_is_refused():
    with pytest.raises(InputFileError, match="no power column: energy cannot be computed"):
        taken(IMPORTER, real_file("smi05_no_power.csv"))


def lines(header, *cells):
    return header + "\n" + "".join(f"2026/03/02 10:00:{i:02}.000, {c}\n" for i, c in enumerate(cells))


@pytest.mark.parametrize(
    ("header", "cell", "watts"),
    [
        ("timestamp, power.draw [W]", "56.12 W", 56.12),
        ("timestamp, power.draw [W]", "56.12", 56.12),
        ("timestamp, power.draw", "56.12", 56.12),
        ("timestamp, power.draw.average [W]", "56.12 W", 56.12),
        ("timestamp, power.draw [mW]", "56120 mW", 56.12),
        ("timestamp, pstate, power.draw [W]", "P0, 56.12 W", 56.12),
    ],
)
def test_every_way_of_units(tmp_path, header, cell, watts):
    got = read_text(IMPORTER, tmp_path, lines(header, *[cell] * 5), UTC)
    assert float(got.energy_j) == pytest.approx(watts * 4)
    assert got.records[0].measured.mean_power_w == pytest.approx(watts)
    assert not got.findings


def test_a_log_without_a_header_is_read_where_one_cell_holds_watts(tmp_path):
    text = lines("", *["0, 56 %, 100.00 W"] * 5).lstrip("\n")
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert float(got.energy_j) == pytest.approx(400)


def test_instant_power_counts_and_the_other_stands_beside(tmp_path):
    header = "timestamp, index, power.draw [W], power.draw.instant [W]"
    got = read_text(IMPORTER, tmp_path, lines(header, *["0, 90.00 W, 100.00 W"] * 5), UTC)
    assert float(got.energy_j) == pytest.approx(400)
    (beside,) = got.runs[0].beside
    assert float(beside.energy_j) == pytest.approx(360)
    assert beside.method == "nvidia-smi power.draw"


def test_where_instant_power_is_not_told_the_other_counts(tmp_path):
    header = "timestamp, index, power.draw [W], power.draw.instant [W]"
    got = read_text(IMPORTER, tmp_path, lines(header, *["0, 90.00 W, [N/A]"] * 5), UTC)
    assert float(got.energy_j) == pytest.approx(360)


def test_power_of_a_module_is_not_added_to_its_gpu(tmp_path):
    header = "timestamp, index, power.draw [W], module.power.draw.instant [W]"
    got = read_text(IMPORTER, tmp_path, lines(header, *["0, 300.00 W, 550.00 W"] * 5), UTC)
    assert float(got.energy_j) == pytest.approx(1200)


@pytest.mark.parametrize(
    "word", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "ERR!", "[GPU requires reset]"]
)
def test_a_failed_reading_is_no_zero(tmp_path, word):
    cells = ["0, 100.00 W"] * 5 + [f"0, {word}"] * 10 + ["0, 100.00 W"] * 5
    got = read_text(IMPORTER, tmp_path, lines("timestamp, index, power.draw [W]", *cells), UTC)
    measured = got.records[0].measured
    assert measured.mean_power_w == pytest.approx(100)
    assert measured.uncovered_s > 0
    assert measured.covered_s + measured.uncovered_s == pytest.approx(19)
    assert "CL125" in codes(got)


def test_a_log_of_failed_readings_alone_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no power in any of its 5 rows"):
        read_text(IMPORTER, tmp_path, lines("timestamp, index, power.draw [W]", *["0, [N/A]"] * 5), UTC)


def test_a_power_that_was_cut_off_is_left_out(tmp_path):
    text = lines("timestamp, power.draw [W]", *["100.00 W"] * 5) + "2026/03/02 10:00:05.000, 10"
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert (got.rows, got.rows_rejected) == (6, 1)
    assert got.records[0].measured.mean_power_w == pytest.approx(100)


def test_cells_are_believed_before_the_header_and_it_is_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, lines("timestamp, power.draw [W]", *["56120 mW"] * 5), UTC)
    assert float(got.energy_j) == pytest.approx(56.12 * 4)
    assert codes(got) == ["CL268"]


def test_milliwatts_under_a_header_of_watts_are_flagged(tmp_path):
    got = read_text(IMPORTER, tmp_path, lines("timestamp, power.draw [W]", *["56120"] * 5), UTC)
    (said,) = got.findings
    assert said.code == "CL248"
    assert "mW would fit" in said.message


def test_gpus_that_no_column_tells_apart_are_told_by_their_place(tmp_path):
    text = "timestamp, power.draw [W]\n" + "".join(
        f"2026/03/02 10:00:{s:02}.{gpu * 2:03}, {100 * (gpu + 1)}.00 W\n"
        for s in range(11)
        for gpu in range(4)
    )
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert "CL265" in codes(got)
    assert float(got.energy_j) == pytest.approx(10_000, rel=1e-3)
    assert [e.devices for e in got.runs[0].energy] == [(f"GPU {i}",) for i in range(4)]


def test_a_row_that_is_written_twice_is_no_second_gpu(tmp_path):
    text = lines("timestamp, power.draw [W]", *["100.00 W"] * 11)
    head, *told = text.splitlines(keepends=True)
    got = read_text(IMPORTER, tmp_path, head + "".join(2 * line for line in told), UTC)
    assert float(got.energy_j) == pytest.approx(1000)
    assert "CL265" not in codes(got)


def test_a_serial_number_that_is_not_told_tells_no_gpu(tmp_path):
    header = "timestamp, serial, index, power.draw [W]"
    got = read_text(IMPORTER, tmp_path, lines(header, *["[N/A], 3, 100.00 W"] * 5), UTC)
    assert got.runs[0].energy[0].devices == ("3",)


def test_the_uuid_is_the_id_and_the_index_the_name(tmp_path):
    header = "timestamp, index, uuid, power.draw [W]"
    path = tmp_path / "log.csv"
    path.write_text(lines(header, *["3, GPU-aaa, 100.00 W"] * 5))
    assert list(parsed(IMPORTER, path, UTC)) == ["GPU 3"]
    (record,) = taken(IMPORTER, path, UTC).records
    assert record.run.energy[0].devices == ("GPU-aaa",)


def test_a_log_without_times_has_a_mean_and_takes_an_interval(tmp_path):
    text = "index, power.draw [W]\n" + "0, 100.00 W\n" * 10
    got = read_text(IMPORTER, tmp_path, text)
    assert got.energy_j is None
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    assert codes(got) == ["CL244"]
    got = read_text(IMPORTER, tmp_path, text, Options(interval_s=2.0))
    assert float(got.energy_j) == pytest.approx(2000)


def test_an_error_that_the_tool_prints_into_its_log_is_a_row_left_out(tmp_path):
    text = lines("timestamp, index, power.draw [W]", *["0, 100.00 W"] * 5)
    lost = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.\n"
    got = read_text(IMPORTER, tmp_path, text + lost, UTC)
    assert got.rows_rejected == 1
    assert float(got.energy_j) == pytest.approx(400)


@pytest.mark.parametrize("failed", [1, nvidia_smi._LOOK_AHEAD + 1, 3 * nvidia_smi._LOOK_AHEAD])
def test_a_driver_that_was_down_for_hours_hides_no_energy_that_came_after(tmp_path, failed):
    down = "Failed to initialize NVML: Driver/library version mismatch\n" * failed
    got = read_text(IMPORTER, tmp_path, f"{HEAD}\n{down}{rows()}", UTC)
    assert float(got.energy_j) == pytest.approx(3000)
    assert got.rows_rejected == failed


def test_power_below_zero_is_left_out(tmp_path):
    cells = ["100.00 W", "-5.00 W", "100.00 W", "100.00 W"]
    got = read_text(IMPORTER, tmp_path, lines("timestamp, power.draw [W]", *cells), UTC)
    assert got.rows_rejected == 1


def test_a_table_saved_by_a_spreadsheet_is_read(tmp_path):
    text = lines("timestamp, power.draw [W]", *["56.12 W"] * 5)
    body = text.replace(", ", ";").replace("56.12", "56,12").replace(".000", "")
    got = read_text(IMPORTER, tmp_path, body, UTC)
    assert float(got.energy_j) == pytest.approx(56.12 * 4)


def test_local_times_and_a_change_of_clocks(tmp_path):
    text = "timestamp, power.draw [W]\n" + "".join(
        f"2026/10/25 02:{m:02}:00.000, 100.00 W\n" for m in range(60)
    )
    again = text + text.partition("\n")[2]
    got = read_text(IMPORTER, tmp_path, again, Options(tz="Europe/Paris"))
    assert "CL242" in codes(got)
    assert got.runs[0].duration_s == pytest.approx(119 * 60)
    assert float(got.energy_j) == pytest.approx(100 * 119 * 60)


CELLS = {
    "timestamp": "2026/03/02 10:00:{s:02}.000",
    "index": "0",
    "name": "Board A",
    "utilization.gpu [%]": "{s} %",
    "memory.used [MiB]": "[N/A]",
    "power.limit [W]": "450.00 W",
    "power.draw [W]": "{w:.2f} W",
}


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.permutations(sorted(CELLS)),
    st.sets(st.sampled_from(sorted(set(CELLS) - {"timestamp", "power.draw [W]"}))),
    st.lists(st.integers(0, 70_000), min_size=12, max_size=30),
    st.booleans(),
    st.sampled_from([",", ", ", ";", "\t"]),
)
def test_columns_in_any_order_come_to_the_same(tmp_path, order, absent, centiwatts, units, delimiter):
    columns = [c for c in order if c not in absent]
    lines_of = [delimiter.join(columns)]
    for s, hundredths in enumerate(centiwatts):
        cells = [CELLS[c].format(s=s, w=hundredths / 100) for c in columns]
        lines_of.append(delimiter.join(c if units else c.removesuffix(" W") for c in cells))
    got = read_text(IMPORTER, tmp_path, "\n".join(lines_of) + "\n", UTC)
    held_j = sum(centiwatts[:-1]) / 100
    if not held_j:
        # No card draws nothing: a log of zeros was not measured.
        assert (got.energy_j, codes(got).count("CL248")) == (None, 1)
        return
    assert float(got.energy_j) == pytest.approx(held_j, abs=1e-5)
    # Cards that draw less than a watt are in another unit.
    assert codes(got) == (["CL248"] if sum(centiwatts) < 100 * len(centiwatts) else [])
