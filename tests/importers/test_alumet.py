"""Alumet: joules since the measurement before, sums that repeat sockets, shares of processes."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.alumet import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

HEAD = "metric;timestamp;value;resource_kind;resource_id;consumer_kind;consumer_id;domain;__late_attributes\n"


def line(second, metric, value, resource="cpu_package;0", *, consumer="local_machine;", domain="", late=""):
    time = f"2026-03-02T10:00:{second:02}.5Z"
    return f"{metric};{time};{value};{resource};{consumer};{domain};{late}\n"


def rapl(second, value, socket=0, domain="package"):
    return line(second, "rapl_consumed_energy_J", value, f"cpu_package;{socket}", domain=domain)


class TestConformance(ImporterContract):
    """The contract of importers: ten measurements of 100 J and 5 J."""

    importer = IMPORTER
    files: ClassVar = {
        "alumet-output.csv": HEAD
        + "".join(rapl(s, 100.0 + s / 1024) + rapl(s, 5.0 + s / 1024, domain="dram") for s in range(10))
    }
    runs = 1
    energy_j = 1050.0 + 90 / 1024
    delimiter = ";"
    essential = ("value",)
    clocks = True


def test_sums_over_sockets_repeat_them(tmp_path):
    text = HEAD + "".join(
        rapl(s, 100)
        + rapl(s, 90, 1)
        + line(s, "rapl_consumed_energy_J", 190, "local_machine;", domain="package_total")
        + rapl(s, 30, domain="pp0")
        for s in range(10)
    )
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(1900)
    assert {r.component for r in got.runs[0].energy} == {"cpu"}


def test_the_sum_counts_where_it_is_alone(tmp_path):
    text = HEAD + "".join(
        line(s, "rapl_consumed_energy_J", 190, "local_machine;", domain="package_total") for s in range(10)
    )
    assert float(read_text(IMPORTER, tmp_path, text).energy_j) == pytest.approx(1900)


def test_millijoules_of_gpus_and_their_power_beside(tmp_path):
    text = HEAD + "".join(
        line(s, "nvml_energy_consumption_mJ", 250_000, "gpu;0000:01:00.0")
        + line(s, "nvml_instant_power_mW", 240_000, "gpu;0000:01:00.0")
        for s in range(10)
    )
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(2500)
    assert got.runs[0].energy[0].grade == "B"


def test_power_counts_where_a_gpu_tells_no_energy(tmp_path):
    text = HEAD + "".join(line(s, "nvml_instant_power", 240_000, "gpu;0") for s in range(11))
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(2400)
    assert got.runs[0].energy[0].grade == "C"


def test_shares_of_processes_are_not_added(tmp_path):
    text = HEAD + "".join(
        rapl(s, 100) + line(s, "rapl_consumed_energy_J", 40, consumer="process;42", domain="package")
        for s in range(10)
    )
    assert float(read_text(IMPORTER, tmp_path, text).energy_j) == pytest.approx(1000)


def test_an_attribute_that_came_late_is_read(tmp_path):
    head = HEAD.replace("domain;", "")
    row = line(1, "rapl_consumed_energy_J", 100, late="domain=package").replace(";;domain", ";domain")
    text = head + row + row.replace(":01.5", ":02.5")
    assert float(read_text(IMPORTER, tmp_path, text).energy_j) == pytest.approx(200)


def test_the_whole_platform_stands_beside_its_parts(tmp_path):
    text = HEAD + "".join(rapl(s, 100) + rapl(s, 300, domain="platform") for s in range(10))
    (run,) = read_text(IMPORTER, tmp_path, text).runs
    assert [float(r.energy_j) for r in run.energy] == [1000.0]
    assert [float(r.energy_j) for r in run.beside] == [3000.0]


def test_a_reading_that_failed_is_not_zero(tmp_path):
    text = HEAD + "".join(rapl(s, "NaN" if s == 4 else 100) for s in range(10))
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(900)
    assert got.findings, codes(got)


def test_without_energies_it_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no energy of RAPL or NVML"):
        read_text(IMPORTER, tmp_path, HEAD + line(1, "kernel_cpu_time_ms", 5))
