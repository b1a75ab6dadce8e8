"""tegrastats: all generations of Jetson, which rail counts, times of whole seconds."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.tegrastats import IMPORTER, rails_of
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import assert_as_told, real_file, taken
from tests.importers.reading import codes, read_text

UTC = Options(tz="UTC")
MEMORY = "RAM 2274/6834MB (lfb 27x4MB) SWAP 542/3417MB (cached 2MB) CPU [99%@1189,off]"
NX = "VDD_IN 5000mW/5542mW VDD_CPU_GPU_CV 1500mW/1594mW VDD_SOC 1200mW/1234mW"


def log(rails, count=11, *, stamp=True, per_second=1):
    """Return lines; the load of the GPU differs from one to the next."""
    return "".join(
        (f"03-02-2026 10:00:{i // per_second:02} " if stamp else "")
        + f"{MEMORY} EMC_FREQ 0% GR3D_FREQ {i % 7}% GPU@38C CPU@40C {rails}\n"
        for i in range(count)
    )


class TestConformance(ImporterContract):
    """The contract of importers, on a Xavier NX of 5 W over 10 s."""

    importer = IMPORTER
    files: ClassVar = {"tegrastats.log": log(NX)}
    options: ClassVar = UTC
    runs = 1
    energy_j = 50.0
    clocks = True
    header_lines = 0


class TestConformanceWithoutTimes(ImporterContract):
    """The contract on a Nano of 4 W, ten lines 0.5 s apart."""

    importer = IMPORTER
    files: ClassVar = {
        "t.log": log("POM_5V_IN 4000/3900 POM_5V_GPU 500/400 POM_5V_CPU 900/800", 10, stamp=False)
    }
    options: ClassVar = Options(interval_s=0.5)
    runs = 1
    energy_j = 20.0
    header_lines = 0
    repeats_count_once = False


def test_a_real_log_counts_the_input_rail_alone():
    got = assert_as_told(IMPORTER, "teg01_xaviernx.log")
    (record,) = got.records
    assert [e.component for e in record.run.energy] == ["total"]
    assert {e.devices[0] for e in record.run.beside} == {"VDD_CPU_GPU_CV", "VDD_SOC"}


def test_parts_of_a_real_log_have_the_means_that_are_told():
    (record,) = taken(IMPORTER, real_file("teg01_xaviernx.log"), UTC).records
    by_rail = {e.devices[0]: float(e.energy_j) / e.covered_s for e in record.run.beside}
    assert by_rail["VDD_CPU_GPU_CV"] == pytest.approx(6.84156, rel=0.03)
    assert by_rail["VDD_SOC"] == pytest.approx(1.95148, rel=0.03)


GENERATIONS = [
    # rails of a line, watts that count, their rails, module
    (
        "PLL@22C CPU@25C PMIC@100C GPU@22.5C thermal@24C POM_5V_IN 933/933 POM_5V_GPU 0/0 POM_5V_CPU 84/84",
        0.933,
        ["POM_5V_IN"],
        "Jetson Nano",
    ),
    (
        "VDD_IN 1038/1134 VDD_CPU 153/153 VDD_GPU 153/153 VDD_SOC 384/384 VDD_WIFI 38/124 VDD_DDR 192/192",
        1.038,
        ["VDD_IN"],
        "Jetson TX2",
    ),
    (
        "GPU@28C CPU@29C GPU 1155/1155 CPU 385/385 SOC 2504/2503 CV 0/0 VDDRQ 192/192 SYS5V 2692/2692",
        6.928,
        ["GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"],
        "Jetson AGX Xavier",
    ),
    (
        "VDD_GPU_SOC 2390mW/2390mW VDD_CPU_CV 796mW/796mW VIN_SYS_5V0 3522mW/3522mW NC 0mW/0mW "
        "VDDQ_VDD2_1V8AO 301mW/301mW NC 0mW/0mW",
        7.009,
        ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0", "VDDQ_VDD2_1V8AO"],
        "Jetson AGX Orin",
    ),
    (
        "EMC_FREQ 3%@3199 GR3D_FREQ 12%@[1300,1300] VDD_GPU_SOC 5139mW/5139mW/5139mW "
        "VDD_CPU_CV 3268mW/3268mW/3268mW VIN_SYS_5V0 5500mW/5500mW/5500mW",
        13.907,
        ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"],
        "Jetson AGX Orin",
    ),
    (
        "gpu@39.906C soc345@38.625C VDD_GPU 3561mW/3561mW VDD_CPU_SOC_MSS 7910mW/7910mW "
        "VIN_SYS_5V0 7620mW/7620mW VIN 26686mW/26686mW",
        26.686,
        ["VIN"],
        "Jetson Thor",
    ),
    (
        "VDD_IN 4500mW/4500mW VDD_CPU_GPU_CV 700mW/700mW VDD_SOC 1300mW/1300mW",
        4.5,
        ["VDD_IN"],
        "Jetson Orin NX",
    ),
]


@pytest.mark.parametrize("stamp", [True, False])
@pytest.mark.parametrize(("rails", "watts", "counted", "module"), GENERATIONS)
def test_every_generation(tmp_path, rails, watts, counted, module, stamp):
    options = UTC if stamp else Options(interval_s=1.0)
    got = read_text(IMPORTER, tmp_path, log(rails, 11 if stamp else 10, stamp=stamp), options)
    assert float(got.energy_j) == pytest.approx(10 * watts)
    assert sorted(e.devices[0] for e in got.runs[0].energy) == sorted(counted)
    assert got.runs[0].hardware.startswith(module)


def test_memory_and_temperatures_are_no_rails():
    line = "RAM 330/3964MB (lfb 758x4MB) IRAM 0/252kB(lfb 252kB) SWAP 0/1982MB GPU@22.5C GPU 1155/1155"
    assert rails_of(line) == {"GPU": 1.155}


def test_a_rail_that_is_missing_is_said(tmp_path):
    rails = "VDD_GPU_SOC 2390mW/2390mW VDD_CPU_CV 796mW/796mW"
    got = read_text(IMPORTER, tmp_path, log(rails), UTC)
    (missing,) = [f for f in got.findings if f.code == "CL267" and f.severity == "warning"]
    assert "VIN_SYS_5V0" in missing.message


def test_a_rail_of_the_carrier_board_is_beside(tmp_path):
    got = read_text(IMPORTER, tmp_path, log(f"{NX} VDD_CARRIER 9000mW/9000mW"), UTC)
    assert float(got.energy_j) == pytest.approx(50)
    assert "CL267" in codes(got)
    assert "VDD_CARRIER" in {e.devices[0] for e in got.runs[0].beside}


@pytest.mark.parametrize("per_second", [2, 4, 10])
def test_lines_that_share_a_second_are_spread_over_it(tmp_path, per_second):
    got = read_text(IMPORTER, tmp_path, log(NX, 10 * per_second, per_second=per_second), UTC)
    span_s = 10 - 1 / per_second
    assert got.runs[0].duration_s == pytest.approx(span_s)
    assert float(got.energy_j) == pytest.approx(5 * span_s)
    assert not got.findings


def test_a_log_that_begins_within_a_second(tmp_path):
    text = log(NX, 40, per_second=4).splitlines(keepends=True)
    got = read_text(IMPORTER, tmp_path, "".join(text[3:]), UTC)
    assert got.runs[0].duration_s == pytest.approx(9.0)
    assert float(got.energy_j) == pytest.approx(45)


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    text = log(NX)
    whole = text + f"03-02-2026 10:00:11 {MEMORY} VDD_I"
    got = read_text(IMPORTER, tmp_path, whole, UTC)
    assert got.rows_rejected == 1
    assert float(got.energy_j) == pytest.approx(50)


def test_a_log_without_rails_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="power of no rail"):
        read_text(IMPORTER, tmp_path, log("GPU@38C"))


def test_unknown_rails_alone_have_no_energy(tmp_path):
    got = read_text(IMPORTER, tmp_path, log("VDD_STRANGE 9000mW/9000mW"), UTC)
    assert got.energy_j is None
    assert "CL267" in codes(got)


def test_lines_written_twice_are_no_samples_within_a_second(tmp_path):
    text = "".join(2 * line for line in log(NX).splitlines(keepends=True))
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert got.rows_repeated == 11
    assert float(got.energy_j) == pytest.approx(50)
    assert codes(got) == ["CL201"]
