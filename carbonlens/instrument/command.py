"""Measure any command: its process tree's CPU time, and energy counters where there are any."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.sources import Sources
from carbonlens.errors import UsageError
from carbonlens.instrument.callers_environment import callers_environ
from carbonlens.instrument.child import ChildEnd, held_signals, run_child, subreaper
from carbonlens.instrument.request import labels_of, of_field_names, storable
from carbonlens.ledger.location import LEDGER_VARIABLE, is_address
from carbonlens.metering import findings
from carbonlens.metering.deposit import Deposit
from carbonlens.metering.ending import killed_by
from carbonlens.metering.job import Job, this_job
from carbonlens.metering.lineage import VARIABLE, process_lineage
from carbonlens.metering.notice import tell_unmeasured
from carbonlens.metering.process_time import children
from carbonlens.metering.records import new_run
from carbonlens.metering.sensors.discovery import Watch, watch
from carbonlens.metering.session import Session
from carbonlens.metering.trace_target import TraceTarget
from carbonlens.metering.wording import arguments_sha256, error_text, plain

if TYPE_CHECKING:
    from carbonlens.instrument.live import LiveView


_AFTERWARDS: Final = tuple(
    f"carbonlens.ledger.{name}" for name in ("layout", "atomic", "migration", "records", "store", "oddities")
)
"""Modules that every run needs when its command has ended, in the order in which they need each other."""


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a measured command ended.

    Attributes:
        exit_code: Of the command, as a shell gives it: 128 + n after signal n,
            126 not executable, 127 not found.
        signal: Signal it died by; the caller dies by the same.
        run: The record; ``None`` when nothing could be measured.
        message: Why the command could not be started, as a shell says it.
        stored: Where the record lies; ``None`` when nothing could be measured.
        fault: Why nothing could be measured; the command ran all the same.
    """

    exit_code: int
    signal: int | None
    run: Run | None
    message: str | None = None
    stored: Deposit | None = None
    fault: str | None = None


def run_command(  # noqa: PLR0913  # each is an option of the command line
    argv: Sequence[str],
    *,
    ledger: Path,
    step: str | None = None,
    study: str | None = None,
    unit: str | None = None,
    units: Decimal | int | None = None,
    repeat: int | None = None,
    tags: Mapping[str, str] | None = None,
    record_args: bool = False,
    sources: Sources | None = None,
    notes: Sequence[Finding] = (),
    trace: TraceTarget | None = None,
    live: bool = False,
    may_give_way: bool = False,
    meanwhile: Sequence[str] = (),
) -> CommandResult:
    """Run a command, and record what it used as one run.

    The command runs whatever goes wrong in measuring (DESIGN, law 8). Of its
    arguments only a hash is kept, of its environment nothing (law 11).

    Args:
        argv: Program and arguments, run without a shell.
        ledger: Folder to record in.
        step: Step of the study that the run measures.
        study: Study the run belongs to.
        unit: Functional unit.
        units: How many units the command does.
        repeat: Number of the round, 0 or more.
        tags: The user's own labels.
        record_args: True to keep the arguments themselves.
        sources: What the user declared, beside what is found.
        notes: What must be said on the record beside what measuring finds.
        trace: File that gets every reading when the command has ended.
        live: True to show power and energy so far on the terminal that stderr is.
        may_give_way: True where the command may take this process's place if none can start: unmeasured.
        meanwhile: Names of modules that the caller needs afterwards, to be loaded while the command works.

    Raises:
        UsageError: If there is no command.
    """
    if not argv:
        raise UsageError("there is no command to run", mend="give it after --")
    with held_signals() as held, subreaper():
        session, fault = None, None
        environ = callers_environ()
        try:
            job = this_job()
            run = _labelled(_described(argv, job, record_args=record_args), step, study, unit, repeat, tags)
            said = (*notes, *of_field_names(run.tags), *findings.launcher_impossible(job.impossible))
            if job.is_of_node:
                said += (findings.job_of_one_node(is_alone=job.job_id is None),)
            seen = watch(of_children=True, sources=sources)
            session = _started(run, ledger, seen, units, (*said, *seen.findings), trace)
            environ[VARIABLE] = run.run_id
            # What the command tracks itself belongs beside this run.
            environ[LEDGER_VARIABLE] = str(ledger)
        except Exception as error:  # noqa: BLE001  # law 8: the command runs, measured or not
            fault = error_text(error)
        view = _shown(session) if live else None
        gone = partial(_give_way, session, view) if may_give_way else None
        end = run_child(argv, environ, held, make_room=gone, meanwhile=(*_needed(ledger, trace), *meanwhile))
        if view is not None:
            view.stop()
        stored = None
        if session is not None:
            try:
                stored = _finished(session, end, argv[0])
            except Exception as error:  # noqa: BLE001  # law 8: the exit code passes through all the same
                fault = error_text(error)
    return CommandResult(
        exit_code=end.exit_code,
        signal=end.signal,
        run=stored.run if stored is not None else None,
        message=end.message,
        stored=stored,
        fault=fault,
    )


