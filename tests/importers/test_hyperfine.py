"""hyperfine: times of commands, from which no energy is made."""

import json
from typing import ClassVar

import pytest

from carbonlens.importers.hyperfine import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text


def result(command="/usr/bin/sort --key=secret big.txt", times=(1.0, 1.2, 1.4), **more):
    told = {
        "command": command,
        "mean": sum(times) / len(times),
        "stddev": 0.2,
        "median": sorted(times)[len(times) // 2],
        "user": 1.0,
        "system": 0.1,
        "min": min(times),
        "max": max(times),
        "times": list(times),
        "exit_codes": [0] * len(times),
    }
    return told | more


def export(*results):
    return json.dumps({"results": list(results)}, indent=2)


class TestConformance(ImporterContract):
    """The contract of importers, on two commands."""

    importer = IMPORTER
    files: ClassVar = {"hyperfine.json": export(result(), result("ls", (0.1, 0.2)))}
    runs = 2


def test_a_command_is_a_run_without_energy(tmp_path):
    got = read_text(IMPORTER, tmp_path, export(result(parameters={"threads": "4"})))
    (run,) = got.runs
    assert (run.energy, run.total_energy.value) == ((), None)
    assert run.duration_s == pytest.approx(3.6)
    assert (run.units, run.unit) == (3, "run")
    assert run.latency.mean_ms == pytest.approx(1200.0)
    assert run.latency.p50_ms == pytest.approx(1200.0)
    assert run.tags == {"parameter_threads": "4"}
    assert codes(got) == ["CL204"]


def test_arguments_stay_out(tmp_path):
    got = read_text(IMPORTER, tmp_path, export(result()))
    assert got.runs[0].workload == "sort"
    assert "secret" not in repr(got.runs)


def test_a_command_that_failed_is_kept_as_failed(tmp_path):
    got = read_text(IMPORTER, tmp_path, export(result(exit_codes=[0, 3, None])))
    assert (got.runs[0].status, got.runs[0].exit_code) == ("failed", 3)


def test_a_mean_that_is_not_of_its_times_is_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, export(result(mean=9.0)))
    assert got.runs[0].latency.mean_ms == pytest.approx(1200.0)
    assert "CL282" in codes(got)


def test_an_export_without_times_has_no_duration(tmp_path):
    told = result()
    del told["times"], told["exit_codes"]
    (run,) = read_text(IMPORTER, tmp_path, export(told)).runs
    assert (run.duration_s, run.units, run.exit_code) == (None, None, None)
    assert run.latency.mean_ms == pytest.approx(1200.0)


def test_times_that_cannot_be_are_left_out(tmp_path):
    got = read_text(IMPORTER, tmp_path, export(result(times=(1.0, -1.0)), result(mean=-1.0), result()))
    assert (len(got.runs), got.rows_rejected) == (1, 2)
    assert codes(got).count("CL202") == 2
