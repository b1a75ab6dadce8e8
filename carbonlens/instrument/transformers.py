"""Hugging Face ``generate()``: count tokens and times of its calls in a run.

    from carbonlens.instrument.transformers import track_generate

    with carbonlens.track("bf16", unit="output token") as run, track_generate(model, run):
        model.generate(**inputs, max_new_tokens=64)

It puts a wrapper in place of the model's ``generate``, so that pipelines are seen too, and
takes it away at the block's end. The clock is a streamer that is added to the call (a
streamer of the user's own gets all it would get without). It is handed each step's tokens
once they are on the host, where ``generate`` waits for the device anyway to see whether to
stop, so that on CUDA too the time is that of the finished step and no work is added but the
copy of one number a sequence. (A stopping criterion is called before that, while the device
still computes.) On MPS ``transformers`` hands tokens out one step late.

Written against ``transformers`` 5.24 (generation/utils.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import update_wrapper
from inspect import signature
from itertools import pairwise
from types import TracebackType
from typing import Any, Final, Protocol, cast

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.instrument import token_findings
from carbonlens.instrument.token_counts import Arguments, Counts, Result, mode_of, result_of, so_far_of
from carbonlens.instrument.tokens import Call, TokenMeter
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.metering.locks import patiently
from carbonlens.metering.wording import error_kind

_NS_PER_MS: Final = 1e6
_NS_PER_S: Final = 1e9

_MOMENT_S: Final = 0.05
"""The longest that the block's end waits for calls that have written all; law 8 allows 50 ms."""

_inside: ContextVar[tuple[TokenMeter, ...]] = ContextVar("carbonlens_generate", default=())
"""Meters of the calls that this thread is in: a call inside a call (a drafting model, a
generation that repeats itself) is a part of it."""


class Streamer(Protocol):
    """What ``generate`` hands its tokens to."""

    def put(self, value: Any) -> None: ...  # noqa: ANN401, D102  # a tensor

    def end(self) -> None: ...  # noqa: D102  # as of the class it stands for


def track_generate(model: object, run: TrackedRun) -> GenerateTracking:
    """Return a context manager that counts a model's ``generate()`` calls in a run.

    Args:
        model: A ``transformers`` model, or a pipeline that has one.
        run: Handle of ``carbonlens.track``. Nothing is raised over a model that cannot be
            followed: it becomes a Finding on the run.
    """
    return GenerateTracking(model, run)


