"""codecarbon's emissions.csv: every era, and each of its traps."""

from decimal import Decimal
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.importers.codecarbon import IMPORTER
from carbonlens.importers.contract import Options
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

S38 = (
    "timestamp,project_name,run_id,experiment_id,duration,emissions,emissions_rate,cpu_power,gpu_power,"
    "ram_power,cpu_energy,gpu_energy,ram_energy,energy_consumed,water_consumed,country_name,"
    "country_iso_code,region,cloud_provider,cloud_region,os,python_version,codecarbon_version,cpu_count,"
    "cpu_model,gpu_count,gpu_model,longitude,latitude,ram_total_size,tracking_mode,"
    "cpu_utilization_percent,gpu_utilization_percent,ram_utilization_percent,ram_used_gb,on_cloud,pue,wue"
)
ROW_1 = (
    "2026-03-02T10:00:00,alpha,run-1,exp-1,100.0,0.0005,5e-06,45.0,100.0,"
    "35.0,0.00125,0.00275,0.001,0.005,0.0,France,"
    "FRA,,,,Linux-6.1,3.11.7,3.2.3,8,"
    "Some CPU @ 2.50GHz,1,1 x Some GPU,2.3,48.8,23.54,machine,"
    "10.0,20.0,30.0,4.0,N,1.0,0.0"
)
ROW_2 = ROW_1.replace("10:00:00", "11:00:00").replace("run-1", "run-2")


class TestConformance(ImporterContract):
    """The contract of importers, on two runs of the newest era."""

    importer = IMPORTER
    files: ClassVar = {"emissions.csv": f"{S38}\n{ROW_1}\n{ROW_2}\n"}
    runs = 2
    energy_j = 36_000.0
    delimiter = ","
    essential = ("energy_consumed",)
    clocks = False


def row(**changes):
    """Return a row of the newest era with some cells changed."""
    cells = dict(zip(S38.split(","), ROW_1.split(","), strict=True)) | changes
    return ",".join(cells[name] for name in S38.split(","))


def read(folder, *rows, header=S38, **options):
    text = "\n".join((header, *rows)) + "\n"
    return read_text(IMPORTER, folder, text, Options(**options))


def test_parts_have_their_own_grades_and_sum_to_the_whole(tmp_path):
    (run,) = read(tmp_path, ROW_1).runs
    assert {r.component: r.grade for r in run.energy} == {"cpu": "D", "gpu": "B", "ram": "E"}
    assert sum(r.energy_j for r in run.energy) == Decimal("18000.000000")
    assert run.emissions_reported_kg == Decimal("0.0005")
    assert all(r.boundary == "device" and r.estimate.low < r.estimate.value for r in run.energy)


