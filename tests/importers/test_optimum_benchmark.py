"""optimum-benchmark's JSON: means of passes, wholes of training, and energies that are not there."""

import json
from typing import ClassVar

import pytest

from carbonlens.app.importing import import_files
from carbonlens.importers.optimum_benchmark import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text


def energy(total, cpu=0.0, gpu=0.0, ram=0.0, unit="kWh"):
    return {"unit": unit, "cpu": cpu, "ram": ram, "gpu": gpu, "total": total}


def target(energy=None, mean=0.5, count=10, efficiency=None):
    latency = {"unit": "s", "values": [mean] * count, "count": count, "total": mean * count, "mean": mean}
    told = None if efficiency is None else {"unit": efficiency[1], "value": efficiency[0]}
    return {"memory": None, "latency": latency, "throughput": None, "energy": energy, "efficiency": told}


GENERATE = target(energy(1e-5, 4e-6, 5e-6, 1e-6), mean=0.3, efficiency=(4e5, "samples/kWh"))
PREFILL = target(energy(2e-6, 1e-6, 8e-7, 2e-7), mean=0.05, efficiency=(2e6, "samples/kWh"))
DECODE = target(energy(8e-6, 3e-6, 4.2e-6, 8e-7), mean=0.25, efficiency=(5e7, "tokens/kWh"))
REPORT = {"load": target(energy(1e-4, 5e-5, 4e-5, 1e-5), mean=5.0, count=1), "generate": GENERATE}
CONFIG = {
    "name": "llama",
    "backend": {
        "name": "pytorch",
        "_target_": "optimum_benchmark.backends.X",
        "model": "m",
        "device": "cuda",
    },
    "environment": {"cpu": " Some CPU", "gpu": ["Some GPU"]},
}


def text(report, config=None):
    return json.dumps(report if config is None else {"config": config, "report": report}, indent=4) + "\n"


class TestReport(ImporterContract):
    """The contract of importers, on a report of two targets."""

    importer = IMPORTER
    files: ClassVar = {"benchmark_report.json": text(REPORT)}
    runs = 2
    energy_j = 396.0


class TestBenchmark(ImporterContract):
    """The contract of importers, on a report with its config."""

    importer = IMPORTER
    files: ClassVar = {"benchmark.json": text(REPORT, CONFIG)}
    runs = 2
    energy_j = 396.0


def test_a_pass_has_its_mean_energy_and_the_work_that_its_efficiency_tells(tmp_path):
    got = read_text(IMPORTER, tmp_path, text({"generate": GENERATE}, CONFIG))
    (run,) = got.runs
    parts = {e.component: (float(e.energy_j), e.grade) for e in run.energy}
    assert parts == {"cpu": (14.4, "D"), "gpu": (18.0, "B"), "ram": (3.6, "E")}
    assert (float(run.units), run.unit, run.duration_s) == (4.0, "sample", 0.3)
    assert (run.workload, run.tags["backend"]) == ("m", "pytorch")
    assert "Some GPU" in run.hardware
    assert sorted(codes(got)) == ["CL245", "CL264"]


def test_prefill_and_decode_lie_within_generate(tmp_path):
    got = read_text(IMPORTER, tmp_path, text({"prefill": PREFILL, "generate": GENERATE, "decode": DECODE}))
    runs = {r.tags["target"]: r for r in got.runs}
    assert runs["prefill"].parent_run_id == runs["decode"].parent_run_id == runs["generate"].run_id
    assert runs["generate"].parent_run_id is None
    assert runs["decode"].unit == "token"


def test_a_report_in_both_files_counts_once(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "benchmark.json").write_text(text(REPORT, CONFIG))
    (tmp_path / "in" / "benchmark_report.json").write_text(text(REPORT))
    result = import_files([tmp_path / "in"], ledger=tmp_path / "ledger")
    assert result.totals.runs == 2
    assert result.totals.energy_kwh == pytest.approx(1.1e-4)


def test_energy_star_and_training_state_the_whole(tmp_path):
    whole = {"load_dataset": target(energy(1e-6, 1e-6)), "forward": target(energy(1e-3, 1e-3), mean=2.0)}
    forward = read_text(IMPORTER, tmp_path, text(whole)).runs[1]
    assert (forward.duration_s, forward.units) == (20.0, None)
    overall = read_text(IMPORTER, tmp_path, text({"overall": target(energy(1e-3, 1e-3), mean=2.0)})).runs[0]
    assert (overall.duration_s, overall.units) == (20.0, None)


def test_an_energy_that_was_not_tracked_is_unknown(tmp_path):
    got = read_text(IMPORTER, tmp_path, text({"forward": target(None)}))
    assert got.runs[0].energy[0].energy_j is None
    assert "CL260" in codes(got)


def test_an_energy_of_zero_is_unknown(tmp_path):
    got = read_text(IMPORTER, tmp_path, text({"forward": target(energy(0.0))}))
    assert got.records[0].stated_j is None
    assert got.runs[0].energy[0].energy_j is None
    assert "CL260" in codes(got)


@pytest.mark.parametrize(("device", "has_gpu", "code"), [("cuda", True, "CL253"), ("cpu", False, None)])
def test_a_gpu_of_zero_is_unknown_where_it_did_the_work(tmp_path, device, has_gpu, code):
    config = {**CONFIG, "backend": {**CONFIG["backend"], "device": device}}
    got = read_text(IMPORTER, tmp_path, text({"forward": target(energy(2e-5, 1e-5, 0.0, 1e-5))}, config))
    parts = {e.component: e.energy_j for e in got.runs[0].energy}
    assert ("gpu" in parts) is has_gpu
    assert parts.get("gpu") is None
    assert (code is None) == ("CL253" not in codes(got))


def test_a_decode_below_zero_is_left_out_and_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, text({"decode": target(energy(-1e-6)), "forward": GENERATE}))
    assert (len(got.runs), got.rows_rejected) == (1, 1)
    assert "CL202" in codes(got)


def test_parts_that_miss_the_total_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, text({"forward": target(energy(1e-5, 1e-6))}))
    assert [e.component for e in got.runs[0].energy] == ["total"]
    assert "CL256" in codes(got)


def test_joules_under_kwh_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, text({"forward": target(energy(36.0, 36.0))}))
    assert any(f.code == "CL248" and "J would fit" in f.message for f in got.findings)


def test_another_unit_is_no_figure(tmp_path):
    got = read_text(IMPORTER, tmp_path, text({"forward": target(energy(36.0, 36.0, unit="J"))}))
    assert (got.runs, got.rows_rejected) == ((), 1)


@pytest.mark.parametrize("content", ['{"a": 1}', '{"memory": null}', '{"config": {"a": 1}}', "[1]"])
def test_other_json_is_not_claimed(tmp_path, content):
    (tmp_path / "a").write_text(content)
    assert not claimed(IMPORTER, tmp_path / "a")
