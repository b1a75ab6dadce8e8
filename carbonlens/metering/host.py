"""This host and this process: stable ids, and whether another process still lives."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from carbonlens.domain.identity import host_pseudonym, uuid7

_MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
_PROC = Path("/proc")
_SHORT_LENGTH = 16
"""Processes of one host are told apart by less."""

_MOST_ANCESTORS = 16
"""Shells, launchers and pools stand between a worker and a window; more than a few are none of ours."""

_MOST_BYTES = 4096
"""More than 52 numbers and a name of 15 characters take (proc(5))."""

PARENT_FIELD = 1
"""Place of the parent's id among ``stat_fields``: field 4 of proc(5)."""

START_FIELD = 19
"""Place of the start time among ``stat_fields``: field 22 of proc(5)."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """Pseudonyms of the machine: hashes, from which no name can be read.

    Attributes:
        host_id: The boot: device counters and times are comparable within it,
            whichever container tells them.
        machine: The machine alone, stable over reboots.
        pid_namespace: Where process ids mean the same thing; empty when unknown.
    """

    host_id: str
    machine: str
    pid_namespace: str


@cache
def this_host() -> Host:
    """Return the host's pseudonyms, computed once a process."""
    return host_of(_MACHINE_ID_FILES, _BOOT_ID_FILE)


def host_of(machine_id_files: Iterable[Path], boot_id_file: Path) -> Host:
    """Return the pseudonyms of the host that these files tell of.

    Args:
        machine_id_files: The first that is there counts; else the network name.
        boot_id_file: Random at each boot of a kernel (random(4)).
    """
    machine_id = next((t for t in map(_text, machine_id_files) if t), "") or os.uname().nodename
    # Containers of one machine have the machine ids of their images, and one kernel together.
    boot_id = _text(boot_id_file)
    return Host(
        host_id=host_pseudonym(boot_id) if boot_id else host_pseudonym(machine_id, ""),
        machine=host_pseudonym(machine_id),
        pid_namespace=_link(_PROC / "self" / "ns" / "pid"),
    )


def place_of_pids() -> str:
    """Return a pseudonym of where process ids mean what they mean here: containers have their own."""
    host = this_host()
    return host_pseudonym(host.host_id, host.pid_namespace)


@cache
def process_pseudonym(pid: int) -> str | None:
    """Return what names a process for the life of a boot; ``None`` where it cannot be told.

    Args:
        pid: The process, of this pid namespace; asked for once.
    """
    started = process_start_ticks(pid)
    return None if started is None else _process(pid, started)


def process_ancestors(pid: int) -> tuple[str, ...] | None:
    """Return what names the processes that one descends from, its parent first.

    Args:
        pid: The process, of this pid namespace.

    Returns:
        As far as they can be told: not beyond this pid namespace, nor beyond one whose parent
        has ended, as its place is taken by another process. ``None`` where nothing can be told.
    """
    fields = stat_fields(pid)
    return None if fields is None else _line_of(pid, int(fields[PARENT_FIELD]))


@cache
def _line_of(_: int, parent: int) -> tuple[str, ...]:
    """Return the line above a process, read once for each parent that it has."""
    line: list[str] = []
    here = parent
    while here > 0 and len(line) < _MOST_ANCESTORS:
        fields = stat_fields(here)
        if fields is None:
            break
        line.append(_process(here, int(fields[START_FIELD])))
        here = int(fields[PARENT_FIELD])
    return tuple(line)


def _process(pid: int, started: int) -> str:
    return host_pseudonym(place_of_pids(), str(pid), str(started))[:_SHORT_LENGTH]


def new_run_id(unix_ms: int) -> str:
    """Return a fresh UUIDv7 for a run that starts at this time."""
    return uuid7(unix_ms, os.urandom(10))


def process_start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot.

    Pid and start time together name a process for the life of a boot.

    Returns:
        ``None`` when there is no such process, or it is dead and unreaped.
    """
    fields = stat_fields(pid)
    if fields is None or fields[0] in {b"Z", b"X"}:
        return None
    return int(fields[START_FIELD])


def stat_fields(pid: int, proc: Path = _PROC) -> list[bytes] | None:
    """Return the fields of a process's ``stat`` from the third on (proc(5): state, parent, ...).

    Args:
        pid: The process.
        proc: The process file system.

    Returns:
        ``None`` when there is no such process.
    """
    try:
        handle = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat = os.read(handle, _MOST_BYTES)
        finally:
            os.close(handle)
    except OSError:
        return None
    # The name stands in parentheses and may hold spaces and parentheses itself.
    return stat[stat.rfind(b")") + 2 :].split()


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
