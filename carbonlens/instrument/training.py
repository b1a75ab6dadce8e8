"""A training run that a framework's callback opens, feeds and seals.

A callback is told of events, not given a block: so the run is opened at one event and
sealed at another, and where the framework never tells that training is over, by an
exception that ended it or by the end of the process. Law 8 holds at every hook: what
goes wrong in one is a Finding on the run.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, ParamSpec, SupportsFloat, TypeVar

import msgspec

from carbonlens.domain.direction import known_direction
from carbonlens.domain.finding import Finding
from carbonlens.domain.phase import LOAD, STEADY, WARM_UP
from carbonlens.instrument import training_findings
from carbonlens.instrument.request import Request
from carbonlens.instrument.track import Tracker
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.metering import findings
from carbonlens.metering.host import new_run_id
from carbonlens.metering.job import this_job
from carbonlens.metering.recorder import whole_of
from carbonlens.metering.wording import error_kind, plain, unfit

P = ParamSpec("P")
T = TypeVar("T")

WARM_UP_STEPS: Final = 10
"""Steps that fill caches, compile kernels and let clocks rise; a convention, not a measurement."""


class TrainingUnfinishedError(Exception):
    """Training was begun, and nobody said how it ended."""


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint keeps of a run, so that resuming it continues the job."""

    job_id: str
    attempt: int


