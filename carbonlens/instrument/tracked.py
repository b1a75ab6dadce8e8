"""The handle of a run that is being measured, and what begins and seals it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Final, Literal, SupportsFloat, SupportsInt, TypeVar

import msgspec

from carbonlens.domain.direction import direction_unstated
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import RunStatus
from carbonlens.instrument.request import Request, described, ledger_path, said_of, storable
from carbonlens.instrument.sources import declared_sources
from carbonlens.instrument.tokens import Milliseconds, TokenMeter
from carbonlens.metering import findings
from carbonlens.metering.deposit import Deposit
from carbonlens.metering.ending import OpenRun, killed_by, process_ending
from carbonlens.metering.lineage import process_lineage
from carbonlens.metering.notice import tell_fault, tell_misplaced, tell_unmeasured
from carbonlens.metering.phases import Level, PhaseBlock, Phases
from carbonlens.metering.recorder import Recorder
from carbonlens.metering.recovery import WAIT_S, recover_beside
from carbonlens.metering.sensors.discovery import watch
from carbonlens.metering.session import Session
from carbonlens.metering.trace_target import target_of
from carbonlens.metering.wording import error_kind, error_text, plain

T = TypeVar("T")

_LATER: Final = (CoroutineType, GeneratorType, AsyncGeneratorType)
_NOT_YET: Final = (
    "a coroutine or generator does its work where it is awaited or gone through; decorate the function "
    "that is written with async def or yield, or put `with carbonlens.track()` around that"
)


class TrackedRun:
    """Handle of a run that is being measured; use it to say what the work did.

    Nothing here raises over a wrong value: it becomes a Finding on the run.
    """

    def __init__(self, request: Request) -> None:
        """Prepare; measuring begins with ``_start``."""
        self._request = request
        self._recorder = Recorder()
        self.token_meter = TokenMeter(self._recorder)
        self._session: Session | None = None
        self._run: Run | None = None
        self._fault: str | None = None
        self._ledger = Path()
        self._no_ledger: str | None = None
        self._ended = False
        self._is_settled = False
        self._sealing = threading.Lock()
        self._open = OpenRun(self._seal_by_signal, self._tell)
        if type(self).step is TrackedRun.step:
            self.step = self._recorder.add_units  # type: ignore[method-assign]  # a call less at every step
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

    def step(self, units: SupportsFloat = 1) -> None:
        """Count the units of one pass of a loop, in the run and in the phase it is in.

        Args:
            units: Functional units done: samples, tokens, whatever ``unit`` names.
        """
        self._recorder.add_units(units)

    def phase(self, name: str) -> PhaseBlock:
        """Return a context manager: what runs inside is the phase ``name`` of the run.

        Phases tell what part of the run's energy, time and units went where; they are no
        runs of their own. The innermost one counts, and the one around it goes on after.

        Args:
            name: ``load``, ``warm-up``, ``steady``, ``evaluation``, ``checkpoint`` or one's own.
        """
        return PhaseBlock(name, self._begin_phase, self._end_phase)

    def enter_phase(self, name: str | None) -> None:
        """Go on in the phase ``name`` until another is entered, or the block around ends.

        Args:
            name: As of ``phase``; ``None`` leaves what was entered this way.
        """
        self._switch(lambda phases: phases.say(name))

    def _begin_phase(self, name: object) -> Level | None:
        return self._switch(lambda phases: phases.begin(name))

    def _end_phase(self, level: Level) -> None:
        self._switch(lambda phases: phases.end(level))

    def _switch(self, change: Callable[[Phases], T]) -> T | None:
        try:
            return None if self._session is None else self._session.switch_phase(change)
        except Exception as error:  # noqa: BLE001  # law 8: a phase less, and the loop goes on
            self._recorder.note(findings.record_ignored("phase", error_text(error)))
            return None

    def record_quality(
        self,
        name: str,
        value: SupportsFloat | None = None,
        n: SupportsInt | None = None,
        outcomes: Iterable[SupportsInt] | None = None,
        *,
        higher_is_better: bool | Literal["by name"] | None = "by name",
    ) -> None:
        """Keep a quality figure of the work.

        Args:
            name: What was measured, for example ``accuracy``.
            value: The figure; the mean of ``outcomes`` when absent.
            n: Number of examples it rests on; that of ``outcomes`` when absent.
            outcomes: One number an example (1 right, 0 wrong), in the order of the
                test set, which allows a paired comparison.
            higher_is_better: Direction; ``None`` where it is not known. Unless stated the name
                tells it (``accuracy``, ``loss``), else outcomes do, of which 1 is right.
        """
        # Not by ``==``: the user's own object may answer with an array.
        if isinstance(higher_is_better, str) and higher_is_better == "by name":
            higher_is_better = direction_unstated(name, of_outcomes=outcomes is not None)
        self._recorder.add_quality(name, value, n, outcomes, higher_is_better=higher_is_better)

    def record_latencies(self, milliseconds: Iterable[SupportsFloat]) -> None:
        """Take the latencies of further calls, in milliseconds."""
        self._recorder.add_latencies(milliseconds)

    def record_tokens(
        self,
        *,
        requests: SupportsInt | None = 1,
        prompt: SupportsInt | None = None,
        output: SupportsInt | None = None,
        cached: SupportsInt | None = None,
        first_token_ms: Milliseconds | None = None,
        inter_token_ms: Milliseconds | None = None,
    ) -> None:
        """Take what a call of a language model's engine did; leave out what it does not tell.

        A total is known only if every call told its part. For ``transformers`` there is
        ``carbonlens.instrument.transformers.track_generate``.

        Args:
            requests: Sequences that the call wrote.
            prompt: Prompt tokens, the cached ones included; padding is none.
            output: Tokens written, all sequences together, the first ones included.
            cached: Prompt tokens that a cache held; 0 where there is no cache.
            first_token_ms: Time to the first token, or a list with one a request.
            inter_token_ms: Times from one token to the next, in milliseconds: a list with each
                of the ``output - requests``, or one number, their mean.
        """
        self.token_meter.record(
            requests=requests,
            prompt=prompt,
            output=output,
            cached=cached,
            first_token_ms=first_token_ms,
            inter_token_ms=inter_token_ms,
        )

    def describe_model(
        self, bytes: SupportsInt | None = None, macs_per_unit: SupportsInt | None = None
    ) -> None:
        """Keep the model's size in bytes and its multiply-accumulates per unit."""
        self._recorder.describe_model(bytes, macs_per_unit)

    def _returned(self, value: T) -> T:
        """Take what a decorated function returned; hand it on."""
        if isinstance(value, _LATER):
            self._recorder.note(findings.record_ignored("the work of what was returned", _NOT_YET))
        return value

    def _start(self) -> None:
        try:
            with process_ending().undisturbed():
                self._begin()
        except Exception as error:  # noqa: BLE001  # law 8: no fault of ours stops the user's block
            self._fault = error_text(error)
        except BaseException:  # a Ctrl-C: whoever entered the block sees to it
            process_ending().calm()
            raise

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
            session.note(storable(note))
        try:
            session.start()
            # Only a run that is measured becomes the parent of others.
            lineage.enter(run.run_id, run.parent_run_id)
            self._session = session
            process_ending().opened(self._open)
        except BaseException:  # also a Ctrl-C in the middle: nothing is left open, then it goes on
            self._session = None
            process_ending().closed(self._open)
            lineage.leave(run.run_id)
            session.drop()
            raise

    def _stop(self, error: BaseException | None) -> None:
        self._ended = True
        try:
            self._end_in_order(error)
        except Exception as fault:  # noqa: BLE001  # law 8: the block's own outcome is what counts
            self._fault = error_text(fault)
        except BaseException:  # a Ctrl-C in the middle: the run is sealed all the same, then it goes on
            process_ending().calm()
            with suppress(Exception):  # law 8, as above
                self._end_in_order(error)
            self._is_settled = True
            raise
        self._is_settled = True
        if self._fault is not None:
            tell_unmeasured(self._fault)

    def _stop_at_once(self, error: BaseException | None) -> None:
        """Seal what a Ctrl-C kept from being sealed; nothing where that is done."""
        if not self._is_settled:
            self._stop(error)

    def _end_in_order(self, error: BaseException | None) -> None:
        with process_ending().undisturbed():
            self._end(error)
        if self._recovery is not None:
            self._recovery.join(WAIT_S)

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

    def _end_window(self, session: Session) -> None:
        """Take the last readings: what this process does from now on is no part of the run."""
        lineage, run = process_lineage(), session.run
        parent = lineage.parent_of(run.run_id)
        if lineage.leave(run.run_id):
            session.note(findings.overlapping_windows())
            # Inside a run that ended first, what came after its end would be in no sum.
            session.run = msgspec.structs.replace(run, parent_run_id=parent)
        session.end()

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
            self._end_window(session)
            self._stored = session.finish(status, error=text, exit_code=exit_code)
            self._run = self._stored.run


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


_recovery_started = threading.Lock()
"""Held from the first block on. No ``Event``: a Ctrl-C in the middle of ``set`` would leave its lock locked,
and the next block waiting for ever."""


def _recovery_once() -> threading.Thread | None:
    """Seal what earlier processes left behind, once a process, beside the user's work."""
    return recover_beside() if _recovery_started.acquire(blocking=False) else None
