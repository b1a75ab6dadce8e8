"""What a scheduler says about the job this process belongs to.

Only the variables named here are read; nothing else of the environment is kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Job, attempt and rank, as far as a scheduler states them."""

    job_id: str | None = None
    attempt: int = 1
    rank: int | None = None


def this_job(environ: Mapping[str, str] | None = None) -> Job:
    """Return the job of SLURM or torchrun that this process is part of."""
    env = os.environ if environ is None else environ
    slurm = env.get("SLURM_JOB_ID")
    elastic = env.get("TORCHELASTIC_RUN_ID")
    restarts = _int(env.get("SLURM_RESTART_COUNT")) or 0
    restarts += _int(env.get("TORCHELASTIC_RESTART_COUNT")) or 0
    rank = _int(env.get("RANK")) if "WORLD_SIZE" in env else _int(env.get("SLURM_PROCID"))
    return Job(
        # torchrun's own id is "none" unless the user gave one.
        job_id=slurm or (elastic if elastic and elastic != "none" else None),
        attempt=1 + restarts,
        rank=rank,
    )


def _int(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
