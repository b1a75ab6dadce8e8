"""Prometheus query answers: hosts, changing pods, series without a name."""

import json
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.prometheus_range import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

POWER, ENERGY = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
T0 = 1_772_445_600


def series(values, name=POWER, **labels):
    metric = {"__name__": name, "UUID": "GPU-1", "gpu": "0", "Hostname": "a"} | labels
    return {"metric": {k: v for k, v in metric.items() if v is not None}, "values": values}


def steady(watts=100, count=11, start=T0, step=15):
    return [[start + step * i, str(watts)] for i in range(count)]


def answer(*found, kind="matrix"):
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": list(found)}})


class TestConformance(ImporterContract):
    """The contract of importers, on two hosts of 100 W over 150 s."""

    importer = IMPORTER
    files: ClassVar = {"answer.json": answer(series(steady()), series(steady(), Hostname="b")) + "\n"}
    runs = 2
    energy_j = 30_000.0
    header_lines = 0


def test_two_hosts_with_one_index_are_two_gpus(tmp_path):
    text = answer(*(series(steady(100, 11, T0, 1), UUID=None, Hostname=h) for h in "ab"))
    got = read_text(IMPORTER, tmp_path, text)
    assert [float(r.energy[0].energy_j) for r in got.runs] == [1000, 1000]
    assert float(got.energy_j) == 2000


def test_a_gpu_that_changes_its_pod_is_one_gpu(tmp_path):
    text = answer(series(steady(200, 5, T0 + 90), pod="late"), series(steady(100, 6), pod="early"))
    got = read_text(IMPORTER, tmp_path, text)
    (run,) = got.runs
    assert len(run.energy) == 1
    assert float(got.energy_j) == pytest.approx(100 * 90 + 200 * 60)
    assert not got.findings


def test_pods_that_share_a_gpu_repeat_it(tmp_path):
    got = read_text(IMPORTER, tmp_path, answer(*(series(steady(), pod=p) for p in "abc")))
    assert float(got.energy_j) == pytest.approx(15_000)
    assert codes(got) == ["CL269"]


def test_counters_are_differences(tmp_path):
    values = [[T0 + 15 * i, str(9_000_000 + 1_500_000 * i)] for i in range(11)]
    got = read_text(IMPORTER, tmp_path, answer(series(values, ENERGY)))
    assert float(got.energy_j) == pytest.approx(15_000)


def test_a_bare_list_of_results_is_read(tmp_path):
    got = read_text(IMPORTER, tmp_path, json.dumps([series(steady())]))
    assert float(got.energy_j) == pytest.approx(15_000)


def test_an_instant_is_no_energy_and_a_counters_is_all_it_counted(tmp_path):
    told = series([], POWER)
    told["value"] = [T0, "100"]
    got = read_text(IMPORTER, tmp_path, answer(told, kind="vector"))
    assert got.energy_j is None
    assert got.records[0].measured.mean_power_w == 100
    told = series([], ENERGY)
    told["value"] = [T0, "5000000"]
    got = read_text(IMPORTER, tmp_path, answer(told, kind="vector"))
    assert float(got.energy_j) == 5000
    assert got.runs[0].end_us == T0 * 1_000_000
    assert codes(got) == ["CL266"]


def test_series_without_a_name_have_no_unit(tmp_path):
    text = answer(series(steady(), name=None), series(steady()))
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(15_000)
    assert codes(got) == ["CL202"]
    with pytest.raises(InputFileError, match="no metric of power"):
        read_text(IMPORTER, tmp_path, answer(series(steady(), name=None)))


def test_a_gap_is_not_bridged(tmp_path):
    values = steady(100, 5) + steady(100, 5, T0 + 600)
    got = read_text(IMPORTER, tmp_path, answer(series(values)))
    measured = got.records[0].measured
    assert measured.uncovered_s > 400
    assert measured.covered_s + measured.uncovered_s == pytest.approx(660)


def test_an_answer_that_failed_or_was_cut_off_is_refused(tmp_path):
    text = '{"status":"error","data":{"resultType":"matrix","result":[{"metric":{}}]},"error":"timeout"}'
    with pytest.raises(InputFileError, match="timeout"):
        read_text(IMPORTER, tmp_path, text)
    with pytest.raises(InputFileError, match="no whole answer"):
        read_text(IMPORTER, tmp_path, answer(series(steady()))[:-20])
