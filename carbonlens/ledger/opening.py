"""Opening a ledger, wherever it lies: a folder, or an address by the extra ``remote``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.errors import UnwritableError
from carbonlens.ledger.layout import RUNS
from carbonlens.ledger.location import address_of, is_address, locate
from carbonlens.ledger.naming import errors_by_address
from carbonlens.ledger.store import Ledger

if TYPE_CHECKING:
    from carbonlens.ledger.calendar import Calendar
    from carbonlens.ledger.frames import View


@contextmanager
def open_ledger(
    explicit: str | Path | None = None, *, fetch: bool = True, whole: bool = False
) -> Iterator[Ledger]:
    """Yield the ledger; for an address a local copy of it, put back at the end.

    Runs that could not be sent to an address when they were sealed are sent first. Where that
    fails (who may only read it cannot send) they wait on, and reading says so.

    Args:
        explicit: The ``--ledger`` option; found as ``locate`` finds it when ``None``.
        fetch: False for work that only adds records: an address is not read then.
        whole: True for work that must not go on without the runs that wait.

    Raises:
        ConfigError: If the place is malformed.
        MissingExtraError: If an address needs a package that is not installed.
        RecordError, UnwritableError: If an address cannot be read or written.
    """
    place = locate(explicit)
    held = _ONE.get()
    if held is not None and held[0] == place and fetch and not whole:
        yield held[1]
        return
    if not is_address(place):
        yield Ledger(place)
        return
    from carbonlens.ledger import outbox
    from carbonlens.ledger.remote import working_copy

    address = address_of(place)
    waiting: list[Finding] = []
    if outbox.waiting(address):
        try:
            outbox.send(address)
        except UnwritableError as error:
            if whole:
                raise
            waiting.append(_unsent(address, error))
    with working_copy(address, fetch=fetch) as copy, errors_by_address(copy, address):
        yield Ledger(copy, address=address, waiting=waiting)


@contextmanager
def one_opening(explicit: str | Path | None = None) -> Iterator[None]:
    """Have every opening of a ledger within be the same one, with each period's view opened once.

    For use cases that ask much of the same periods: they see one state of the ledger, an address is
    fetched once, and what is known of a view is not found out again.

    Args:
        explicit: As of ``open_ledger``.

    Raises:
        ConfigError, MissingExtraError, RecordError, UnwritableError: As ``open_ledger``.
    """
    from carbonlens.ledger.parquet import one_engine

    with open_ledger(explicit) as store, ExitStack() as views:
        if isinstance(store, _OneLedger):
            yield
            return
        views.enter_context(one_engine())
        token = _ONE.set((locate(explicit), _OneLedger(store, views)))
        try:
            yield
        finally:
            _ONE.reset(token)


class _OneLedger(Ledger):
    """A ledger that lends each period's view to all who ask for it, and closes it at the end."""

    def __init__(self, store: Ledger, views: ExitStack) -> None:
        """Stand for a ledger that is open."""
        super().__init__(store.path)
        self.shown, self._waiting = store.shown, store._waiting  # it stands for that one
        self._views = views
        self._lent: dict[tuple[str | None, Calendar | None], View] = {}

    def query(self, period: str | None = None, calendar: Calendar | None = None) -> View:
        """Return the view of a period, opened once; arguments as of ``Ledger.query``."""
        key = (period, calendar)
        if key not in self._lent:
            view = super().query(period, calendar)
            view.is_lent = True
            self._views.callback(view.close)
            self._lent[key] = view
        return self._lent[key]


_ONE: Final[ContextVar[tuple[str | Path, Ledger] | None]] = ContextVar("one ledger", default=None)


def _unsent(address: str, error: UnwritableError) -> Finding:
    from carbonlens.ledger import outbox

    count = len([f for f in outbox.waiting(address) if f.parent.parent.name == RUNS])
    return Finding(
        code="CL526",
        severity="warning",
        message=f"{counted(count, 'run waits', 'runs wait')} on this host to be sent there: {error.what}",
        file=address,
        mend=error.mend,
    )
