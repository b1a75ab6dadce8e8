"""rocm-smi --showpower: text, CSV and JSON, no times, second dies."""

import json
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.rocm_smi import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

OLD, NEW = "Average Graphics Package Power (W)", "Current Socket Graphics Package Power (W)"
SECOND = Options(interval_s=1.0)


def call(name=OLD, cards=("100.0", "200.0")):
    rows = "".join(f"GPU[{i}]\t\t: {name}: {watts}\n" for i, watts in enumerate(cards))
    return f"====== ROCm System Management Interface ======\n====== Power Consumption ======\n{rows}======\n"


class TestText(ImporterContract):
    """The contract of importers, on ten calls of two cards, a second apart."""

    importer = IMPORTER
    files: ClassVar = {"power.txt": call() * 10}
    options: ClassVar = SECOND
    runs = 1
    energy_j = 3000.0
    header_lines = 0
    repeats_count_once = False


class TestCsv(ImporterContract):
    """The contract on the CSV of ten calls."""

    importer = IMPORTER
    files: ClassVar = {"power.csv": f"device,{OLD}\ncard0,100.0\ncard1,200.0\n\n" * 10}
    options: ClassVar = SECOND
    runs = 1
    energy_j = 3000.0
    repeats_count_once = False


@pytest.mark.parametrize("name", [OLD, NEW])
@pytest.mark.parametrize("watts", ["100.0", 100])
def test_json_of_many_calls(tmp_path, name, watts):
    text = "".join(json.dumps({"card0": {name: watts}, "system": {"a": "b"}}) + "\n" for _ in range(10))
    got = read_text(IMPORTER, tmp_path, text, SECOND)
    assert float(got.energy_j) == pytest.approx(1000)
    got = read_text(IMPORTER, tmp_path, text)
    assert got.energy_j is None
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    assert codes(got) == ["CL244"]


def test_a_second_die_is_no_card_of_zero_watts(tmp_path):
    got = read_text(IMPORTER, tmp_path, call(cards=("237.0", "N/A (Secondary die)")) * 10, SECOND)
    assert float(got.energy_j) == pytest.approx(2370)
    assert got.records[0].measured.mean_power_w == pytest.approx(237)
    assert codes(got) == ["CL253", "CL245"]


def test_a_reading_that_failed_is_no_zero(tmp_path):
    text = call(cards=("100.0",)) * 5 + call(cards=("N/A",)) * 10 + call(cards=("100.0",)) * 5
    got = read_text(IMPORTER, tmp_path, text, SECOND)
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    assert got.records[0].measured.uncovered_s > 0


def test_no_power_at_all_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no power of a card"):
        read_text(IMPORTER, tmp_path, call(cards=("N/A",)))
