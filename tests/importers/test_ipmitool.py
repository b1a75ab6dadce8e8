"""ipmitool: paragraphs and lines of a controller, which may not measure at all."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.ipmitool import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text


def reading(second, watts=200, *, state="activated", day="Mon Mar 02 10:00:{:02} 2026"):
    return (
        f"\n    Instantaneous power reading:              {watts:>9} Watts\n"
        "    Minimum during sampling period:                 80 Watts\n"
        "    Maximum during sampling period:                435 Watts\n"
        "    Average power reading over sample period:      150 Watts\n"
        f"    IPMI timestamp:                           {day.format(second)}\n"
        "    Sampling period:                          00000001 Seconds.\n"
        f"    Power reading state is:                   {state}\n\n"
    )


UTC = Options(tz="UTC")


class TestConformance(ImporterContract):
    """The contract of importers: 200 W over 20 s."""

    importer = IMPORTER
    files: ClassVar = {"dcmi.txt": "".join(reading(s) for s in range(21))}
    options: ClassVar = UTC
    runs = 1
    energy_j = 4000.0
    header_lines = 0
    clocks = False
    repeats_count_once = False


def test_its_times_have_no_zone(tmp_path):
    got = read_text(IMPORTER, tmp_path, "".join(reading(s) for s in range(11)))
    assert codes(got) == ["CL241"]
    assert got.runs[0].start_us == 1_772_445_600_000_000
    (told,) = got.runs[0].energy
    assert (told.component, told.boundary, told.grade) == ("wall", "it", "C")


@pytest.mark.parametrize("bad", [{"watts": 0}, {"state": "deactivated"}, {"watts": "na"}])
def test_what_the_controller_does_not_measure_is_unknown(tmp_path, bad):
    text = "".join(reading(s, **(bad if 8 <= s < 14 else {})) for s in range(21))
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert got.records[0].measured.mean_power_w == pytest.approx(200)
    assert got.records[0].measured.uncovered_s > 0
    assert "CL271" in codes(got)
    with pytest.raises(InputFileError, match="no power"):
        read_text(IMPORTER, tmp_path, reading(0, 0) + reading(1, 0))


def test_a_clock_that_was_never_set_is_no_time(tmp_path):
    text = "".join(reading(0, day="Thu Jan  1 00:00:{:02} 1970") for _ in range(5))
    got = read_text(IMPORTER, tmp_path, text)
    assert got.energy_j is None
    assert codes(got) == ["CL244"]
    assert float(read_text(IMPORTER, tmp_path, text, Options(interval_s=10)).energy_j) == pytest.approx(
        10_000
    )


def test_one_reading_is_a_power_and_no_energy(tmp_path):
    got = read_text(IMPORTER, tmp_path, reading(0, 123), UTC)
    assert got.energy_j is None
    assert got.records[0].measured.mean_power_w == 123
    assert "CL274" in codes(got)


@pytest.mark.parametrize(
    "line",
    [
        "Pwr Consumption  | 77h | ok  | 10.1 | 168 Watts",
        "Pwr Consumption  | 168 Watts         | ok",
        "Pwr Consumption  | 168.000    | Watts      | ok    | na        | na        | 1792.000",
    ],
)
def test_sensors_have_no_times(tmp_path, line):
    text = f"Inlet Temp       | 04h | ok  |  7.1 | 23 degrees C\n{line}\n" * 3
    got = read_text(IMPORTER, tmp_path, text, Options(interval_s=60))
    assert float(got.energy_j) == pytest.approx(168 * 180)
    assert codes(got) == ["CL245"]


def test_a_sensor_without_reading_is_unknown(tmp_path):
    good = "Pwr Consumption  | 77h | ok  | 10.1 | 168 Watts\n"
    got = read_text(
        IMPORTER, tmp_path, good * 5 + "Pwr Consumption  | 77h | ns  | 10.1 | No Reading\n" * 5 + good * 5
    )
    assert got.records[0].measured.mean_power_w == 168
    assert "CL271" in codes(got)
