"""Columns for DuckDB as an Arrow stream: batch by batch, each made when the one before was taken.

DuckDB takes any object with ``__arrow_c_stream__``, and reads numpy's memory through the Arrow C
data interface (https://arrow.apache.org/docs/format/CDataInterface.html): no other package is
needed, nothing is copied, and no more than a few batches are held at a time.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from carbonlens.ledger.arrow_structs import (
    ArrowArray,
    ArrowSchema,
    ArrowStream,
    GetError,
    GetNext,
    GetSchema,
    ReleaseStream,
    lend,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Mask: TypeAlias = npt.NDArray[np.bool_]

INTEGER: Final = "l"
"""Format of whole numbers of 64 bits."""

TEXT: Final = "U"
"""Format of texts in UTF-8, which may be of any length together."""

WORD: Final = "w"
"""Our own format: texts of which each stands on many rows."""

_INDEX: Final = "i"
_NULLABLE: Final = 2


class Numbers(msgspec.Struct, frozen=True):
    """A column of numbers.

    Attributes:
        values: 64-bit whole numbers; of a decimal so many of its last place, none below zero.
        known: On which rows there is one; on all of them when ``None``.
    """

    values: npt.NDArray[np.int64]
    known: Mask | None = None


class Texts(msgspec.Struct, frozen=True):
    """A column of texts, each on a row of its own; ``joined`` makes it.

    Attributes:
        whole: UTF-8 texts, one after the other.
        ends: Where that of each row ends, after a first 0.
        known: On which rows there is one; on all of them when ``None``.
    """

    whole: bytes
    ends: npt.NDArray[np.int64]
    known: Mask | None = None


class Words(msgspec.Struct, frozen=True):
    """A column of texts, each of which may stand on many rows.

    Attributes:
        words: The texts.
        places: Which of them stands on each row.
        known: On which rows one stands; on all of them when ``None``.
    """

    words: Texts
    places: npt.NDArray[np.int32]
    known: Mask | None = None


Column: TypeAlias = Numbers | Texts | Words


def joined(texts: Sequence[bytes], known: Mask | None = None) -> Texts:
    """Return a column of texts.

    Args:
        texts: In UTF-8, in the order of the rows that have one.
        known: Those rows; all of them when ``None``.
    """
    import numpy as np

    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    ends = np.zeros((len(texts) if known is None else len(known)) + 1, dtype=np.int64)
    ends[1:][slice(None) if known is None else known] = lengths
    return Texts(b"".join(texts), np.cumsum(ends), known)


def decimal(kind: str) -> str:
    """Return the format of a column of a DuckDB type, such as ``DECIMAL(24,6)``."""
    return f"d:{kind.removeprefix('DECIMAL(').removesuffix(')')}"


class Stream:
    """What DuckDB reads as a table: ``connection.register(name, Stream(...))``.

    Args:
        formats: Name of each column, and its format: ``INTEGER``, ``TEXT``, ``WORD`` or a ``decimal``.
        batches: Begins to make the batches: columns by name, those of a batch of one length.

    Attributes:
        error: What making a batch raised; DuckDB knows its text alone.
    """

    def __init__(
        self, formats: Mapping[str, str], batches: Callable[[], Iterator[Mapping[str, Column]]]
    ) -> None:
        """Make nothing yet."""
        self.error: BaseException | None = None
        self._formats = formats
        self._batches = batches
        self._lent: list[object] = []

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule of the stream; each begins anew, once its first batch is asked for."""
        made: list[Iterator[Mapping[str, Column]]] = []

        def get_schema(_: object, out: Any) -> int:  # noqa: ANN401  # a pointer
            _fill_schema(out.contents, self._formats)
            return 0

        def get_next(_: object, out: Any) -> int:  # noqa: ANN401  # a pointer
            try:
                if not made:
                    made.append(self._batches())
                batch = next(made[0], None)
                ctypes.memset(out, 0, ctypes.sizeof(ArrowArray))
                if batch is not None:
                    _fill_batch(out.contents, batch, self._formats)
            except BaseException as error:  # noqa: BLE001  # C code called this, and would go on after an interrupt as at the stream's end: who wrote raises it again
                self.error = error
                return errno.EIO
            return 0

        text = ctypes.create_string_buffer(b"a batch could not be made")

        def release(pointer: Any) -> None:  # noqa: ANN401  # a pointer
            made.clear()
            pointer.contents.release = ReleaseStream()

        # Who takes the stream copies the structure: what it points to must outlive that.
        told = GetError(lambda _: ctypes.addressof(text))
        functions = (GetSchema(get_schema), GetNext(get_next), told, ReleaseStream(release))
        stream = ArrowStream(*functions)
        self._lent += [stream, text, *functions]
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(stream), b"arrow_array_stream", None)


