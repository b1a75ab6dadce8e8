"""amd-smi monitor as printed: cells by their form, tables that follow, units behind the numbers."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.amd_smi_table import IMPORTER
from carbonlens.importers.contract import Options
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text

T0 = 1_772_445_600
HEAD = " TIMESTAMP  GPU  POWER  GPU_TEMP  MEM_TEMP  VRAM_USED  VRAM_TOTAL\n"


def row(second, gpu, watts, *, unit=" W"):
    power = f"{watts}{unit}".rjust(7)
    return f"{T0 + second:>10}  {gpu:>3}{power}     55 °C     48 °C     283 MB   196300 MB\n"


def table(count=11, powers=(100, 200)):
    return HEAD + "".join(row(s, g, w) for s in range(count) for g, w in enumerate(powers))


class TestConformance(ImporterContract):
    """The contract of importers, on two GPUs over 10 s: 1 kJ and 2 kJ."""

    importer = IMPORTER
    files: ClassVar = {"monitor.txt": table()}
    runs = 1
    energy_j = 3000.0
    clocks = True


def test_a_wide_number_leaves_one_blank_and_is_read(tmp_path):
    text = table(powers=(1000, 1400))
    assert " 1000 W" in text
    assert "  0 1000 W" in text
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(24_000)
    assert (got.rows, got.rows_rejected) == (22, 0)


def test_the_printed_example_without_times_needs_the_interval(tmp_path):
    # After the release notes of ROCm 6.3: amd-smi monitor -p -t -v, here of two GPUs, looped.
    text = (
        "GPU  POWER  GPU_TEMP  MEM_TEMP  VRAM_USED  VRAM_TOTAL\n"
        "  0  248 W     55 °C     48 °C     283 MB   196300 MB\n"
        "  1  247 W     55 °C     48 °C     283 MB   196300 MB\n"
    ) * 5
    got = read_text(IMPORTER, tmp_path, text)
    assert got.energy_j is None
    assert got.records[0].measured.mean_power_w == pytest.approx(495)
    assert "CL244" in codes(got)
    got = read_text(IMPORTER, tmp_path, text, Options(interval_s=2.0))
    assert float(got.energy_j) == pytest.approx(4950)


def test_the_table_of_processes_below_is_not_read(tmp_path):
    # After the release notes of ROCm 6.2: amd-smi monitor -q.
    below = (
        "\nPROCESS INFO:\n"
        " TIMESTAMP  GPU                  NAME      PID  GTT_MEM  CPU_MEM  VRAM_MEM  MEM_USAGE  GFX  ENC\n"
        f"{T0}    0                   rvs  1564865    0.0 B    0.0 B    1.1 GB      0.0 B    0 ns    0 ns\n\n"
    )
    text = "".join(HEAD + row(s, 0, 300) + below for s in range(11))
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(3000)
    assert (got.rows, got.rows_rejected, codes(got)) == (11, 0, [])


def test_not_available_is_a_failed_reading(tmp_path):
    failed = "".join(row(s, 0, "N/A", unit="") for s in range(4, 8))
    rows = "".join(row(s, 0, 100) for s in range(4)) + failed + "".join(row(s, 0, 100) for s in range(8, 12))
    got = read_text(IMPORTER, tmp_path, HEAD + rows)
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    assert got.records[0].measured.uncovered_s > 0
    assert got.rows_rejected == 0


def test_a_second_die_has_no_energy(tmp_path):
    rows = "".join(row(s, 0, 100) + row(s, 1, "N/A", unit="") for s in range(11))
    got = read_text(IMPORTER, tmp_path, HEAD + rows)
    assert [r.devices for r in got.runs[0].energy] == [("0",)]


def test_milliwatts_are_milliwatts(tmp_path):
    text = HEAD + "".join(row(s, 0, 900, unit=" mW") for s in range(11))
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(9)


@pytest.mark.parametrize("torn", ["1772445603    0  24\n", "1772445603    0  248 W  x!y\n"])
def test_a_torn_row_is_left_out_and_said(tmp_path, torn):
    got = read_text(IMPORTER, tmp_path, table(3) + torn + "".join(table(11).splitlines(keepends=True)[7:]))
    assert got.rows_rejected == 1
    assert "CL202" in codes(got)


def test_no_power_in_any_row_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="tells no power"):
        read_text(IMPORTER, tmp_path, HEAD + row(0, 1, "N/A", unit=""))


def test_other_tables_with_gpus_are_not_claimed(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("GPU     PVIOL     TVIOL  PHOT_TVIOL\n  0       0 %       0 %         0 %\n")
    assert not claimed(IMPORTER, file)


def test_a_header_of_another_order_is_refused_and_one_that_was_cut_off_is_none(tmp_path):
    other = HEAD.replace("GPU_TEMP  MEM_TEMP", "MEM_TEMP  GPU_TEMP")
    with pytest.raises(InputFileError, match="another header on line 24"):
        read_text(IMPORTER, tmp_path, table() + other + row(12, 0, 100))
    got = read_text(IMPORTER, tmp_path, table() + HEAD[:40])
    assert float(got.energy_j) == pytest.approx(3000)
