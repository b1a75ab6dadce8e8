"""``carbonlens.track``: measure a block or a function, and record it as one run.

The job comes first (DESIGN, law 8): whatever goes wrong in here, the user's block
runs, its value and its exception pass through unchanged, and what was lost stands
in the record or in one line on stderr.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, SupportsFloat, SupportsInt, TypeVar, cast, overload

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import Role, RunStatus
from carbonlens.instrument.request import Request, described, ledger_path, said_of
from carbonlens.instrument.sources import declared_sources
from carbonlens.ledger.store import Ledger
from carbonlens.metering import findings
from carbonlens.metering.deposit import Deposit
from carbonlens.metering.ending import OpenRun, killed_by, process_ending
from carbonlens.metering.lineage import process_lineage
from carbonlens.metering.notice import tell_fault, tell_misplaced, tell_unmeasured
from carbonlens.metering.recorder import Recorder
from carbonlens.metering.recovery import WAIT_S, recover_beside
from carbonlens.metering.sensors.discovery import watch
from carbonlens.metering.session import Session
from carbonlens.metering.trace_target import target_of
from carbonlens.metering.wording import error_kind, error_text, plain

P = ParamSpec("P")
R = TypeVar("R")


class TrackedRun:
    """Handle of a run that is being measured; use it to say what the work did.

    Nothing here raises over a wrong value: it becomes a Finding on the run.
    """

    def __init__(self, request: Request) -> None:
        """Prepare; measuring begins with ``_start``."""
        self._request = request
        self._recorder = Recorder()
        self._session: Session | None = None
        self._run: Run | None = None
        self._fault: str | None = None
        self._ledger = Path()
        self._no_ledger: str | None = None
        self._ended = False
        self._sealing = threading.Lock()
        self._open = OpenRun(self._seal_by_signal, self._tell)
        self._stored: Deposit | None = None
        self._recovery: threading.Thread | None = None

    @property
    def run(self) -> Run:
        """The sealed record after the block; before its end, what is known so far."""
        if self._run is not None:
            return self._run
        return self._session.run if self._session is not None else _unmeasured(self._request, self._fault)

    @property
    def run_id(self) -> str:
        """Id of the run, valid from the start of the block."""
        return self.run.run_id

    def add_units(self, n: SupportsFloat = 1) -> None:
        """Count ``n`` more functional units as done."""
        self._recorder.add_units(n)

    def record_quality(
        self,
        name: str,
        value: SupportsFloat | None = None,
        n: SupportsInt | None = None,
        outcomes: Iterable[SupportsInt] | None = None,
        *,
        higher_is_better: bool = True,
    ) -> None:
        """Keep a quality figure of the work.

        Args:
            name: What was measured, for example ``accuracy``.
            value: The figure; the mean of ``outcomes`` when absent.
            n: Number of examples it rests on; that of ``outcomes`` when absent.
            outcomes: One number an example (1 right, 0 wrong), in the order of the
                test set, which allows a paired comparison.
            higher_is_better: Direction.
        """
        self._recorder.add_quality(name, value, n, outcomes, higher_is_better=higher_is_better)

    def record_latencies(self, milliseconds: Iterable[SupportsFloat]) -> None:
        """Take the latencies of further calls, in milliseconds."""
        self._recorder.add_latencies(milliseconds)

    def describe_model(
        self, bytes: SupportsInt | None = None, macs_per_unit: SupportsInt | None = None
    ) -> None:
        """Keep the model's size in bytes and its multiply-accumulates per unit."""
        self._recorder.describe_model(bytes, macs_per_unit)

    def _start(self) -> None:
        try:
            with process_ending().undisturbed():
                self._begin()
        except Exception as error:  # noqa: BLE001  # law 8: no fault of ours stops the user's block
            self._fault = error_text(error)

    def _begin(self) -> None:
        self._recovery = _recovery_once()
        notes: list[Finding] = []
        self._ledger, self._no_ledger = ledger_path(self._request.ledger, notes)
        lineage = process_lineage()
        run = described(self._request, lineage.parent(), notes)
        seen = watch(sources=declared_sources(notes))
        target = said_of(self._request, "trace", target_of, notes)
        session = Session(run, seen, self._ledger, recorder=self._recorder, trace=target)
        for note in (*notes, *seen.findings):
            session.note(note)
        session.start()
        # Only a run that is measured becomes the parent of others.
        lineage.enter(run.run_id, run.parent_run_id)
        self._session = session
        process_ending().opened(self._open)

    def _stop(self, error: BaseException | None) -> None:
        self._ended = True
        try:
            with process_ending().undisturbed():
                self._end(error)
            if self._recovery is not None:
                self._recovery.join(WAIT_S)
        except Exception as fault:  # noqa: BLE001  # law 8: the block's own outcome is what counts
            self._fault = error_text(fault)
        if self._fault is not None:
            tell_unmeasured(self._fault)

    def _end(self, error: BaseException | None) -> None:
        session = self._session
        if session is None:
            return
        if not session.is_ours:
            # In a forked child: the run goes on in its parent, and what follows here is none of it.
            process_lineage().leave_inherited(session.run.run_id, session.run.parent_run_id)
            return
        status, text, exit_code = _outcome(error)
        try:
            self._seal(session, status, text, exit_code)
        finally:
            process_ending().closed(self._open)
        self._tell()

    def _seal_by_signal(self, number: int) -> None:
        if self._session is not None:
            self._seal(self._session, "failed", *killed_by(number))

    def _tell(self) -> None:
        if self._stored is not None:
            tell_fault(self._stored, self._ledger)
            if self._no_ledger is not None:
                tell_misplaced(self._no_ledger, self._stored)

    def _seal(self, session: Session, status: RunStatus, text: str | None, exit_code: int | None) -> None:
        # The block ends in one thread while a signal ends the process: one seals, the other waits.
        with self._sealing:
            if self._stored is not None:
                return
            if process_lineage().leave(session.run.run_id):
                session.note(findings.overlapping_windows())
            self._stored = session.finish(status, error=text, exit_code=exit_code)
            self._run = self._stored.run