class Training:
    """At most one open training run, for a callback to feed; safe to call when none is open.

    A copy of it, in this process or another, has no run.

    Args:
        request: What the user said of the run.
        warmup_steps: Steps that count as warm-up; ``WARM_UP_STEPS`` when ``None``.
        metrics: Names of the evaluation metrics to record, or one name; all when ``None``.
            A value that is neither, and one that is no number of steps, is a Finding.
    """

    def __init__(
        self, request: Request, warmup_steps: int | None, metrics: Iterable[str] | str | None
    ) -> None:
        """Open nothing yet."""
        self._request = request
        self._unfit: tuple[Finding, ...] = ()
        steps = self._said("warmup_steps", warmup_steps, whole_of, "a whole number")
        self._warmup_steps = WARM_UP_STEPS if steps is None else steps
        self._attempt = self._said("attempt", request.attempt, whole_of, "a whole number") or 1
        self._metrics = self._said("metrics", metrics, _names, "a list of names, or one name,")
        self._tracker: Tracker | None = None
        self._handle: TrackedRun | None = None
        self._pid = 0
        self._phase: str | None = None
        self._steps = 0
        self._seen: set[str] = set()
        self._job: JobState | None = None
        self._error_before: tuple[int, str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the run: it is measured here, and once."""
        no_run: dict[str, Any] = {
            "_tracker": None,
            "_handle": None,
            "_phase": None,
            "_steps": 0,
            "_seen": set(),
        }
        return {**self.__dict__, **no_run, "_error_before": None}

    def _said(self, name: str, value: object, convert: Callable[[Any], T], wanted: str) -> T | None:
        try:
            return None if value is None else convert(value)
        except Exception as error:  # noqa: BLE001  # law 8: whatever the user's own object raises
            self._unfit += (findings.record_ignored(name, unfit(value, error, wanted)),)
            return None

    @property
    def metrics(self) -> tuple[str, ...] | None:
        """Names of the evaluation metrics to record; all when ``None``."""
        return self._metrics

    @property
    def handle(self) -> TrackedRun | None:
        """The run that is open, or the last one; ``None`` before the first."""
        return self._handle

    @property
    def is_open(self) -> bool:
        """Whether a run is open that this process began: a forked worker feeds none."""
        return self._tracker is not None and os.getpid() == self._pid

    @property
    def job_state(self) -> JobState | None:
        """What a checkpoint should keep; ``None`` while no run is open."""
        return self._job if self.is_open else None

    @property
    def last_job(self) -> JobState | None:
        """That of the run that is open, or of the last one; ``None`` before the first."""
        return self._job

    def begin(
        self, resumed: JobState | None = None, *, job_id: str | None = None, rank: int | None = None
    ) -> None:
        """Open a run, in the phase ``load``; one that is still open ended without saying so.

        Args:
            resumed: What the checkpoint kept that training goes on from.
            job_id: The job, where the framework knows it better than the environment.
            rank: This process's rank, likewise.
        """
        self.end(TrainingUnfinishedError())
        self._job = self._job_of(resumed, job_id)
        request = msgspec.structs.replace(
            self._request,
            job_id=self._job.job_id,
            attempt=self._job.attempt,
            rank=self._request.rank if rank is None else rank,
        )
        self._pid, self._phase, self._steps, self._seen = os.getpid(), None, 0, set()
        self._error_before = _identity(_last_error())
        self._tracker = Tracker(request)
        self._handle = self._tracker.__enter__()
        run = self._handle.run
        if run.run_id:
            # A launcher may have counted more restarts than the checkpoint knows of.
            self._job = msgspec.structs.replace(self._job, attempt=run.attempt)
        atexit.register(self._at_exit)
        for finding in self._unfit:
            self.note(finding)
        self.enter(LOAD)

    def _job_of(self, resumed: JobState | None, job_id: str | None) -> JobState:
        asked = self._request.job_id
        if resumed is not None and asked in {None, resumed.job_id}:
            return JobState(job_id=resumed.job_id, attempt=max(resumed.attempt + 1, self._attempt))
        job = this_job()
        named = asked or job_id or job.job_id or _new_job()
        return JobState(job_id=named, attempt=max(job.attempt, self._attempt))

    def enter(self, phase: str | None) -> None:
        """Go on in a phase; ``None`` is none."""
        if self._handle is not None and self.is_open and phase != self._phase:
            self._phase = phase
            self._handle.enter_phase(phase)

    def train(self, *, over: bool = False) -> None:
        """Go on to train: in warm-up for the first steps, then steady; in no phase when it is over."""
        self.enter(None if over else WARM_UP if self._steps < self._warmup_steps else STEADY)

    def stepped(self, units: float | None) -> None:
        """Count a step, and the units that this process did in it; ``None`` is not known."""
        self._steps += 1
        self.worked(units)

    def worked(self, units: float | None) -> None:
        """Count units of a step that goes on; ``None`` is not known."""
        if self._handle is not None and self.is_open and units is not None:
            self._handle.step(units)

    def record(
        self,
        metrics: Mapping[str, SupportsFloat],
        n: int | None = None,
        directions: Mapping[str, bool] | None = None,
    ) -> None:
        """Keep evaluation metrics as quality; of a later evaluation the last one counts.

        Args:
            metrics: By name.
            n: Number of examples they rest on, where known.
            directions: Whether more is better, where the user told the framework; else the
                name may tell, else it is not known.
        """
        if self._handle is None or not self.is_open:
            return
        for name, value in metrics.items():
            if self._metrics is not None and name not in self._metrics:
                continue
            self._seen.add(name)
            better = (directions or {}).get(name, known_direction(name))
            self._handle.record_quality(name, value, n, higher_is_better=better)

    def note(self, finding: Finding) -> None:
        """Add a Finding to the open run."""
        if self._handle is not None and self.is_open:
            self._handle._recorder.note(finding)

    def end(self, error: BaseException | None = None) -> None:
        """Seal the open run, if there is one.

        Args:
            error: What training ended with.
        """
        tracker, self._tracker = self._tracker, None
        if tracker is None:
            return
        atexit.unregister(self._at_exit)
        self._error_before = None
        if self._handle is not None and os.getpid() == self._pid:
            for name in self._metrics or ():
                if name not in self._seen:
                    self._handle._recorder.note(training_findings.metric_absent(name))
        tracker.__exit__(None if error is None else type(error), error, None)

    def _at_exit(self) -> None:
        """Seal what the end of the process leaves open: by what killed it, where that is known."""
        error = _last_error()
        told = None if _identity(error) == self._error_before else error
        with suppress(Exception):  # law 8: the process ends, and its journal is recovered
            self.end(told or TrainingUnfinishedError())


def quiet(hook: Callable[P, None]) -> Callable[P, None]:
    """Make a hook of a callback that raises nothing: a fault becomes a Finding on the open run.

    Args:
        hook: Method of an object with ``training``.
    """

    @functools.wraps(hook)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hook(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  # law 8: no fault of a hook reaches the training
            training = getattr(args[0], "training", None) if args else None
            if isinstance(training, Training):
                training.note(training_findings.hook_failed(hook.__name__, error_kind(error)))

    return guarded


def new_of(public: type[T]) -> T:
    """Return an object of a callback's class, not initialised: how a copy of one begins."""
    return public.__new__(public)


def _names(names: Iterable[str] | str) -> tuple[str, ...]:
    return (plain(names),) if isinstance(names, str) else tuple(map(plain, names))


def _identity(error: BaseException | None) -> tuple[int, str] | None:
    # The error itself would keep its frames alive, and the tensors in them; few can be referred to weakly.
    return None if error is None else (id(error), type(error).__qualname__)


def _new_job() -> str:
    import time

    return new_run_id(time.time_ns() // 1_000_000)


def _last_error() -> BaseException | None:
    """Return the exception that the interpreter printed last, if any."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None
