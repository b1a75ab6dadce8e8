"""Opening a ledger, wherever it lies: a folder, or an address by the extra ``remote``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.errors import UnwritableError
from carbonlens.ledger.layout import RUNS
from carbonlens.ledger.location import address_of, is_address, locate
from carbonlens.ledger.naming import errors_by_address
from carbonlens.ledger.store import Ledger


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
