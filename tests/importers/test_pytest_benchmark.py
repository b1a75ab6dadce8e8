"""pytest-benchmark: times of calls, from which no energy is made."""

import json
from typing import ClassVar

import pytest

from carbonlens.importers.pytest_benchmark import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text


def benchmark(name="test_sort", *, mean=0.002, rounds=50, iterations=1, **more):
    stats = {"min": mean, "max": mean, "mean": mean, "stddev": 0.0, "rounds": rounds, "median": mean}
    stats |= {"iterations": iterations, "total": mean * rounds, "ops": 1 / mean}
    told = {"group": None, "name": name, "fullname": f"tests/a.py::{name}", "params": None, "param": None}
    return told | {"extra_info": {}, "options": {}, "stats": stats | more}


def session(*benchmarks):
    machine = {"node": "host-of-somebody", "machine": "x86_64", "python_version": "3.13.1"}
    machine |= {"cpu": {"brand_raw": "A CPU"}}
    told = {"machine_info": machine, "commit_info": {"id": "abc"}, "benchmarks": list(benchmarks)}
    return json.dumps(told | {"datetime": "2026-03-02T10:00:00+00:00", "version": "5.1.0"}, indent=4)


class TestConformance(ImporterContract):
    """The contract of importers, on two benchmarks."""

    importer = IMPORTER
    files: ClassVar = {"bench.json": session(benchmark(), benchmark("test_find", mean=0.1))}
    runs = 2


def test_a_benchmark_is_a_run_without_energy(tmp_path):
    got = read_text(IMPORTER, tmp_path, session(benchmark()))
    (run,) = got.runs
    assert (run.energy, run.duration_s, run.units) == ((), pytest.approx(0.1), 50)
    assert (run.latency.n, run.latency.mean_ms, run.latency.p50_ms) == (50, 2.0, 2.0)
    assert run.hardware == "A CPU"
    assert "host-of-somebody" not in repr(got.runs)
    assert codes(got) == ["CL204"]


def test_a_rounds_time_is_the_mean_of_its_iterations(tmp_path):
    (run,) = read_text(IMPORTER, tmp_path, session(benchmark(iterations=100))).runs
    assert (run.duration_s, run.units) == (pytest.approx(10.0), 5000)
    assert run.latency.p50_ms is None, "a median of means is no median"


def test_a_total_that_is_not_of_its_rounds_is_said(tmp_path):
    assert "CL282" in codes(read_text(IMPORTER, tmp_path, session(benchmark(total=5.0))))


def test_benchmarks_without_rounds_are_left_out(tmp_path):
    got = read_text(IMPORTER, tmp_path, session(benchmark(rounds=0), benchmark()))
    assert (len(got.runs), got.rows_rejected) == (1, 1)
