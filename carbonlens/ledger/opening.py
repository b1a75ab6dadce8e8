"""Opening a ledger, wherever it lies: a folder, or an address by the extra ``remote``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from carbonlens.ledger.location import address_of, is_address, locate
from carbonlens.ledger.store import Ledger


@contextmanager
def open_ledger(explicit: str | Path | None = None, *, fetch: bool = True) -> Iterator[Ledger]:
    """Yield the ledger; for an address a local copy of it, put back at the end.

    Runs that could not be sent to an address when they were sealed are sent first.

    Args:
        explicit: The ``--ledger`` option; found as ``locate`` finds it when ``None``.
        fetch: False for work that only adds records: an address is not read then.

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
    if outbox.waiting(address):
        outbox.send(address)
    with working_copy(address, fetch=fetch) as copy:
        yield Ledger(copy, address=address)
