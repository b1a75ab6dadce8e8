"""Many ranks on one node: each a run of its own, the node's energy counted once, the ledger left in peace."""

import re
import shutil
import subprocess
import sys

import pytest

from carbonlens.accounting.allocation import allocate
from tests.hooks.nodes import METER, METERED
from tests.metering.processes import BURN, clean_environment, runs, state_folder

LAUNCHERS = {
    "slurm": lambda rank, ranks: {
        "SLURM_JOB_ID": "42",
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_NTASKS": str(ranks),
    },
    "openmpi": lambda rank, ranks: {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(ranks),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(ranks),
        "PMIX_NAMESPACE": "prterun-node-7@1",
    },
    "mpich": lambda rank, ranks: {
        "PMI_RANK": str(rank),
        "PMI_SIZE": str(ranks),
        "MPI_LOCALNRANKS": str(ranks),
        "MPI_LOCALRANKID": str(rank),
    },
}
RUN = [sys.executable, "-m", "carbonlens.cli.main", "run"]
TRACKED = (
    "import time\nfrom carbonlens import track\n"
    "with track('train'):\n"
    "    end = time.process_time() + 0.2\n    while time.process_time() < end: pass\n"
)


def bare(folder, **more):
    drop = ("OMPI", "PMI", "MPI_", "RANK", "WORLD_SIZE")
    return {k: v for k, v in clean_environment(folder).items() if not k.startswith(drop)} | more


def launched(folder, launcher, ranks, command, **more):
    """Start all ranks at once, as a launcher does, and wait for them."""
    started = [
        subprocess.Popen(
            command,
            cwd=folder,
            env=bare(folder, **LAUNCHERS[launcher](rank, ranks), **more),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    for process in started:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    return runs(folder / ".carbonlens")


def each_once(found, ranks):
    assert sorted(r.rank for r in found) == list(range(ranks))
    assert len({r.job_id for r in found}) == 1
    assert found[0].job_id
    assert {r.status for r in found} == {"complete"}
    assert {r.attempt for r in found} == {1}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("way", ["run", "track"])
def test_every_rank_is_recorded_once_under_one_job(tmp_path, launcher, way):
    work = [sys.executable, "-S", "-c", BURN.format(0.2)]
    found = launched(
        tmp_path, launcher, 4, [*RUN, "--", *work] if way == "run" else [sys.executable, "-c", TRACKED]
    )
    each_once(found, 4)
    # Each rank's own CPU time, and nobody else's.
    assert all(0.18 <= r.conditions.cpu_s < 1.5 for r in found)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["run", "track"])
@pytest.mark.parametrize(("on_node", "is_said"), [("2", False), ("1", True)])
def test_a_job_a_node_is_said(tmp_path, way, on_node, is_said):
    work = [*RUN, "--", "true"] if way == "run" else [sys.executable, "-c", TRACKED]
    environ = bare(tmp_path, PMI_RANK="0", PMI_SIZE="2", MPI_LOCALNRANKS=on_node)
    subprocess.run(work, cwd=tmp_path, env=environ, check=True, capture_output=True, timeout=120)
    (found,) = runs(tmp_path / ".carbonlens")
    assert ("CL185" in {f.code for f in found.findings}) is is_said


@pytest.mark.slow
def test_64_ranks_of_a_node_are_64_runs(tmp_path):
    found = launched(tmp_path, "slurm", 64, ["nice", *RUN, "--", "sleep", "0.2"])
    each_once(found, 64)
    # Journals lie in the state folder and are gone; nothing temporary is left anywhere.
    assert list((state_folder(tmp_path) / "journal").iterdir()) == []
    left = [f for f in (tmp_path / ".carbonlens").rglob("*") if f.is_file()]
    assert len(left) == 64 + 1, "a record each, and one .gitignore"


@pytest.mark.slow
def test_what_ranks_read_of_one_meter_is_counted_once(tmp_path):
    (tmp_path / "meter.py").write_text(METER)
    sources = METERED.format(
        python=sys.executable, program=tmp_path / "meter.py", component="wall", boundary="it"
    )
    (tmp_path / "sources.toml").write_text(sources)
    found = launched(
        tmp_path,
        "slurm",
        4,
        [*RUN, "--", "sleep", "3"],
        CARBONLENS_SOURCES=str(tmp_path / "sources.toml"),
    )
    each_once(found, 4)
    read = sum(float(r.energy_j) for run in found for r in run.energy if r.component == "wall")
    billed = sum(
        float(r.energy_j) for bill in allocate(found).bills.values() for r in bill.readings if r.energy_j
    )
    span_s = (max(r.end_us for r in found) - min(r.start_us for r in found)) / 1e6
    assert read > 2.5 * billed
    assert billed == pytest.approx(300 * span_s, rel=0.25)


CALL = re.compile(r"^\d+\s+(\w+)\(")


def ledger_calls(folder, *, tracer):
    """Return the system calls of one run that name the ledger or a file in it."""
    log = folder / "calls.txt"
    command = [tracer, "-f", "-o", str(log), "-e", "trace=file", *RUN, "--", "true"]
    subprocess.run(command, cwd=folder, env=bare(folder), check=True, capture_output=True, timeout=120)
    lines = [line for line in log.read_text().splitlines() if ".carbonlens" in line]
    return [CALL.match(line)[1] for line in lines if CALL.match(line) and "execve" not in line]


@pytest.mark.slow
def test_a_run_touches_the_shared_ledger_a_few_times_however_many_lie_there(tmp_path):
    tracer = shutil.which("strace")
    if tracer is None:
        pytest.skip("strace is not installed")
    first = ledger_calls(tmp_path, tracer=tracer)
    (record,) = (tmp_path / ".carbonlens" / "runs").rglob("*.json")
    for number in range(500):
        shutil.copy(record, record.with_name(f"01900000-0000-7000-8000-{number:012}.json"))
    later = ledger_calls(tmp_path, tracer=tracer)
    print("first run:", first, "\nlater:", later)
    assert len(first) <= 15
    assert len(later) <= 10