ERAS = {
    "S12": "timestamp,experiment_id,project_name,duration,emissions,energy_consumed,country_name,"
    "country_iso_code,region,on_cloud,cloud_provider,cloud_region",
    "S29": ",".join(
        c
        for c in S38.split(",")
        if c
        not in {
            *("experiment_id", "codecarbon_version", "water_consumed", "pue", "wue", "ram_used_gb"),
            *("cpu_utilization_percent", "gpu_utilization_percent", "ram_utilization_percent"),
        }
    ),
    "S31": ",".join(
        c
        for c in S38.split(",")
        if c
        not in {
            *("experiment_id", "water_consumed", "wue", "ram_used_gb"),
            *("cpu_utilization_percent", "gpu_utilization_percent", "ram_utilization_percent"),
        }
    ),
    "S34": ",".join(
        c
        for c in S38.split(",")
        if c
        not in {
            *("cpu_utilization_percent", "gpu_utilization_percent", "ram_utilization_percent", "ram_used_gb"),
        }
    ),
    "S38": S38,
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("turned", [False, True], ids=["in order", "columns turned round"])
def test_every_era_comes_to_the_same_totals(tmp_path, era, turned):
    names = ERAS[era].split(",")[:: -1 if turned else 1]
    cells = dict(zip(S38.split(","), ROW_1.split(","), strict=True))
    (record,) = read(tmp_path, ",".join(cells[n] for n in names), header=",".join(names)).records
    assert record.stated_j == Decimal("18000.000000")
    assert record.run.duration_s == 100.0
    assert record.run.run_id in {"run-1", "exp-1"}
    assert sum(r.energy_j for r in record.run.energy) == Decimal("18000.000000")


def test_rows_that_slid_to_the_left_are_put_right_and_said(tmp_path):
    cells = dict(zip(S38.split(","), row(run_id="run-2").split(","), strict=True))
    short = [v for n, v in cells.items() if n not in {"region", "longitude", "latitude"}]
    # An empty cell in the middle that was kept, as those releases did.
    got = read(tmp_path, ROW_1, ",".join(short))
    assert (got.rows, got.rows_rejected) == (2, 0)
    slid = got.runs[1]
    assert "ram_total_size 23.54" in slid.hardware
    assert slid.tags["tracking_mode"] == "machine"
    (found,) = (f for f in got.findings if f.code == "CL254")
    assert (found.line, found.severity) == (3, "warning")


@given(st.sets(st.sampled_from(["region", "longitude", "latitude"]), min_size=1))
def test_whatever_slid_no_figure_changes(tmp_path_factory, gone):
    cells = dict(zip(S38.split(","), row(region="", longitude="", latitude="").split(","), strict=True))
    short = ",".join(v for n, v in cells.items() if n not in gone)
    got = read(tmp_path_factory.mktemp("slid"), short)
    plain = read(tmp_path_factory.mktemp("plain"), ",".join(cells.values()))
    assert len(got.runs) + got.rows_rejected == 1
    for run in got.runs:
        assert [r.energy_j for r in run.energy] == [r.energy_j for r in plain.runs[0].energy]
        assert run.hardware == plain.runs[0].hardware


def test_a_glued_line_is_left_out_with_its_number(tmp_path):
    got = read(tmp_path, ROW_1, ROW_1 + ROW_2, row(run_id="run-3"))
    assert [r.run_id for r in got.runs] == ["run-1", "run-3"]
    (found,) = (f for f in got.findings if f.code == "CL202")
    assert (found.line, got.rows_rejected) == (3, 1)


def test_the_pue_is_taken_out_once_and_the_facility_stands_beside(tmp_path):
    raised = row(
        pue="1.5",
        energy_consumed="0.00022917",
        duration="10",
        cpu_power="45",
        ram_power="10",
        gpu_power="0",
        cpu_energy="0.0001875",
        ram_energy="0.00004167",
        gpu_energy="0",
        gpu_count="0",
        gpu_model="",
        emissions="0.00001",
    )
    got = read(tmp_path, raised)
    (run,) = got.runs
    assert float(sum(r.energy_j for r in run.energy)) / 3.6e6 == pytest.approx(0.000152778, rel=1e-3)
    (facility,) = run.beside
    assert facility.boundary == "facility"
    assert float(facility.energy_j) / 3.6e6 == pytest.approx(0.00022917, rel=1e-3)
    assert not {"CL247", "CL248", "CL250"} & set(codes(got))


def test_a_gpu_that_used_nothing_was_not_measured(tmp_path):
    got = read(tmp_path, row(gpu_energy="0.0", gpu_power="0.0", energy_consumed="0.00225"))
    (run,) = got.runs
    (gpu,) = (r for r in run.energy if r.component == "gpu")
    assert (gpu.energy_j, gpu.state) == (None, "unknown")
    assert run.total_energy.state == "unbounded"
    assert "CL253" in codes(got)


def test_an_absent_gpu_is_no_part(tmp_path):
    got = read(tmp_path, row(gpu_energy="0.0", gpu_count="0", gpu_model="", energy_consumed="0.00225"))
    assert [r.component for r in got.runs[0].energy] == ["cpu", "ram"]
    assert "CL253" not in codes(got)


def test_energy_that_belies_its_power_is_said(tmp_path):
    """mlco2/codecarbon issue 184."""
    head = (
        "timestamp,project_name,run_id,duration,emissions,cpu_power,gpu_power,ram_power,"
        "cpu_energy,gpu_energy,ram_energy,energy_consumed"
    )
    odd = "2021-06-08T22:37:12,p,r1,1016,0.05,42.5,390.005,0,0.1114854821,0.1100690381,0,0.2215545202"
    got = read(tmp_path, odd, header=head)
    (found,) = (f for f in got.findings if f.code == "CL247")
    assert "395 W" in found.message
    assert "9.3x" in found.message
    assert len(got.runs) == 1


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [
        (
            {"energy_consumed": "18000", "cpu_energy": "", "gpu_energy": "", "ram_energy": ""},
            "CL248",
            " J would",
        ),
        ({"emissions": "2.0"}, "CL250", "2 g would"),
    ],
)
def test_a_header_that_lies_is_said_with_what_would_fit(tmp_path, changes, code, told):
    got = read(tmp_path, row(**changes))
    (found,) = (f for f in got.findings if f.code == code)
    assert told in found.message
    assert len(got.runs) == 1


def test_local_times_go_by_the_zone_and_else_are_said(tmp_path):
    (plain,) = read(tmp_path, ROW_1, tz="UTC").runs
    (paris,) = read(tmp_path, ROW_1, tz="Europe/Paris").runs
    assert plain.end_us - paris.end_us == 3_600_000_000
    assert paris.end_us - paris.start_us == 100_000_000
    assert "CL241" in codes(read(tmp_path, ROW_1))
    assert "CL241" not in codes(read(tmp_path, ROW_1, tz="UTC"))


def test_zones_by_project_go_before_the_zone_of_all(tmp_path):
    options = {"tz": "UTC", "tz_by_project": {"al*": "Asia/Tokyo"}}
    one, other = read(tmp_path, ROW_1, row(run_id="run-2", project_name="beta"), **options).runs
    assert other.end_us - one.end_us == 9 * 3_600_000_000


def test_the_fallback_place_is_not_believed(tmp_path):
    fallback = row(country_iso_code="CAN", region="quebec", longitude="-71.2", latitude="46.8")
    (record,) = read(tmp_path, fallback).records
    assert record.place.doubt
    real = row(country_iso_code="CAN", region="quebec", longitude="-73.6", latitude="45.5")
    assert read(tmp_path, real).records[0].place.doubt is None


def test_tasks_are_parts_of_their_run(tmp_path):
    head = "task_name," + S38
    one, other = read(tmp_path, "load," + ROW_1, "train," + ROW_1, header=head).runs
    assert (one.parent_run_id, other.parent_run_id) == ("run-1", "run-1")
    assert one.run_id != other.run_id


def test_a_constant_experiment_id_is_no_identity(tmp_path):
    default = "5b0fa12a-3dd7-45bb-9766-cc326314d9f1"
    head = "timestamp,experiment_id,project_name,duration,emissions,energy_consumed"
    rows = (f"2021-01-01T0{n}:00:00,{default},p,10,0.001,0.002" for n in range(3))
    assert len({r.run_id for r in read(tmp_path, *rows, header=head).runs}) == 3
