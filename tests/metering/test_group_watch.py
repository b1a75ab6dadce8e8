"""What a control group counted beside the tree: billed where it is surely the work's, else told."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from carbonlens.metering.control_group import ControlGroup
from carbonlens.metering.group_watch import GroupWatch, Missed, Standing, missed
from carbonlens.metering.process_time import Process, TreeClock
from tests.metering.processes import clean_environment, runs

GROUP = ControlGroup(Path("/slurmstepd.scope/job_7/step_0/user/task_0"), 2)
START = 1000.5


def process(used_s=0.0, start=500, parent=1):
    return Process(start=str(start).encode(), parent=parent, used_s=used_s, waited_s=0.0)


def at(counted_s, tree_s, **more):
    known = {
        "group": GROUP,
        "counted_s": counted_s,
        "tree_s": tree_s,
        "apart_s": 0.0,
        "tree": frozenset({10}),
        "others": {},
        "hidden": False,
        "ticks": START,
    }
    return Standing(**{**known, **more})


@pytest.mark.parametrize("name", ["job_7/step_0/user/task_0", "slurm/uid_1000/job_7/step_12/task_3"])
def test_alone_in_a_slurm_task_what_it_counted_more_is_the_works(name):
    group = ControlGroup(Path("/sys/fs/cgroup") / name, 2)
    assert missed(at(100.0, 5.0, group=group), at(104.0, 6.0, group=group)) == Missed(ours_s=3.0)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "docker/1f",
        "kubepods/pod1/2e",
        "user.slice/run-1.scope",
        "job_7/step_0",
        "job_7/step_batch/user/task_0",
        "job_7/step_extern/user/task_special",
    ],
)
def test_alone_at_both_edges_of_any_other_group_it_is_told_and_not_billed(name):
    """Who entered and left in between, as ``docker exec`` does, is at neither edge."""
    group = ControlGroup(Path("/sys/fs/cgroup") / name, 2)
    found = missed(at(100.0, 5.0, group=group), at(100.5, 5.1, group=group))
    assert found == Missed(unexplained_s=pytest.approx(0.4))


def test_the_same_up_to_reading_is_nothing():
    assert missed(at(100.0, 5.0), at(110.1, 15.0)) == Missed()
    # The clock ticks a hundred times a second, for each process that lives.
    many = frozenset(range(50))
    assert missed(at(100.0, 5.0, tree=many), at(111.5, 15.0, tree=many)) == Missed()


def test_a_group_that_counted_less_changes_nothing():
    assert missed(at(100.0, 5.0), at(101.0, 9.0)) == Missed()


def test_a_counter_that_goes_backwards_tells_nothing():
    assert missed(at(100.0, 5.0), at(3.0, 6.0)) == Missed()


def test_a_process_that_was_moved_tells_nothing():
    elsewhere = ControlGroup(Path("/h"), 2)
    assert missed(at(100.0, 5.0), at(190.0, 6.0, group=elsewhere)) == Missed()


@pytest.mark.parametrize("which", ["before", "after"])
def test_members_that_are_hidden_tell_nothing(which):
    begin, end = at(100.0, 5.0, hidden=which == "before"), at(190.0, 6.0, hidden=which == "after")
    assert missed(begin, end) == Missed()


def test_what_the_meter_used_itself_is_not_the_works():
    assert missed(at(100.0, 5.0, apart_s=1.0), at(104.0, 6.0, apart_s=4.0)) == Missed()


def test_an_orphan_that_lives_is_the_works():
    orphan = {30: process(2.0, start=1200)}
    assert missed(at(100.0, 5.0), at(104.0, 6.0, others=orphan)) == Missed(ours_s=3.0)


def test_one_that_was_in_the_tree_at_the_start_may_be_older():
    begin = at(100.0, 5.0, tree=frozenset({10, 30}))
    assert missed(begin, at(104.0, 6.0, others={30: process(2.0, start=900)})).ours_s == 3.0


@pytest.mark.parametrize(
    "stranger", [process(2.9, start=900), process(2.9, start=1200, parent=0)], ids=["older", "entered"]
)
def test_a_stranger_that_came_meanwhile_is_never_billed(stranger):
    assert missed(at(100.0, 5.0), at(104.0, 6.0, others={30: stranger})) == Missed()


def test_beside_others_it_is_told_and_not_billed():
    shell = {9: process(1.0)}
    assert missed(at(100.0, 5.0, others=shell), at(104.0, 6.0, others=shell)) == Missed(unexplained_s=3.0)


def test_what_others_used_explains_it():
    begin = at(100.0, 5.0, others={9: process(1.0)})
    assert missed(begin, at(104.0, 6.0, others={9: process(4.0)})) == Missed()
    # A pid that was given anew is another process, all of whose time is of this window.
    assert missed(begin, at(104.0, 6.0, others={9: process(3.0, start=1300)})) == Missed()
    assert missed(begin, at(104.0, 6.0, others={9: process(1.0), 31: process(3.0, start=1300)})) == Missed()


def test_little_that_is_unexplained_is_not_told():
    shell = {9: process(1.0)}
    assert missed(at(100.0, 5.0, others=shell), at(101.9, 6.0, others=shell)) == Missed()
    assert missed(at(100.0, 5.0, others=shell), at(211.0, 106.0, others=shell)) == Missed()


class Steps(TreeClock):
    """A tree that is this process and nobody else."""

    @property
    def pids(self):
        return frozenset({os.getpid()})


TASK = "job_7/step_0/user/task_0"


def fake_root(root, used_us, procs, group=TASK):
    own = root / "proc" / "self"
    own.mkdir(parents=True, exist_ok=True)
    (own / "cgroup").write_text(f"0::/{group}\n")
    (own / "mountinfo").write_text("35 24 0:31 / /cg rw - cgroup2 cgroup2 rw\n")
    folder = root / "cg" / group
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.events").write_text("populated 1\n")
    (folder / "cpu.stat").write_text(f"usage_usec {used_us}\n")
    (folder / "cgroup.procs").write_text("\n".join(map(str, procs)))


def fake_process(root, pid, used_ticks, start=5, session=1):
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    fields = ["S", "1", "1", str(session), *["0"] * 7, str(used_ticks), *["0"] * 7, str(start)]
    (folder / "stat").write_text(f"{pid} (name) {' '.join(fields)}")


def test_a_watch_tells_what_the_tree_missed(tmp_path):
    watch = GroupWatch(Steps(), tmp_path)
    fake_root(tmp_path, 5_000_000, [os.getpid()])
    assert watch.missed_s(1.0) == 0
    fake_root(tmp_path, 8_000_000, [os.getpid()])
    assert watch.missed_s(2.0) == pytest.approx(2.0)
    assert [(f.code, f.subject) for f in watch.notes()] == [("CL164", "energy.cpu")]
    # Counted once, it stays so: the clock never falls.
    fake_root(tmp_path, 0, [os.getpid()])
    assert watch.missed_s(3.0) == pytest.approx(2.0)


def test_a_watch_alone_in_a_container_only_tells(tmp_path):
    watch = GroupWatch(Steps(), tmp_path)
    fake_root(tmp_path, 5_000_000, [os.getpid()], "docker/1f")
    assert watch.missed_s(1.0) == 0
    fake_root(tmp_path, 8_000_000, [os.getpid()], "docker/1f")
    assert watch.missed_s(2.0) == 0
    assert [(f.code, f.subject) for f in watch.notes()] == [("CL165", "energy.cpu")]


def test_a_watch_beside_a_shell_only_tells(tmp_path):
    watch = GroupWatch(Steps(), tmp_path)
    fake_root(tmp_path, 5_000_000, [os.getpid(), 9])
    fake_process(tmp_path, 9, 100)
    assert watch.missed_s(1.0) == 0
    fake_root(tmp_path, 9_000_000, [os.getpid(), 9])
    assert watch.missed_s(2.0) == 0
    assert [f.code for f in watch.notes()] == ["CL165"]
    fake_process(tmp_path, 9, 400)
    assert watch.missed_s(2.0) == 0
    assert watch.notes() == ()


def test_a_watch_without_a_group_is_silent(tmp_path):
    watch = GroupWatch(TreeClock(), tmp_path)
    assert (watch.missed_s(1.0), watch.missed_s(9.0), watch.notes()) == (0.0, 0.0, ())


def test_a_group_that_is_gone_at_the_end_is_silent(tmp_path):
    watch = GroupWatch(Steps(), tmp_path)
    fake_root(tmp_path, 5_000_000, [os.getpid()])
    watch.missed_s(1.0)
    (tmp_path / "proc" / "self" / "cgroup").unlink()
    assert (watch.missed_s(2.0), watch.notes()) == (0.0, ())


# Thirty children of 30 ms that the kernel reaps itself: no walk and no rusage tells of them.
UNSEEN = """
import os, signal, sys, time
from carbonlens import track
with track("s", ledger=sys.argv[1]):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(30):
        if os.fork() == 0:
            end = time.process_time() + 0.03
            while time.process_time() < end: pass
            os._exit(0)
        try:
            os.wait()
        except ChildProcessError:
            pass
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
"""
FOLDERS = [Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup")]


@pytest.fixture(params=FOLDERS, ids=["unified", "cpuacct", "only"])
def real_group(request):
    folder = request.param / f"carbonlens-test-{os.getpid()}"
    counts = any((request.param / name).exists() for name in ("cpuacct.usage", "cgroup.subtree_control"))
    try:
        if not counts:
            raise FileNotFoundError
        folder.mkdir()
    except OSError:
        pytest.skip(f"no control group can be made in {request.param}")
    yield folder
    for made in (*sorted(folder.glob("**/task_0")), *(folder / p for p in ("job_7/step_0", "job_7", "."))):
        with suppress(OSError):
            made.rmdir()


def in_group(group, script, tmp_path):
    return subprocess.run(
        [
            "sh",
            "-c",
            f"echo 0 > {group}/cgroup.procs && {script}",
            sys.executable,
            UNSEEN,
            tmp_path / "ledger",
        ],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_children_that_nobody_could_see_are_told_in_a_group_of_their_own(tmp_path, real_group):
    done = in_group(real_group, 'exec "$0" -c "$1" "$2"', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (run,) = runs(tmp_path / "ledger")
    assert run.conditions.cpu_s < 0.8
    assert "CL165" in [f.code for f in run.findings]


def test_a_stranger_that_came_and_went_is_not_billed(tmp_path, real_group):
    """As a health check in a container does: at neither edge is it seen."""
    waiting = (
        "import os, sys, time; from carbonlens import track\n"
        f"with track('s', ledger=sys.argv[1]):\n    open({str(tmp_path / 'open')!r}, 'w').close()\n"
        f"    while not os.path.exists({str(tmp_path / 'done')!r}): time.sleep(0.05)"
    )
    enter = f'echo 0 > {real_group}/cgroup.procs && exec "$0" -c "$1" "$2"'
    work = subprocess.Popen(
        ["sh", "-c", enter, sys.executable, waiting, tmp_path / "ledger"],
        env=clean_environment(tmp_path),
    )
    burn = "import time\nwhile time.process_time() < 1: pass"
    shell = f'until [ -e "$2" ]; do sleep 0.05; done; echo 0 > {real_group}/cgroup.procs; exec "$0" -c "$1"'
    subprocess.run(["sh", "-c", shell, sys.executable, burn, tmp_path / "open"], timeout=60, check=True)
    (tmp_path / "done").touch()
    assert work.wait(60) == 0
    (run,) = runs(tmp_path / "ledger")
    assert run.conditions.cpu_s < 0.8
    codes = [f.code for f in run.findings]
    assert "CL164" not in codes
    assert "CL165" in codes


def test_children_that_nobody_could_see_are_counted_in_a_slurm_task(tmp_path, real_group):
    task = real_group / "job_7" / "step_0" / "task_0"
    task.mkdir(parents=True)
    done = in_group(task, 'exec "$0" -c "$1" "$2"', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (run,) = runs(tmp_path / "ledger")
    # 0.9 s in all, of which at least 95 % is to be counted.
    assert 0.855 <= run.conditions.cpu_s <= 3.0
    assert "CL164" in [f.code for f in run.findings]
    assert run.total_energy.state == "known"


def test_a_busy_neighbour_in_the_group_is_not_billed(tmp_path, real_group):
    busy = "while kill -0 $$ 2>/dev/null; do :; done"
    done = in_group(
        real_group, f'({busy}) & n=$!; "$0" -c "$1" "$2"; kill -9 $n; wait $n 2>/dev/null', tmp_path
    )
    assert done.stderr == ""
    (run,) = runs(tmp_path / "ledger")
    assert run.conditions.cpu_s < 0.8
    assert "CL164" not in [f.code for f in run.findings]


def test_the_wrapper_in_a_group_of_its_own_counts_the_command_and_not_itself(tmp_path, real_group):
    command = '-m carbonlens.cli.main run --step s --ledger "$2" -- sh -c "sleep 0.3"'
    done = in_group(real_group, f'exec "$0" {command}', tmp_path)
    assert done.returncode == 0
    (run,) = runs(tmp_path / "ledger")
    assert run.conditions.cpu_s < 0.2
    assert "CL164" not in [f.code for f in run.findings]
