"""What a launcher says about the job this process belongs to: SLURM, torchrun, mpirun.

Every rank of a job records the energy of its own processes, and its readings of devices
that it shares with the others, under one ``job_id`` and its own ``rank``: what ranks of
one job read of one device is then divided among them (ADR 7), and nothing is counted
twice. Only the variables named here are read; nothing else of the environment is kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Final

import msgspec

from carbonlens.domain.identity import sha256_hex
from carbonlens.metering.host import place_of_pids, process_start_ticks, stat_fields, this_host
from carbonlens.metering.wording import plain

_ID_LENGTH: Final = 16
_RANKS: Final = (
    # Rank, ranks in all, ranks on this node: the innermost launcher first.
    ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
)
"""torchrun (torch.distributed.elastic, local_elastic_agent.py), Open MPI, and MPICH with its kin."""

_MPI_JOB: Final = ("PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri")
_INITS: Final = frozenset({b"systemd", b"init", b"tini", b"dumb-init", b"docker-init", b"catatonit"})
_PROC: Final = Path("/proc")
_RESTARTS: Final = "TORCHELASTIC_RESTART_COUNT"
_MOST_RESTARTS: Final = 99
"""What torchrun is taken to allow where it does not say."""

_MOST_COUNT: Final = 10**9
_MOST_DIGITS: Final = 20
"""More ranks or restarts than any launcher means, and more digits than any writes."""

_ERROR_FILE: Final = "TORCHELASTIC_ERROR_FILE"
_BELOW_RUN_FOLDER: Final = 3
"""Its place is ``<folder of the agent's run>/attempt_<n>/<local rank>/error.json``."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Job, attempt and rank, as far as a launcher states them.

    Attributes:
        attempt: 1, and more after restarts of SLURM and of torchrun; no two of a job are the same.
        impossible: Variables whose value no launcher means, which are taken for absent.
        is_of_node: The launcher named no job that the ranks of all nodes share: the id is
            one that only the ranks of this node have in common, or there is none.
    """

    job_id: str | None = None
    attempt: int = 1
    rank: int | None = None
    is_of_node: bool = False
    impossible: tuple[str, ...] = ()


def this_job(environ: Mapping[str, str] | None = None) -> Job:
    """Return the job of SLURM, torchrun or mpirun that this process is part of.

    Args:
        environ: The environment; this process's when ``None``.
    """
    env = _Told(os.environ if environ is None else environ)
    variable, rank, ranks, on_node = _place(env)
    job_id, is_of_node = _stated(env.environ), False
    if job_id is None and rank is not None and (ranks or 0) > 1:
        job_id = _of_agent(env.environ) or launched_by(_launcher(f"{variable}={rank}".encode()))
        is_of_node = job_id is None or ranks != on_node
    attempt = _attempt(env)
    impossible = tuple(dict.fromkeys(env.impossible))
    return Job(job_id=job_id, attempt=attempt, rank=rank, is_of_node=is_of_node, impossible=impossible)


class _Told:
    """An environment, and which of its numbers cannot be."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Keep it; to copy it all would be a part of what a run's start takes."""
        self.environ = environ
        self.impossible: list[str] = []

    def count(self, name: str, most: int = _MOST_COUNT) -> int | None:
        """Return a whole number, 0 or more; ``None`` where it is not stated or cannot be."""
        text = self.environ.get(name)
        if not text:
            return None
        number = int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None
        if number is not None and number <= most:
            return number
        self.impossible.append(name)
        return None


def _attempt(env: _Told) -> int:
    """Return the number of the attempt: a requeued job begins after all restarts torchrun may make."""
    requeues, restarts = env.count("SLURM_RESTART_COUNT") or 0, env.count(_RESTARTS)
    if restarts is None:
        return 1 + requeues
    most = env.count("TORCHELASTIC_MAX_RESTARTS")
    return 1 + requeues * (1 + (_MOST_RESTARTS if most is None else most)) + restarts


def _launcher(rank: bytes) -> int:
    """Return the process that started the ranks, above whatever stands around this one alone.

    A shell or ``carbonlens run`` around a rank has the rank's variable in its own
    environment, which is looked at for that alone. What was forked from the launcher and
    runs nothing else, as a subshell, is taken for the launcher.

    Args:
        rank: The variable that states the rank, as it stands in an environment.
    """
    pid = os.getppid()
    while pid > 1 and rank in _text(pid, "environ").split(b"\0"):
        pid = _parent(pid)
    while pid > 1 and _program(pid) is not None and _program(pid) == _program(_parent(pid)):
        pid = _parent(pid)
    # The first process of a machine starts everything, and adopts what others started.
    return 0 if pid == 1 and _text(1, "comm").strip() in _INITS else pid


def _program(pid: int) -> tuple[bytes, bytes] | None:
    """Return arguments and environment, which a process shares with what it forks; ``None`` if hidden."""
    command, environ = _text(pid, "cmdline"), _text(pid, "environ")
    return (command, environ) if command and environ else None


def _parent(pid: int) -> int:
    fields = stat_fields(pid)
    return 0 if fields is None else int(fields[1])


def _text(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def launched_by(pid: int) -> str | None:
    """Return a job id that all ranks launched by one process share.

    Args:
        pid: The launcher, which goes on as long as its ranks do.

    Returns:
        ``None`` where there is no such process.
    """
    start = process_start_ticks(pid)
    return None if start is None else _hashed("launcher", place_of_pids(), str(pid), str(start))


def _place(env: _Told) -> tuple[str, int | None, int | None, int | None]:
    """Return the rank's variable, the rank, the ranks in all, and those on this node, as far as told."""
    for rank, ranks, on_node in _RANKS:
        if ranks in env.environ:
            in_all = env.count(ranks)
            most = _MOST_COUNT if in_all is None else in_all - 1
            return rank, env.count(rank, most), in_all, env.count(on_node)
    return "SLURM_PROCID", env.count("SLURM_PROCID"), None, None


def _stated(env: Mapping[str, str]) -> str | None:
    """Return the id of a job that its launcher states for all nodes."""
    slurm, elastic = env.get("SLURM_JOB_ID"), env.get("TORCHELASTIC_RUN_ID")
    # torchrun's own id is "none" unless the user gave one.
    named = slurm or (elastic if elastic and elastic != "none" else None)
    if named:
        return plain(named)  # a record holds no other bytes
    # Open MPI's holds the name of a host.
    mpi = [env[name] for name in _MPI_JOB if env.get(name)]
    return _hashed("mpi", *mpi) if mpi else None


def _of_agent(env: Mapping[str, str]) -> str | None:
    """Return an id of the torchrun agent that started this process, the same over its restarts."""
    file = env.get(_ERROR_FILE)
    if not file:
        return None
    path = PurePath(file)
    if len(path.parents) <= _BELOW_RUN_FOLDER:
        return None
    return _hashed("torchrun", this_host().host_id, str(path.parents[_BELOW_RUN_FOLDER - 1]))


def _hashed(kind: str, *parts: str) -> str:
    digest = sha256_hex("\0".join(parts).encode("utf-8", "surrogateescape"))
    return f"{kind}-{digest[:_ID_LENGTH]}"
