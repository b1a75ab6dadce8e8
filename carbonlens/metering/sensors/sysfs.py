"""Sysfs: one number or one line out of a kernel file, or nothing."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from carbonlens.domain.patterns import later

_NUMBER: Final = later(r"[+-]?[0-9]{1,20}")
_MOST_BYTES: Final = 4096
_CONTAINER_MARKS: Final = (".dockerenv", "run/.containerenv")
_CONTAINER_GROUPS: Final = later(r"docker|kubepods|containerd|libpod|lxc")


def line(path: Path) -> str | None:
    """Return a file's text without surrounding blanks; ``None`` when there is none.

    Device-tree texts end in a zero byte, which goes too.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(_MOST_BYTES)
        return data.decode("utf-8").strip().strip("\0").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def number(path: Path) -> int | None:
    """Return the whole number in a file; ``None`` for anything else.

    A kernel file that says ``N/A``, nothing or half a line has no value: it is not 0.
    """
    text = line(path)
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def why_unreadable(path: Path) -> str | None:
    """Return why a number cannot be read from a file; ``None`` when it can."""
    try:
        with path.open("rb") as stream:
            stream.read(1)
    except PermissionError:
        return f"{path} can be read by root only"
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"
    return None if number(path) is not None else f"{path} holds no number"


def readable_mend(root: Path, *files: Path | str) -> str:
    """Return the one command that lets everybody read kernel files.

    Sysfs is the kernel's own: modes set there are gone at the next boot, and a container
    cannot set them.

    Args:
        root: The file system.
        files: All that are to be read; a shell pattern is left to the shell.
    """
    where = ", on the host: a container cannot" if in_container(root) else ""
    return f"ask an administrator for: chmod a+r {' '.join(map(str, files))} (until the next boot{where})"


def in_container(root: Path) -> bool:
    """Tell whether this is known to be a container.

    Args:
        root: The file system.
    """
    if any((root / mark).exists() for mark in _CONTAINER_MARKS):
        return True
    return _CONTAINER_GROUPS.search(line(root / "proc" / "1" / "cgroup") or "") is not None


def folders(parent: Path, pattern: str) -> list[Path]:
    """Return the entries of a folder that match, sorted; none where there is no folder."""
    try:
        names = [entry.name for entry in parent.iterdir()]
    except OSError:
        return []
    # A pattern is worked out only where a name begins as it does: most folders have none.
    begin = pattern.partition("*")[0].partition("?")[0].partition("[")[0]
    near = [name for name in names if name.startswith(begin)]
    return sorted((parent / name for name in near if fnmatchcase(name, pattern)), key=_by_number)


def _by_number(path: Path) -> tuple[str, int, str]:
    found = re.search(r"[0-9]+$", path.name)
    return (str(path.parent), int(found[0]) if found else -1, path.name)
