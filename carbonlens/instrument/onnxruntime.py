"""``TrackedSession``: a drop-in for ``onnxruntime.InferenceSession`` that measures its calls.

Each call counts its units and its latency into a run. ONNX Runtime's results and errors pass
unchanged, and no fault of carbonlens reaches the caller (DESIGN, law 8): it becomes a Finding.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Self

from carbonlens.errors import MissingExtraError
from carbonlens.importers.ort_profile import OperatorTime, Profile, parse_profile, read_profile
from carbonlens.instrument.onnxruntime_meter import SessionMeter
from carbonlens.instrument.onnxruntime_profile import Profiling
from carbonlens.instrument.onnxruntime_units import UnitRule, Units
from carbonlens.instrument.track import Tracker, track
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.metering import findings
from carbonlens.metering.wording import unfit

__all__ = ["OperatorTime", "Profile", "TrackedSession", "parse_profile", "read_profile"]

_UNIT: Final = "inference"
_WANTED_RUN: Final = "what track() gives"


class TrackedSession:
    """An ``onnxruntime.InferenceSession`` whose calls are measured.

    It is no subclass, so that it can stand around a session that exists already, of a class of
    the user's too; ``isinstance(s, onnxruntime.InferenceSession)`` holds all the same. What is
    not named here is passed on to the session inside, attributes that are set included. After
    ``close`` the session goes on to work and is measured no more.

    A session of a forked child does not count into its parent's run: make one in each worker.
    """

    __slots__ = ("__weakref__", "_bare", "_meter")

    _bare: Any
    _meter: SessionMeter

    def __init__(  # noqa: PLR0913  # the arguments of the class that it stands for, and our own by name
        self,
        path_or_bytes: Any,  # noqa: ANN401  # what the other class takes, or one of it
        sess_options: Any = None,  # noqa: ANN401  # a class of a library imported late
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        *,
        run: TrackedRun | Tracker | None = None,
        units: Units | None = None,
        profile: bool = False,
        warm_up: int = 0,
        **kwargs: Any,  # noqa: ANN401  # further arguments of the other class
    ) -> None:
        """Load the model, then begin to measure.

        Args:
            path_or_bytes: Model file, its content, or a session that exists already.
            sess_options: As ONNX Runtime takes them.
            providers: As ONNX Runtime takes them.
            provider_options: As ONNX Runtime takes them.
            run: The run to count into: what ``with carbonlens.track(...) as run`` gives. With
                ``carbonlens.track(...)`` itself, or nothing, the session has a run of its own
                from now until ``close``, the end of its own ``with`` block, or when the program
                lets go of it.
            units: Units a call, or a function of what the call is given (the feed, or the
                binding); by default the first dimension of the first input.
            profile: Whether ONNX Runtime shall profile the session, to tell which provider ran
                what. It takes time and energy: measure a saving without it.
            warm_up: First calls to leave out of the profile.
            **kwargs: Further arguments of ONNX Runtime's.

        Raises:
            MissingExtraError: If onnxruntime is not installed.
            Exception: Whatever ONNX Runtime raises over the model.
        """
        given = _unwrapped(path_or_bytes, run), sess_options, providers, provider_options
        bare, profiling, ignored = _session(given, kwargs, profile=profile, warm_up=warm_up)
        handle, tracker = _opened(run, ignored)
        self._bare = bare
        self._meter = SessionMeter(
            bare,
            handle,
            tracker,
            rule=UnitRule(units, bare.get_inputs(), bare.get_outputs()),
            asked=() if ignored else _names(providers),
            profiling=profiling,
        )
        # At exit the meters see to it themselves.
        weakref.finalize(self, self._meter.let_go).atexit = False

    @property
    def tracked(self) -> TrackedRun:
        """The run that the calls count into."""
        return self._meter.run

    @property
    def profile(self) -> Profile | None:
        """What ran where, once the session or its run is closed; ``None`` without a profile."""
        return self._meter.profile

    def run(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as ONNX Runtime's own
        """Compute, as ``InferenceSession.run`` does."""
        return self._measured(self._bare.run, args, kwargs, _given(args, kwargs, 1, "input_feed"))

    def run_with_ort_values(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as ONNX Runtime's own
        """Compute, as ``InferenceSession.run_with_ort_values`` does."""
        feed = _given(args, kwargs, 1, "input_dict_ort_values")
        return self._measured(self._bare.run_with_ort_values, args, kwargs, feed)

    def run_with_iobinding(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as ONNX Runtime's own
        """Compute, as ``InferenceSession.run_with_iobinding`` does."""
        binding = _given(args, kwargs, 0, "iobinding")
        return self._measured(self._bare.run_with_iobinding, args, kwargs, binding, is_bound=True)

    def run_with_ortvaluevector(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as ONNX Runtime's own
        """Compute, as ``InferenceSession.run_with_ortvaluevector`` does."""
        feed = _feed(_given(args, kwargs, 1, "feed_names"), _given(args, kwargs, 2, "feeds"))
        return self._measured(self._bare.run_with_ortvaluevector, args, kwargs, feed)

    def _measured(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        given: Any,  # noqa: ANN401  # a feed or a binding
        *,
        is_bound: bool = False,
    ) -> Any:  # noqa: ANN401  # as ONNX Runtime's own
        begin = perf_counter()
        try:
            results = call(*args, **kwargs)
        except BaseException:  # put in order, then raised again
            self._meter.failed()
            raise
        self._meter.done(perf_counter() - begin, given, is_bound=is_bound)
        return results

    def run_async(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as ONNX Runtime's own
        """Begin to compute, as ``InferenceSession.run_async`` does; it counts when the callback is called."""
        feed = _given(args, kwargs, 1, "input_feed")
        begin = perf_counter()

        def told(callback: Callable[..., Any]) -> Callable[..., Any]:
            def counted(results: Any, user_data: Any, error: str) -> Any:  # noqa: ANN401  # as ONNX Runtime's own
                # By ``self``: a session that was let go of is measured until its last callback.
                if error:
                    self._meter.failed()
                else:
                    self._meter.done(perf_counter() - begin, feed)
                return callback(results, user_data, error)

            return counted

        if len(args) > 2:
            args = (*args[:2], told(args[2]), *args[3:])
        elif "callback" in kwargs:
            kwargs = {**kwargs, "callback": told(kwargs["callback"])}
        try:
            return self._bare.run_async(*args, **kwargs)
        except BaseException:  # put in order, then raised again
            self._meter.failed()
            raise

    def end_profiling(self) -> str:
        """End the profile and return its file, which then stays where it is."""
        profiling = self._meter.profiling
        if profiling is None:
            return str(self._bare.end_profiling())
        profiling.keep_files()
        return profiling.end(self._bare)

    def close(self) -> None:
        """End the measurement, once; the session goes on to work."""
        self._meter.close()

    def __enter__(self) -> Self:
        """Measure until the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the measurement; the exception goes on."""
        self._meter.close(kind, error, trace)

    @property  # type: ignore[misc]  # what isinstance asks after the type itself
    def __class__(self) -> type:
        """The class of the session inside."""
        return type(self._bare)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the session has
        """Pass on what is not measured."""
        if name in TrackedSession.__slots__:
            raise AttributeError(name)  # a copy that was never made whole
        return getattr(self._bare, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Set attributes of the session inside, as its own methods look there."""
        if name in TrackedSession.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self._bare, name, value)

    def __copy__(self) -> Self:
        """Return itself: a copy of the bare session computes with the same one inside."""
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:  # noqa: ANN401  # as the session's own
        """Be pickled as the session inside, whose class says what becomes of it (a TypeError, mostly)."""
        return self._bare.__reduce_ex__(protocol)

    def __dir__(self) -> list[str]:
        """List the session's names and our own."""
        return sorted({*dir(self._bare), *TrackedSession.__dict__})

    def __repr__(self) -> str:
        """Name the session inside."""
        return f"TrackedSession({self._bare!r})"


