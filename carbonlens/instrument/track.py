"""``carbonlens.track``: measure a block or a function, and record it as one run.

The job comes first (DESIGN, law 8): whatever goes wrong in here, the user's block
runs, its value and its exception pass through unchanged, and what was lost stands
in the record or in one line on stderr.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast, overload

from carbonlens.domain.units import Role
from carbonlens.instrument.request import Request
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.ledger.store import Ledger

P = ParamSpec("P")
R = TypeVar("R")


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
        handle = self._handle()
        try:
            self._entered.append(handle)
            _open_here.set((*(h for h in _open_here.get() if not h._ended), handle))
            handle._start()
        except BaseException as error:  # a Ctrl-C before the block: there is no ``__exit__`` for it
            self._forget(handle)
            handle._stop(error)
            raise
        return handle

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Seal the run; the exception goes on."""
        handle: TrackedRun | None = None
        try:
            handle = self._innermost()
            if handle is not None:
                handle._stop(error)
        except BaseException:  # a Ctrl-C: what has not begun to end by then ends first
            handle = handle or self._innermost()
            if handle is not None:
                handle._stop_at_once(error)
            raise
        finally:
            self._forget(handle)

    def _innermost(self) -> TrackedRun | None:
        """Return the handle of the block that ends.

        A block can end in another context than it began in (a generator, say): then the last
        one entered is the best guess.
        """
        mine = [h for h in _open_here.get() if h in self._entered] or self._entered[-1:]
        return mine[-1] if mine else None

    def _forget(self, handle: TrackedRun | None) -> None:
        if handle is not None and handle in self._entered:
            self._entered.remove(handle)

    def _handle(self) -> TrackedRun:
        """Return the handle of a run that is about to begin."""
        return TrackedRun(self._request)

    def _of_call(
        self, function: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Tracker:
        """Return what measures one call of a decorated function; raises nothing."""
        del function, args, kwargs
        return Tracker(self._request)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Measure every call of a function: plain, coroutine, generator or both."""
        # Above such a decorator stands no function yet: measured is what it holds.
        for kind in (staticmethod, classmethod):
            if isinstance(function, kind):
                return cast("Callable[P, R]", kind(self(function.__func__)))

        import inspect  # 10 ms that a program without decorated functions is spared

        work: Callable[P, Any] = function

        if _is(inspect.iscoroutinefunction, function):

            @functools.wraps(function)
            async def measured_async(*args: P.args, **kwargs: P.kwargs) -> object:
                with self._of_call(function, args, kwargs) as run:
                    return run._returned(await work(*args, **kwargs))

            return cast("Callable[P, R]", measured_async)

        if _is(inspect.isgeneratorfunction, function):

            @functools.wraps(function)
            def measured_generator(*args: P.args, **kwargs: P.kwargs) -> Generator[object, Any, object]:
                with self._of_call(function, args, kwargs) as run:
                    return run._returned((yield from work(*args, **kwargs)))

            return cast("Callable[P, R]", measured_generator)

        if _is(inspect.isasyncgenfunction, function):

            @functools.wraps(function)
            async def measured_async_generator(
                *args: P.args, **kwargs: P.kwargs
            ) -> AsyncGenerator[object, Any]:
                with self._of_call(function, args, kwargs):
                    source = work(*args, **kwargs)
                    try:
                        value = await _first(source)
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
            with self._of_call(function, args, kwargs) as run:
                return run._returned(function(*args, **kwargs))

        return measured


def _is(kind: Callable[[object], bool], function: object) -> bool:
    """Tell whether a function, or the ``__call__`` of an object that is called as one, is of a kind."""
    return kind(function) or kind(getattr(type(function), "__call__", None))  # noqa: B004  # of which kind, not whether


def _first(source: AsyncGenerator[object, Any]) -> Awaitable[object]:
    """Ask a generator for its first value, unseen by the event loop.

    The loop closes the generators that it has seen at its end, all at once: the one that measures,
    which closes this one, and would find it being closed.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return anext(source)
    finally:
        sys.set_asyncgen_hooks(*hooks)


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
    attempt: int | None = None,
    repeat: int | None = None,
    tags: Mapping[str, str] | None = None,
    ledger: str | Path | Ledger | None = None,
    on: Sequence[str] | str | None = None,
    workload: str | None = None,
    zone: str | None = None,
    site: str | None = None,
    hardware: str | None = None,
    trace: str | Path | bool | None = None,
) -> Tracker: ...


def track(  # noqa: PLR0913  # fields of the record, all optional and by name
    step: str | Callable[P, R] | None = None,
    *,
    study: str | None = None,
    role: Role | None = None,
    unit: str | None = None,
    job_id: str | None = None,
    attempt: int | None = None,
    repeat: int | None = None,
    tags: Mapping[str, str] | None = None,
    ledger: str | Path | Ledger | None = None,
    on: Sequence[str] | str | None = None,
    workload: str | None = None,
    zone: str | None = None,
    site: str | None = None,
    hardware: str | None = None,
    trace: str | Path | bool | None = None,
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
        attempt: 1 for the first try; a job that resumes counts up. By default what the launcher counts.
        repeat: Number of the round, 0 or more.
        tags: Labels of your own.
        ledger: Folder to record in, else as for the command line.
        on: Optimizations that are on, as a list or joined by ``+``.
        workload: What is done, when it matters for comparability.
        zone: Grid zone, such as ``DE``.
        site: Site of the inventory.
        hardware: Name of the machine; the CPU's by default.
        trace: File that gets every reading when the block ends (CSV; ``.gz`` compresses).
            Each block replaces the trace of the one before. The record keeps the power over
            time, thinned; ``True`` for that alone, without a file.
    """
    if callable(step) or isinstance(step, classmethod):
        return Tracker(Request(workload=getattr(step, "__qualname__", None)))(step)
    return Tracker(
        Request(
            step=step,
            study=study,
            role=role,
            unit=unit,
            job_id=job_id,
            attempt=attempt,
            repeat=repeat,
            tags=tags,
            ledger=ledger,
            on=on,
            workload=workload,
            zone=zone,
            site=site,
            hardware=hardware,
            trace=None if trace is False else trace,
        )
    )
