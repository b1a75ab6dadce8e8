"""The control groups this process runs in, and the CPU time they have counted (cgroups(7)).

A group counts every process that was ever in it, also one that nobody waited for. It is
looked for where the kernel says that it is mounted: ``/proc/self/cgroup`` names it, and
``mountinfo`` says which part of the tree can be seen, which in a container is seldom all.
The root of the whole tree is the machine, and none of our business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

_ROOT: Final = Path("/")
_US: Final = 1e-6
_NS: Final = 1e-9
V2: Final = "cgroup2"
"""Name of the hierarchy of version 2 among ``branches``; others bear that of their controller."""

_ACCOUNT: Final = "cpuacct"
_ASKED: Final = frozenset({_ACCOUNT, "cpu", "cpuset", "memory"})
"""Controllers of version 1 that anybody here asks for."""

_MOST_FOLDERS: Final = 64
"""A group with more groups inside is a whole machine's, or near it."""


class ControlGroup(msgspec.Struct, frozen=True):
    """A group that is not the root of the tree.

    Attributes:
        folder: Where its files are.
        version: 2, or 1 for the accounting controller of the old kind.
    """

    folder: Path
    version: int

    def used_s(self) -> float | None:
        """Return the CPU seconds that it has counted since it was made; ``None`` if not told."""
        try:
            if self.version == 1:
                return int((self.folder / "cpuacct.usage").read_bytes()) * _NS
            for line in (self.folder / "cpu.stat").read_bytes().splitlines():
                name, _, value = line.partition(b" ")
                if name == b"usage_usec":
                    return int(value) * _US
        except (OSError, ValueError):
            pass
        return None

    def members(self) -> frozenset[int] | None:
        """Return the processes in it and in the groups below; ``None`` if nobody can tell.

        A process that is not visible from here is 0.
        """
        found: set[int] = set()
        try:
            for number, folder in enumerate(_folders(self.folder)):
                if number >= _MOST_FOLDERS:
                    return None
                found.update(map(int, (folder / "cgroup.procs").read_bytes().split()))
        except (OSError, ValueError):
            return None
        return frozenset(found)


class Branch(msgspec.Struct, frozen=True):
    """This process's group in one hierarchy, and the groups above it as far as they can be seen.

    Attributes:
        folder: Where the files of its own group are.
        top: Where those of the uppermost visible group are: a container's own, or the root.
    """

    folder: Path
    top: Path

    def upward(self) -> Iterator[Path]:
        """Yield the folder of each group from its own to the top."""
        yield self.folder
        if self.folder != self.top:
            for above in self.folder.parents:
                yield above
                if above == self.top:
                    break


def this_group(root: Path = _ROOT) -> ControlGroup | None:
    """Return the group whose CPU time this process counts to; ``None`` where it is the root.

    The one of version 2 is preferred: with both mounted it is the narrower.

    Args:
        root: The file system.
    """
    try:
        return _group(root, _told(root))
    except OSError:
        return None


def branches(root: Path = _ROOT) -> Mapping[str, Branch]:
    """Return where this process's groups are, by hierarchy: ``cgroup2``, else a controller's name.

    A hierarchy is left out where the group lies outside of what is mounted here.

    Args:
        root: The file system.

    Raises:
        OSError: If the kernel does not tell the groups.
    """
    return _branches(root, _told(root))


def _told(root: Path) -> str:
    return (root / "proc" / "self" / "cgroup").read_text("utf-8", "replace")


@lru_cache(maxsize=8)
def _group(root: Path, told: str) -> ControlGroup | None:
    found = _branches(root, told)
    for kind, version in ((V2, 2), (_ACCOUNT, 1)):
        branch = found.get(kind)
        if branch is not None and not _is_root(branch.folder, version):
            group = ControlGroup(branch.folder, version)
            if group.used_s() is not None:
                return group
    return None


@lru_cache(maxsize=8)
def _branches(root: Path, told: str) -> Mapping[str, Branch]:
    """Return the branches for what ``/proc/self/cgroup`` tells; where they are mounted does not change."""
    mounts = list(_mounts(root))
    found: dict[str, Branch] = {}
    for name, path in _paths(told).items():
        places = [(place, top) for names, place, top in mounts if name in names]
        branch = _branch(root, path, places)
        if branch is not None:
            found[name] = branch
    return found


def _paths(told: str) -> dict[str, str]:
    """Return the path of this process's group a hierarchy: ``id:controllers:path`` a line."""
    found = {}
    for line in told.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers:
            found.update(dict.fromkeys(_ASKED.intersection(controllers.split(",")), path))
        elif number == "0":
            found[V2] = path
    return found


def _branch(root: Path, path: str, places: list[tuple[str, str]]) -> Branch | None:
    """Return where a group's files are, should it lie in the part of the tree that is mounted here."""
    for place, top in places:
        # "/.." is a group above the part that can be seen from here.
        if ".." in Path(path).parts or ".." in Path(top).parts:
            continue
        if top in {"/", path} or path.startswith(f"{top}/"):
            inside = path if top == "/" else path[len(top) :]
            mounted = root / place.lstrip("/")
            folder = mounted / inside.strip("/")
            if _is_there(folder):
                return Branch(folder, mounted)
    return None


def _is_there(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except PermissionError:
        return True  # what it says cannot be read, which is told where it is asked


def _mounts(root: Path) -> Iterator[tuple[frozenset[str], str, str]]:
    """Yield a mount's hierarchies, its place, and which group is at the top there (proc(5), mountinfo)."""
    try:
        lines = (root / "proc" / "self" / "mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        # ID parent major:minor root mount options [optional ...] - type source options
        before, _, after = line.partition(" - ")
        fields, said = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(said) < 3 or said[0] not in {V2, "cgroup"}:
            continue
        yield frozenset([V2] if said[0] == V2 else said[2].split(",")), fields[4], fields[3]


def _is_root(folder: Path, version: int) -> bool:
    """Tell whether it is the root of the whole tree, and not what a container sees at the top.

    Files that every other group has and the root has not tell them apart, or the other
    way round: ``cgroup.events`` (version 2), ``release_agent`` (version 1).
    """
    if version == 1:
        return (folder / "release_agent").exists() or not (folder / "notify_on_release").exists()
    return not (folder / "cgroup.events").exists()


def _folders(top: Path) -> Iterator[Path]:
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        yield folder
        waiting += [Path(e.path) for e in os.scandir(folder) if e.is_dir(follow_symlinks=False)]
