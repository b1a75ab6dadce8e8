"""ML.ENERGY's leaderboard: a run a configuration, once, and figures that imply each other."""

import json
from typing import ClassVar

import pytest

from carbonlens.app.importing import import_files
from carbonlens.importers.mlenergy import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text


def chat(batch, joules_a_token, rate, **more):
    return {
        "avg_output_len": 100.0,
        "avg_power_watts": joules_a_token * rate,
        "energy_per_request_joules": joules_a_token * 100,
        "energy_per_token_joules": joules_a_token,
        "gpu_model": "Some GPU",
        "max_num_seqs": batch,
        "num_gpus": 2,
        "output_throughput_tokens_per_sec": rate,
        **more,
    }


def of_model(*configurations, **more):
    told = {"configurations": list(configurations), "model_id": "some/model", "task": "chat", **more}
    return json.dumps(told | {"weight_precision": "bfloat16"}, indent=2) + "\n"


def of_task(*configurations):
    shared = {"model_id": "some/model", "weight_precision": "bfloat16", "nickname": "Some"}
    return json.dumps({"configurations": [{**c, **shared} for c in configurations], "task": "chat"}) + "\n"


BOTH = (chat(8, 2.0, 400.0), chat(64, 0.5, 2000.0))


class TestConformance(ImporterContract):
    """The contract of importers, on two configurations."""

    importer = IMPORTER
    files: ClassVar = {"model.json": of_model(*BOTH)}
    runs = 2
    energy_j = 250.0


def test_a_run_is_one_request(tmp_path):
    got = read_text(IMPORTER, tmp_path, of_model(BOTH[0]))
    (run,) = got.runs
    (energy,) = run.energy
    assert (float(energy.energy_j), energy.component, energy.grade) == (200.0, "gpu", "B")
    assert (run.units, run.unit, run.workload, run.hardware) == (1, "request", "some/model", "2 x Some GPU")
    assert run.tags["max_num_seqs"] == "8"
    assert sorted(codes(got)) == ["CL245", "CL264"]


def test_a_configuration_of_both_files_counts_once(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "model.json").write_text(of_model(*BOTH))
    (tmp_path / "in" / "task.json").write_text(of_task(*BOTH))
    result = import_files([tmp_path / "in"], ledger=tmp_path / "ledger")
    assert result.totals.runs == 2
    assert "CL213" not in [f.code for file in result.files for f in file.findings]


def test_images_are_units_of_their_own(tmp_path):
    told = {
        "avg_power_watts": 860.0,
        "batch_latency_s": 10.0,
        "batch_size": 2,
        "energy_per_image_joules": 4300.0,
        "gpu_model": "Some GPU",
        "image_height": 1024,
        "image_width": 512,
        "num_gpus": 1,
    }
    got = read_text(IMPORTER, tmp_path, of_model(told))
    (run,) = got.runs
    assert (float(run.energy[0].energy_j), run.unit, run.tags["size"]) == (4300.0, "image", "1024x512")
    assert "CL247" not in codes(got)


@pytest.mark.parametrize(
    "wrong",
    [{"energy_per_request_joules": 2e5}, {"avg_power_watts": 8e5}, {"energy_per_token_joules": 2000.0}],
)
def test_figures_that_do_not_imply_each_other_are_said(tmp_path, wrong):
    got = read_text(IMPORTER, tmp_path, of_model({**BOTH[0], **wrong}))
    assert "CL247" in codes(got)


def test_a_power_that_no_gpu_has_is_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, of_model(chat(8, 2000.0, 400.0)))
    assert any(f.code == "CL248" and "mW would fit" in f.message for f in got.findings)


@pytest.mark.parametrize("value", [None, 0.0, -5.0])
def test_a_configuration_without_energy_is_left_out(tmp_path, value):
    got = read_text(IMPORTER, tmp_path, of_model({**BOTH[0], "energy_per_request_joules": value}, BOTH[1]))
    assert (len(got.runs), got.rows_rejected) == (1, 1)
    assert "CL202" in codes(got)