def _session(
    given: tuple[Any, Any, Any, Any], kwargs: dict[str, Any], *, profile: bool, warm_up: int
) -> tuple[Any, Profiling | None, bool]:
    """Return the session, its profile, and whether its options were given in vain."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError("onnx", "onnxruntime") from error
    model, options, *rest = given
    if isinstance(model, onnxruntime.InferenceSession):
        profiling = Profiling(model.get_session_options(), warm_up) if profile else None
        return model, profiling, any(g is not None for g in given[1:])
    if not profile:
        return onnxruntime.InferenceSession(model, options, *rest, **kwargs), None, False
    options = onnxruntime.SessionOptions() if options is None else options
    profiling = Profiling(options, warm_up)
    try:
        with profiling.switched_on():
            return onnxruntime.InferenceSession(model, options, *rest, **kwargs), profiling, False
    except BaseException:  # put in order, then raised again
        profiling.discard()
        raise


def _unwrapped(model: Any, run: object) -> Any:  # noqa: ANN401  # whatever was given as a model
    """Return the session inside one that counts into the same run: its calls would count twice."""
    while type(model) is TrackedSession and model.tracked is run:
        model._meter.measure_within()
        model = model._bare
    return model


def _opened(run: object, options_ignored: bool) -> tuple[TrackedRun, Tracker | None]:
    """Return the run to count into, and what ends it where the session opened it."""
    if isinstance(run, TrackedRun):
        handle, tracker = run, None
    else:
        # A tracker of its own: sessions that were given one and the same end in any order.
        tracker = Tracker(run._request) if isinstance(run, Tracker) else track(unit=_UNIT)
        handle = tracker.__enter__()
        if run is not None and not isinstance(run, Tracker):
            handle._recorder.note(findings.record_ignored("run", unfit(run, TypeError(), _WANTED_RUN)))
    if options_ignored:
        handle._recorder.note(findings.record_ignored("session options", "the session exists already"))
    return handle, tracker


def _names(providers: Sequence[Any] | None) -> list[str]:
    """Return the names of providers, given alone or with options."""
    names = [p[0] if isinstance(p, tuple) and p else p for p in providers or ()]
    return [name for name in names if isinstance(name, str)]


def _given(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str) -> Any:  # noqa: ANN401  # as given
    return args[place] if len(args) > place else kwargs.get(name)


def _feed(names: Any, values: Any) -> dict[str, Any]:  # noqa: ANN401  # vectors of ONNX Runtime
    try:
        return dict(zip(names, values, strict=False))
    except Exception:  # noqa: BLE001  # law 8: then the size of the batch is not told
        return {}