class GenerateTracking:
    """Puts the wrapper in place and takes it away; give it to ``with``."""

    def __init__(self, model: object, run: TrackedRun) -> None:
        """Keep what was given; nothing is changed yet."""
        self._given = model
        self._model = model
        self._run = run
        self._wrapper: GenerateWrapper | None = None

    def __enter__(self) -> Any:  # noqa: ANN401  # the model as it was given, whatever its class
        """Begin to count; returns what was given."""
        try:
            self._model = self._given if hasattr(self._given, "generate") else vars(self._given)["model"]
            wrapper = GenerateWrapper(self._model, self._run.token_meter)
            vars(self._model)["generate"] = wrapper
            self._wrapper = wrapper
        except Exception as error:  # noqa: BLE001  # law 8: a model that cannot be followed runs all the same
            self._say(error)
        return self._given

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the wrapper away and count what still goes on; the exception goes on."""
        wrapper, self._wrapper = self._wrapper, None
        if wrapper is None:
            return
        wrapper.close()
        attributes = vars(self._model)
        # Somebody who put one of his own over it keeps it, and calls ours, which is off now.
        top = attributes.get("generate")
        while isinstance(top, GenerateWrapper) and not top.is_on:
            top = attributes["generate"] = top.before
        if top is None:
            attributes.pop("generate", None)

    def _say(self, error: Exception) -> None:
        meter = getattr(self._run, "token_meter", None)
        if isinstance(meter, TokenMeter):
            meter.note(
                token_findings.not_counted("generate()", f"no model of transformers ({error_kind(error)})")
            )


class GenerateWrapper:
    """Stands in for ``model.generate`` and counts what its calls do."""

    def __init__(self, model: object, meter: TokenMeter) -> None:
        """Wrap what is the model's ``generate`` now, and look like it."""
        original: Any = model.generate  # type: ignore[attr-defined]  # a model of any kind
        update_wrapper(self, original, updated=())
        for name in ("__self__", "__func__"):
            if hasattr(original, name):
                vars(self)[name] = getattr(original, name)
        self._model = model
        self._meter = meter
        self.before: object = vars(model).get("generate")
        self._original: Callable[..., Any] = original
        self._positional = _positional_of(original)
        self._lock = threading.Lock()
        self._open: list[_WatchedCall] = []
        self.is_on = True
        if self._positional is None:
            meter.note(token_findings.not_counted("tokens", "the model has a generate() of its own"))

    @property
    def positional(self) -> Sequence[str] | None:
        """Names of the arguments of transformers' own ``generate``; ``None`` for another."""
        return self._positional

    def __reduce__(self) -> tuple[object, ...]:
        """A copy of the model, in this process or another, has its class's own ``generate``."""
        return getattr, (self._model, "generate")

    def __call__(self, *args: object, **kwargs: object) -> Any:  # noqa: ANN401  # as of the original
        """Call the original, once, and count what it did."""
        call = self._begun(args, kwargs)
        if call is None:
            return self._original(*args, **kwargs)
        entered = _inside.set((*_inside.get(), self._meter))
        try:
            result = self._original(**call.arguments)
        except BaseException:  # put in order, then raised again
            with patiently(self._lock):
                if self._closed(call):
                    self._meter.raised()
            self._told(call)
            raise
        finally:
            _inside.reset(entered)
        self._ended(call, result)
        return result

    def _begun(self, args: tuple[object, ...], kwargs: dict[str, object]) -> _WatchedCall | None:
        """Return the call as it is to be made; ``None`` to make it as it was given."""
        try:
            meter, names = self._meter, self._positional
            if not self.is_on or names is None or not meter.is_ours or meter in _inside.get():
                return None
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            if len(args) > len(names) or len(given) < len(args) + len(kwargs):
                return None  # the original says what is wrong with them
            call = _WatchedCall(Arguments(given, self._model))
            with patiently(self._lock):
                self._open.append(call)
            return call
        except Exception as error:  # noqa: BLE001  # law 8: uncounted, and made all the same
            self._uncounted(error)
            return None

    def _ended(self, call: _WatchedCall, result: object) -> None:
        try:
            self._count(call, *call.counted(result))
        except Exception as error:  # noqa: BLE001  # law 8: the result is there, and counts
            self._lost(call, error)

    def close(self) -> None:
        """Follow no more calls, and count what those that still go on have done so far.

        A streamer's reader wakes before ``generate`` returns, and may end the block at once:
        calls that have written all get a moment to return.
        """
        self.is_on = False
        if not self._meter.is_ours:
            return
        until_s = time.monotonic() + _MOMENT_S
        for call in tuple(self._open):
            if call.has_written_all or call.is_closed:
                call.is_counted.wait(max(until_s - time.monotonic(), 0))
        for call in tuple(self._open):
            try:
                counted = self._count(call, *call.so_far())
                # One whose own thread is about to count it still comes too late for this block.
                went_on = not call.has_written_all if counted else not call.is_counted.is_set()
                if went_on:
                    self._meter.went_on()
            except Exception as error:  # noqa: BLE001  # law 8: uncounted, and the block ends all the same
                self._lost(call, error)

    def _count(self, call: _WatchedCall, counted: Call, findings: Sequence[Finding]) -> bool:
        """Count a call once, by its own thread or by the block's end; tell whether it was this time."""
        with patiently(self._lock):
            if not self._closed(call):
                return False
            self._meter.add(counted)
        for finding in findings:
            self._meter.note(finding)
        self._told(call)
        return True

    def _closed(self, call: _WatchedCall) -> bool:
        """Close a call, which stays in sight until it is counted; tell whether it was open."""
        was_closed, call.is_closed = call.is_closed, True
        return not was_closed

    def _told(self, call: _WatchedCall) -> None:
        """Let go of a call that is counted, and of whoever waits for that."""
        with suppress(ValueError):
            self._open.remove(call)
        call.is_counted.set()

    def _lost(self, call: _WatchedCall, error: Exception) -> None:
        with patiently(self._lock):
            if self._closed(call):
                self._uncounted(error)
        self._told(call)

    def _uncounted(self, error: Exception) -> None:
        self._meter.add(Call())
        self._meter.note(token_findings.not_counted("tokens of a call", error_kind(error)))


