"""The control group this process runs in, and the CPU time it has counted (cgroups(7)).

A group counts every process that was ever in it, also one that nobody waited for. It is
looked for where the kernel says that it is mounted: ``/proc/self/cgroup`` names it, and
``mountinfo`` says which part of the tree can be seen, which in a container is seldom all.
The root of the whole tree is the machine, and none of our business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path("/")
_US: Final = 1e-6
_NS: Final = 1e-9
_V2: Final = "cgroup2"
_ACCOUNT: Final = "cpuacct"
_MOST_FOLDERS: Final = 64
"""A group with more groups inside is a whole machine's, or near it."""


class ControlGroup(NamedTuple):
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


def this_group(root: Path = _ROOT) -> ControlGroup | None:
    """Return the group whose CPU time this process counts to; ``None`` where it is the root.

    The one of version 2 is preferred: with both mounted it is the narrower.

    Args:
        root: The file system.
    """
    try:
        return _group(root, (root / "proc" / "self" / "cgroup").read_text("utf-8", "replace"))
    except OSError:
        return None


@lru_cache(maxsize=8)
def _group(root: Path, told: str) -> ControlGroup | None:
    """Return the group for what ``/proc/self/cgroup`` tells; where it is mounted does not change."""
    paths = _paths(told)
    for kind, version in ((_V2, 2), (_ACCOUNT, 1)):
        folder = _folder(root, kind, paths.get(kind)) if kind in paths else None
        if folder is not None and not _is_root(folder, version):
            group = ControlGroup(folder, version)
            if group.used_s() is not None:
                return group
    return None


def _paths(told: str) -> dict[str, str]:
    """Return the path of this process's group a hierarchy: ``id:controllers:path`` a line."""
    found = {}
    for line in told.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            found[_V2] = path
        elif _ACCOUNT in controllers.split(","):
            found[_ACCOUNT] = path
    return found


def _folder(root: Path, kind: str, path: str | None) -> Path | None:
    """Return where a group's files are, should it lie in the part of the tree that is mounted here."""
    for place, top in _mounts(root, kind):
        # "/.." is a group above the part that can be seen from here.
        if path is None or ".." in Path(path).parts or ".." in Path(top).parts:
            continue
        if top in {"/", path} or path.startswith(f"{top}/"):
            inside = path if top == "/" else path[len(top) :]
            folder = root / place.lstrip("/") / inside.strip("/")
            if folder.is_dir():
                return folder
    return None


def _mounts(root: Path, kind: str) -> Iterator[tuple[str, str]]:
    """Yield where a hierarchy is mounted and which group is at the top there (proc(5), mountinfo)."""
    try:
        lines = (root / "proc" / "self" / "mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        # ID parent major:minor root mount options [optional ...] - type source options
        before, _, after = line.partition(" - ")
        fields, said = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(said) < 3:
            continue
        accounts = said[0] == "cgroup" and _ACCOUNT in said[2].split(",")
        if (said[0] == _V2) if kind == _V2 else accounts:
            yield fields[4], fields[3]


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
