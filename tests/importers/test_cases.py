"""Problem reports of other tools' users, where their files lie beside the project: what must come out."""

import pytest

from carbonlens.app.importing import Placing, import_files
from carbonlens.ledger.store import Ledger
from tests.importers.parsed_traces import SHARED

pytestmark = pytest.mark.skipif(not (SHARED / "inputs").is_dir(), reason="../shared/cases is not here")


@pytest.fixture
def imported(tmp_path):
    def of(*patterns, **placing):
        paths = [path for pattern in patterns for path in sorted(SHARED.glob(pattern))]
        assert paths
        return import_files(paths, ledger=tmp_path / "ledger", placing=Placing(**placing))

    of.ledger = tmp_path / "ledger"
    return of


def said(result, code):
    return [f.message for file in result.files for f in file.findings if f.code == code]


def runs_of(imported):
    return list(Ledger(imported.ledger).view().runs)


def test_c01_a_tracker_that_was_stopped_twice_is_one_run(imported):
    result = imported("inputs/c01.csv")
    told = result.totals
    assert (told.runs, told.energy_kwh, told.emissions_reported_kg, told.duration_s) == (
        1,
        pytest.approx(1.01e-5),
        pytest.approx(4.04e-7),
        pytest.approx(2.020),
    )
    assert any("1 superseded row was dropped" in text for text in said(result, "CL252"))


def test_c03_a_line_of_two_records_is_rejected_by_its_number(imported):
    result = imported("inputs/c03.csv")
    assert (result.totals.runs, result.totals.energy_kwh) == (2, pytest.approx(0.30))
    assert result.totals.rows_rejected > 0
    assert any("line 3" in text for text in said(result, "CL202"))


def test_c05_files_that_overlap_count_each_run_once(imported):
    result = imported("inputs/c05_*")
    told = result.totals
    assert (told.runs, told.energy_kwh, told.emissions_reported_kg, told.duration_s) == (
        3,
        pytest.approx(1.75),
        pytest.approx(0.7),
        pytest.approx(30.0),
    )
    assert {r.origin.source_file for r in runs_of(imported)} == {
        "c05_emissions.csv",
        "c05_emissions.csv_1.bak",
    }


def test_c06_an_energy_that_is_ninefold_the_power_is_said(imported):
    result = imported("inputs/c06.csv")
    assert result.totals.runs == 1
    (text,) = said(result, "CL247")
    assert "cpu_energy implies 395 W, 9.3x the stated cpu_power" in text


def test_c07_a_prediction_is_not_counted_and_its_nan_nowhere(imported):
    told = imported("inputs/c07_carbontracker_output.log").totals
    assert (told.runs, told.duration_s) == (1, 20.0)
    assert told.energy_kwh == pytest.approx(0.000263)
    assert told.emissions_reported_kg == pytest.approx(0.000019182)


def test_c08_the_first_watts_of_two_analyzers_is_the_whole(imported):
    result = imported("inputs/c08_spl.txt", tz="UTC")
    assert result.totals.mean_power_w == pytest.approx(450.945, abs=1e-3)
    assert said(result, "CL247") == []
    (run,) = runs_of(imported)
    assert [r.devices for r in run.beside] == [("Analyzer1",), ("Analyzer2",)]


def test_c09_instances_of_a_gpu_repeat_its_energy(imported):
    result = imported("files/dcgm02_mig_dup.prom")
    assert result.totals.energy_kwh == pytest.approx(0.4360402, rel=1e-6)
    devices = {d for run in runs_of(imported) for reading in run.energy for d in reading.devices}
    assert len(devices) == 8


def test_c10_only_the_marked_window_counts(imported):
    result = imported("files/mlperf_orin_off_*")
    told = result.totals
    assert (told.runs, told.samples) == (1, 600)
    assert told.mean_power_w == pytest.approx(23.863083, rel=1e-6)
    assert told.energy_kwh * 3.6e6 == pytest.approx(14317.898, rel=1e-3)
    assert said(result, "CL247") == []


def test_c10_a_missing_mark_is_refused_and_named(tmp_path):
    for path in SHARED.glob("files/mlperf_orin_off_run_1_*"):
        lines = path.read_text().splitlines(keepends=True)
        (tmp_path / path.name).write_text("".join(line for line in lines if '"power_begin"' not in line))
    result = import_files(sorted(tmp_path.glob("mlperf*")), ledger=tmp_path / "ledger")
    assert result.totals.runs == 0
    assert any("no power_begin mark" in text for text in said(result, "CL214"))


def test_c21_two_hosts_of_one_index_are_two_gpus(imported):
    """Their logs are equal to the last byte: the names of the files tell the hosts, and it is said."""
    result = imported("inputs/c21_host_*.csv", tz="UTC")
    assert result.totals.energy_kwh * 3.6e6 == pytest.approx(2000.0)
    assert [float(r.energy[0].energy_j) for r in runs_of(imported)] == pytest.approx([1000.0, 1000.0])
    assert len(said(result, "CL291")) == 1
