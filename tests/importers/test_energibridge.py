"""EnergiBridge: counters and powers, when a sample was read, parts of a package."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.energibridge import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

HEAD = "Delta,Time,CPU_USAGE_0,DRAM_ENERGY (J),PACKAGE_ENERGY (J),PP0_ENERGY (J),PP1_ENERGY (J)\n"
START = 1_772_445_600_000


def rows(count=21, *, step_ms=500, watts=100.0):
    return "".join(
        f"{step_ms if i else 0},{START + max(i - 1, 0) * step_ms},12.5,"
        f"{i * step_ms * 2e-3},{5000 + i * step_ms * watts * 1e-3},{i * step_ms * 5e-2},0\n"
        for i in range(count)
    )


class TestConformance(ImporterContract):
    """The contract of importers: a package of 100 W and memory of 2 W over 10 s."""

    importer = IMPORTER
    files: ClassVar = {"energibridge.csv": HEAD + rows()}
    runs = 1
    energy_j = 1020.0
    delimiter = ","
    essential = ("package_energy (j)", "dram_energy (j)")
    clocks = True


def test_the_graphics_part_may_rest(tmp_path):
    assert not codes(read_text(IMPORTER, tmp_path, HEAD + rows()))


def test_parts_of_the_package_are_not_added(tmp_path):
    (run,) = read_text(IMPORTER, tmp_path, HEAD + rows()).runs
    assert {r.devices[0]: float(r.energy_j) for r in run.energy} == {
        "DRAM_ENERGY": pytest.approx(20.0),
        "PACKAGE_ENERGY": pytest.approx(1000.0),
    }
    assert not run.beside
    assert {r.grade for r in run.energy} == {"B"}


def test_a_sample_was_read_after_its_delta(tmp_path):
    (run,) = read_text(IMPORTER, tmp_path, HEAD + rows()).runs
    assert run.start_us == START * 1000
    assert run.end_us == (START + 10_000) * 1000


def test_a_counter_that_falls_back_gives_no_negative_energy(tmp_path):
    first, second = rows(21).splitlines(keepends=True)[:15], rows(21).splitlines(keepends=True)[15:]
    second = [
        ",".join([*line.split(",")[:4], str(50.0 * i), *line.split(",")[5:]]) for i, line in enumerate(second)
    ]
    got = read_text(IMPORTER, tmp_path, HEAD + "".join(first + second))
    package = next(r for r in got.runs[0].energy if r.devices == ("PACKAGE_ENERGY",))
    assert got.records[0].measured.uncovered_s == pytest.approx(0.5)
    assert 900 <= float(package.energy_j) < 1000
    assert "CL123" in codes(got)


def test_the_power_of_a_mac_holds_that_of_its_cpu(tmp_path):
    text = "Delta,Time,CPU_POWER (Watts),SYSTEM_POWER (Watts)\n" + "".join(
        f"{1000 if i else 0},{START + max(i - 1, 0) * 1000},5,12\n" for i in range(11)
    )
    (run,) = read_text(IMPORTER, tmp_path, text).runs
    (system,) = run.energy
    assert (system.component, system.grade, float(system.energy_j)) == ("total", "C", pytest.approx(120))


def test_without_any_power_it_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no energy and no power"):
        read_text(IMPORTER, tmp_path, f"Delta,Time,CPU_USAGE_0\n0,{START},1\n")


def test_times_of_another_unit_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="no milliseconds"):
        read_text(IMPORTER, tmp_path, HEAD + "0,1772445600,1,1,1,1,0\n1,1772445601,1,2,2,1,0\n")
