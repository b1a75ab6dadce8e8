"""What measuring may print: one line on stderr when a run did not reach its ledger."""

from __future__ import annotations

import sys
from pathlib import Path

from carbonlens.ledger.location import address_of, is_address
from carbonlens.metering.deposit import Deposit

_told: set[Path | str] = set()


def tell_fault(stored: Deposit, wanted: Path) -> None:
    """Say once a ledger, on stderr, where a run went instead; silent when all went well."""
    if stored.fault is None or wanted in _told:
        return
    _told.add(wanted)
    name = address_of(wanted) if is_address(wanted) else wanted
    where = f"kept in {stored.ledger}" if stored.ledger is not None else "not kept"
    tell(f"the ledger {name} could not be written ({stored.fault}); run {where}")


def tell_misplaced(fault: str, stored: Deposit) -> None:
    """Say once a fault, on stderr, that no ledger was found and where the run went instead."""
    if fault in _told or stored.ledger is None:
        return
    _told.add(fault)
    tell(f"no ledger was found ({fault}); run kept in {stored.ledger}")


def tell_unmeasured(fault: str) -> None:
    """Say once a fault, on stderr, that a run could not be measured."""
    if fault in _told:
        return
    _told.add(fault)
    tell(f"this run was not measured ({fault.partition(chr(10))[0][:200]})")


def tell(line: str) -> None:
    """Write one line on stderr, if there is a stderr."""
    try:
        sys.stderr.write(f"carbonlens: {line}\n")
    except Exception:  # noqa: BLE001  # law 8: a stderr that is closed, missing or the user's own
        return
