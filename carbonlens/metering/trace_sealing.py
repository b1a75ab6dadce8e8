"""The trace of a run, made from its journal when the run is sealed or recovered.

Nothing is done for it while the work runs: the journal holds each look already. What
goes wrong is a Finding on the run (DESIGN, law 8).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.trace import Trace
from carbonlens.metering.journal import samples_of
from carbonlens.metering.sensors import SensorInfo
from carbonlens.metering.trace_file import SCHEMA, Head, columns_of, rows_of, traced_run, write_trace
from carbonlens.metering.trace_target import TraceTarget

CODE: Final = "CL161"
"""A trace was asked for and there is none."""

_UNMADE: Final = (OSError, TypeError, ValueError, OverflowError)
"""What a disk refuses, and what neither a path nor JSON can hold."""


def with_trace(
    run: Run,
    target: TraceTarget,
    journal: Path | None,
    infos: Sequence[SensorInfo],
    *,
    may_replace: bool,
) -> Run:
    """Write a run's trace, and return the record that names it; else with a Finding.

    Args:
        run: Sealed, under the id and start it will be stored with.
        target: Where the trace goes.
        journal: File that holds the samples; ``None`` where none was kept, or not to the end.
        infos: The sensors, in the order of each sample's values.
        may_replace: Whether a trace that is there gives way. Other files never do.
    """
    try:
        fault = _fault(run, target, journal, may_replace=may_replace)
        if fault is None and journal is not None:
            return msgspec.structs.replace(run, trace=_written(run, target, journal, infos))
    except _UNMADE as error:
        fault = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
    return msgspec.structs.replace(run, findings=(*run.findings, not_traced(fault or "no journal")))


def _fault(run: Run, target: TraceTarget, journal: Path | None, *, may_replace: bool) -> str | None:
    path = Path(target.path)
    if journal is None:
        return "it is made from the run's journal, and that could not be kept to the end"
    if not os.path.lexists(path):
        return None
    there = traced_run(path)
    if there is None:
        return "there is another file of that name, which stays"
    # A recovery comes late: a later run may have written that name. Its own it may write again.
    return None if may_replace or there == run.run_id else "that name holds another run's trace, which stays"


def _written(run: Run, target: TraceTarget, journal: Path, infos: Sequence[SensorInfo]) -> Trace:
    head = Head(
        schema=SCHEMA,
        run_id=run.run_id,
        start_us=run.start_us or 0,
        host_id=run.host_id,
        machine_id=run.machine_id,
    )
    rows = rows_of(samples_of(journal), infos, head.start_us)
    sha256 = write_trace(Path(target.path), head, columns_of(infos), rows)
    return Trace(file=target.given, sha256=sha256)


def not_traced(reason: str) -> Finding:
    """A trace was asked for and could not be written; the run itself is whole.

    Args:
        reason: Why.
    """
    return Finding(
        code=CODE,
        severity="warning",
        message=f"no trace was written: {reason}",
        mend="give --trace (trace=) a new file in a folder that is there and can be written",
        subject="trace",
    )