_open_here: ContextVar[tuple[TrackedRun, ...]] = ContextVar("carbonlens_open", default=())
"""Blocks that this thread or task has entered, the innermost last."""


class Tracker:
    """What ``track`` returns: a context manager and a decorator.

    Each use is a run of its own; several threads and tasks may use one at a time.
    """

    def __init__(self, request: Request) -> None:
        """Keep what was asked for."""
        self._request = request
        self._entered: list[TrackedRun] = []

    def __enter__(self) -> TrackedRun:
        """Begin to measure."""
        handle = TrackedRun(self._request)
        self._entered.append(handle)
        _open_here.set((*(h for h in _open_here.get() if not h._ended), handle))
        handle._start()
        return handle

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Seal the run; the exception goes on."""
        entered = self._entered
        # A block can end in another context than it began in (a generator, say): then
        # the last one entered is the best guess.
        mine = [h for h in _open_here.get() if h in entered] or entered[-1:]
        if mine:
            entered.remove(mine[-1])
            mine[-1]._stop(error)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Measure every call of a function: plain, coroutine, generator or both."""
        import inspect  # 10 ms that a program without decorated functions is spared

        request = self._request
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def measured_async(*args: P.args, **kwargs: P.kwargs) -> object:
                with Tracker(request):
                    return await function(*args, **kwargs)

            return cast("Callable[P, R]", measured_async)

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def measured_generator(*args: P.args, **kwargs: P.kwargs) -> Generator[object, Any, object]:
                with Tracker(request):
                    return (yield from function(*args, **kwargs))

            return cast("Callable[P, R]", measured_generator)

        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def measured_async_generator(
                *args: P.args, **kwargs: P.kwargs
            ) -> AsyncGenerator[object, Any]:
                with Tracker(request):
                    source = function(*args, **kwargs)
                    try:
                        value = await anext(source)
                        while True:
                            try:
                                sent = yield value
                            except BaseException as error:  # noqa: BLE001  # handed on, as yield from does
                                value = await source.athrow(error)
                            else:
                                value = await source.asend(sent)
                    except StopAsyncIteration:
                        return
                    finally:
                        await source.aclose()

            return cast("Callable[P, R]", measured_async_generator)

        @functools.wraps(function)
        def measured(*args: P.args, **kwargs: P.kwargs) -> R:
            with Tracker(request):
                return function(*args, **kwargs)

        return measured


