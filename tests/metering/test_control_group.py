"""The control group of a process on trees as kernels, containers and SLURM lay them out."""

import os

import pytest

from carbonlens.metering.control_group import this_group

UNIFIED = "35 24 0:31 {top} {place} rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
ACCOUNT = "36 24 0:32 {top} {place} rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
OTHER = (
    "37 24 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n22 1 8:1 / / rw - ext4 /dev/sda rw\n"
)
V1 = "sys/fs/cgroup/cpu,cpuacct"


class Tree:
    """A file system with the files that say where a process counts to."""

    def __init__(self, root):
        self.root = root

    def told(self, groups, mounts):
        folder = self.root / "proc" / "self"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup").write_text(groups)
        (folder / "mountinfo").write_text(OTHER + mounts)
        return self

    def v2(self, path, used_us=2_500_000, *, root=False, procs=""):
        folder = self.root / "sys/fs/cgroup" / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpu.stat").write_text(f"usage_usec {used_us}\nuser_usec 7\nsystem_usec 8\n")
        (folder / "cgroup.procs").write_text(procs)
        if not root:
            (folder / "cgroup.events").write_text("populated 1\nfrozen 0\n")
        return folder

    def v1(self, path, used_ns=3_500_000_000, *, root=False):
        folder = self.root / V1 / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpuacct.usage").write_text(f"{used_ns}\n")
        (folder / "cgroup.procs").write_text("")
        (folder / "notify_on_release").write_text("0\n")
        if root:
            (folder / "release_agent").write_text("\n")
        return folder

    def found(self):
        group = this_group(self.root)
        if group is None:
            return None
        return group.folder.relative_to(self.root).as_posix(), group.version, group.used_s()


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def unified(top="/", place="/sys/fs/cgroup"):
    return UNIFIED.format(top=top, place=place)


def account(top="/", place="/" + V1):
    return ACCOUNT.format(top=top, place=place)


SLURM = "system.slice/slurmstepd.scope/job_7/step_0/user/task_0"


def test_a_group_of_version_2(tree):
    tree.told(f"0::/{SLURM}\n", unified()).v2(SLURM)
    assert tree.found() == (f"sys/fs/cgroup/{SLURM}", 2, 2.5)


def test_a_group_of_version_1(tree):
    tree.told("4:cpuacct,cpu:/slurm/uid_1/job_7/step_0\n2:memory:/x\n", account())
    tree.v1("slurm/uid_1/job_7/step_0")
    assert tree.found() == (f"{V1}/slurm/uid_1/job_7/step_0", 1, 3.5)


def test_of_both_versions_the_second_is_read(tree):
    tree.told("4:cpu,cpuacct:/user.slice\n0::/user.slice/a.scope\n", account() + unified())
    tree.v1("user.slice")
    tree.v2("user.slice/a.scope")
    assert tree.found() == ("sys/fs/cgroup/user.slice/a.scope", 2, 2.5)


def test_where_the_second_is_at_its_root_the_first_is_read(tree):
    place = "/sys/fs/cgroup/unified"
    tree.told("4:cpu,cpuacct:/job\n0::/\n", account() + unified(place=place))
    tree.v1("job")
    tree.v2("unified", root=True)
    assert tree.found() == (f"{V1}/job", 1, 3.5)


@pytest.mark.parametrize("version", [1, 2])
def test_the_root_is_the_machine_and_not_read(tree, version):
    if version == 2:
        tree.told("0::/\n", unified()).v2("", root=True)
    else:
        tree.told("3:cpu,cpuacct:/\n", account()).v1("", root=True)
    assert tree.found() is None


def test_the_top_that_a_container_sees_is_a_group(tree):
    # With a namespace of its own, the container's group is called "/".
    tree.told("0::/\n", unified()).v2("")
    assert tree.found() == ("sys/fs/cgroup", 2, 2.5)


def test_a_container_without_a_namespace_sees_its_own_part(tree):
    tree.told("3:cpu,cpuacct:/docker/abc\n", account(top="/docker/abc")).v1("")
    assert tree.found() == (V1, 1, 3.5)


def test_a_group_below_the_part_that_is_mounted(tree):
    tree.told("3:cpu,cpuacct:/docker/abc/inner\n", account(top="/docker/abc")).v1("inner")
    assert tree.found() == (f"{V1}/inner", 1, 3.5)


@pytest.mark.parametrize(
    ("path", "top"),
    [
        ("/..", "/"),
        ("/../../other", "/"),
        ("/docker/abcd", "/docker/abc"),
        ("/", "/docker/abc"),
        ("/a", "/.."),
    ],
)
def test_a_group_that_cannot_be_seen_from_here(tree, path, top):
    tree.told(f"0::{path}\n", unified(top=top)).v2("")
    tree.v2("other")
    tree.v2("a")
    assert tree.found() is None


@pytest.mark.parametrize("missing", ["proc/self/cgroup", "proc/self/mountinfo", "sys/fs/cgroup/a/cpu.stat"])
def test_missing_files(tree, missing):
    tree.told("0::/a\n", unified()).v2("a")
    (tree.root / missing).unlink()
    assert tree.found() is None


@pytest.mark.parametrize("content", ["", "usage_usec\n", "usage_usec x\n", "user_usec 5\n"])
def test_a_counter_that_tells_nothing(tree, content):
    (tree.told("0::/a\n", unified()).v2("a") / "cpu.stat").write_text(content)
    assert tree.found() is None


@pytest.mark.parametrize("groups", ["", "nonsense\n", "0:\n", "5:name=systemd:/a\n"])
def test_a_line_that_names_no_group(tree, groups):
    tree.told(groups, unified() + "too few fields\n").v2("a")
    assert tree.found() is None


def test_members_are_those_below_too(tree):
    tree.told("0::/a\n", unified()).v2("a", procs="5\n7\n")
    tree.v2("a/b")
    tree.v2("a/b/c", procs="9\n0\n")
    assert this_group(tree.root).members() == {5, 7, 9, 0}


def test_members_of_a_group_with_very_many_groups_are_not_listed(tree):
    tree.told("0::/a\n", unified()).v2("a")
    for k in range(70):
        tree.v2(f"a/{k}")
    assert this_group(tree.root).members() is None


def test_members_that_cannot_be_listed(tree):
    folder = tree.told("0::/a\n", unified()).v2("a")
    group = this_group(tree.root)
    (folder / "cgroup.procs").write_text("not a number\n")
    assert group.members() is None
    (folder / "cgroup.procs").unlink()
    assert group.members() is None


def test_here_it_is_found_or_at_the_root():
    group = this_group()
    if group is not None:
        assert os.getpid() in (group.members() or {os.getpid()})
        assert group.used_s() > 0
