"""hailortcli: a mean over some seconds, in the unit that its line states."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.hailo import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text


def measurement(watts=2.5, *, seconds=20, unit="W", samples=18_000):
    return (
        f"Measuring power consumption over {seconds} seconds:\n"
        f"Total samples: {samples}\n"
        f"Max value ({unit}): {watts + 1}\n"
        f"Min value ({unit}): {watts / 2}\n"
        f"Average value ({unit}): {watts}\n"
        "Average time per sample (ms): 1.1\n"
    )


class TestConformance(ImporterContract):
    """The contract of importers: 2.5 W over 20 s, and 3 W over 10 s."""

    importer = IMPORTER
    files: ClassVar = {"hailo.log": measurement() + measurement(3, seconds=10)}
    runs = 2
    energy_j = 80.0
    header_lines = 0
    repeats_count_once = False


def test_a_measurement_is_a_run_of_the_accelerator(tmp_path):
    got = read_text(IMPORTER, tmp_path, measurement())
    (told,) = got.runs[0].energy
    assert (told.component, told.grade, float(told.energy_j)) == ("npu", "C", 50.0)
    assert got.records[0].measured.samples == 18_000
    assert got.records[0].measured.mean_power_w == 2.5
    assert codes(got) == ["CL245"]


@pytest.mark.parametrize("unit", ["A", "V", "mV"])
def test_currents_and_voltages_are_no_power(tmp_path, unit):
    with pytest.raises(InputFileError, match="no mean power"):
        read_text(IMPORTER, tmp_path, measurement(unit=unit))


def test_milliwatts_are_read_as_such(tmp_path):
    assert float(read_text(IMPORTER, tmp_path, measurement(2500, unit="mW")).energy_j) == pytest.approx(50)


def test_one_reading_is_no_energy(tmp_path):
    got = read_text(IMPORTER, tmp_path, "Current power consumption (W): 2.5\n")
    assert not got.records
    assert codes(got) == ["CL274"]


def test_a_measurement_without_samples_gives_none(tmp_path):
    got = read_text(IMPORTER, tmp_path, measurement(0, samples=0) + measurement())
    assert len(got.runs) == 1
    assert "CL202" in codes(got)
