"""Decoding into records, safe for a first use by several threads at once.

msgspec works out what a record type holds when it is first decoded. Two threads that do
so at the same time crash the interpreter (msgspec 0.22, segmentation fault when one sees
what the other has half done). So the first use of every type is made one after the other.
"""

from __future__ import annotations

import threading
from typing import Any, Final, TypeVar, overload

import msgspec

T = TypeVar("T")

_LONGEST_S: Final = 5.0
"""A forked child may inherit the lock from a thread that does not exist in it."""

_lock = threading.Lock()
_known: set[object] = set()


def decode_json(content: bytes | str, kind: type[T]) -> T:
    """Return a record from JSON.

    Args:
        content: The JSON text.
        kind: Type of the record.

    Raises:
        msgspec.DecodeError: If it is no JSON of that type.
    """
    _work_out(kind)
    return msgspec.json.decode(content, type=kind)


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """Return a record from plain values.

    Args:
        value: Plain values, as JSON or TOML gave them.
        kind: Type of the record.
        strict: Whether a text must not stand for a number.

    Raises:
        msgspec.ValidationError: If they do not fit the type.
    """
    _work_out(kind)
    return msgspec.convert(value, kind, strict=strict)


@overload
def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...


@overload
def json_decoder(kind: object) -> msgspec.json.Decoder[Any]: ...


def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:  # also a union of types
    """Return a decoder of a type, for many texts."""
    _work_out(kind)
    return msgspec.json.Decoder(kind)


def _work_out(kind: Any) -> None:  # noqa: ANN401  # likewise
    if kind in _known:
        return
    locked = _lock.acquire(timeout=_LONGEST_S)
    try:
        msgspec.json.Decoder(kind)
        _known.add(kind)
    finally:
        if locked:
            _lock.release()
