"""Green Algorithms' exported form: what its energy holds, and what was not filled in."""

from typing import ClassVar

import pytest

from carbonlens.importers.green_algorithms import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

HEADER = (
    "coreType;CPUmodel;numberCPUs;tdpCPU;usageCPU;GPUmodel;numberGPUs;memory;runTime_hour;runTime_min;"
    "platformType;locationCountry;locationRegion;location;carbonIntensity;PUE;mult_factor;appVersion;"
    "energy_needed;carbonEmissions;runTime;power_needed"
)
ROW = (
    "CPU;Some CPU;12;10.5;1.0;None;0;64;10;30;"
    "localServer;France;France;FR;51.28;1.67;2.0;v3.0;4.5;230.76;10.5;214.3"
)
OTHER = ROW.replace("Some CPU", "Other CPU")


def of(*rows):
    return "\n".join([HEADER, *rows, ""])


def with_cells(**cells):
    told = dict(zip(HEADER.split(";"), ROW.split(";"), strict=True)) | cells
    return ";".join(told.values())


class TestConformance(ImporterContract):
    """The contract of importers, on two forms."""

    importer = IMPORTER
    files: ClassVar = {"GreenAlgorithms_results.csv": of(ROW, OTHER)}
    runs = 2
    energy_j = 32_400_000.0
    delimiter = ";"
    essential = ("energy_needed",)


def test_the_pue_is_taken_out_and_the_stated_energy_stands_beside(tmp_path):
    got = read_text(IMPORTER, tmp_path, of(ROW))
    (record,) = got.records
    run = record.run
    (energy,), (beside,) = run.energy, run.beside
    assert float(energy.energy_j) == pytest.approx(16_200_000 / 1.67)
    assert (energy.boundary, energy.grade) == ("device", "E")
    assert (float(beside.energy_j), beside.boundary) == (16_200_000, "facility")
    assert float(run.emissions_reported_kg) == 0.23076
    assert run.duration_s == 2 * 10.5 * 3600
    assert (record.place.country, record.place.region) == ("France", "France")
    assert "GPU" not in run.hardware.replace("numbergpus", "").replace("gpumodel", "")
    assert codes(got) == ["CL245"]


def test_without_an_overhead_nothing_stands_beside(tmp_path):
    got = read_text(IMPORTER, tmp_path, of(with_cells(PUE="1")))
    assert got.runs[0].beside == ()
    assert float(got.energy_j) == 16_200_000


def test_a_form_that_was_not_filled_in_is_unknown(tmp_path):
    got = read_text(IMPORTER, tmp_path, of(with_cells(energy_needed="0", carbonEmissions="0", PUE="None")))
    assert got.runs[0].energy[0].energy_j is None
    assert got.runs[0].emissions_reported_kg is None
    assert "CL260" in codes(got)


@pytest.mark.parametrize("pue", ["None", "0.5"])
def test_an_energy_whose_pue_is_not_told_is_left_out(tmp_path, pue):
    got = read_text(IMPORTER, tmp_path, of(with_cells(PUE=pue)))
    assert (got.runs, got.rows_rejected) == ((), 1)


def test_kilograms_under_grams_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, of(with_cells(carbonEmissions="0.00000023")))
    assert "CL250" in codes(got)
