"""Zeus: windows of its monitor, its power traces and its power logs."""

import itertools
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.zeus import IMPORTER
from carbonlens.importers.zeus_power import IMPORTER as POWER
from carbonlens.importers.zeus_summary import IMPORTER as SUMMARY
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import real_file, right_totals, taken
from tests.importers.reading import claimed, codes, read_text

HEADER = "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy"
EPOCH = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power"


def of(*rows):
    return "\n".join([HEADER, *rows, ""])


class TestWindows(ImporterContract):
    """The contract of importers, on two windows of two GPUs."""

    importer = IMPORTER
    files: ClassVar = {
        "zeus.csv": of("1767225600.5,train,100.0,10000.5,9000.5", "1767225700.5,evaluate,50.0,4000.0,3000.0")
    }
    runs = 2
    energy_j = 26_001.0
    delimiter = ","
    essential = ("gpu0_energy",)


class TestEpochs(ImporterContract):
    """The contract of importers, on two epochs."""

    importer = SUMMARY
    files: ClassVar = {
        "power.csv": f"{EPOCH}\ncifar,net,128,adam,100,100.5,100.0\ncifar,net,128,adam,150,80.0,150.0\n"
    }
    runs = 2
    energy_j = 22_050.0
    delimiter = ","
    essential = ("time_per_epoch", "average_power")


class TestPower(ImporterContract):
    """The contract of importers, on ten samples."""

    importer = POWER
    files: ClassVar = {
        "power.csv": "Time,Power\n"
        + "".join(f"2026-03-02 10:00:0{n}.123456789,{200_000 + 1000 * n}\n" for n in range(10))
    }
    options: ClassVar = Options(tz="UTC")
    runs = 1
    energy_j = 204.0 * 9
    tolerance = 1e-2
    delimiter = ","
    essential = ("power",)
    clocks = True


def test_the_energy_of_each_gpu_stands_by_itself(tmp_path):
    got = read_text(IMPORTER, tmp_path, of("1767225600.5,train,100.0,10000.5,9000.5"))
    (run,) = got.runs
    assert [(e.component, float(e.energy_j), e.devices) for e in run.energy] == [
        ("gpu", 10_000.5, ("GPU 0",)),
        ("gpu", 9_000.5, ("GPU 1",)),
    ]
    assert {e.grade for e in run.energy} == {"B"}
    assert (run.start_us, run.end_us) == (1_767_225_600_500_000, 1_767_225_700_500_000)
    assert run.tags == {"window": "train"}
    assert codes(got) == []


def test_times_since_the_machine_started_are_in_no_hour(tmp_path):
    got = read_text(
        IMPORTER, tmp_path, of("13586410.28,a,8.2,1067.5,1072.4", "13586420.69,b,8.0,1066.0,1045.9")
    )
    assert [r.start_us for r in got.runs] == [None, None]
    assert codes(got) == ["CL245"]
    assert float(got.energy_j) == pytest.approx(4251.8)


def test_a_window_within_another_is_a_part_of_it(tmp_path):
    rows = (
        "1767225610.0,step,10.0,1000,900",
        "1767225620.0,step,10.0,1000,900",
        "1767225600.0,epoch,100.0,10000,9000",
        "1767225700.0,next,10.0,1000,900",
    )
    got = read_text(IMPORTER, tmp_path, of(*rows))
    ids = {r.tags["window"]: r.run_id for r in got.runs}
    parents = [(r.tags["window"], r.parent_run_id) for r in got.runs]
    assert parents == [("step", ids["epoch"]), ("step", ids["epoch"]), ("epoch", None), ("next", None)]
    roots = [r for r in got.runs if r.parent_run_id is None]
    assert float(sum(e.energy_j for r in roots for e in r.energy)) == 20_900
    assert codes(got) == ["CL262"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_nearest_window_around_is_the_parent_in_any_order(tmp_path, order):
    rows = ["1767225600,run,100,9000,1", "1767225610,epoch,50,4000,1", "1767225620,step,10,900,1"]
    got = read_text(IMPORTER, tmp_path, of(*(rows[i] for i in order)))
    runs = {r.tags["window"]: r for r in got.runs}
    assert runs["run"].parent_run_id is None
    assert runs["epoch"].parent_run_id == runs["run"].run_id
    assert runs["step"].parent_run_id == runs["epoch"].run_id


def test_windows_that_overlap_in_part_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, of("1767225600,a,100,9000,1", "1767225650,b,100,9000,1"))
    (said,) = [f for f in got.findings if f.code == "CL262"]
    assert said.severity == "warning"
    assert "overlap" in said.message