class _WatchedCall:
    """One call of ``generate``: what goes in, the clock, and what comes out."""

    def __init__(self, given: Arguments) -> None:
        self._given = given
        self._mode = mode_of(given)
        self._before = Counts.of(given)
        self.arguments = dict(given.values)
        self._clock: _Clock | None = None
        if self._mode.streams:
            self._clock = self.arguments["streamer"] = _Clock(self.arguments.get("streamer"))
        self.is_closed = False
        self.is_counted = threading.Event()
        self._start_ns = time.perf_counter_ns()

    @property
    def has_written_all(self) -> bool:
        """Whether all tokens were handed out, so that the call returns soon."""
        return self._clock is not None and self._clock.has_ended

    def counted(self, result: object) -> tuple[Call, list[Finding]]:
        """Return what the call did, and what must be said of it."""
        end = result_of(result, self._given, self._mode, None if self._clock is None else self._clock.prompt)
        steps = [] if self._clock is None else self._clock.steps
        return self._timed(end, [at_ns for at_ns, _ in steps]), [*self._before.findings, *end.findings]

    def so_far(self) -> tuple[Call, list[Finding]]:
        """Return what the call did until now; the prompt counts once the first token is there."""
        if self._clock is None:
            return Call(), []
        whole, steps = self._clock.has_ended, tuple(self._clock.steps)
        end = so_far_of([tokens for _, tokens in steps], self._given, self._mode)
        call = self._timed(end, [at_ns for at_ns, _ in steps])
        # A request that is not finished is neither one nor none.
        call = call if whole else msgspec.structs.replace(call, requests=None)
        if not steps:
            call = msgspec.structs.replace(call, prompt=None, cached=None)
        return call, [*self._before.findings, *end.findings]

    def _timed(self, end: Result, times: Sequence[int]) -> Call:
        steps = [(b - a) / _NS_PER_MS for a, b in pairwise(times)]
        return Call(
            requests=end.requests,
            prompt=self._before.prompt,
            cached=self._before.cached,
            output=end.output,
            first_token_ms=((times[0] - self._start_ns) / _NS_PER_MS,) if times else None,
            inter_token_ms=tuple(steps) if times and self._mode.is_stepwise else None,
            decode_s=(times[-1] - times[0]) / _NS_PER_S if times else None,
        )


class _Clock:
    """A streamer that notes what tokens come when, and hands them to the user's own.

    The first that ``generate`` puts are those of the prompt.
    """

    def __init__(self, then: Any) -> None:  # noqa: ANN401  # whatever has put and end
        self._then: Streamer | None = then
        self.prompt: Any = None
        self.steps: list[tuple[int, Any]] = []
        self.has_ended = False

    def put(self, value: Any) -> None:  # noqa: ANN401  # a tensor
        if self.prompt is None:
            self.prompt = value
        else:
            self.steps.append((time.perf_counter_ns(), value))
        if self._then is not None:
            self._then.put(value)

    def end(self) -> None:
        # Before the user's own, which may wake whoever ends the block.
        self.has_ended = True
        if self._then is not None:
            self._then.end()


def _positional_of(generate: object) -> Sequence[str] | None:
    """Return the names of the arguments if it is transformers' own; ``None`` for another."""
    if isinstance(generate, GenerateWrapper):
        return generate.positional
    from transformers import GenerationMixin

    its_own = cast("Callable[..., Any]", GenerationMixin.generate)
    if getattr(generate, "__func__", None) is not its_own:
        return None
    kinds = signature(its_own).parameters.values()
    return tuple(p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD)[1:]
