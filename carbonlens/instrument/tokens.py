"""Tokens of a run, call by call, whatever engine wrote them.

A total is known only if every call told its part: a part that is missing is not zero,
and the total is then unknown and said to be (DESIGN, law 1).
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable
from typing import Any, Final, SupportsFloat, SupportsInt, cast

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.tokens import Tokens
from carbonlens.instrument import token_findings
from carbonlens.metering import findings
from carbonlens.metering.locks import patiently
from carbonlens.metering.recorder import Recorder, whole_of
from carbonlens.metering.wording import UnfitValueError, unfit
from carbonlens.signals.latency import LatencyCollector

Milliseconds = SupportsFloat | Iterable[SupportsFloat]

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


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """The times from token to token of a call; ``None`` where they are not known.

    Attributes:
        each_ms: Each of them.
        sum_s: All of them.
        finding: What must be said of them.
    """

    each_ms: tuple[float, ...] | None = None
    sum_s: float | None = None
    finding: Finding | None = None

    @classmethod
    def of(
        cls, times: tuple[float, ...] | None, output: int | None, requests: int | None, *, is_mean: bool
    ) -> Steps:
        """Return what is known of the times told: the first token of a request ends none of them.

        Args:
            times: In milliseconds.
            output: Tokens written by all requests.
            requests: Sequences written.
            is_mean: Whether the one time is the mean of all.
        """
        if times is None:
            return cls()
        count = None if output is None or requests is None else output - requests
        if count == len(times) or (count is None and times and not is_mean):
            return cls(each_ms=times, sum_s=math.fsum(times) / 1000)
        if is_mean and count is not None and count >= 0:
            return cls(sum_s=times[0] * count / 1000)
        return cls(finding=token_findings.intervals_unfit(None if is_mean else len(times), count))


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
        self._went_on = 0
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
            if not first and (whole["output"], whole["prompt"]) != (0, 0):
                first = None  # an empty list of times is no time of zero
            given = ("inter_token_ms", inter_token_ms, _TIME)
            inter = None if inter_token_ms is None else _times_of(inter_token_ms)
            is_mean = _is_one(inter_token_ms)
        except Exception as error:  # noqa: BLE001  # law 8: whatever the user's number raises is no number
            reason = unfit(given[1], error, given[2])
            self._recorder.note(findings.record_ignored("tokens", f"{given[0]}: {reason}"))
            return
        steps = Steps.of(inter, whole["output"], whole["requests"], is_mean=is_mean)
        self.add(Call(**whole, first_token_ms=first, inter_token_ms=steps.each_ms, decode_s=steps.sum_s))
        if steps.finding is not None:
            self.note(steps.finding)

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

    def went_on(self) -> None:
        """Take that of a call only what it did by the end of the block could be counted."""
        if self.is_ours:
            with patiently(self._lock):
                self._went_on += 1
                count = self._went_on
            self.note(token_findings.went_on(count))

    def note(self, finding: Finding) -> None:
        """Keep what must be said of what was counted."""
        if self.is_ours:
            self._recorder.note(finding)

    def tokens(self, exact: bool) -> Tokens:
        """Return what was counted so far.

        Args:
            exact: False to leave the percentiles out.
        """
        with patiently(self._lock):
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


def _count_of(number: SupportsInt) -> int:
    count = whole_of(number)
    if count < 0:
        raise UnfitValueError("a negative number was given")
    return count


def _times_of(times: Milliseconds) -> tuple[float, ...]:
    values = (
        (float(cast("SupportsFloat", times)),) if _is_one(times) else tuple(map(float, cast("Any", times)))
    )
    if not all(0 <= value < math.inf for value in values):
        raise UnfitValueError("a time that is negative or not finite was given")
    return values


def _is_one(times: Milliseconds | None) -> bool:
    # An array without dimensions has the method that iterates, which then fails; the
    # characters of a text are no times.
    return (
        isinstance(times, str | bytes) or not isinstance(times, Iterable) or getattr(times, "ndim", None) == 0
    )


def _whole(total: float | None) -> int | None:
    return None if total is None else int(total)