@overload
def track(step: Callable[P, R]) -> Callable[P, R]: ...


@overload
def track(
    step: str | None = None,
    *,
    study: str | None = None,
    role: Role | None = None,
    unit: str | None = None,
    job_id: str | None = None,
    repeat: int | None = None,
    tags: Mapping[str, str] | None = None,
    ledger: str | Path | Ledger | None = None,
    on: Sequence[str] | str | None = None,
    workload: str | None = None,
    zone: str | None = None,
    site: str | None = None,
    hardware: str | None = None,
    trace: str | Path | None = None,
) -> Tracker: ...


def track(  # noqa: PLR0913  # fields of the record, all optional and by name
    step: str | Callable[P, R] | None = None,
    *,
    study: str | None = None,
    role: Role | None = None,
    unit: str | None = None,
    job_id: str | None = None,
    repeat: int | None = None,
    tags: Mapping[str, str] | None = None,
    ledger: str | Path | Ledger | None = None,
    on: Sequence[str] | str | None = None,
    workload: str | None = None,
    zone: str | None = None,
    site: str | None = None,
    hardware: str | None = None,
    trace: str | Path | None = None,
) -> Tracker | Callable[P, R]:
    """Measure a block or a function, and record it as one run.

    ``with track("int8") as run:`` gives a handle to say what the work did;
    ``@track("int8")`` measures every call. It reads the CPU time of this process
    and its children, and energy counters where the machine has readable ones.
    Nothing is printed, and no error of carbonlens reaches the block. A SIGTERM or
    SIGHUP that nobody else handles seals the run before the process dies by it.

    Args:
        step: Name of the step the run measures. A bare ``@track`` records the
            function's name as the workload.
        study: Study the run belongs to.
        role: What the work is for; ``variant`` when a step is named, else ``other``.
        unit: Functional unit that ``add_units`` counts, such as ``image``.
        job_id: Job of several runs; by default that of SLURM or torchrun.
        repeat: Number of the round, from 1.
        tags: Labels of your own.
        ledger: Folder to record in, else as for the command line.
        on: Optimizations that are on, as a list or joined by ``+``.
        workload: What is done, when it matters for comparability.
        zone: Grid zone, such as ``DE``.
        site: Site of the inventory.
        hardware: Name of the machine; the CPU's by default.
        trace: File that gets every reading when the block ends (CSV; ``.gz`` compresses).
            Each block replaces the trace of the one before.
    """
    if callable(step):
        return Tracker(Request(workload=getattr(step, "__qualname__", None)))(step)
    return Tracker(
        Request(
            step=step,
            study=study,
            role=role,
            unit=unit,
            job_id=job_id,
            repeat=repeat,
            tags=tags,
            ledger=ledger,
            on=on,
            workload=workload,
            zone=zone,
            site=site,
            hardware=hardware,
            trace=trace,
        )
    )


def _outcome(error: BaseException | None) -> tuple[RunStatus, str | None, int | None]:
    """Return status, error text and exit code that the block's end stands for."""
    if error is None or isinstance(error, GeneratorExit):
        return "complete", None, None
    if isinstance(error, SystemExit):
        # A text, which Python prints and ends with 1, may hold anything.
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return ("complete" if code == 0 else "failed"), (f"exited with {code}" if code else None), code
    return "failed", error_kind(error), None


def _unmeasured(request: Request, fault: str | None) -> Run:
    """Return the record of a run that could not be measured: nothing is known of it."""
    note = findings.record_ignored("run", fault or "measuring has not begun")
    step, study = (said_of(request, field, plain, []) for field in ("step", "study"))
    return Run(run_id="", status="failed", step=step, study=study, findings=(note,))


_recovery_started = threading.Event()


def _recovery_once() -> threading.Thread | None:
    """Seal what earlier processes left behind, once a process, beside the user's work."""
    if _recovery_started.is_set():
        return None
    _recovery_started.set()
    return recover_beside()