def _fill_schema(out: ArrowSchema, formats: Mapping[str, str]) -> None:
    ctypes.memset(ctypes.byref(out), 0, ctypes.sizeof(ArrowSchema))
    parts = []
    for name, of in formats.items():
        part = ArrowSchema(
            format=(_INDEX if of == WORD else of).encode(), name=name.encode(), flags=_NULLABLE
        )
        inner = None
        if of == WORD:
            inner = ArrowSchema(format=TEXT.encode(), name=b"", flags=_NULLABLE)
            lend(inner)
            part.dictionary = ctypes.pointer(inner)
        lend(part, inner)
        parts.append(part)
    out.format, out.name = b"+s", b""
    children = (ctypes.POINTER(ArrowSchema) * len(parts))(*map(ctypes.pointer, parts))
    out.n_children, out.children = len(parts), children
    lend(out, parts, children)


def _fill_batch(out: ArrowArray, batch: Mapping[str, Column], formats: Mapping[str, str]) -> None:
    parts = [_array_of(batch[name], of) for name, of in formats.items()]
    (length,) = {part.length for part in parts}
    buffers = (ctypes.c_void_p * 1)(None)
    children = (ctypes.POINTER(ArrowArray) * len(parts))(*map(ctypes.pointer, parts))
    out.length, out.n_buffers, out.buffers = length, 1, buffers
    out.n_children, out.children = len(parts), children
    lend(out, parts, buffers, children)


def _array_of(column: Column, of: str) -> ArrowArray:
    match column:
        case Numbers(values, known):
            return _made(len(values), known, _wide(values) if of.startswith("d:") else values)
        case Texts(whole, ends, known):
            return _made(len(ends) - 1, known, ends, whole)
        case Words(words, places, known):
            inner = _array_of(words, TEXT)
            made = _made(len(places), known, places, inner)
            made.dictionary = ctypes.pointer(inner)
            return made


def _wide(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return numbers as such of 128 bits, little end first."""
    import numpy as np

    made = np.zeros((len(values), 2), dtype="<i8")
    made[:, 0] = values
    return made


def _made(length: int, known: Mask | None, *held: object) -> ArrowArray:
    """Return an array of buffers: which rows are known, and what holds their values."""
    import numpy as np

    bits = None if known is None else np.packbits(known, bitorder="little")
    of = [_address(bits), *(_address(one) for one in held if not isinstance(one, ArrowArray))]
    buffers = (ctypes.c_void_p * len(of))(*of)
    made = ArrowArray(length=length, null_count=0 if bits is None else -1, n_buffers=len(of), buffers=buffers)
    lend(made, bits, buffers, held)
    return made


def _address(of: object) -> int | None:
    """Return where the memory of bytes or of an array begins."""
    if of is None:
        return None
    if isinstance(of, bytes):
        return ctypes.cast(ctypes.c_char_p(of), ctypes.c_void_p).value
    place: int = of.ctypes.data  # type: ignore[attr-defined]  # an array of numpy's
    return place
