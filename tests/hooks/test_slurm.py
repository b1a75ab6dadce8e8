"""The SLURM hooks, run for real with SLURM's variables: one record a node, nothing counted twice."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbonlens.accounting.allocation import allocate
from carbonlens.metering.journal import read
from tests.hooks.nodes import HOOKS, SLURM, Node, ended, killed
from tests.instrument.wrapper import is_alive, wait_until
from tests.metering.processes import runs as node_runs

SCRIPTS = sorted([*HOOKS.rglob("*.sh"), SLURM / "node-record", SLURM / "job.sbatch"])


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    yield made
    made.end()


@pytest.fixture
def gpu_node(tmp_path):
    made = Node(tmp_path, "gpu", "device")
    yield made
    made.end()


def root_joules(runs):
    """Return what the root runs are billed, by component."""
    bills = allocate(runs).bills
    sums = {}
    for run in runs:
        for reading in bills[run.run_id].readings if bills[run.run_id].root else ():
            if reading.energy_j is not None:
                sums[reading.component] = sums.get(reading.component, 0) + reading.energy_j
    return {name: float(joules) for name, joules in sums.items()}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_scripts_are_well_formed(script, shell):
    assert subprocess.run([shell, "-n", str(script)], capture_output=True).stderr == b""


def test_shellcheck_has_nothing_to_say():
    tool = Path(sys.executable).parent / "shellcheck"
    if not tool.exists():
        pytest.skip("shellcheck is not installed")
    done = subprocess.run([tool, "-x", "-P", SLURM, *SCRIPTS], capture_output=True, text=True)
    assert done.stdout == ""


@pytest.mark.slow
def test_a_doctor_that_hangs_does_not_hold_the_job(node):
    real = node.command.read_text()
    for told in ("sleep 600", "trap '' TERM; while :; do sleep 1; done"):
        node.command.write_text(f"#!/bin/sh\n[ $1 = doctor ] && {{ {told}; }}\nexit 1\n")
        said = node.hook("node-record", "start", CARBONLENS_HOOK_PATIENCE_S="").stderr
        assert "within 5 s" in said
        assert node.left() == []
    # The next job asks again.
    node.command.write_text(real)
    node.start()
    node.stop()
    assert len(node.runs()) == 1


@pytest.mark.slow
def test_the_users_runs_are_parts_of_the_nodes_record_and_not_summed_with_it(node):
    node.start()
    ended(*[node.task(rank) for rank in range(2)])
    node.stop()
    site, *ranks = sorted(node.runs(), key=lambda r: "hook" not in r.tags)
    assert (site.status, site.exit_code, site.job_id, site.rank) == ("complete", 0, "42", None)
    assert sorted(r.rank for r in ranks) == [0, 1]
    assert {r.parent_run_id for r in ranks} == {site.run_id}
    assert {r.job_id for r in ranks} == {"42"}
    assert all(r.total_energy.value > 0 for r in ranks)
    # 300 W over the window, once: the ranks are inside.
    assert root_joules(node.runs()) == {"wall": pytest.approx(300 * site.duration_s, rel=0.2)}
    assert node.left() == []


@pytest.mark.slow
def test_a_record_of_gpus_alone_shares_them_with_the_runs_that_hold_the_processors(gpu_node):
    """The site reads no processor: the user's runs stay whole, and the GPU is billed once."""
    node = gpu_node
    (node.folder / "user-sources.toml").write_text(node.meter)
    node.start()
    mine = node.task(0, seconds=1.0, CARBONLENS_SOURCES=str(node.folder / "user-sources.toml"))
    ended(mine)
    node.stop()
    site, user = sorted(node.runs(), key=lambda r: "hook" not in r.tags)
    assert user.parent_run_id is None
    read = {r.component: float(r.energy_j) for run in (site, user) for r in run.energy if r.energy_j}
    billed = root_joules(node.runs())
    assert read["gpu"] > 0
    assert billed["gpu"] == pytest.approx(300 * site.duration_s, rel=0.25)
    both = sum(float(r.energy_j) for run in (site, user) for r in run.energy if r.component == "gpu")
    assert billed["gpu"] < both - 100
    assert billed["cpu"] == pytest.approx(read["cpu"])


