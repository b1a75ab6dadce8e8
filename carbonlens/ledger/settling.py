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
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from carbonlens.errors import RecordError
from carbonlens.ledger import fetching
from carbonlens.ledger.fetching import Columns
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.scratch import unwritable

if TYPE_CHECKING:
    from pathlib import Path

    import narwhals as nw

    from carbonlens.ledger.frames import View

    Frame = nw.LazyFrame[Any]

T = TypeVar("T")

_SOURCE: Final = "read_parquet('settled')"
"""Stands in a kept question for the file that it is asked of."""

_MOST: Final = 256
"""Questions that are kept; the one that was not asked for longest goes."""

_kept: OrderedDict[Hashable, tuple[str, Any]] = OrderedDict()
_lock = Lock()


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a view in a file that goes with it.

    Attributes:
        columns: Names and types.
        derived: SQL of rows that are made of those, which stand in it as ``_SOURCE``; empty for
            those themselves.
    """

    view: Any
    file: Any
    columns: tuple[tuple[str, str], ...]
    derived: str = ""

    @property
    def source(self) -> str:
        """The rows as SQL."""
        file: Path = self.file
        whole = f"read_parquet({quoted(file)})"
        return f"({self.derived.replace(_SOURCE, whole)})" if self.derived else whole


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
    columns = _columns(relation)
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

    def made() -> tuple[str, Columns]:
        relation, columns = fetching.told(_frame(settled, build))
        return relation.sql_query(), columns

    text, columns = _once(settled, ("rows", question), made)
    return columns.rows(view.run(text.replace(_SOURCE, settled.source)))


def derive(settled: Settled, question: Hashable, build: Callable[[Frame], Frame]) -> Settled:
    """Return rows that are made of settled ones, to be asked as these are; nothing is put down.

    Questions of them have the same SQL wherever their columns are the same, whatever they are made of.

    Args:
        settled: What they are made of.
        question: Tells it apart, as of ``ask``.
        build: Makes them, as of ``ask``.
    """

    def made() -> tuple[str, tuple[tuple[str, str], ...]]:
        relation = _frame(settled, build)
        return relation.sql_query(), _columns(relation)

    text, columns = _once(settled, ("derived", question), made)
    return Settled(
        view=settled.view, file=settled.file, columns=columns, derived=text.replace(_SOURCE, _inner(settled))
    )


def _inner(settled: Settled) -> str:
    """Return the rows as SQL in which those that were put down still stand as ``_SOURCE``."""
    return f"({settled.derived})" if settled.derived else _SOURCE


def _frame(settled: Settled, build: Callable[[Frame], Frame]) -> Any:  # noqa: ANN401 - a relation of DuckDB
    view: View = settled.view
    return build(view.frame(f"SELECT * FROM {settled.source}")).to_native()  # noqa: S608  # a quoted path: SQL takes no parameter there


def _columns(relation: Any) -> tuple[tuple[str, str], ...]:  # noqa: ANN401 - a relation of DuckDB
    # Types are told apart by their text: the same text, the same question.
    return tuple(zip(relation.columns, map(str, relation.types), strict=True))


def _once(settled: Settled, question: Hashable, make: Callable[[], tuple[str, T]]) -> tuple[str, T]:
    """Return SQL of a question, in which its rows stand as ``_SOURCE``, and what is kept beside it.

    Args:
        settled: What it is asked of.
        question: Tells it apart.
        make: Makes both, where it was not asked before; the SQL names the rows as ``settled`` has them.
    """
    key = (question, settled.columns)
    with _lock:
        kept = _kept.get(key)
        if kept is not None:
            _kept.move_to_end(key)
            return kept
    text, beside = make()
    if settled.source not in text:
        # Written otherwise than we write it, it would be asked of this file for ever.
        return text, beside
    kept = (text.replace(settled.source, _SOURCE), beside)
    with _lock:
        _kept[key] = kept
        if len(_kept) > _MOST:
            _kept.popitem(last=False)
    return kept
