"""Settling: rows of a view put down once, and questions about them whose SQL is made once.

On a ledger of some thousand runs, making a query takes far longer than running it: each of its steps is
bound with all of its columns. Rows that are settled lie in a file of the view, with what was joined
to them, so that no question does that again; and as a question of settled rows is the same SQL in every
period, its text is kept for as long as the process lives.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.errors import RecordError
from carbonlens.ledger import fetching
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.scratch import unwritable

if TYPE_CHECKING:
    from pathlib import Path

    import narwhals as nw

    from carbonlens.ledger.frames import View

    Frame = nw.LazyFrame[Any]

_SOURCE: Final = "read_parquet('settled')"
"""Stands in a kept question for the file that it is asked of."""

_MOST: Final = 256
"""Questions that are kept; the one that was not asked for longest goes."""

_kept: OrderedDict[Hashable, tuple[str, fetching.Columns]] = OrderedDict()
_lock = Lock()


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a view in a file that goes with it.

    Attributes:
        columns: Names and types.
    """

    view: Any
    file: Any
    columns: tuple[tuple[str, str], ...]

    @property
    def source(self) -> str:
        """The rows as SQL."""
        file: Path = self.file
        return f"read_parquet({quoted(file)})"


def settle(view: View, frame: Frame) -> Settled:
    """Put the rows of a frame down.

    Args:
        view: Whose rows they are; they go when it is closed.
        frame: Of it.

    Raises:
        RecordError: If a file of the ledger went away since the view was opened, or is damaged.
        UnwritableError: If there is no room for them where temporary files go.
    """
    relation: Any = frame.to_native()
    file = view.scratch.file("settled.parquet")
    # Types are told apart by their text: the same text, the same question.
    columns = tuple(zip(relation.columns, map(str, relation.types), strict=True))
    try:
        view.run(f"COPY ({relation.sql_query()}) TO {quoted(file)} (FORMAT parquet, COMPRESSION snappy)")
    except RecordError as error:
        # What is said of our own file is no word on the ledger's.
        said = str(error.__cause__).splitlines()[0]
        if str(file.parent) in said:
            raise unwritable(file, said) from error
        raise
    return Settled(view=view, file=file, columns=columns)


def ask(settled: Settled, question: Hashable, build: Callable[[Frame], Frame]) -> list[dict[str, Any]]:
    """Return the rows of a question, decimals exact.

    Args:
        settled: What it is asked of.
        question: Tells it apart from every other question: two that are equal have the same SQL.
        build: Makes it of the rows, where it was not asked before.

    Raises:
        RecordError: As of ``settle``.
    """
    view: View = settled.view
    key = (question, settled.columns)
    with _lock:
        kept = _kept.get(key)
        if kept is not None:
            _kept.move_to_end(key)
    if kept is None:
        frame = build(view.frame(f"SELECT * FROM {settled.source}"))  # noqa: S608  # a quoted path: SQL takes no parameter there
        relation, columns = fetching.told(frame.to_native())
        query = relation.sql_query()
        if settled.source not in query:
            # Written otherwise than we write it, it would be asked of this file for ever.
            return columns.rows(view.run(query))
        kept = (query.replace(settled.source, _SOURCE), columns)
        with _lock:
            _kept[key] = kept
            if len(_kept) > _MOST:
                _kept.popitem(last=False)
    text, columns = kept
    return columns.rows(view.run(text.replace(_SOURCE, settled.source)))
