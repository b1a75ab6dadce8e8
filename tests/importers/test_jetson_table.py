"""Tables of Jetson rails: the input rail counts, the unit is the header's."""

from typing import ClassVar

import pytest

from carbonlens.importers.contract import Options
from carbonlens.importers.jetson_table import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import parsed, real_file, right_totals, taken
from tests.importers.reading import claimed, read_text

TABLE = "POM_5V_IN (mW),POM_5V_GPU (mW),POM_5V_CPU (mW)\n" + "4000,500,900\n" * 10


class TestConformance(ImporterContract):
    """The contract of importers, on 4 W in ten samples 0.5 s apart."""

    importer = IMPORTER
    files: ClassVar = {"power.csv": TABLE}
    options: ClassVar = Options(interval_s=0.5)
    runs = 1
    energy_j = 20.0
    delimiter = ","
    essential = ("pom_5v_in (mw)",)
    repeats_count_once = False


def test_a_real_table_comes_to_what_is_told():
    name = "teg03_nano_pom.csv"
    path, told = real_file(name), right_totals(name)
    ((times, watts),) = parsed(IMPORTER, path).values()
    assert times is None
    assert len(watts) == told["samples"]
    assert watts.mean() == pytest.approx(told["mean_POM_5V_IN_W"], rel=1e-3)
    (record,) = taken(IMPORTER, path, Options(interval_s=0.25)).records
    assert float(record.stated_j) == pytest.approx(told["energy_J_250ms"], rel=1e-3)
    assert record.run.hardware == "Jetson Nano"


@pytest.mark.parametrize(("unit", "size"), [("W", 1), ("mW", 1e-3), ("uW", 1e-6)])
def test_the_unit_is_the_headers(tmp_path, unit, size):
    text = f"VDD_IN ({unit})\n" + "4000\n" * 4
    got = read_text(IMPORTER, tmp_path, text, Options(interval_s=1.0))
    assert float(got.energy_j) == pytest.approx(16_000 * size)


@pytest.mark.parametrize(
    "head", ["POM_5V_IN,POM_5V_GPU", "PWR_IN (mW)", "POM_5V_IN (mW),note", "RUN,PWR_IN_MAX"]
)
def test_other_tables_are_not_claimed(tmp_path, head):
    path = tmp_path / "t.csv"
    path.write_text(head + "\n1,2\n")
    assert not claimed(IMPORTER, path)
