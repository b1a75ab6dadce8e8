"""``carbonlens.track``: measure a block or a function, and record it as one run.

The job comes first (DESIGN, law 8): whatever goes wrong in here, the user's block
runs, its value and its exception pass through unchanged, and what was lost stands
in the record or in one line on stderr.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, SupportsFloat, SupportsInt, TypeVar, cast, get_args, overload

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import Run
from carbonlens.domain.units import Role, RunStatus
from carbonlens.errors import CarbonlensError
from carbonlens.ledger.location import locate
from carbonlens.ledger.store import Ledger
from carbonlens.metering import findings
from carbonlens.metering.deposit import Deposit, fallback_ledger
from carbonlens.metering.job import this_job
from carbonlens.metering.lineage import process_lineage
from carbonlens.metering.notice import tell_fault, tell_unmeasured
from carbonlens.metering.recorder import Recorder
from carbonlens.metering.recovery import recover_beside
from carbonlens.metering.sensors.discovery import watch
from carbonlens.metering.session import Session, new_run

P = ParamSpec("P")
R = TypeVar("R")

_RECOVERY_WAIT_S = 0.04
"""Longest a block's end waits for the recovery of earlier runs; law 8 allows 50 ms."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the user said about the run when asking to track it."""

    step: str | None = None
    study: str | None = None
    role: str | None = None
    unit: str | None = None
    job_id: str | None = None
    repeat: int | None = None
    tags: Mapping[str, str] | None = None
    ledger: str | Path | Ledger | None = None
    on: Sequence[str] | str | None = None
    workload: str | None = None
    zone: str | None = None
    site: str | None = None
    hardware: str | None = None


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
            self._begin()
        except Exception as error:  # noqa: BLE001  # law 8: no fault of ours stops the user's block
            self._fault = f"{type(error).__name__}: {error}"
            self._session = None

    def _begin(self) -> None:
        self._recovery = _recovery_once()
        notes: list[Finding] = []
        self._ledger = _ledger_path(self._request.ledger, notes)
        lineage = process_lineage()
        run = _described(self._request, lineage.parent(), notes)
        session = Session(run, watch(), self._ledger, recorder=self._recorder)
        for note in notes:
            session.note(note)
        self._session = session
        lineage.enter(run.run_id, run.parent_run_id)
        session.start()

    def _stop(self, error: BaseException | None) -> None:
        try:
            self._end(error)
        except Exception as fault:  # noqa: BLE001  # law 8: the block's own outcome is what counts
            self._fault = f"{type(fault).__name__}: {fault}"
        if self._fault is not None:
            tell_unmeasured(self._fault)

    def _end(self, error: BaseException | None) -> None:
        session = self._session
        if session is None or not session.is_ours:
            return
        status, text, exit_code = _outcome(error)
        if process_lineage().leave(session.run.run_id):
            session.note(findings.overlapping_windows())
        stored: Deposit = session.finish(status, error=text, exit_code=exit_code)
        self._run = stored.run
        tell_fault(stored, self._ledger)
        if self._recovery is not None:
            self._recovery.join(_RECOVERY_WAIT_S)


class Tracker:
    """What ``track`` returns: a context manager and a decorator.

    Each use is a run of its own.
    """

    def __init__(self, request: Request) -> None:
        """Keep what was asked for."""
        self._request = request
        self._entered: list[TrackedRun] = []

    def __enter__(self) -> TrackedRun:
        """Begin to measure."""
        handle = TrackedRun(self._request)
        self._entered.append(handle)
        handle._start()
        return handle

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Seal the run; the exception goes on."""
        self._entered.pop()._stop(error)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Measure every call of a function, plain, generator or coroutine."""
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
) -> Tracker | Callable[P, R]:
    """Measure a block or a function, and record it as one run.

    ``with track("int8") as run:`` gives a handle to say what the work did;
    ``@track("int8")`` measures every call. It reads the CPU time of this process
    and its children, and energy counters where the machine has readable ones.
    Nothing is printed, and no error of carbonlens reaches the block.

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
        )
    )


def _described(request: Request, parent: str | None, notes: list[Finding]) -> Run:
    """Return the running record with everything that is known beforehand."""
    job = this_job()
    run = new_run(
        "track",
        program=Path(sys.argv[0]).name if sys.argv and sys.argv[0] else None,
        args_sha256=sha256_hex("\0".join(sys.argv[1:]).encode("utf-8", "surrogateescape")),
    )
    on = request.on.split("+") if isinstance(request.on, str) else request.on
    return msgspec.structs.replace(
        run,
        job_id=request.job_id or job.job_id,
        parent_run_id=parent,
        attempt=job.attempt,
        rank=job.rank,
        role=_role(request, notes),
        study=request.study,
        step=request.step,
        on=None if on is None else tuple(str(o) for o in on if o),
        repeat=request.repeat,
        unit=request.unit,
        workload=request.workload,
        zone=request.zone,
        site=request.site,
        hardware=request.hardware or run.hardware,
        tags={str(k): str(v) for k, v in (request.tags or {}).items()},
    )


def _role(request: Request, notes: list[Finding]) -> Role:
    if request.role is None:
        return "variant" if request.step is not None else "other"
    if request.role in get_args(Role):
        return cast("Role", request.role)
    notes.append(findings.record_ignored("role", f"'{request.role}' is none of {', '.join(get_args(Role))}"))
    return "other"


def _ledger_path(explicit: str | Path | Ledger | None, notes: list[Finding]) -> Path:
    try:
        return explicit.path.absolute() if isinstance(explicit, Ledger) else locate(explicit)
    except (CarbonlensError, OSError) as error:
        notes.append(findings.written_elsewhere(str(error)))
        return fallback_ledger()


def _outcome(error: BaseException | None) -> tuple[RunStatus, str | None, int | None]:
    """Return status, error text and exit code that the block's end stands for."""
    if error is None or isinstance(error, GeneratorExit):
        return "complete", None, None
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return ("complete" if code == 0 else "failed"), (f"exited with {code}" if code else None), code
    return "failed", f"{type(error).__name__}: {error}".rstrip(": "), None


def _unmeasured(request: Request, fault: str | None) -> Run:
    """Return the record of a run that could not be measured: nothing is known of it."""
    note = findings.record_ignored("run", fault or "measuring has not begun")
    return Run(run_id="", status="failed", step=request.step, study=request.study, findings=(note,))


_recovery_started = threading.Event()


def _recovery_once() -> threading.Thread | None:
    """Seal what earlier processes left behind, once a process, beside the user's work."""
    if _recovery_started.is_set():
        return None
    _recovery_started.set()
    return recover_beside()
