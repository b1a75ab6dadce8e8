"""Records: a run as it begins, and as it is sealed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Final

import msgspec

from carbonlens._version import __version__
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Conditions, Origin, Run
from carbonlens.domain.units import US_PER_S, RunStatus
from carbonlens.metering.allowance import allowance
from carbonlens.metering.cpu_families import this_processor
from carbonlens.metering.host import new_run_id, process_ancestors, process_pseudonym, this_host
from carbonlens.metering.journal import Facts
from carbonlens.metering.npu_part import npu_over_cpu_part
from carbonlens.metering.sealing import Sealed
from carbonlens.metering.wording import plain

ERROR_LENGTH: Final = 200


def sealed_run(
    run: Run,
    facts: Facts,
    sealed: Sealed,
    window_us: int,
    status: RunStatus,
    notes: Sequence[Finding] = (),
) -> Run:
    """Return the finished record of a run from what was sealed.

    Args:
        run: The record as it was at the start.
        facts: What the user recorded meanwhile.
        sealed: Energy of the window.
        window_us: Length of the window.
        status: How it ended.
        notes: Findings beside those of ``facts`` and ``sealed``.
    """
    window_s = window_us / US_PER_S
    covered_s = min(sealed.covered_s, window_s)
    run = facts.onto(run)
    return msgspec.structs.replace(
        run,
        status=status,
        end_us=None if run.start_us is None else run.start_us + window_us,
        duration_s=window_s,
        energy=sealed.readings,
        beside=sealed.beside,
        device_uuids=run.device_uuids or sealed.devices,
        energy_by_hour=sealed.hours,
        conditions=Conditions(wall_s=window_s, cpu_s=sealed.cpu_s),
        coverage=covered_s / window_s if window_s > 0 else 1.0,
        lost_s=round(window_s - covered_s, 6),
        findings=(
            *run.findings,
            *sealed.findings,
            *npu_over_cpu_part(sealed.readings, run.execution),
            *notes,
        ),
    )


def new_run(instrument: str, *, program: str | None = None, args_sha256: str | None = None) -> Run:
    """Return a running record of this host and this moment, with a fresh id.

    Args:
        instrument: What measures, for example ``track``.
        program: Name of the program, without folders and arguments.
        args_sha256: Hash of its arguments.
    """
    now_us = time.time_ns() // 1000
    uname = os.uname()
    return Run(
        run_id=new_run_id(now_us // 1000),
        status="running",
        host_id=this_host().host_id,
        machine_id=this_host().machine,
        process=process_pseudonym(os.getpid()),
        ancestors=process_ancestors(os.getpid()),
        allowance=allowance(),
        start_us=now_us,
        hardware=hardware_name(),
        origin=Origin(
            instrument=f"carbonlens {instrument} {__version__}",
            program=program,
            args_sha256=args_sha256,
            python=".".join(map(str, sys.version_info[:3])),
            platform=f"{uname.sysname} {uname.release} {uname.machine}",
        ),
    )


@cache
def hardware_name() -> str | None:
    """Return the CPU's name and how many of its threads this machine has."""
    name = this_processor().name
    threads = os.cpu_count()
    return None if name is None else f"{name} x{threads}"


def one_line(error: str | None) -> str | None:
    """Return the first line of an error text, at most 200 characters of it."""
    if error is None:
        return None
    return plain(error).strip().partition("\n")[0].strip()[:ERROR_LENGTH]
