"""The work of a bench's worker process: what is called again and again, here a Python function."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from operator import index
from typing import Any, Final, Protocol

from carbonlens.domain.bench import Variant
from carbonlens.domain.limits import MOST
from carbonlens.errors import CarbonlensError, MeasurementError

_LONGEST: Final = 300

Call = Callable[[], object]
"""Does the work once; what it returns is the number of units done, if it is a number."""


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


def function_of(text: str) -> Callable[..., Any]:
    """Return a function by ``module:function``.

    Raises:
        MeasurementError: If there is none.
    """
    module, _, name = text.partition(":")
    try:
        found = getattr(importlib.import_module(module), name or "main")
    except (
        ImportError,
        AttributeError,
        TypeError,
        ValueError,
    ) as error:
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
        return evaluated(self._variant, self._made)

    def close(self) -> None:
        """Nothing is open."""


def evaluated(variant: Variant, given: tuple[object, ...]) -> Mapping[str, Any] | None:
    """Return what a variant's ``evaluate`` function says; ``None`` without one.

    Args:
        variant: Whose quality is wanted.
        given: What the function gets.

    Raises:
        MeasurementError: If it returns no qualities by name.
    """
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
    number = _whole(said)
    if number is not None and 0 < number < MOST:
        return Decimal(number)
    what = f"returned {type(said).__name__}" if number is None else f"says its units are {number}"
    raise MeasurementError(
        f"a call {what}, which is no positive number of units",
        where="units",
        mend="let it return how many units it did (an int or a Decimal), or state units in the bench file",
    )


def _whole(said: Any) -> int | Decimal | None:  # noqa: ANN401  # whatever a function returns
    """Return the number of units that a call returned, of whatever library; ``None`` if it is none.

    A float is a result (a loss, an accuracy of 1.0) and no number of units, whatever its value.
    """
    if isinstance(said, bool):
        return None
    if isinstance(said, Decimal):
        return said if said.is_finite() else None
    try:
        return index(said)
    except TypeError:
        return None


def told(error: BaseException) -> str:
    """Return what a variant's error says, in one line."""
    if isinstance(error, CarbonlensError):
        said = f"{error.where}: {error.what}" if error.where else error.what
    else:
        said = f"{type(error).__name__}: {error}"
    return " ".join(said.split())[:_LONGEST]
