"""What the work may use, on trees as kernels, containers and schedulers lay them out."""

import contextlib
import os
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.allowance import Allowance
from carbonlens.domain.run import Run
from carbonlens.ledger.records import Stored, decode
from carbonlens.ledger.redaction import entomb, redacted
from carbonlens.metering.allowance import allowance, count_of
from carbonlens.metering.journal import Facts, Header, Journal, Writer
from carbonlens.metering.records import new_run
from carbonlens.metering.recovery import recovered_run

GIB = 1 << 30
V2_MOUNT = "35 24 0:31 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNT = "36 24 0:32 {top} /sys/fs/cgroup/{name} rw,relatime - cgroup cgroup rw,{name}\n"
V1_NAMES = ("cpu,cpuacct", "cpuset", "memory")
NO_V1_LIMIT = 9223372036854771712
SLURM = "system.slice/slurmstepd.scope/job_7/step_0/user/task_0"


class Tree:
    """A machine of 8 CPUs and 16 GiB, made of files."""

    def __init__(self, root):
        self.root = root
        self.put("sys/devices/system/cpu/online", "0-7\n")
        self.put("proc/meminfo", f"MemTotal:       {16 * GIB // 1024} kB\nMemFree: 1 kB\n")

    def put(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def told(self, groups, mounts):
        self.put("proc/self/cgroup", groups)
        self.put("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda rw\n" + mounts)
        return self

    def v2(self, path="", **groups):
        """Put the process in a group; files by the group's name with slashes as ``__``."""
        self.told(f"0::/{path}\n", V2_MOUNT)
        (self.root / "sys/fs/cgroup" / path).mkdir(parents=True, exist_ok=True)
        for group, files in groups.items():
            for name, text in files.items():
                self.put(f"sys/fs/cgroup/{'' if group == 'top' else group.replace('__', '/')}/{name}", text)
        return self

    def v1(self, path, files, top="/"):
        rows = "".join(f"{k}:{name}:/{path}\n" for k, name in enumerate(V1_NAMES, 2))
        self.told(rows, "".join(V1_MOUNT.format(top=top, name=name) for name in V1_NAMES))
        inside = "" if top != "/" else path
        for name in V1_NAMES:
            (self.root / "sys/fs/cgroup" / name / inside).mkdir(parents=True, exist_ok=True)
        for place, text in files.items():
            self.put(f"sys/fs/cgroup/{place}", text)
        return self

    def found(self, affinity=None):
        return allowance(self.root, affinity)

    def limits(self, affinity=None):
        found = self.found(affinity)
        return found.cpu_limit, found.memory_limit_bytes


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_a_quota_and_a_memory_limit_of_version_2(tree):
    tree.v2("a", a={"cpu.max": "150000 100000\n", "memory.max": f"{4 * GIB}\n"})
    assert tree.found() == Allowance(
        cpus=1.5, machine_cpus=8, memory_bytes=4 * GIB, machine_memory_bytes=16 * GIB
    )
    assert tree.limits() == (1.5, 4 * GIB)


def test_a_quota_and_a_memory_limit_of_version_1(tree):
    cpu = {"cpu,cpuacct/job/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"}
    tree.v1("job", {**cpu, "memory/job/memory.limit_in_bytes": f"{2 * GIB}\n"})
    assert tree.limits() == (2.5, 2 * GIB)


def test_no_limit_leaves_the_machine_and_is_none(tree):
    tree.v2("a", a={"cpu.max": "max 100000\n", "memory.max": "max\n", "cpuset.cpus.effective": "0-7\n"})
    found = tree.found()
    assert (found.cpus, found.memory_bytes) == (8, 16 * GIB)
    assert (found.cpu_limit, found.memory_limit_bytes) == (None, None)


def test_no_limit_of_version_1(tree):
    cpu = {"cpu,cpuacct/job/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"}
    tree.v1("job", {**cpu, "memory/job/memory.limit_in_bytes": f"{NO_V1_LIMIT}\n"})
    assert tree.limits() == (None, None)


def test_no_limit_of_version_1_on_a_machine_that_does_not_tell_its_memory(tree):
    tree.put("proc/meminfo", "")
    tree.v1("job", {"memory/job/memory.limit_in_bytes": f"{NO_V1_LIMIT}\n"})
    assert tree.found().memory_bytes is None  # and not 8 EiB


@pytest.mark.parametrize(
    ("step", "job", "expected"), [("400000 100000", "200000 100000", 2), ("50000 100000", "max 100000", 0.5)]
)
def test_the_tightest_of_nested_limits_counts(tree, step, job, expected):
    tree.v2(SLURM)
    above = SLURM.partition("/step_0")[0]
    tree.put(f"sys/fs/cgroup/{SLURM}/cpu.max", step)
    tree.put(f"sys/fs/cgroup/{SLURM}/memory.max", "max\n")
    tree.put(f"sys/fs/cgroup/{above}/cpu.max", job)
    tree.put(f"sys/fs/cgroup/{above}/memory.max", f"{3 * GIB}\n")
    assert tree.limits() == (expected, 3 * GIB)


def test_nested_limits_of_version_1(tree):
    files = {
        "cpu,cpuacct/pods/p/cpu.cfs_quota_us": "-1",
        "cpu,cpuacct/pods/p/cpu.cfs_period_us": "100000",
        "cpu,cpuacct/pods/cpu.cfs_quota_us": "300000",
        "cpu,cpuacct/pods/cpu.cfs_period_us": "100000",
        "memory/pods/p/memory.limit_in_bytes": str(8 * GIB),
        "memory/pods/memory.limit_in_bytes": str(5 * GIB),
    }
    assert tree.v1("pods/p", files).limits() == (3, 5 * GIB)


def test_the_top_that_a_container_sees_is_its_own_group(tree):
    tree.v2("", top={"cpu.max": "200000 100000", "memory.max": str(GIB)})
    assert tree.limits() == (2, GIB)


def test_a_container_that_is_told_the_host_s_path_sees_its_part_at_the_top(tree):
    files = {
        "cpu,cpuacct/cpu.cfs_quota_us": "200000",
        "cpu,cpuacct/cpu.cfs_period_us": "100000",
        "memory/memory.limit_in_bytes": str(GIB),
    }
    assert tree.v1("docker/abc", files, top="/docker/abc").limits() == (2, GIB)


def test_a_group_beside_ours_does_not_bind(tree):
    tree.v2("a/b", a__c={"cpu.max": "100000 100000", "memory.max": str(GIB)})
    assert tree.limits() == (None, None)


def test_a_group_above_what_can_be_seen_tells_nothing(tree):
    tree.v2("", top={"cpu.max": "100000 100000"})
    tree.put("proc/self/cgroup", "0::/../other\n")
    assert tree.limits() == (None, None)


def test_both_versions_at_once_each_bind(tree):
    tree.v1("job", {"memory/job/memory.limit_in_bytes": str(GIB)})
    mounts = (tree.root / "proc/self/mountinfo").read_text()
    groups = (tree.root / "proc/self/cgroup").read_text()
    tree.told(groups + "0::/u\n", mounts + V2_MOUNT.replace("/cgroup rw", "/cgroup/unified rw"))
    tree.put("sys/fs/cgroup/unified/u/cpu.max", "100000 100000")
    assert tree.limits() == (1, GIB)


def test_affinity_binds_beside_a_quota(tree):
    tree.v2("a", a={"cpu.max": "350000 100000"})
    assert tree.limits(lambda: 2) == (2, None)
    assert tree.limits(lambda: 6) == (3.5, None)
    assert tree.limits(lambda: 8) == (3.5, None)


@pytest.mark.parametrize("named", ["0-1,4\n", "0,1,4", "0-1,1,4"])
def test_a_cpuset_is_read_where_affinity_is_not_told(tree, named):
    tree.v2("a/b", a={"cpuset.cpus.effective": named}, a__b={"cpu.max": "max 100000"})
    assert tree.limits() == (3, None)
    assert tree.limits(lambda: None) == (3, None)


def test_of_cpusets_the_nearest_is_ours(tree):
    tree.v2("a/b", a={"cpuset.cpus.effective": "0-5"}, a__b={"cpuset.cpus.effective": "0-3"})
    assert tree.limits() == (4, None)


def test_a_cpuset_of_version_1(tree):
    assert tree.v1("job", {"cpuset/job/cpuset.cpus": "2-3\n"}).limits() == (2, None)


def test_affinity_that_nobody_tells_is_unknown_and_not_the_whole_machine(tree):
    found = tree.v2("a", a={"memory.max": str(GIB)}).found(lambda: None)
    assert found.cpus is None
    assert found.memory_bytes == GIB


@pytest.mark.parametrize(
    "text", ["", "x 100000", "100000", "100000 0", "0 100000", "-5 100000", "1e5 100000", "²5 100000"]
)
def test_a_malformed_quota_is_unknown_and_not_no_limit(tree, text):
    found = tree.v2("a", a={"cpu.max": text, "memory.max": str(GIB)}).found()
    assert (found.cpus, found.machine_cpus) == (None, 8)
    assert found.memory_bytes == GIB


@pytest.mark.parametrize("text", ["", "lots", "-1", "1.5", "9" * 500])
def test_a_malformed_memory_limit_is_unknown(tree, text):
    found = tree.v2("a", a={"cpu.max": "100000 100000", "memory.max": text}).found()
    assert (found.memory_bytes, found.machine_memory_bytes) == (None, 16 * GIB)
    assert found.cpus == 1


def test_a_quota_of_version_1_without_its_period_is_unknown(tree):
    assert tree.v1("job", {"cpu,cpuacct/job/cpu.cfs_quota_us": "5000"}).found().cpus is None


def test_a_limit_that_cannot_be_read_is_unknown(tree):
    tree.v2("a")
    (tree.root / "sys/fs/cgroup/a/memory.max").mkdir()
    assert tree.found().memory_bytes is None


def test_a_system_without_control_groups_has_its_machine(tree):
    assert tree.found() == Allowance(
        cpus=8, machine_cpus=8, memory_bytes=16 * GIB, machine_memory_bytes=16 * GIB
    )


def test_groups_that_cannot_be_read_are_unknown(tree):
    (tree.root / "proc/self/cgroup").mkdir(parents=True)
    found = tree.found()
    assert (found.cpus, found.memory_bytes) == (None, None)


@pytest.mark.parametrize("text", ["", "MemTotal\n", "MemTotal: x kB\n", "Other: 5 kB\n"])
def test_memory_of_a_machine_that_does_not_tell_its_own(tree, text):
    tree.put("proc/meminfo", text)
    assert tree.found().memory_bytes is None
    tree.v2("a", a={"memory.max": str(GIB)})
    assert tree.limits() == (None, GIB)


def test_a_limit_above_the_machine_is_none(tree):
    tree.v2("a", a={"cpu.max": "6400000 100000", "memory.max": str(64 * GIB)})
    assert tree.limits() == (None, None)
    assert tree.found().cpus == 8


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_counts_what_it_names(cpus):
    assert count_of(",".join(map(str, sorted(cpus)))) == len(cpus)


@given(st.text(max_size=12))
def test_a_list_is_counted_or_refused(text):
    with contextlib.suppress(ValueError):
        assert count_of(text) > 0


@pytest.mark.parametrize("text", ["", "3-1", "0-99999999", "a", "1-", ",1"])
def test_what_is_no_list(text):
    with pytest.raises(ValueError, match="no "):
        count_of(text)


BOUND = """
import os, threading
from carbonlens.metering.allowance import allowance
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(allowance().cpus)
"""

ONE_THREAD = """
import os, threading
from carbonlens.metering.allowance import own_cpus
go = threading.Event()
other = threading.Thread(target=go.wait)
before = own_cpus()
other.start()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(before == own_cpus())
go.set()
"""

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def said(program):
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


@on_linux
def test_a_process_that_is_bound_to_one_cpu_may_use_one():
    assert 0 < float(said(BOUND)) <= 1


@on_linux
def test_a_library_that_binds_one_thread_does_not_bind_the_others():
    assert said(ONE_THREAD) == "True"


@on_linux
def test_a_record_has_it_and_keeps_it_when_it_is_recovered():
    run = new_run("track")
    assert run.allowance == allowance()
    assert 0 < run.allowance.cpus <= os.cpu_count()
    writer = Writer(pid=1, start_ticks=1, host_id="h", machine="m", pid_namespace="")
    header = Header(writer=writer, ledger="x", run=run, sensors=())
    back = msgspec.json.decode(msgspec.json.encode(header), type=Header)
    sealed = recovered_run(back, Journal(header=back, samples=(), facts=Facts(), damaged=0))
    assert sealed.allowance == run.allowance


def test_a_record_without_it_says_nothing():
    plain = msgspec.json.decode(msgspec.json.encode(Run(run_id="old")))
    del plain["allowance"]
    assert decode(msgspec.json.encode(plain)).allowance is None


def test_it_can_be_taken_out_as_no_figure_rests_on_it():
    run = Run(run_id="r", allowance=Allowance(cpus=2, machine_cpus=8))
    stored = Stored(run=run, text=msgspec.json.encode(run), file="r.json")
    stone = entomb(stored, ["allowance"], by="me", when_us=0, why="test")
    assert decode(redacted(stored.text, stone)).allowance is None
