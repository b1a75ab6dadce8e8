"""Prometheus query answers: hosts, changing pods, series without a name."""

import json
from typing import ClassVar
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carbonlens.errors import InputFileError
from carbonlens.importers.prometheus_range import IMPORTER
from carbonlens.importers.prometheus_series import Collector
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


VALUES = st.sampled_from(
    [
        *(
            "100",
            "57.25",
            "0",
            "1e2",
            "NaN",
            "+Inf",
            "-Inf",
            "9223372036854775794",
            "140737488355330",
            "9.2e14",
        ),
        *("-1", "x", "", "1_0", " 5 ", 100, 12.5, "0.1", "1000000.5"),
    ]
)
TIMES = st.lists(st.sampled_from([T0, T0 + 1, T0 + 2.5, T0 + 15, 0, -5, 1e12, T0 + 30]), max_size=6)
NAMES = st.sampled_from(
    [POWER, ENERGY, "kepler_node_platform_joules_total", "kepler_container_joules_total", "up"]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    told=st.lists(
        st.tuples(
            NAMES,
            st.sampled_from("ab"),
            TIMES.flatmap(lambda t: st.tuples(*(st.tuples(st.just(s), VALUES) for s in t))),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_series_at_once_come_to_what_their_samples_do(tmp_path, told):
    """Whatever a series holds: read at once, or sample by sample, it is the same."""
    text = answer(
        *(
            series([list(p) for p in pairs], name, Hostname=host, pod=str(n))
            for n, (name, host, pairs) in enumerate(told)
        )
    )

    def read():
        try:
            got = read_text(IMPORTER, tmp_path, text)
        except InputFileError as error:
            return str(error)
        return got.runs, got.findings, got.rows, got.rows_rejected

    at_once = read()
    with patch.object(Collector, "take_all", lambda *_: False):
        assert read() == at_once


def test_a_plain_series_is_taken_at_once(tmp_path):
    text = answer(series(steady(100, 50)), series(steady(100, 50, T0 + 900), pod="late"))
    with patch.object(Collector, "take", side_effect=AssertionError):
        got = read_text(IMPORTER, tmp_path, text)
    assert got.rows == 100


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("count", [2, 3, 40])
def test_as_prometheus_writes_it_and_as_python_does_it_is_plain(tmp_path, separators, count):
    whole = json.loads(answer(series(steady(100, count, T0, 1))))
    with patch.object(Collector, "take", side_effect=AssertionError):
        got = read_text(IMPORTER, tmp_path, json.dumps(whole, separators=separators))
    assert float(got.energy_j) == pytest.approx(100 * (count - 1))


def test_pairs_of_another_kind_are_refused_with_their_reason(tmp_path):
    for values in ([[T0]], [[T0, "1", "2"]], {"a": 1}, None, [[T0, True]]):
        with pytest.raises(InputFileError, match="no whole answer of Prometheus"):
            read_text(IMPORTER, tmp_path, answer(series(values)))
