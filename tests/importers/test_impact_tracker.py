"""experiment-impact-tracker's readings: the work's share counts, the machine's stands beside."""

import json
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.impact_tracker import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text


def line(second, cpu=40.5, gpu=100.5, **more):
    told = {
        "timestamp": 1_772_445_600.5 + second,
        "rapl_power_draw_absolute": None if cpu is None else 2 * cpu,
        "rapl_estimated_attributable_power_draw": cpu,
        "nvidia_draw_absolute": None if gpu is None else 2 * gpu,
        "nvidia_estimated_attributable_power_draw": gpu,
        "process_ids": [1, 2],
    }
    return json.dumps({**told, **more}) + "\n"


class TestConformance(ImporterContract):
    """The contract of importers, on eleven samples."""

    importer = IMPORTER
    files: ClassVar = {"data.json": "".join(line(2 * n) for n in range(11))}
    runs = 1
    energy_j = 20 * 141.0
    header_lines = 0
    clocks = True


def test_the_works_share_counts_and_the_machine_stands_beside(tmp_path):
    got = read_text(IMPORTER, tmp_path, "".join(line(n) for n in range(11)))
    (record,) = got.records
    parts = [(e.component, float(e.energy_j), e.grade) for e in record.run.energy]
    assert parts == [("cpu", 405.0, "D"), ("gpu", 1005.0, "D")]
    assert [(e.component, float(e.energy_j), e.grade) for e in record.run.beside] == [
        ("cpu", 810.0, "C"),
        ("gpu", 2010.0, "C"),
    ]
    assert record.run.start_us == 1_772_445_600_500_000
    assert record.measured.samples == 11
    assert codes(got) == []


def test_a_machine_without_a_gpu_has_none(tmp_path):
    text = "".join(
        json.dumps({k: v for k, v in json.loads(line(n)).items() if "nvidia" not in k}) + "\n"
        for n in range(5)
    )
    got = read_text(IMPORTER, tmp_path, text)
    assert [e.component for e in got.runs[0].energy] == ["cpu"]


def test_a_reading_that_failed_is_a_gap_and_no_zero(tmp_path):
    text = "".join(line(n, gpu=None if 20 <= n < 40 else 100.0) for n in range(61))
    got = read_text(IMPORTER, tmp_path, text)
    gpu = next(e for e in got.runs[0].energy if e.component == "gpu")
    assert 4_000 <= float(gpu.energy_j) <= 4_400
    assert gpu.covered_s < 45
    assert gpu.state == "unbounded"


@pytest.mark.parametrize(
    "bad", ['{"timestamp": 17724', line(3, cpu=-5.0), line(-1.772e9), line(3, timestamp=1e30)]
)
def test_a_line_that_cannot_be_is_left_out_and_said(tmp_path, bad):
    text = "".join(line(n) for n in range(11)) + bad
    got = read_text(IMPORTER, tmp_path, text)
    assert (got.rows, got.rows_rejected) == (12, 1)
    assert float(got.energy_j) == pytest.approx(1410)
    assert "CL202" in codes(got)


def test_lines_without_power_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="energy cannot be computed"):
        read_text(IMPORTER, tmp_path, line(0, None, None) + line(1, None, None))


def test_other_json_lines_are_not_claimed(tmp_path):
    (tmp_path / "a").write_text('{"timestamp": 1.0, "power": 5}\n')
    assert not claimed(IMPORTER, tmp_path / "a")