def test_a_window_shorter_than_the_counters_step_is_unknown(tmp_path):
    got = read_text(IMPORTER, tmp_path, of("1767225600,a,0.05,0.0,12.0"))
    assert got.runs[0].energy[0].energy_j is None
    assert got.energy_j is None
    assert "CL253" in codes(got)


def test_millijoules_under_joules_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, of("1767225600,a,100,20000000,20000000"))
    assert any(f.code == "CL248" and "mJ would fit" in f.message for f in got.findings)


def test_an_epoch_is_time_times_power(tmp_path):
    got = read_text(SUMMARY, tmp_path, f"{EPOCH}\ncifar,net,128,adam,100,100.5,100.0\n")
    (run,) = got.runs
    assert (float(run.energy[0].energy_j), run.duration_s) == (10_050.0, 100.5)
    assert (run.units, run.unit, run.workload) == (1, "epoch", "net on cifar")
    assert run.tags["power_limit"] == "100"
    assert codes(got) == ["CL264", "CL245"]
    assert "1 row tells of the mean epoch of one setting" in got.findings[0].message


def test_the_trace_without_power_is_refused(tmp_path):
    text = (
        "dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch\na,b,1,c,1,1,1,1\n"
    )
    with pytest.raises(InputFileError, match="energy cannot be computed"):
        read_text(SUMMARY, tmp_path, text)


def test_a_power_log_is_milliwatts_and_its_cut_off_end_is_said(tmp_path):
    lines = "".join(f"2026-03-02 10:00:0{n}.100000001,50000\n" for n in range(5))
    got = read_text(POWER, tmp_path, f"Time,Power\n{lines}2026-03-02 10:00:05.1", Options(tz="Europe/Paris"))
    (record,) = got.records
    assert (record.measured.samples, record.measured.mean_power_w) == (5, 50.0)
    assert record.run.start_us == 1_772_442_000_100_000
    assert codes(got) == ["CL202"]


@pytest.mark.parametrize("row", ["2026-03-02 10:00:00,50", "2026-03-02 10:00:00.100000001,50.5", "1.5,50"])
def test_other_logs_of_the_same_header_are_not_claimed(tmp_path, row):
    (tmp_path / "a").write_text(f"Time,Power\n{row}\n")
    assert not claimed(POWER, tmp_path / "a")


def test_the_real_windows_come_to_their_totals():
    told = right_totals("zeus01_4gpu.csv")
    got = taken(IMPORTER, real_file("zeus01_4gpu.csv"))
    runs = [r.run for r in got.records]
    assert len(runs) == told["windows"]
    assert {len(r.energy) for r in runs} == {told["gpus"]}
    sums = {r.tags["window"].strip("_"): float(sum(e.energy_j for e in r.energy)) for r in runs}
    assert sums == pytest.approx(told["per_window_J"], rel=1e-3)
    assert sum(sums.values()) == pytest.approx(told["energy_J"], rel=1e-6)
    assert sum(r.duration_s for r in runs) == pytest.approx(told["elapsed_s"], rel=1e-6)
    assert all(r.parent_run_id is None for r in runs)


def test_the_real_epochs_come_to_their_totals():
    told = right_totals("zeus03_power_a40.csv")
    got = taken(SUMMARY, real_file("zeus03_power_a40.csv"))
    joules = [float(r.run.energy[0].energy_j) for r in got.records]
    assert (got.rows, got.rejected) == (told["rows"], 0)
    assert sum(joules) == pytest.approx(told["one_epoch_each_J"], rel=1e-6)
    assert joules[0] == pytest.approx(told["first_row_J"], rel=1e-6)
    first = got.records[0].run
    alike = [
        r.run for r in got.records if r.run.workload == first.workload and _others(r.run) == _others(first)
    ]
    best = min(alike, key=lambda r: r.energy[0].energy_j)
    assert best.tags["power_limit"] == told["best_limit_for_first_config"]
    assert float(best.energy[0].energy_j) == pytest.approx(told["best_J"], rel=1e-6)


def _others(run):
    return {name: value for name, value in run.tags.items() if name != "power_limit"}
