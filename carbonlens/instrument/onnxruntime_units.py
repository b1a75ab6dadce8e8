"""How many functional units one call of an ONNX session does: its batch size, unless told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, SupportsFloat

Units = SupportsFloat | Callable[[Any], SupportsFloat]
"""Units a call, or a function of what the call was given (its feed, or its binding)."""

_NOT_TOLD: Final = "the size of the batch is not told"


class UntoldError(Exception):
    """How many units a call did cannot be told; the text says why."""


class Argument(Protocol):
    """What ONNX Runtime says of an input or output."""

    name: str
    shape: list[int | str | None]


class UnitRule:
    """Tells the units of a call.

    Without a rule of the user's a call counts the first dimension of its first input: the
    batch, by convention. An input without dimensions, or with one of a fixed size, has no
    batch, and a call of it is one unit.

    Args:
        units: The user's rule.
        inputs, outputs: What the model takes and gives.
    """

    def __init__(self, units: Units | None, inputs: list[Argument], outputs: list[Argument]) -> None:
        """Work out beforehand what needs no call."""
        self._units = units
        first = inputs[0] if inputs else None
        shape = [] if first is None else list(first.shape)
        self._name = None if first is None else first.name
        head = shape[0] if shape else None
        self._has_batch = len(shape) > 1 or isinstance(head, str) or (len(shape) == 1 and head is None)
        self._fixed = head if self._has_batch and isinstance(head, int) else None
        sized = {} if not isinstance(head, str) else _of_size(head, outputs)
        self._axes = sized
        self._common_axis = _axis_of_all(sized, outputs)

    def of_feed(self, feed: Mapping[str, Any]) -> SupportsFloat:
        """Return the units of a call with named inputs.

        Raises:
            UntoldError: If they cannot be told.
        """
        if self._units is not None:
            return _asked(self._units, feed)
        if not self._has_batch:
            return 1
        value = feed.get(self._name) if self._name is not None else None
        return _head(value, 0)

    def of_binding(self, binding: Any) -> SupportsFloat:  # noqa: ANN401  # a class of a library imported late
        """Return the units of a call whose inputs and outputs were bound beforehand.

        Raises:
            UntoldError: If they cannot be told.
        """
        if self._units is not None:
            return _asked(self._units, binding)
        if not self._has_batch:
            return 1
        if self._fixed is not None:
            return self._fixed
        # What is bound as an input cannot be asked for its size: an output of the same size can.
        if not self._axes:
            raise UntoldError("no output of a bound call has the size of the batch")
        number, axis = self._place(binding)
        # The list behind it is made without a Python object an output, of which a decoder has many.
        outputs = getattr(binding, "_iobinding", binding).get_outputs()
        if number >= len(outputs):
            raise UntoldError("no output is bound")
        return _head(outputs[number], axis)

    def _place(self, binding: Any) -> tuple[int, int]:  # noqa: ANN401  # as above
        """Return which of the bound outputs, and which of its dimensions, is the batch."""
        if self._common_axis is not None:
            return 0, self._common_axis
        # Outputs come in the order in which they were bound.
        for number, name in enumerate(getattr(binding, "_bound_outputs", ())):
            if name in self._axes:
                return number, self._axes[name]
        raise UntoldError("it is not told which of the bound outputs has the size of the batch")


def _asked(units: Units, given: object) -> SupportsFloat:
    told: SupportsFloat | None = units(given) if callable(units) else units
    if told is None:
        raise UntoldError("the rule gave none")
    return told


def _head(value: Any, axis: int) -> SupportsFloat:  # noqa: ANN401  # an array of any library
    shape = getattr(value, "shape", None)
    if callable(shape):
        shape = shape()
    if shape is None and isinstance(value, list | tuple):
        shape = (len(value),)
    if not shape or axis >= len(shape):
        raise UntoldError(_NOT_TOLD)
    size: int = shape[axis]
    return size


def _of_size(head: str, outputs: list[Argument]) -> dict[str, int]:
    """Return the outputs of which a dimension bears the batch's name, and which it is."""
    return {o.name: list(o.shape).index(head) for o in outputs if head in o.shape}


def _axis_of_all(axes: Mapping[str, int], outputs: list[Argument]) -> int | None:
    """Return the dimension that is the batch in every output, if there is one."""
    places = {axes.get(output.name) for output in outputs}
    return places.pop() if len(places) == 1 else None
