"""The work of a bench's worker process: a function, an ONNX model or a URL, called again and again."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, Protocol

from carbonlens.domain.bench import Variant
from carbonlens.errors import CarbonlensError, MeasurementError, MissingExtraError
from carbonlens.instrument.execution import end

Call = Callable[[], object]
"""Does the work once; what it returns is the number of units done, if it is a number."""


SERVER_S: Final = 60.0
"""A server that a variant starts has to answer within this time."""


class Loaded(Protocol):
    """A variant's work in this process."""

    def prepare(self) -> None:
        """Do the effort."""

    def load(self) -> Call:
        """Return what is called again and again."""

    def evaluate(self) -> Mapping[str, Any] | None:
        """Return qualities by name; ``None`` without an evaluation."""

    def close(self) -> None:
        """Let go of what was opened."""


def loaded(variant: Variant) -> Loaded:
    """Return the work of a variant.

    Args:
        variant: One that is no command.
    """
    kinds: dict[str, Callable[[Variant], Loaded]] = {
        "callable": FunctionWork,
        "onnx": OnnxWork,
        "url": UrlWork,
    }
    return kinds[variant.kind](variant)


def function_of(text: str) -> Callable[..., Any]:
    """Return a function by ``module:function``.

    Raises:
        MeasurementError: If there is none.
    """
    module, _, name = text.partition(":")
    try:
        found = getattr(importlib.import_module(module), name or "main")
    except (ImportError, AttributeError) as error:
        raise MeasurementError(
            f"cannot be loaded ({error})",
            where=text,
            mend="write module:function, importable from the bench file's folder",
        ) from error
    if not callable(found):
        raise MeasurementError("is no function", where=text, mend="name a function")
    return found  # type: ignore[no-any-return]  # whatever the user's module holds


class FunctionWork:
    """A Python function; it and its evaluation get what ``prepare`` returned."""

    def __init__(self, variant: Variant) -> None:
        """Keep what to call."""
        self._variant = variant
        self._made: tuple[object, ...] = ()

    def prepare(self) -> None:
        """Call ``prepare`` and keep what it returns."""
        if isinstance(self._variant.prepare, str):
            self._made = (function_of(self._variant.prepare)(),)

    def load(self) -> Call:
        """Return the function with its argument."""
        work, made = function_of(self._variant.callable or ""), self._made
        return lambda: work(*made)

    def evaluate(self) -> Mapping[str, Any] | None:
        """Call ``evaluate``."""
        return _evaluated(self._variant, self._made)

    def close(self) -> None:
        """Nothing is open."""