@pytest.mark.slow
def test_a_node_that_nothing_reads_gets_no_record(tmp_path):
    node = Node(tmp_path, None)
    node.start()
    ended(node.task(0))
    node.stop()
    (run,) = node.runs()
    assert (run.parent_run_id, run.rank) == (None, 0)
    assert node.left() == []


@pytest.mark.slow
def test_a_second_prolog_keeps_the_window_and_jobs_have_their_own(node):
    node.start()
    pid = node.pid()
    node.start()
    assert node.pid() == pid
    node.start(job="43")
    assert node.pid("43") != pid
    node.stop()
    assert is_alive(node.pid("43"))
    node.stop(job="43")
    assert sorted(r.job_id for r in node.runs()) == ["42", "43"]


def test_prologs_at_the_same_time_open_one_window(node):
    environ = node.environ(SLURM_JOB_ID="71")
    calls = [
        subprocess.Popen([SLURM / "node-record", "start"], env=environ, cwd=node.folder) for _ in range(3)
    ]
    assert [c.wait(60) for c in calls] == [0, 0, 0]
    stopped = subprocess.run([SLURM / "node-record", "stop"], env=environ, cwd=node.folder, timeout=60)
    assert stopped.returncode == 0
    assert [r.tags["hook"] for r in node_runs(node.ledger)] == ["node"]
    assert not list(node.state.glob("71*"))


def test_an_epilog_without_a_prolog_does_nothing(node):
    node.stop()
    assert not node.ledger.exists()
    assert node.left() == []


@pytest.mark.slow
def test_a_node_that_went_down_leaves_a_record_that_the_next_job_seals(node):
    node.start()
    pid = node.pid()
    child = int((node.state / "42.run").read_text().split()[1])
    (journal,) = (node.folder / "site-state" / "carbonlens" / "journal").glob("*.jsonl")

    def has_power():
        samples = read(journal).samples
        return samples and samples[-1].t_us > 3_000_000

    wait_until(has_power, 20)
    killed(pid)
    # As after a reboot whose /run was kept: the files name a process that is gone.
    node.start(SLURM_RESTART_COUNT="1")
    assert node.pid() != pid
    wait_until(lambda: not is_alive(child), 5)
    time.sleep(2.0)
    node.stop(SLURM_RESTART_COUNT="1")
    lost, again = sorted(node.runs(), key=lambda r: r.attempt)
    assert (lost.status, lost.attempt) == ("recovered", 1)
    assert (again.status, again.attempt) == ("complete", 2)
    assert lost.total_energy.value > 0
    # Two attempts one after the other: both count.
    both = sum(float(r.energy_j) for run in (lost, again) for r in run.energy if r.energy_j)
    assert root_joules([lost, again]) == {"wall": pytest.approx(both)}


def test_an_epilog_leaves_other_processes_alone(node):
    node.state.mkdir()
    other = subprocess.Popen(["sleep", "30"])
    try:
        (node.state / "42.pid").write_text(f"{other.pid} 1\n")
        (node.state / "42.run").write_text(f"01900000-0000-7000-8000-000000000000 {other.pid}\n")
        node.stop()
        assert is_alive(other.pid)
        assert node.left() == []
    finally:
        other.kill()
        other.wait()


@pytest.mark.slow
def test_arrays_and_heterogeneous_jobs_are_told_by_tags(node):
    job = {
        "SLURM_ARRAY_JOB_ID": "40",
        "SLURM_ARRAY_TASK_ID": "2",
        "SLURM_HET_JOB_ID": "41",
        "SLURM_HET_JOB_OFFSET": "1",
    }
    node.start(**job)
    node.stop(**job)
    (run,) = node.runs()
    assert run.job_id == "42"
    assert run.tags == {
        "hook": "node",
        "array_job": "40",
        "array_task": "2",
        "het_job": "41",
        "het_offset": "1",
    }


