"""What is read of host, job and accelerators: pseudonyms, an allow-list, and no silent GPU."""

import os
import subprocess
import sys

import pytest

from carbonlens.metering import accelerators
from carbonlens.metering.host import new_run_id, process_start_ticks, this_host
from carbonlens.metering.job import Job, this_job
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
        ({"SLURM_PROCID": "x", "SLURM_RESTART_COUNT": ""}, Job()),
    ],
)
def test_jobs(environ, job):
    assert this_job(environ) == job


def test_host_ids_are_hashes_the_same_in_every_process():
    code = "from carbonlens.metering.host import this_host; print(this_host().host_id)"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    host = this_host()
    assert other.stdout.strip() == host.host_id
    assert host.host_id != host.machine
    assert len(host.host_id) == len(host.machine) == 32
    name = os.uname().nodename
    assert name not in (host.host_id, host.machine)


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
