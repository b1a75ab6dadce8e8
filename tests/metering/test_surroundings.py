"""What is read of host, job and accelerators: pseudonyms, an allow-list, and no silent GPU."""

import os
import subprocess
import sys

import pytest

from carbonlens.domain.identity import sha256_hex
from carbonlens.metering import accelerators
from carbonlens.metering.host import host_of, new_run_id, place_of_pids, process_start_ticks, this_host
from carbonlens.metering.job import Job, launched_by, this_job
from carbonlens.metering.records import new_run


def nodes(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


@pytest.mark.parametrize(
    ("paths", "visible", "found"),
    [
        ([], None, ()),
        (["dev/nvidia0", "dev/nvidiactl"], None, ("NVIDIA GPU",)),
        (["dev/nvidiactl", "dev/nvidia-uvm"], None, ()),
        (["proc/driver/nvidia/gpus/0000:01:00.0"], None, ("NVIDIA GPU",)),
        (["dev/nvidia0"], "", ()),
        (["dev/nvidia0"], "-1", ()),
        (["dev/nvidia0"], "0", ("NVIDIA GPU",)),
        (["dev/nvidia0"], "GPU-8932f937", ("NVIDIA GPU",)),
        (["dev/kfd"], None, ("AMD GPU",)),
    ],
)
def test_accelerators_that_the_work_can_reach(tmp_path, paths, visible, found):
    nodes(tmp_path, *paths)
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert accelerators.present(tmp_path, environ) == found


@pytest.mark.parametrize(
    ("environ", "job"),
    [
        ({}, Job()),
        ({"SLURM_JOB_ID": "42", "SLURM_PROCID": "3"}, Job(job_id="42", rank=3)),
        ({"SLURM_JOB_ID": "42", "SLURM_RESTART_COUNT": "2"}, Job(job_id="42", attempt=3)),
        (
            {"TORCHELASTIC_RUN_ID": "abc", "WORLD_SIZE": "8", "RANK": "5", "TORCHELASTIC_RESTART_COUNT": "1"},
            Job(job_id="abc", attempt=2, rank=5),
        ),
        ({"TORCHELASTIC_RUN_ID": "none", "RANK": "5"}, Job()),
        ({"SLURM_PROCID": "x", "SLURM_RESTART_COUNT": ""}, Job(impossible=("SLURM_PROCID",))),
        ({"SLURM_PROCID": "", "SLURM_RESTART_COUNT": ""}, Job()),
        ({"RANK": "5", "WORLD_SIZE": "2"}, Job(impossible=("RANK",))),
        ({"RANK": "1" + "0" * 20, "WORLD_SIZE": "2"}, Job(impossible=("RANK",))),
        ({"SLURM_JOB_ID": "42", "SLURM_PROCID": "9" * 12}, Job(job_id="42", impossible=("SLURM_PROCID",))),
        (
            {"SLURM_JOB_ID": "42", "SLURM_RESTART_COUNT": "9" * 5000},
            Job(job_id="42", impossible=("SLURM_RESTART_COUNT",)),
        ),
        (
            {"TORCHELASTIC_RUN_ID": "a", "TORCHELASTIC_RESTART_COUNT": "-1", "RANK": "0", "WORLD_SIZE": "0"},
            Job(job_id="a", impossible=("RANK", "TORCHELASTIC_RESTART_COUNT")),
        ),
        # torchrun inside SLURM: the step has one task, torchrun's ranks count.
        (
            {"SLURM_JOB_ID": "42", "SLURM_PROCID": "0", "RANK": "3", "WORLD_SIZE": "4"},
            Job(job_id="42", rank=3),
        ),
        # mpirun inside SLURM: the variables are those of the batch step.
        (
            {
                "SLURM_JOB_ID": "42",
                "SLURM_PROCID": "0",
                "OMPI_COMM_WORLD_RANK": "2",
                "OMPI_COMM_WORLD_SIZE": "4",
            },
            Job(job_id="42", rank=2),
        ),
        ({"RANK": "0", "WORLD_SIZE": "1"}, Job(rank=0)),
    ],
)
def test_jobs(environ, job):
    assert this_job(environ) == job


def unnamed(rank, run="none_x", attempt=0, nodes=1):
    """Return what torchrun says where the user gave no id."""
    return {
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "TORCHELASTIC_ERROR_FILE": f"/tmp/torchelastic_y/{run}/attempt_{attempt}/{rank}/error.json",
        "RANK": str(rank),
        "WORLD_SIZE": str(2 * nodes),
        "LOCAL_WORLD_SIZE": "2",
    }


def test_ranks_of_an_unnamed_torchrun_share_a_job_over_its_restarts():
    jobs = [this_job(unnamed(rank, attempt=attempt)) for attempt in (0, 1) for rank in (0, 1)]
    assert [(j.rank, j.attempt) for j in jobs] == [(0, 1), (1, 1), (0, 2), (1, 2)]
    assert len({j.job_id for j in jobs}) == 1
    assert "torchelastic" not in jobs[0].job_id
    assert this_job(unnamed(0, run="none_z")).job_id != jobs[0].job_id


@pytest.mark.parametrize(("nodes", "split"), [(1, False), (2, True)])
def test_ranks_of_several_nodes_without_an_id_are_a_job_a_node(nodes, split):
    assert this_job(unnamed(0, nodes=nodes)).is_of_node is split
    named = {**unnamed(0, nodes=nodes), "TORCHELASTIC_RUN_ID": "mine"}
    assert this_job(named) == Job(job_id="mine", rank=0)


def test_an_mpi_job_is_named_without_the_host_s_name():
    environ = {
        "PMIX_NAMESPACE": "prterun-node7-12@1",
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_SIZE": "2",
    }
    job = this_job(environ)
    assert job.job_id.startswith("mpi-")
    assert "node7" not in job.job_id
    assert this_job({**environ, "OMPI_COMM_WORLD_RANK": "0"}).job_id == job.job_id


def test_ranks_of_any_launcher_share_the_process_that_started_them():
    environ = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    job = this_job(environ)
    assert job.job_id == this_job({**environ, "RANK": "0"}).job_id
    assert job.job_id is not None
    assert launched_by(2**22 + 1) is None
    # A pid means a process within one container only, so its id is of that place.
    named = "\0".join((place_of_pids(), str(os.getpid()), str(process_start_ticks(os.getpid()))))
    assert launched_by(os.getpid()) == f"launcher-{sha256_hex(named.encode())[:16]}"


def test_host_ids_are_hashes_the_same_in_every_process():
    code = "from carbonlens.metering.host import this_host; print(this_host().host_id)"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    host = this_host()
    assert other.stdout.strip() == host.host_id
    assert host.host_id != host.machine
    assert len(host.host_id) == len(host.machine) == 32
    name = os.uname().nodename
    assert name not in (host.host_id, host.machine)


def test_containers_of_one_kernel_are_one_host(tmp_path):
    """Their images bring machine ids of their own; the boot id is the kernel's."""
    (tmp_path / "boot_id").write_text("5e5c9a3e-0d8b-4f0e-9a39-5f0a4b7f5a10\n")
    hosts = []
    for image in ("0" * 32, "1" * 32, ""):
        (tmp_path / "machine-id").write_text(image)
        hosts.append(host_of([tmp_path / "machine-id"], tmp_path / "boot_id"))
    assert len({h.host_id for h in hosts}) == 1
    assert len({h.machine for h in hosts}) == 3
    (tmp_path / "boot_id").write_text("c0ffee00-0d8b-4f0e-9a39-5f0a4b7f5a10\n")
    assert host_of([tmp_path / "machine-id"], tmp_path / "boot_id").host_id != hosts[-1].host_id
    without = [host_of([tmp_path / n], tmp_path / "none").host_id for n in ("machine-id", "other")]
    assert hosts[0].host_id not in without


def test_a_process_is_named_by_its_start():
    mine = process_start_ticks(os.getpid())
    assert mine is not None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process_start_ticks(child.pid) >= mine
    child.communicate(b"\n")
    assert process_start_ticks(child.pid) is None


def test_a_zombie_does_not_live():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_start_ticks(child.pid) is None
    child.wait()


def test_run_ids_sort_by_time_and_differ():
    ids = [new_run_id(t) for t in (1, 1, 2**40)]
    assert len(set(ids)) == 3
    assert max(ids) == ids[2]


def test_a_new_run_names_no_host_user_or_folder():
    text = str(new_run("track", program="train.py"))
    assert os.uname().nodename not in text
    assert os.path.expanduser("~") not in text  # noqa: PTH111  # compared as text
    assert os.getcwd() not in text  # noqa: PTH109  # compared as text


ASKS = """import sys
from carbonlens.metering.job import this_job
job = this_job()
sys.stdout.write(f"{job.rank} {job.is_of_node} {job.job_id}\\n")
"""


@pytest.mark.parametrize(
    "around",
    [
        "export PMI_RANK={rank}; exec {ask}",
        "PMI_RANK={rank} {ask}",
        "( export PMI_RANK={rank}; bash -c '{ask}; true'; true )",
        "PMI_RANK={rank} sh -c 'bash -c \"{ask}; true\"; true'",
    ],
)
def test_ranks_share_their_launcher_through_shells_of_their_own(tmp_path, around):
    (tmp_path / "ask.py").write_text(ASKS)
    ask = f"{sys.executable} {tmp_path}/ask.py"
    ranks = " ".join(f"( {around.format(rank=k, ask=ask)} ) &" for k in (0, 1))
    environ = {**os.environ, "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}
    for name in ("SLURM_JOB_ID", "PMIX_NAMESPACE", "PMI_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"):
        environ.pop(name, None)
    script = ["bash", "-c", f"{ranks} wait"]
    done = [subprocess.run(script, env=environ, capture_output=True, text=True, check=True) for _ in range(2)]
    found = [sorted(line.split() for line in d.stdout.splitlines()) for d in done]
    for rows in found:
        assert [row[:2] for row in rows] == [["0", "False"], ["1", "False"]]
        assert rows[0][2] == rows[1][2] != "None"
    assert found[0][0][2] != found[1][0][2], "another launch is another job"


def restarted(requeues, restarts, most):
    environ = {"SLURM_JOB_ID": "42", "SLURM_RESTART_COUNT": str(requeues)}
    environ |= {"TORCHELASTIC_RESTART_COUNT": str(restarts)}
    return this_job(environ | ({} if most is None else {"TORCHELASTIC_MAX_RESTARTS": str(most)})).attempt


@pytest.mark.parametrize("most", [0, 1, 3, None])
def test_no_two_attempts_of_a_job_have_one_number_and_later_ones_have_a_higher(most):
    limit = 5 if most is None else most
    numbers = [restarted(s, t, most) for s in range(4) for t in range(limit + 1)]
    assert numbers == sorted(set(numbers))
    assert numbers[: limit + 1] == list(range(1, limit + 2))


def test_requeues_alone_count_up_by_one():
    assert [restarted(s, 0, 0) for s in range(4)] == [1, 2, 3, 4]
