"""Green Metrics Tool's RAPL logs: microjoules of each interval."""

from itertools import pairwise
from statistics import median
from typing import ClassVar

import pytest

from carbonlens.importers.gmt_rapl import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import real_file, right_totals
from tests.importers.reading import claimed, codes, read_file, read_text

START = 1_772_445_600_000_000


def row(place, value=300_000, domain="Package_0"):
    return f"{START + place * 100_000} {value} {domain}\n"


SAMPLE = "\n" + "".join(row(n) + row(n, 50_000, "DRAM_0") for n in range(10))


class TestConformance(ImporterContract):
    """The contract of importers, on ten intervals of a package and its memory."""

    importer = IMPORTER
    files: ClassVar = {"cpu.log": SAMPLE}
    runs = 1
    energy_j = 3.5
    header_lines = 1
    clocks = True


def test_domains_are_added_up_and_named(tmp_path):
    got = read_text(IMPORTER, tmp_path, SAMPLE)
    assert {e.component: float(e.energy_j) for e in got.runs[0].energy} == {"cpu": 3.0, "ram": 0.5}
    assert {e.grade for e in got.runs[0].energy} == {"B"}
    # Ten energies are of ten intervals: the first began one before its stamp.
    assert got.runs[0].duration_s == pytest.approx(1.0)
    assert got.records[0].measured.mean_power_w == pytest.approx(3.5)


def test_of_a_single_line_the_energy_is_known_and_no_duration(tmp_path):
    got = read_text(IMPORTER, tmp_path, row(0))
    assert float(got.energy_j) == pytest.approx(0.3)
    assert not got.runs[0].duration_s
    assert got.records[0].measured.mean_power_w is None


def test_an_energy_below_zero_failed(tmp_path):
    got = read_text(IMPORTER, tmp_path, row(0) + row(1, -5) + row(2))
    assert float(got.energy_j) == pytest.approx(0.6)
    assert "CL202" in codes(got)


def test_a_clock_set_back_parts_the_log_and_is_said(tmp_path):
    late, early = "".join(map(row, range(50, 60))), "".join(map(row, range(10)))
    got = read_text(IMPORTER, tmp_path, late + early)
    assert float(got.energy_j) == pytest.approx(6.0)
    assert "CL243" in codes(got)


@pytest.mark.parametrize("joined", [SAMPLE + SAMPLE, SAMPLE + "".join(map(row, range(3, 8)))])
def test_intervals_that_were_told_before_count_once(tmp_path, joined):
    got = read_text(IMPORTER, tmp_path, joined)
    assert float(got.energy_j) == pytest.approx(3.5)
    assert "CL201" in codes(got)
    assert got.rows_repeated


@pytest.mark.parametrize(
    "line",
    [
        f"{START} 300000\n",
        f"{START} 5123 0123456789abcdef0123456789abcdef\n",
        f"{START} 300000 NVIDIA-GPU-0\n",
        f"{START // 10**6} 300000 Package_0\n",
    ],
)
def test_logs_of_other_providers_are_not_claimed(tmp_path, line):
    file = tmp_path / "cpu_energy_rapl_msr_component.log"
    file.write_text(line * 3)
    assert not claimed(IMPORTER, file)


@pytest.mark.parametrize("name", ["gmt01_rapl.log", "gmt03_rapl_single.log"])
def test_real_logs_come_to_their_totals(name):
    got, expected = read_file(IMPORTER, real_file(name)), right_totals(name)
    assert got.records[0].measured.samples == expected["samples"]
    assert float(got.energy_j) == pytest.approx(expected["energy_J"], rel=1e-9)
    run = got.runs[0]
    stamps = [int(line.split()[0]) for line in real_file(name).read_text().splitlines() if line.strip()]
    usual_us = median(b - a for a, b in pairwise(stamps)) if len(stamps) > 1 else 0
    assert (stamps[-1] - stamps[0]) / 1e6 == pytest.approx(expected["first_to_last_s"], abs=1e-9)
    assert (run.duration_s or 0.0) == pytest.approx(expected["first_to_last_s"] + usual_us / 1e6, abs=1e-9)
    assert codes(got) == []
