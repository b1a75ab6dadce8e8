"""perun's exports: the tree of runs, and the readings."""

import json
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.perun import IMPORTER
from carbonlens.importers.perun_csv import IMPORTER as CSV
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text

COLUMNS = ",run id,hostname,device_group,sensor,unit,magnitude,timestep,value"


def metric(name, value, unit="J", mag=1.0):
    told = {"unit": unit, "mag": mag, "dtype": "float32", "min": 0, "max": 3.4e38, "fill": -1}
    return {"type": name, "value": value, "metric_md": told, "agg": "sum"}


def node(kind, name, nodes=(), metadata=None, **metrics):
    return {
        "id": name,
        "type": kind,
        "metadata": metadata or {},
        "metrics": {k: v if isinstance(v, dict) else metric(k, v) for k, v in metrics.items()},
        "regions": None,
        "deviceType": None,
        "processed": True,
        "nodes": [{n["id"]: n for n in nodes}],
    }


def run(name="0", cpu=3000.0, gpu=7000.0, whole=10_000.0, seconds=100.0):
    host = node(4, "node1", cpu_energy=cpu, gpu_energy=gpu)
    told = {"cpu_energy": cpu, "gpu_energy": gpu, "energy": whole, "co2": metric("co2", whole / 36_000, "g")}
    known = {key: value for key, value in told.items() if value is not None}
    return node(3, name, [host], runtime=metric("runtime", seconds, "s"), **known)


def tree(*runs, **configured):
    settings = {f"post-processing.{name}": value for name, value in configured.items()}
    multi = node(2, "m1", runs, {"execution_dt": "2026-03-02T10:00:00", **settings}, energy=1.0)
    return json.dumps(node(1, "train", [multi], {"creation_dt": "2026-03-02T10:00:00"}, energy=1.0)) + "\n"


class TestTree(ImporterContract):
    """The contract of importers, on two rounds."""

    importer = IMPORTER
    files: ClassVar = {"train.json": tree(run("0"), run("1", 2000.0, 5000.0, 7000.0))}
    runs = 2
    energy_j = 17_000.0


def row(n, run, sensor, second, value, *kind, mag=1.0):
    group, unit = (*kind, "gpu", "W")[:2] if len(kind) != 1 else (kind[0], "W")
    return f"{n},{run},node1,{group},{sensor},{unit},{mag},{second},{value}"


class TestReadings(ImporterContract):
    """The contract of importers, on the readings of two devices."""

    importer = CSV
    files: ClassVar = {
        "train.csv": "\n".join(
            [COLUMNS]
            + [row(n, 0, "GPU0_POWER", n + 0.25, 200.5) for n in range(6)]
            + [row(n + 6, 0, "CPU0", n + 0.25, 50.5, "cpu") for n in range(6)]
            + [""]
        )
    }
    options: ClassVar = Options(start_us=1_772_445_600_000_000)
    runs = 1
    energy_j = 5 * 251.0
    delimiter = ","
    essential = ("value",)


def test_a_run_has_the_energy_of_its_devices_and_its_time(tmp_path):
    got = read_text(IMPORTER, tmp_path, tree(run("0"), run("1", seconds=50.0)), Options(tz="UTC"))
    first, second = got.runs
    parts = [(e.component, float(e.energy_j), e.grade) for e in first.energy]
    assert parts == [("cpu", 3000.0, "B"), ("gpu", 7000.0, "C")]
    assert (first.duration_s, first.workload, first.hardware) == (100.0, "train", "node1")
    assert float(first.emissions_reported_kg) == pytest.approx(10_000 / 3.6e7)
    assert first.start_us == 1_772_445_600_000_000
    assert second.start_us == first.end_us
    assert first.beside == ()
    assert codes(got) == []


def test_the_overhead_and_the_pue_are_taken_out_and_stand_beside(tmp_path):
    got = read_text(
        IMPORTER, tmp_path, tree(run(whole=(10_000 + 30 * 100) * 1.5), pue=1.5, power_overhead=30)
    )
    (record,) = got.records
    assert sum(float(e.energy_j) for e in record.run.energy) == 10_000
    (beside,) = record.run.beside
    assert (float(beside.energy_j), beside.boundary) == (19_500.0, "facility")
    assert float(record.stated_j) == 19_500


def test_a_run_without_power_is_not_measured(tmp_path):
    told = node(
        3,
        "0",
        [node(4, "node1")],
        runtime=metric("runtime", 141.391, "s"),
        cpu_util=metric("cpu_util", 62.8, "%"),
    )
    got = read_text(IMPORTER, tmp_path, tree(told))
    (record,) = got.records
    assert [e.energy_j for e in record.run.energy] == [None]
    assert record.stated_j is None
    assert record.run.duration_s == 141.391
    assert "CL260" in codes(got)


def test_devices_that_miss_the_sum_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, tree(run(whole=12_000.0)))
    assert [(e.component, float(e.energy_j)) for e in got.runs[0].energy] == [("total", 12_000.0)]
    assert "CL256" in codes(got)


def test_magnitudes_are_minded_and_other_units_refused(tmp_path):
    told = run(cpu=metric("cpu_energy", 3.0, mag=1e3))
    told["metrics"]["cpu_energy"] = metric("cpu_energy", 3.0, mag=1e3)
    got = read_text(IMPORTER, tmp_path, tree(told))
    assert float(got.runs[0].energy[0].energy_j) == 3000.0
    told["metrics"]["energy"] = metric("energy", 3.0, unit="W")
    got = read_text(IMPORTER, tmp_path, tree(told))
    assert (got.runs, got.rows_rejected) == ((), 1)


def test_nodes_may_stand_in_a_mapping(tmp_path):
    told = json.loads(tree(run()))
    told["nodes"] = told["nodes"][0]
    assert len(read_text(IMPORTER, tmp_path, json.dumps(told)).runs) == 1


def test_a_tree_without_runs_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no run"):
        read_text(IMPORTER, tmp_path, tree())


def test_millijoules_under_joules_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, tree(run("0", 3e6, 7e6, 1e7)))
    assert any(f.code == "CL248" for f in got.findings)


def test_readings_without_watts_are_refused(tmp_path):
    text = "\n".join([COLUMNS, row(0, 0, "CPU_UTIL", 0.5, 50, "cpu", "%"), ""])
    with pytest.raises(InputFileError, match="energy cannot be computed"):
        read_text(CSV, tmp_path, text)


def test_rounds_and_magnitudes_of_readings(tmp_path):
    rows = [row(n, r, "GPU0", n, 200_000, mag=0.001) for r in (0, 1) for n in range(5)]
    rows += [row(n, 0, "NODE", n, 500, "node") for n in range(5)]
    rows += [row(n, 0, "NET_READ", n, 9e9, "net", "B") for n in range(5)]
    got = read_text(CSV, tmp_path, "\n".join([COLUMNS, *rows, ""]))
    hosts = {r.host_id: r for r in got.runs}
    assert set(hosts) == {"node1", "node1, round 1"}
    assert [float(e.energy_j) for e in hosts["node1"].energy] == [800.0]
    assert [float(e.energy_j) for e in hosts["node1"].beside] == [2000.0]
    assert "CL245" in codes(got)


def test_other_json_is_not_claimed(tmp_path):
    (tmp_path / "a").write_text('{"id": "x", "type": "run", "metadata": {}}')
    assert not claimed(IMPORTER, tmp_path / "a")
