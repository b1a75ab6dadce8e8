"""Scaphandre's JSON exporter: reports in any arrangement, the host counts."""

import json
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.scaphandre_json import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import read_text

T0 = 1_772_445_600.25


def report(second, microwatts=60_000_000.0):
    at = T0 + second
    domains = [{"name": "dram", "consumption": 9e6, "timestamp": at}]
    return json.dumps(
        {
            "host": {"consumption": microwatts, "timestamp": at, "components": {"disks": []}},
            "consumers": [{"exe": "/bin/a", "cmdline": "a", "pid": 1, "consumption": 1e6, "timestamp": at}],
            "sockets": [{"id": 0, "consumption": microwatts * 5 / 6, "domains": domains, "timestamp": at}],
        }
    )


REPORTS = [report(2 * i) for i in range(6)]


class TestConformance(ImporterContract):
    """The contract of importers, on a host of 60 W over 10 s."""

    importer = IMPORTER
    files: ClassVar = {"report.json": "\n".join(REPORTS) + "\n"}
    runs = 1
    energy_j = 600.0
    header_lines = 0
    clocks = True


@pytest.mark.parametrize("text", ["".join(REPORTS), "[" + ",".join(REPORTS) + "]", ",\n".join(REPORTS)])
def test_reports_in_any_arrangement(tmp_path, text):
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(600)
    assert [float(b.energy_j) for b in got.runs[0].beside] == [pytest.approx(500)]
    assert got.runs[0].start_us == round(T0 * 1e6)


def test_a_power_of_zero_is_no_reading(tmp_path):
    text = "\n".join(report(2 * i, 0 if 3 <= i < 9 else 6e7) for i in range(12))
    got = read_text(IMPORTER, tmp_path, text)
    assert got.records[0].measured.mean_power_w == pytest.approx(60)
    assert got.records[0].measured.uncovered_s > 0


def test_a_damaged_report_is_left_out_and_those_after_it_are_read(tmp_path):
    damaged = REPORTS[2].replace('"pid": 1', '"pid": ')
    text = "".join([*REPORTS[:2], damaged, *REPORTS[3:]])
    got = read_text(IMPORTER, tmp_path, text)
    assert got.rows_rejected == 1
    assert float(got.energy_j) == pytest.approx(600)


def test_no_power_at_all_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no power of a host"):
        read_text(IMPORTER, tmp_path, "".join(report(i, 0) for i in range(5)))
