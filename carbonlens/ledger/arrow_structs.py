"""The structures of the Arrow C data and stream interfaces, and who keeps what they point to.

As of https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any, Final


class ArrowSchema(ctypes.Structure):
    """What a column is."""


class ArrowArray(ctypes.Structure):
    """What a column of a batch holds."""


class ArrowStream(ctypes.Structure):
    """What batches are asked of."""


_ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))
_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowStream))
GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowSchema))
GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowArray))
GetError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ArrowStream))

ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", _ReleaseSchema),
    ("private_data", ctypes.c_void_p),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", _ReleaseArray),
    ("private_data", ctypes.c_void_p),
]
ArrowStream._fields_ = [
    ("get_schema", GetSchema),
    ("get_next", GetNext),
    ("get_last_error", GetError),
    ("release", ReleaseStream),
    ("private_data", ctypes.c_void_p),
]

held: dict[int, object] = {}
"""What lent structures point to, until they are given back."""

_numbers = itertools.count(1)


def _release(pointer: Any) -> None:  # noqa: ANN401  # a pointer to either kind of structure
    """Give back a structure and what lies under it: parts that were moved elsewhere have none."""
    lent = pointer.contents
    below = [lent.children[i] for i in range(lent.n_children)]
    if lent.dictionary:
        below.append(lent.dictionary)
    for part in below:
        if part.contents.release:
            part.contents.release(part)
    held.pop(lent.private_data, None)
    lent.release = type(lent.release)()


_release_schema: Final = _ReleaseSchema(_release)
_release_array: Final = _ReleaseArray(_release)


def lend(lent: ArrowSchema | ArrowArray, *parts: object) -> None:
    """Keep what a structure points to until it is released."""
    number = next(_numbers)
    held[number] = parts
    lent.private_data = number
    lent.release = _release_schema if isinstance(lent, ArrowSchema) else _release_array