def _needed(ledger: Path, trace: TraceTarget | None) -> Iterator[str]:
    """Yield the names of modules that this run needs when its command has ended."""
    yield from _AFTERWARDS
    if is_address(ledger):
        yield "carbonlens.ledger.outbox"
    if trace is not None:
        yield "carbonlens.metering.trace_sealing"


def _described(argv: Sequence[str], job: Job, *, record_args: bool) -> Run:
    """Return a running record of the command, its host and its job."""
    run = new_run(
        "run",
        # The name alone: a folder can carry the user's name.
        program=plain(Path(argv[0]).name),
        args_sha256=arguments_sha256(argv[1:]),
    )
    origin = run.origin
    if record_args and origin is not None:
        origin = msgspec.structs.replace(origin, args=tuple(map(plain, argv[1:])))
    return msgspec.structs.replace(
        run,
        origin=origin,
        job_id=job.job_id,
        parent_run_id=process_lineage().parent(),
        attempt=job.attempt,
        rank=job.rank,
    )


def _labelled(
    run: Run,
    step: str | None,
    study: str | None,
    unit: str | None,
    repeat: int | None,
    tags: Mapping[str, str] | None,
) -> Run:
    """Return the record with what the user calls it."""
    return msgspec.structs.replace(
        run,
        role="variant" if step is not None else "other",
        study=None if study is None else plain(study),
        step=None if step is None else plain(step),
        unit=None if unit is None else plain(unit),
        repeat=repeat,
        tags=labels_of(tags or {}),
    )


def _started(  # the pieces of one session
    run: Run,
    ledger: Path,
    seen: Watch,
    units: Decimal | int | None,
    notes: Sequence[Finding],
    trace: TraceTarget | None,
) -> Session:
    session = Session(run, seen, ledger, trace=trace)
    for note in notes:
        session.note(storable(note))
    if units is not None:
        session.recorder.add_units(units)
    session.start()
    return session


def _shown(session: Session | None) -> LiveView | None:
    """Begin to show what is measured; raises nothing."""
    from carbonlens.instrument.live import LiveView, live_line  # most runs show nothing

    try:
        line = live_line() if session is not None else None
        return None if session is None or line is None else LiveView(session, line)
    except Exception:  # noqa: BLE001  # law 8: a terminal or a library at fault costs the line alone
        return None


def _give_way(session: Session | None, view: LiveView | None) -> None:
    """Let go of everything: the command needs the place, and is about to have this process."""
    if view is not None:
        view.stop()
    if session is not None:
        session.abandon()
    tell_unmeasured("the system lets no process start beside it")


def _finished(session: Session, end: ChildEnd, program: str) -> Deposit:
    survivors = len(children(os.getpid()))
    if survivors:
        session.note(findings.processes_outlived(survivors))
    if end.exit_code == 0:
        return session.finish("complete", exit_code=0)
    if end.message is not None:
        # The program's name alone, as everywhere in the record: a folder can carry the user's name.
        reason = end.message.removeprefix(program)
        return session.finish("failed", error=f"{plain(Path(program).name)}{reason}", exit_code=end.exit_code)
    error = killed_by(end.signal)[0] if end.signal is not None else f"exited with {end.exit_code}"
    return session.finish("failed", error=error, exit_code=end.exit_code)
