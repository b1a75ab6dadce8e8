"""A measured window around work of our own choosing, as benches and wrappers need it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final

import msgspec

from carbonlens.domain.run import Run
from carbonlens.domain.sources import Sources
from carbonlens.domain.units import Role
from carbonlens.errors import MeasurementError
from carbonlens.instrument.request import storable
from carbonlens.metering import findings
from carbonlens.metering.deposit import Deposit, deposit
from carbonlens.metering.lineage import process_lineage
from carbonlens.metering.recorder import Recorder
from carbonlens.metering.records import new_run, one_line
from carbonlens.metering.sensors.discovery import Watch, watch
from carbonlens.metering.session import Session
from carbonlens.metering.settling import least_window_s, settle_s
from carbonlens.metering.trace_target import IN_RECORD
from carbonlens.metering.wording import error_kind

Work = Callable[[Recorder, Run], None]
"""Gets where to say what was done, and the record so far."""

Settle = Callable[[float, Run], None]
"""Has the work go on for some seconds before its window, unmeasured; gets the record so far."""


Say = Callable[[str | None], None]
"""Says which phase of the run goes on from now on; ``None`` is none."""


_LONGEST_STEADY_S: Final = 5.0
"""Fifty looks: a curve of a work that goes on alike is not told better by more."""

_SHORTEST_STEADY_S: Final = 0.2
"""Two looks; less is no curve."""


def steady_s(window_s: float) -> float:
    """Return how long a traced run does what a round does; 0 where that would be too short for a curve.

    Args:
        window_s: Length of a round.
    """
    return min(window_s, _LONGEST_STEADY_S) if window_s >= _SHORTEST_STEADY_S else 0.0


def unsaid(name: str | None) -> None:
    """Say no phase: nothing is traced."""


Size = Callable[[float], None]
"""Gets the seconds that a window needs at least, for what its sensors are."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where windows are measured and recorded.

    Attributes:
        ledger: Folder of the records.
        sources: What the user declared.
    """

    ledger: str
    sources: Sources


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """What the record of a window says of the work.

    Attributes:
        repeat: Number of the round, 0 or more.
        tags: Labels, for example of the series it belongs to.
    """

    step: str
    study: str
    role: Role
    unit: str | None = None
    workload: str | None = None
    repeat: int | None = None
    job_id: str | None = None
    tags: dict[str, str] = {}  # a frozen record's default is never mutated


def measure(  # noqa: PLR0913  # optional and by name
    label: Label,
    place: Place,
    work: Work,
    *,
    of_children: bool = False,
    settle: Settle | None = None,
    size: Size | None = None,
    seen: Watch | None = None,
    traced: Callable[[Say], None] | None = None,
) -> Deposit:
    """Measure a piece of work as one run.

    With ``settle`` the load is there already when the window begins, so that no reading
    in it tells of what was before: the settled tail of the work is measured. What the work
    tracks itself, here or in a process that it starts, is a part of the run.

    Args:
        label: What the record says.
        place: Where it is recorded.
        work: What to measure.
        of_children: The work is done by child processes, so that this one's own
            CPU time is none of it.
        settle: Does the same work for the time that the sensors need.
        size: Told how long the work is to be repeated for the sensors' sake, before it begins.
        seen: What to look at; everything that can be by default.
        traced: Has the record keep the run's power over time; gets what says its phases.

    Raises:
        Exception: Whatever ``work`` or ``settle`` raises, after the run was recorded as failed.
        KeyboardInterrupt: After the run was recorded as one that did not end.
    """
    run = _begun(label)
    recorder = Recorder()
    seen = seen or watch(of_children=of_children, sources=place.sources)
    trace = None if traced is None else IN_RECORD
    session = Session(run, seen, Path(place.ledger), recorder=recorder, trace=trace)
    if traced is not None:
        traced(lambda name: session.switch_phase(lambda phases: phases.say(name)))
    for note in seen.findings:
        session.note(storable(note))
    infos = [s.info for s in seen.sensors]
    try:
        if size is not None:
            size(least_window_s(infos))
        with _around(session):
            if settle is not None and (seconds := settle_s(infos)) > 0:
                settle(seconds, run)
            session.start()
            work(recorder, run)
    except KeyboardInterrupt as error:
        # The user's own, and no fault of the work: it did not end, and comparisons leave it out.
        session.finish("recovered", error=error_kind(error))
        raise
    except BaseException as error:  # put in order, then raised again
        session.finish("failed", error=_kept_of(error))
        raise
    return session.finish()


@contextmanager
def _around(session: Session) -> Iterator[None]:
    """Have what the work tracks within the block be a part of the run, so that it counts once."""
    lineage, run = process_lineage(), session.run
    lineage.enter(run.run_id, run.parent_run_id)
    try:
        yield
    finally:
        if lineage.leave(run.run_id):
            session.note(findings.overlapping_windows())


def record_failure(label: Label, place: Place, what: str) -> None:
    """Record work whose process died before it could do so itself: nothing is known of its energy.

    Args:
        label: What the record says.
        place: Where it is recorded.
        what: How it died.
    """
    run = msgspec.structs.replace(_begun(label), status="failed", error=one_line(what))
    deposit(run, Path(place.ledger))


def _kept_of(error: BaseException) -> str:
    """Return what the record keeps of an error: its kind, and how a command of the work ended."""
    cause = error.__cause__
    if isinstance(error, MeasurementError) and isinstance(cause, CalledProcessError):
        code = cause.returncode
        return f"{error_kind(error)}: {f'signal {-code}' if code < 0 else f'exit code {code}'}"
    return error_kind(error)


def _begun(label: Label) -> Run:
    return msgspec.structs.replace(
        new_run("bench"),
        parent_run_id=process_lineage().parent(),
        step=label.step,
        study=label.study,
        role=label.role,
        unit=label.unit,
        workload=label.workload,
        repeat=label.repeat,
        job_id=label.job_id,
        tags=label.tags,
    )
