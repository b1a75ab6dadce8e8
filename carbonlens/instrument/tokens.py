"""Tokens of a run, call by call, whatever engine wrote them.

A total is known only if every call told its part: a part that is missing is not zero,
and the total is then unknown and said to be (DESIGN, law 1).
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, SupportsFloat, SupportsInt

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.tokens import Tokens
from carbonlens.instrument import token_findings
from carbonlens.metering import findings
from carbonlens.metering.recorder import Recorder, whole_of
from carbonlens.metering.wording import UnfitValueError, unfit
from carbonlens.signals.latency import LatencyCollector

Milliseconds = SupportsFloat | Iterable[SupportsFloat]

_LOCK_WAIT_S: Final = 0.05
"""The longest that telling what was counted waits for whoever is counting."""

_COUNT: Final = "a whole number, 0 or more,"
_TIME: Final = "a finite number of milliseconds, 0 or more, or a list of them"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What one call of an engine did; ``None`` where that is not known.

    Attributes:
        requests: Sequences that it wrote.
        prompt: Prompt tokens given, the cached ones included.
        cached: Those that a cache held.
        output: Tokens written.
        first_token_ms: Time to the first token.
        inter_token_ms: Time of each further step.
        decode_s: Seconds from the first token to the last.
    """

    requests: int | None = None
    prompt: int | None = None
    cached: int | None = None
    output: int | None = None
    first_token_ms: tuple[float, ...] | None = None
    inter_token_ms: tuple[float, ...] | None = None
    decode_s: float | None = None


class _Sum:
    """A total over calls, and how many of them told their part."""

    def __init__(self) -> None:
        self.total: float = 0
        self.told = 0

    def add(self, part: float | None) -> None:
        if part is not None:
            self.total += part
            self.told += 1

    def over(self, calls: int) -> float | None:
        return self.total if self.told == calls and calls else None


class TokenMeter:
    """Counts tokens and their times for one run; safe from any thread.

    In a forked child it does nothing, as the run goes on in its parent.

    Args:
        recorder: Of the run.
    """

    def __init__(self, recorder: Recorder) -> None:
        """Start with nothing counted."""
        self._recorder = recorder
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._calls = 0
        self._raised = 0
        self._counts = {name: _Sum() for name in ("requests", "prompt", "cached", "output")}
        self._prefill, self._decode = _Sum(), _Sum()
        self._first, self._inter = LatencyCollector(), LatencyCollector()

    @property
    def is_ours(self) -> bool:
        """False in a forked child."""
        return os.getpid() == self._pid

    def record(
        self,
        *,
        requests: SupportsInt | None = 1,
        prompt: SupportsInt | None = None,
        output: SupportsInt | None = None,
        cached: SupportsInt | None = None,
        first_token_ms: Milliseconds | None = None,
        inter_token_ms: Milliseconds | None = None,
    ) -> None:
        """Take what the user says of a call; a wrong value and none of it is taken (law 8)."""
        counts = {"requests": requests, "prompt": prompt, "cached": cached, "output": output}
        given: tuple[str, object, str] = ("", None, "")
        try:
            whole: dict[str, int | None] = {}
            for name, number in counts.items():
                given = (name, number, _COUNT)
                whole[name] = None if number is None else _count_of(number)
            if (whole["cached"] or 0) > (whole["prompt"] if whole["prompt"] is not None else math.inf):
                given = ("cached", cached, "at most the prompt tokens")
                raise UnfitValueError("more cached than prompt tokens were given")
            given = ("first_token_ms", first_token_ms, _TIME)
            first = None if first_token_ms is None else _times_of(first_token_ms)
            given = ("inter_token_ms", inter_token_ms, _TIME)
            inter = None if inter_token_ms is None else _times_of(inter_token_ms)
        except Exception as error:  # noqa: BLE001  # law 8: whatever the user's number raises is no number
            reason = unfit(given[1], error, given[2])
            self._recorder.note(findings.record_ignored("tokens", f"{given[0]}: {reason}"))
            return
        decode_s = None if inter is None else math.fsum(inter) / 1000
        self.add(Call(**whole, first_token_ms=first, inter_token_ms=inter, decode_s=decode_s))

    def add(self, call: Call) -> None:
        """Count a call whose figures are sound."""
        if not self.is_ours:
            return
        with self._lock:
            first_call = self._calls == 0
            self._calls += 1
            for name, total in self._counts.items():
                total.add(getattr(call, name))
            self._prefill.add(None if call.first_token_ms is None else math.fsum(call.first_token_ms) / 1000)
            self._decode.add(call.decode_s)
            self._first.add(call.first_token_ms or ())
            self._inter.add(call.inter_token_ms or ())
            missing = self._missing()
        # Not while holding the lock: the recorder asks for what was counted while it holds its own.
        if first_call:
            self._recorder.tokens_from(self.tokens)
        else:
            self._recorder.changed()
        for finding in missing:
            self._recorder.note(finding)

    def raised(self) -> None:
        """Take that a call ended with an exception: nothing of it is counted."""
        if self.is_ours:
            with self._lock:
                self._raised += 1
                count = self._raised
            self.note(token_findings.call_raised(count))

    def note(self, finding: Finding) -> None:
        """Keep what must be said of what was counted."""
        if self.is_ours:
            self._recorder.note(finding)

    def tokens(self, exact: bool) -> Tokens:
        """Return what was counted so far.

        Args:
            exact: False to leave the percentiles out.
        """
        with self._patiently():
            calls = self._calls
            counts = {name: _whole(total.over(calls)) for name, total in self._counts.items()}
            return Tokens(
                **counts,
                prefill_s=self._prefill.over(calls),
                decode_s=self._decode.over(calls),
                first_token=self._first.latency(exact=exact),
                inter_token=self._inter.latency(exact=exact),
            )

    def _missing(self) -> list[Finding]:
        parts = (*self._counts.items(), ("prefill_s", self._prefill), ("decode_s", self._decode))
        return [
            token_findings.told_in_part(name, total.told, self._calls)
            for name, total in parts
            if 0 < total.told < self._calls
        ]

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """Hold the lock, or go on without it where its holder was interrupted by a signal for good."""
        held = self._lock.acquire(timeout=_LOCK_WAIT_S)
        try:
            yield
        finally:
            if held:
                self._lock.release()


def _count_of(number: SupportsInt) -> int:
    count = whole_of(number)
    if count < 0:
        raise UnfitValueError("a negative number was given")
    return count


def _times_of(times: Milliseconds) -> tuple[float, ...]:
    values = tuple(map(float, times)) if isinstance(times, Iterable) else (float(times),)
    if not all(0 <= value < math.inf for value in values):
        raise UnfitValueError("a time that is negative or not finite was given")
    return values


def _whole(total: float | None) -> int | None:
    return None if total is None else int(total)
