"""A bench's variant that is an ONNX model, run by ONNX Runtime on a feed that stays the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carbonlens.domain.bench import Variant
from carbonlens.domain.counting import with_article
from carbonlens.errors import MeasurementError, MissingExtraError
from carbonlens.instrument.bench_work import Call, evaluated, function_of, told
from carbonlens.instrument.onnxruntime_units import UnitRule, UntoldError


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
                f"cannot be opened ({told(error)})", where=path, mend="check the path and the model"
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
        units = self._units(session, feed)

        def call() -> object:
            session.run(None, feed)
            return units

        return call

    def _units(self, session: Any, feed: Mapping[str, Any]) -> object:  # noqa: ANN401  # onnxruntime brings no types
        """Return the units of one call: as stated, else the batch, as ``TrackedSession`` counts it.

        Raises:
            MeasurementError: If nobody states them and the feed does not tell its batch.
        """
        if self._variant.units is not None:
            return None  # what is stated is counted, whatever a call returns
        try:
            return UnitRule(None, session.get_inputs(), session.get_outputs()).of_feed(feed)
        except UntoldError as error:
            raise MeasurementError(
                f"how many units a call does is not known ({error})",
                where=self._variant.onnx or "",
                mend="state units, for the variant or for all in [bench]",
            ) from error

    def evaluate(self) -> Mapping[str, Any] | None:
        """Call ``evaluate`` with the session."""
        return evaluated(self._variant, (self._session,))

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
                f"input {one.name!r} is {with_article(one.type)}",
                where="onnx",
                mend="give inputs = 'module:function' that returns the feed",
            )
        shape = [size if isinstance(size, int) and size > 0 else 1 for size in one.shape]
        is_float = kind.startswith("float")
        feed[one.name] = (chance.standard_normal(shape) if is_float else np.ones(shape)).astype(kind)
    return feed