class OnnxWork:
    """An ONNX model on the inputs that a function gives, else on numbers of its own shapes."""

    def __init__(self, variant: Variant) -> None:
        """Keep what to run."""
        self._variant = variant
        self._session: Any = None

    def prepare(self) -> None:
        """Call ``prepare``, which may write the model."""
        if isinstance(self._variant.prepare, str):
            function_of(self._variant.prepare)()

    def load(self) -> Call:
        """Open the session and return one inference.

        Raises:
            MeasurementError: If the model cannot be opened.
            MissingExtraError: If ONNX Runtime is not installed.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("onnx", "onnxruntime") from error
        path = self._variant.onnx or ""
        wanted = list(self._variant.providers) or onnxruntime.get_available_providers()
        options = onnxruntime.SessionOptions()
        # Threads that spin between calls are billed to whoever runs next.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            session = onnxruntime.InferenceSession(path, options, providers=wanted)
        except Exception as error:  # onnxruntime raises types of its own making
            raise MeasurementError(
                f"cannot be opened ({_first_line(error)})", where=path, mend="check the path and the model"
            ) from error
        missing = [p for p in self._variant.providers if p not in session.get_providers()]
        if missing:
            raise MeasurementError(
                f"runs without {', '.join(missing)}",
                where=path,
                mend="install that provider, or leave it out",
            )
        self._session = session
        named = self._variant.inputs
        feed = function_of(named)() if named else own_feed(session)
        return lambda: session.run(None, feed) and None

    def evaluate(self) -> Mapping[str, Any] | None:
        """Call ``evaluate`` with the session."""
        return _evaluated(self._variant, (self._session,))

    def close(self) -> None:
        """Drop the session."""
        self._session = None


_TYPES: Final = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}


def own_feed(session: Any) -> dict[str, Any]:  # noqa: ANN401  # onnxruntime brings no types
    """Return inputs of a model's own shapes: seeded noise, ones where it takes whole numbers.

    Noise, because zeros flatter some hardware; open dimensions are taken as 1.

    Raises:
        MeasurementError: If an input is of a kind that numbers do not fit.
    """
    import numpy as np

    chance = np.random.Generator(np.random.PCG64(0))
    feed = {}
    for one in session.get_inputs():
        kind = _TYPES.get(one.type)
        if kind is None:
            raise MeasurementError(
                f"input {one.name!r} is a {one.type}",
                where="onnx",
                mend="give inputs = 'module:function' that returns the feed",
            )
        shape = [size if isinstance(size, int) and size > 0 else 1 for size in one.shape]
        is_float = kind.startswith("float")
        feed[one.name] = (chance.standard_normal(shape) if is_float else np.ones(shape)).astype(kind)
    return feed


class UrlWork:
    """Requests to a server that this variant starts, so that the server's work is measured with it."""

    def __init__(self, variant: Variant) -> None:
        """Keep what to ask for."""
        self._variant = variant
        self._server: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Call ``prepare``."""
        if isinstance(self._variant.prepare, str):
            function_of(self._variant.prepare)()

    def load(self) -> Call:
        """Start the server and return one request.

        Raises:
            MeasurementError: If the address is none, or the server does not answer.
        """
        import urllib.request

        body = None if self._variant.body is None else self._variant.body.encode()
        address = self._variant.url or ""
        if not address.startswith(("http://", "https://")):
            raise MeasurementError("is no address", where=address, mend="write http://127.0.0.1:8000/path")
        request = urllib.request.Request(address, data=body, headers=dict(self._variant.headers))  # noqa: S310  # http and https only, above

        def call() -> None:
            try:
                with urllib.request.urlopen(request) as answer:  # noqa: S310  # as above
                    answer.read()
            except OSError as error:
                raise MeasurementError(
                    f"did not answer ({error})", where=address, mend="see what the server says"
                ) from error

        self._serve(call)
        return call

    def _serve(self, call: Call) -> None:
        """Start the server and wait until it answers."""
        self._server = server = subprocess.Popen(list(self._variant.serve))
        deadline = time.monotonic() + SERVER_S
        while True:
            try:
                call()
            except MeasurementError as error:
                ended = server.poll() is not None
                if ended or time.monotonic() > deadline:
                    how = f"ended with {server.returncode}" if ended else f"is silent after {SERVER_S:g} s"
                    raise MeasurementError(
                        f"the server {how}: {error.what}", where=self._variant.serve[0], mend=error.mend
                    ) from error
                time.sleep(0.1)
            else:
                return

    def evaluate(self) -> Mapping[str, Any] | None:
        """Call ``evaluate``."""
        return _evaluated(self._variant, ())

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            end(self._server)


def _evaluated(variant: Variant, given: tuple[object, ...]) -> Mapping[str, Any] | None:
    if not isinstance(variant.evaluate, str):
        return None
    found = function_of(variant.evaluate)(*given)
    if not isinstance(found, Mapping):
        raise MeasurementError(
            f"returned {type(found).__name__}",
            where=variant.evaluate,
            mend='return qualities by name: {"accuracy": 0.97}',
        )
    return found


def settled() -> None:
    """Wait for a GPU that this process has work on: a call returns before its kernels end."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_initialized():
        cuda.synchronize()


def calls(call: Call, units: Decimal | None, seconds: float) -> tuple[Decimal, list[float]]:
    """Call for some time; return the units done and each call's milliseconds.

    Args:
        call: The work.
        units: Of one call; what it returns when ``None``.
        seconds: How long; at least one call is made.

    Raises:
        MeasurementError: If a call says no number of units and none is stated.
    """
    done = Decimal(0)
    latencies: list[float] = []
    now = time.perf_counter()
    deadline = now + seconds
    while not latencies or now < deadline:
        said = call()
        settled()
        ended = time.perf_counter()
        latencies.append((ended - now) * 1e3)
        now = ended
        done += _units_of(said, units)
    return done, latencies


def _units_of(said: object, units: Decimal | None) -> Decimal:
    if units is not None:
        return units
    if said is None:
        return Decimal(1)
    if isinstance(said, int | Decimal) and not isinstance(said, bool) and said > 0:
        return Decimal(said)
    raise MeasurementError(
        f"a call returned {type(said).__name__}, which is no number of units",
        where="units",
        mend="let it return how many units it did, or state units in the bench file",
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:160]


def told(error: BaseException) -> str:
    """Return what a variant's error says, in one line."""
    if isinstance(error, CarbonlensError):
        return f"{error.where}: {error.what}" if error.where else error.what
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]
