"""What a tracked session of ONNX Runtime says into its run: calls, and at the end who executed them."""

from __future__ import annotations

import _thread
import atexit
import itertools
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, SupportsFloat

from carbonlens.domain.finding import Finding
from carbonlens.importers.ort_profile import Profile
from carbonlens.instrument import onnxruntime_execution as execution
from carbonlens.instrument import onnxruntime_findings as findings
from carbonlens.instrument.onnxruntime_profile import Profiling
from carbonlens.instrument.onnxruntime_units import UnitRule, UntoldError
from carbonlens.instrument.track import Tracker
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.metering.findings import record_ignored
from carbonlens.metering.wording import error_kind

_MOST_PENDING: Final = 256
"""As many calls are gathered before they are recorded at once, which is ten times cheaper a call."""

_LONGEST_WAIT_S: Final = 2.0
"""A program that lets go of a session waits no longer than this for its run to be sealed."""


class SessionMeter:
    """Counts the calls of one session into one run.

    It does not keep a session alive that the program lets go of, unless a profile is
    to be read from it.

    Args:
        bare: The session of ONNX Runtime.
        run: Where it counts.
        tracker: What ends the run, where the session opened it itself.
        rule: How many units a call is.
        asked: Providers that were asked for.
        profiling: The profile, if one was switched on.
    """

    def __init__(
        self,
        bare: Any,  # noqa: ANN401  # a class of a library imported late
        run: TrackedRun,
        tracker: Tracker | None,
        *,
        rule: UnitRule,
        asked: Sequence[str] = (),
        profiling: Profiling | None = None,
    ) -> None:
        """Say which providers are registered; what they do is not known yet."""
        self.run = run
        self.profiling = profiling
        self.profile: Profile | None = None
        self._tracker = tracker
        self._rule = rule
        self._asked = tuple(asked)
        self._session: Callable[[], Any] = weakref.ref(bare) if profiling is None else (lambda: bare)
        self._providers: tuple[str, ...] = tuple(bare.get_providers())
        self._failures = itertools.count(1)
        self._untold = itertools.count(1)
        self._calls = 0
        self._was_tried = False
        self._is_open = True
        self._ending = threading.RLock()
        self._pid = os.getpid()
        self._number = execution.enrol(run)
        self._subject = f"onnxruntime session {self._number}"
        execution.keep(run, self._number, execution.registered(self._providers))
        self._note(execution.unavailable(self._asked, self._providers, self._subject))
        self._pending: deque[tuple[float, int | None]] = deque()
        self._changed = run._recorder.changed
        run._recorder.before_look(self._hand_over)
        run._recorder.at_end(self._tell)
        if tracker is not None:
            _left_open.add(self)

    def done(self, took_s: float, given: Any, *, is_bound: bool = False) -> None:  # noqa: ANN401  # a feed or a binding
        """Count a call that gave a result; raises nothing."""
        if not self._is_open:
            return
        units: SupportsFloat | None = None
        try:
            rule = self._rule
            units = rule.of_binding(given) if is_bound else rule.of_feed(given)
        except UntoldError as error:
            self._not_counted(str(error))
        except Exception as error:  # noqa: BLE001  # law 8: the user's rule, or an input of a strange type
            self._not_counted(error_kind(error))
        if units is not None and (type(units) is not int or units < 0):
            # Read now: what a rule returned may be an array that its next call fills anew.
            self.run.add_units(units)
            units = None
        pending = self._pending
        pending.append((took_s * 1e3, units))
        self._changed()
        if len(pending) >= _MOST_PENDING or not self._is_open:  # closed meanwhile: nobody else asks
            self._hand_over()

    def _hand_over(self) -> None:
        """Record the calls gathered so far, from any thread; raises nothing."""
        times: list[float] = []
        counted, total = False, 0
        with suppress(IndexError):
            while True:
                took_ms, units = self._pending.popleft()
                times.append(took_ms)
                if units is not None:
                    counted, total = True, total + units
        if times:
            self._calls += len(times)
            self.run.record_latencies(times)
        if counted:
            self.run.add_units(total)

    def failed(self) -> None:
        """Note a call that raised; raises nothing."""
        if self._is_open:
            self._was_tried = True
            self._note(findings.calls_failed(next(self._failures), self._subject))

    def close(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """End the measurement, once; a run of the session's own is sealed. Raises nothing."""
        with self._ending:
            tracker, self._tracker = self._tracker, None
            _left_open.discard(self)
        if tracker is not None:
            # Its end has the session tell what it knows, after the last reading.
            tracker.__exit__(kind, error, trace)
        self._tell()

    def close_at_exit(self) -> None:
        """Seal a run that the program left open."""
        self._note(findings.not_closed(self._subject))
        self.close()

    def measure_within(self) -> None:
        """Expect no calls of its own: a session around it counts them into the same run."""
        self._was_tried = True

    def let_go(self) -> None:
        """End the measurement since the program has let go of the session; raises nothing.

        That may be in the middle of a garbage collection, which may come while this thread
        holds any lock: hence a thread of its own, and a wait that has an end.
        """
        if not self._is_open:
            return
        sealed = _thread.allocate_lock()
        sealed.acquire()

        def seal() -> None:
            try:
                if self._tracker is not None:
                    self._note(findings.let_go(self._subject))
                self.close()
            finally:
                sealed.release()

        with suppress(RuntimeError):  # no thread to be had: it is sealed at the end of the program
            _thread.start_new_thread(seal, ())
            sealed.acquire(timeout=_LONGEST_WAIT_S)

    def _tell(self) -> None:
        with self._ending:
            was_open, self._is_open = self._is_open, False
        if not was_open or os.getpid() != self._pid:
            return
        try:
            self._tell_all(self._session())
        except Exception as error:  # noqa: BLE001  # law 8: less is known of the run, which ends as ever
            self._note(record_ignored("execution", error_kind(error)))
        self._session = _nothing
        execution.close(self.run, self._number)
        self.run._recorder.forget(self._hand_over, self._tell)

    def _tell_all(self, session: Any) -> None:  # noqa: ANN401  # as above
        self._hand_over()
        if not (self._calls or self._was_tried):
            self.run.add_units(0)
            self._note(findings.never_called(self._subject))
        now = self._providers if session is None else tuple(session.get_providers())
        if now != self._providers:
            self._note(findings.providers_changed(self._providers, now, self._subject))
        if self.profiling is not None:
            self._tell_profile(self.profiling, session, now)
        elif now != self._providers:
            both = dict.fromkeys((*self._providers, *now))
            execution.keep(self.run, self._number, execution.registered(both))

    def _tell_profile(self, profiling: Profiling, session: Any, now: Sequence[str]) -> None:  # noqa: ANN401  # as above
        profiling.end(session)
        profile = self.profile = profiling.read()
        if profiling.is_on:
            self._note(findings.profiled(self._subject))
        if profiling.fault is not None:
            self._note(findings.profile_incomplete(profiling.fault, self._subject))
        if profile is None:
            return
        for gap in execution.gaps(profile, self._calls, self._subject):
            self._note(gap)
        if profile.runs:
            execution.keep(self.run, self._number, execution.executed(profile, now))
            self._note(execution.fallback(profile, self._asked, self._providers, self._subject))

    def _not_counted(self, reason: str) -> None:
        self._note(findings.units_not_told(next(self._untold), reason, self._subject))

    def _note(self, finding: Finding | None) -> None:
        if finding is not None:
            self.run._recorder.note(finding)


def _nothing() -> None:
    return None


_left_open: set[SessionMeter] = set()
"""Sessions with a run of their own that is not sealed yet."""


def _close_all() -> None:
    for meter in tuple(_left_open):
        meter.close_at_exit()


atexit.register(_close_all)
