"""Files that went away or are damaged: DuckDB's errors about them become ours."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from carbonlens.errors import RecordError

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View


@contextmanager
def asking(view: View) -> Iterator[None]:
    """Make DuckDB's errors within ours: it may look at files of a view as soon as a query is put together.

    Args:
        view: Of which is asked.

    Raises:
        RecordError: If a file went away since it was listed, or is damaged.
    """
    try:
        yield
    except Exception as error:  # which of them are DuckDB's is told below, and that is imported late
        told_of_it = told_of(error, view.files, view.ledger)
        if told_of_it is None:
            raise
        raise told_of_it from error


def told_of(error: BaseException | None, files: Sequence[Path], ledger: Path) -> RecordError | None:
    """Return our error for one of DuckDB's about files, else ``None``; further arguments as of ``unread``."""
    duckdb = sys.modules.get("duckdb")
    if duckdb is None or not isinstance(error, duckdb.IOException):
        return None
    return unread(error, files, ledger)


def unread(error: Exception, files: Sequence[Path], ledger: Path) -> RecordError:
    """Return the error for files that DuckDB could not read.

    Args:
        error: What it says.
        files: Those that it might read.
        ledger: The ledger's folder, for messages.
    """
    gone = [f for f in files if not f.exists()]
    if gone:
        return RecordError("the file went away while it was read", where=str(gone[0]), mend="run it again")
    return RecordError(
        f"a file of the ledger cannot be read ({str(error).splitlines()[0]})",
        where=str(ledger),
        mend="carbonlens ledger verify names what is damaged",
    )