@pytest.mark.parametrize("job", ["", "../../etc/passwd", "42 43"])
def test_a_job_id_that_is_none_is_left_alone(node, job):
    node.hook("node-record", "start", job=job)
    assert node.left() == []
    node.hook("node-record", "stop", job=job)


def test_a_broken_installation_never_fails_a_prolog(node):
    node.command.write_text("#!/bin/sh\nexit 9\n")
    begin = time.monotonic()
    node.start()
    assert node.hook("task_prolog.sh").stdout == ""
    node.stop()
    assert time.monotonic() - begin < 5
    # It is asked anew once it is mended.
    assert not (node.state / "parts").exists()


@pytest.mark.slow
def test_a_users_own_record_is_held_by_local_rank_0(node):
    wanted = {"CARBONLENS_NODE_RECORD": "1", "SLURM_STEP_ID": "3", "CARBONLENS_LEDGER": str(node.ledger)}
    folder = node.folder / "home" / ".cache"
    wanted["XDG_RUNTIME_DIR"] = str(folder)
    try:
        assert node.hook("task_prolog.sh", SLURM_LOCALID="1", **wanted).stdout == ""
        assert not folder.exists()
        assert node.hook("task_prolog.sh", SLURM_LOCALID="0", SLURM_PROCID="0", **wanted).stdout == ""
        (held,) = folder.rglob("42.3.pid")
        node.hook("task_epilog.sh", SLURM_LOCALID="1", SLURM_PROCID="1", **wanted)
        assert held.exists()
    finally:
        node.hook("task_epilog.sh", SLURM_LOCALID="0", SLURM_PROCID="0", **wanted)
    (run,) = node.runs()
    assert (run.job_id, run.rank, run.status) == ("42", None, "complete")


HOOK_SCRIPTS = ("prolog.sh", "task_prolog.sh", "task_epilog.sh", "epilog.sh")
ODD = {
    "nothing": {},
    "no job": {"HOME": "/nowhere"},
    "no home": {"SLURM_JOB_ID": "7"},
    "asked for, no home, no job": {"CARBONLENS_NODE_RECORD": "1", "SLURM_LOCALID": "0"},
    "asked for, no home": {"CARBONLENS_NODE_RECORD": "1", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7"},
    "no hooks": {
        "CARBONLENS_NODE_RECORD": "1",
        "SLURM_LOCALID": "0",
        "SLURM_JOB_ID": "7",
        "CARBONLENS_HOOKS": "/nowhere",
    },
}


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("script", HOOK_SCRIPTS)
@pytest.mark.parametrize("case", ODD)
def test_no_hook_fails_whatever_is_missing_and_whatever_the_shell_is_told(tmp_path, shell, script, case):
    environ = {
        "PATH": "/usr/bin:/bin",
        "CARBONLENS_HOOKS": str(SLURM),
        "CARBONLENS_HOOK_COMMAND": "/bin/false",
    }
    environ |= {"CARBONLENS_HOOK_DIR": str(tmp_path / "run"), **ODD[case]}
    done = subprocess.run(
        [shell, "-eu", SLURM / script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "unbound" not in done.stderr
    assert "parameter not set" not in done.stderr


@pytest.mark.parametrize("content", ["", "no line break", "01a21f7d-66a9-73bb-b1ee-43cbbb5813c7 12"])
def test_a_torn_file_of_a_window_does_not_fail_the_task(tmp_path, content):
    (tmp_path / "7.parent").touch()
    (tmp_path / "7.run").write_text(content)
    environ = {"PATH": "/usr/bin:/bin", "CARBONLENS_HOOK_DIR": str(tmp_path), "SLURM_JOB_ID": "7"}
    done = subprocess.run(
        ["sh", "-eu", SLURM / "task_prolog.sh"], env=environ, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "export CARBONLENS_RUN_ID=01a21f7d-66a9-73bb-b1ee-43cbbb5813c7\n" if "01a" in content else ""
    )
