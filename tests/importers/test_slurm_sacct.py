"""SLURM's sacct: a run a job, with the energy that its nodes told."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.slurm_sacct import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import real_file, right_totals
from tests.importers.reading import claimed, codes, read_file, read_text

HEADER = (
    "JobID|JobName|Account|State|Start|End|Elapsed|NNodes|NCPUS|ReqMem|NodeList|AllocTRES|ConsumedEnergyRaw"
)
PARIS = Options(tz="Europe/Paris", boundary="it")


def job(name="101", energy="360000", start="10:00:00", end="11:00:00", **more):
    told = {
        "JobID": name,
        "JobName": "train",
        "Account": "vision",
        "State": "COMPLETED",
        "Start": f"2026-03-02T{start}",
        "End": f"2026-03-02T{end}",
        "Elapsed": "01:00:00",
        "NNodes": "1",
        "NCPUS": "32",
        "ReqMem": "",
        "NodeList": "node1",
        "AllocTRES": "billing=32,cpu=32,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1",
        "ConsumedEnergyRaw": energy,
    } | more
    return "|".join(told.values())


def table(*rows):
    return "\n".join([HEADER, *rows, ""])


class TestConformance(ImporterContract):
    """The contract of importers, on two jobs."""

    importer = IMPORTER
    files: ClassVar = {
        "sacct.txt": table(
            job(), job("102", "720000", "12:00:00", "13:00:00", JobName="evaluate", NodeList="node2")
        )
    }
    options: ClassVar = PARIS
    runs = 2
    energy_j = 1_080_000.0
    delimiter = "|"
    essential = ("consumedenergyraw",)


@pytest.fixture
def read(tmp_path):
    return lambda *rows, options=PARIS: read_text(IMPORTER, tmp_path, table(*rows), options)


def test_a_job_is_a_run(read):
    got = read(job())
    (run,) = got.runs
    assert (run.job_id, run.workload, run.status, run.duration_s) == ("101", "train", "complete", 3600.0)
    assert run.start_us == 1_772_442_000_000_000
    assert (run.energy[0].grade, run.energy[0].boundary) == ("C", "it")
    assert run.tags["core_hours"] == "32"
    assert run.tags["gpu_hours"] == "2", "GPUs by kind are parts of the plain figure"
    assert run.tags["memory_mib"] == "65536"
    assert codes(got) == []


def test_lines_of_steps_are_not_added_to_their_job(read):
    got = read(job(), job("101.batch", "350000"), job("101.extern", "360000"), job("101.0", "340000"))
    assert (len(got.runs), got.energy_j, got.rows) == (1, 360_000, 4)


@pytest.mark.parametrize("nothing", ["", "0", "4294967294", "18446744073709551614", "N/A"])
def test_what_was_not_measured_is_unknown_and_not_zero(read, nothing):
    got = read(job(energy=nothing))
    assert got.energy_j is None
    assert "CL260" in codes(got)


def test_steps_tell_where_the_job_does_not(read):
    whole = read(job(energy=""), job("101.batch", "350000"), job("101.0", "340000"))
    assert whole.energy_j == 350_000, "the batch step is the job's whole time on its one node"
    extern = read(job(energy="", NNodes="2"), job("101.batch", "5"), job("101.extern", "700000", NNodes="2"))
    assert extern.energy_j == 700_000


def test_steps_one_after_another_are_a_lower_bound(read):
    got = read(
        job(energy="", NNodes="2"),
        job("101.0", "1000", "10:00:00", "10:20:00"),
        job("101.1", "2000", "10:20:00", "10:40:00"),
    )
    assert got.energy_j == 3000
    assert got.runs[0].energy[0].state == "unbounded"
    assert "CL284" in codes(got)


def test_steps_at_the_same_time_are_not_added_up(read):
    got = read(
        job(energy="", NNodes="2"),
        job("101.0", "1000", "10:00:00", "10:30:00"),
        job("101.1", "2000", "10:20:00", "10:40:00"),
    )
    assert got.energy_j is None
    assert "CL284" in codes(got)


def test_jobs_that_share_a_node_are_said(read):
    shared = read(job(), job("102", "360000", "10:30:00", "11:30:00"))
    assert "CL284" in codes(shared)
    apart = read(job(), job("102", "360000", "11:00:00", "12:00:00"))
    assert "CL284" not in codes(apart)


def test_prefixes_are_of_1000(tmp_path):
    text = table(job(energy="1.25M")).replace("ConsumedEnergyRaw", "ConsumedEnergy")
    assert read_text(IMPORTER, tmp_path, text, PARIS).energy_j == 1_250_000


def test_a_job_listed_again_counts_once(read):
    got = read(job(), job())
    assert (len(got.runs), got.rows_repeated) == (1, 1)
    running = job(energy="100", State="RUNNING", End="Unknown", Elapsed="00:10:00")
    ids = {r.run_id for r in read(running, job()).runs}
    assert len(ids) == 1, "the later record of one job supersedes the earlier"


def test_a_job_that_waits_is_no_run(read):
    got = read(job(energy="", State="PENDING", Start="Unknown", End="Unknown", Elapsed="00:00:00"))
    assert not got.runs
    assert "CL262" in codes(got)


@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT", "CANCELLED by 1000", "OUT_OF_MEMORY"])
def test_the_energy_of_a_job_that_failed_was_used_too(read, state):
    got = read(job(State=state))
    assert (got.runs[0].status, got.energy_j) == ("failed", 360_000)


@pytest.mark.parametrize(
    ("tres", "requested", "mib"),
    [
        ("cpu=32,mem=6760M", "", "6760"),
        ("cpu=32", "2Gc", "65536"),
        ("cpu=32", "250Gn", "512000"),
        ("cpu=32", "512M", "512"),
        ("cpu=32", "?", None),
    ],
)
def test_memory_is_of_a_core_a_node_or_the_job(read, tres, requested, mib):
    got = read(job(NNodes="2", AllocTRES=tres, ReqMem=requested))
    assert got.runs[0].tags.get("memory_mib") == mib


def test_joules_that_are_kilowatt_hours_are_said(read):
    assert "CL248" in codes(read(job(energy="0.1")))


def test_a_boundary_that_nobody_told_is_said(read):
    got = read(job(), options=Options(tz="UTC"))
    assert got.runs[0].boundary is None
    assert "CL206" in codes(got)


def test_a_bar_at_the_end_of_lines_is_read(tmp_path):
    text = table(job()).replace("\n", "|\n")
    assert read_text(IMPORTER, tmp_path, text, PARIS).energy_j == 360_000


def test_a_table_parted_by_blanks_is_refused_with_the_mend(tmp_path):
    text = "JobID           Elapsed ConsumedEnergy \n------------ ---------- -------------- \n"
    with pytest.raises(InputFileError) as refused:
        read_text(IMPORTER, tmp_path, text)
    assert "--parsable2" in refused.value.mend


def test_another_table_of_jobs_is_not_claimed(tmp_path):
    (tmp_path / "a").write_text("jobid|elapsed|cost\n1|2|3\n")
    assert not claimed(IMPORTER, tmp_path / "a")


def test_the_real_table_comes_to_its_totals():
    got, expected = read_file(IMPORTER, real_file("ga4hpc01_sacct.txt")), right_totals("ga4hpc01_sacct.txt")
    assert len(got.runs) == expected["jobs"]
    assert got.energy_j is None
    assert [float(r.tags["core_hours"]) for r in got.runs] == pytest.approx(expected["core_hours"], rel=1e-5)
    assert [float(r.tags.get("gpu_hours", 0)) for r in got.runs] == pytest.approx(
        expected["gpu_hours"], rel=1e-5
    )
    assert [r.tags["memory_mib"] for r in got.runs] == ["6760", "256000"]
    assert {r.status for r in got.runs} == {"failed"}
    assert {"CL245", "CL260"} == set(codes(got))
