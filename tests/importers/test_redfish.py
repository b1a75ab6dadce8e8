"""Redfish: a power without a time, in a document that may tell none."""

import json
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.redfish import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text


def document(*watts, indent=None):
    controls = [
        {"MemberId": str(i), "PowerConsumedWatts": w, "PowerMetrics": {"AverageConsumedWatts": 330}}
        for i, w in enumerate(watts)
    ]
    return json.dumps(
        {"@odata.type": "#Power.v1_5_0.Power", "Id": "Power", "PowerControl": controls}, indent=indent
    )


MINUTELY = Options(interval_s=60)


class TestConformance(ImporterContract):
    """The contract of importers: ten readings of 324 W, a minute apart."""

    importer = IMPORTER
    files: ClassVar = {"power.jsonl": "".join(document(324) + "\n" for _ in range(10))}
    options: ClassVar = MINUTELY
    runs = 1
    energy_j = 324.0 * 600
    header_lines = 0
    repeats_count_once = False


def test_one_document_is_a_power_and_no_energy(tmp_path):
    got = read_text(IMPORTER, tmp_path, document(324, indent=2))
    assert got.energy_j is None
    assert got.records[0].measured.mean_power_w == 324
    assert "CL274" in codes(got)


def test_text_that_is_a_number_is_one(tmp_path):
    assert read_text(IMPORTER, tmp_path, document("69")).records[0].measured.mean_power_w == 69


@pytest.mark.parametrize("bad", [None, 0, "n/a", True, -5])
def test_what_is_not_told_is_unknown(tmp_path, bad):
    with pytest.raises(InputFileError, match="no power"):
        read_text(IMPORTER, tmp_path, document(bad))
    got = read_text(IMPORTER, tmp_path, document(100) * 5 + document(bad) * 5 + document(100) * 5, MINUTELY)
    assert got.records[0].measured.mean_power_w == 100
    assert got.records[0].measured.uncovered_s > 0
    assert "CL271" in codes(got)


def test_the_first_control_with_a_reading_is_the_chassis(tmp_path):
    got = read_text(IMPORTER, tmp_path, document(None, 300, 120))
    assert got.records[0].measured.mean_power_w == 300
    assert "CL273" in codes(got)


def test_a_document_that_is_cut_off_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no whole JSON"):
        read_text(IMPORTER, tmp_path, document(324)[:-3])
