"""The trace of a run, made from its journal when the run is sealed or recovered.

Nothing is done for it while the work runs: the journal holds each look already. The record
itself keeps the run's power over time, thinned, and beside it a file keeps every reading where
one was asked for. What goes wrong is a Finding on the run (DESIGN, law 8).
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
from carbonlens.domain.units import US_PER_S
from carbonlens.metering.journal import looks_of, samples_of
from carbonlens.metering.phase_spans import Span, spans_of
from carbonlens.metering.power_curve import power_trace
from carbonlens.metering.power_obstacles import UNREAD, no_power, obstacle
from carbonlens.metering.sealing import Sealed
from carbonlens.metering.sensors import SensorInfo
from carbonlens.metering.trace_file import (
    Head,
    PhaseLine,
    columns_of,
    rows_of,
    schema_of,
    traced_run,
    write_trace,
)
from carbonlens.metering.trace_target import TraceTarget

CODE: Final = "CL161"
"""A trace was asked for and there is none."""

_UNMADE: Final = (OSError, TypeError, ValueError, OverflowError)
"""What a disk refuses, and what neither a path nor JSON can hold."""

_NO_JOURNAL: Final = "it is made from the run's journal, and that could not be kept to the end"
_ROOM: Final = "see the finding about the journal (CL129): its folder must have room and be writable"
_REPORT: Final = "report this as a fault of carbonlens; the energy of the run is not concerned"


def with_trace(
    run: Run,
    target: TraceTarget,
    journal: Path | None,
    infos: Sequence[SensorInfo],
    sealed: Sealed,
    *,
    may_replace: bool,
) -> Run:
    """Write a run's trace, and return the record that holds it thinned and names it; else with a Finding.

    Args:
        run: Sealed, under the id and start it will be stored with.
        target: Where the trace goes.
        journal: File that holds the samples; ``None`` where none was kept, or not to the end.
        infos: The sensors, in the order of each sample's values.
        sealed: What the run's readings were made from.
        may_replace: Whether a trace that is there gives way. Other files never do.
    """
    spans: tuple[Span, ...] = ()
    try:
        if journal is None:
            run = _noted(run, no_power(_NO_JOURNAL, _ROOM))
        else:
            spans = _spans(run, journal)
            run = _with_power(run, journal, infos, sealed, spans)
    except Exception as error:  # noqa: BLE001  # law 8: nothing in the arithmetic of a curve may cost the run, or its file
        run = _noted(run, no_power(f"it could not be made ({_reason(error)})", _REPORT))
    if not target.is_file:
        return run
    try:
        fault = _fault(run, target, journal, may_replace=may_replace)
        if fault is None and journal is not None:
            return msgspec.structs.replace(run, trace=_written(run, target, journal, infos, spans))
    except _UNMADE as error:
        fault = _reason(error)
    return _noted(run, not_traced(fault or "no journal"))


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def _noted(run: Run, finding: Finding) -> Run:
    return msgspec.structs.replace(run, findings=(*run.findings, finding))


def _spans(run: Run, journal: Path) -> tuple[Span, ...]:
    if not run.phases:
        return ()
    return spans_of((look.phases for look in looks_of(journal)), _window_us(run))


def _with_power(
    run: Run, journal: Path, infos: Sequence[SensorInfo], sealed: Sealed, spans: Sequence[Span]
) -> Run:
    window_us = _window_us(run)
    power = power_trace(samples_of(journal), infos, sealed, window_us, spans)
    if power is not None:
        return msgspec.structs.replace(run, power=power)
    return _noted(run, no_power(*(obstacle(infos, sealed, window_us) or UNREAD)))


def _window_us(run: Run) -> int:
    return round((run.duration_s or 0.0) * US_PER_S)


def _fault(run: Run, target: TraceTarget, journal: Path | None, *, may_replace: bool) -> str | None:
    path = Path(target.path)
    if journal is None:
        return _NO_JOURNAL
    if not os.path.lexists(path):
        return None
    there = traced_run(path)
    if there is None:
        return "there is another file of that name, which stays"
    # A recovery comes late: a later run may have written that name. Its own it may write again.
    return None if may_replace or there == run.run_id else "that name holds another run's trace, which stays"


def _written(
    run: Run, target: TraceTarget, journal: Path, infos: Sequence[SensorInfo], spans: Sequence[Span]
) -> Trace:
    head = Head(
        schema=schema_of(spans),
        run_id=run.run_id,
        start_us=run.start_us or 0,
        host_id=run.host_id,
        machine_id=run.machine_id,
    )
    rows = rows_of(samples_of(journal), infos, head.start_us)
    phases = [
        PhaseLine(phase=s.name, start_us=head.start_us + s.start_us, end_us=head.start_us + s.end_us)
        for s in spans
    ]
    sha256 = write_trace(Path(target.path), head, columns_of(infos), rows, phases)
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
