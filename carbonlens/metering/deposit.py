"""Putting a sealed run into its ledger, or into the state folder when that fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.limits import misfit
from carbonlens.domain.run import Run
from carbonlens.errors import CarbonlensError, RecordError
from carbonlens.ledger.location import address_of, is_address, state_dir
from carbonlens.metering import findings
from carbonlens.metering.host import new_run_id
from carbonlens.metering.threads import give_up_on, start_beside
from carbonlens.metering.wording import error_text

if TYPE_CHECKING:
    from carbonlens.ledger.store import Ledger


class Deposit(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run ended up.

    Attributes:
        run: The record as stored.
        ledger: Folder it lies in; ``None`` when it could not be stored at all.
        fault: Why it is not in the ledger it was meant for.
        unstorable: True when no ledger can take it, because it holds what a record cannot.
    """

    run: Run
    ledger: Path | None
    fault: str | None = None
    unstorable: bool = False


UPLOAD_WAIT_S: Final = 5.0
"""Longest that the end of a run waits for a ledger behind an address; it was asked for by name."""

UNENCODABLE: Final = (TypeError, ValueError, OverflowError)
"""What encoding raises over a value that JSON cannot hold, and dates over an impossible one."""


def deposit(run: Run, ledger: Path) -> Deposit:
    """Store a sealed run; never raises over a ledger or a record that cannot be written.

    Where another record has the run's id already (a recovery took the run for
    dead), the new one is stored under its own id and supersedes that.

    Args:
        run: The sealed run.
        ledger: The folder it is meant for.
    """
    try:
        unfit = misfit(run)
        if unfit is not None:
            # No other id would make it fit.
            fault = f"the record cannot be kept: {unfit}"
            return Deposit(run=run, ledger=None, fault=fault, unstorable=True)
        unloadable = _unloadable(ledger)
        if unloadable is not None:
            return Deposit(run=run, ledger=None, fault=unloadable)
        # No ledger takes hours that do not fit, and the job's record must not be lost.
        from carbonlens.ledger.oddities import with_fitting_hours  # as the ledger itself: see below

        run, said = with_fitting_hours(run)
        if said is not None:
            run = msgspec.structs.replace(run, findings=(*run.findings, said))
        if is_address(ledger):
            return _deposit_behind(run, ledger)
        return Deposit(run=_append(run, ledger), ledger=ledger)
    except UNENCODABLE as error:
        fault = f"the record cannot be written: {error_text(error)}"
        return Deposit(run=run, ledger=None, fault=fault, unstorable=True)
    except (CarbonlensError, OSError) as error:
        fault = _reason(error)
    kept = msgspec.structs.replace(run, findings=(*run.findings, findings.written_elsewhere(fault)))
    try:
        fallback = fallback_ledger()
        return Deposit(run=_append(kept, fallback), ledger=fallback, fault=fault)
    except (CarbonlensError, OSError) as error:
        return Deposit(run=run, ledger=None, fault=f"{fault}; {_reason(error)}")


def _deposit_behind(run: Run, ledger: Path) -> Deposit:
    """Keep the run on this host, then send it; a network that is slow never holds the user's job.

    Raises:
        CarbonlensError, OSError: If this host cannot keep it.
    """
    from carbonlens.ledger import outbox

    address = address_of(ledger)
    place = outbox.folder_of(address)
    kept = _append(run, place)
    faults: list[str] = []

    def send() -> None:
        try:
            outbox.send(address)
        except Exception as error:  # noqa: BLE001  # law 8: file systems raise families of errors of their own
            faults.append(_said(error))

    thread = start_beside(send, "carbonlens-upload")
    thread.join(UPLOAD_WAIT_S)
    if thread.is_alive():
        give_up_on(thread)
        faults.append(f"{address}: no answer within {UPLOAD_WAIT_S:g} s")
    if not faults:
        return Deposit(run=kept, ledger=ledger)
    fault = f"{faults[0]}; the next command with this ledger sends it"
    return Deposit(run=kept, ledger=place, fault=fault)


def deposit_outcomes(outcomes: Sequence[int], ledger: Path) -> str | None:
    """Store per-example outcomes beside the runs; ``None`` when no place takes them."""
    try:
        # To be sent with the run that names them.
        return _opened(_waiting_place(ledger) if is_address(ledger) else ledger).add_outcomes(outcomes)
    except (CarbonlensError, OSError):
        pass
    try:
        return _opened(fallback_ledger()).add_outcomes(outcomes)
    except (CarbonlensError, OSError):
        return None


def fallback_ledger() -> Path:
    """Return the folder that takes runs whose own ledger cannot be written.

    Raises:
        OSError: If not even a temporary folder can be made.
    """
    return state_dir() / "ledger"


def is_recorded(run_id: str, ledger: Path) -> bool:
    """Tell whether a ledger holds a live run's record already, in a file or a compacted month.

    Raises:
        OSError: If the ledger cannot be read.

    Of a ledger behind an address it is what this host sent or has yet to send.
    """
    if is_address(ledger):
        from carbonlens.ledger import outbox

        return outbox.holds(address_of(ledger), run_id)
    return _opened(ledger).holds(run_id)


def _append(run: Run, ledger: Path) -> Run:
    try:
        _opened(ledger).append(run)
    except RecordError:
        renamed = new_run_id(time.time_ns() // 1_000_000)
        run = msgspec.structs.replace(run, run_id=renamed, supersedes=run.run_id)
        _opened(ledger).append(run)
    return run


def _unloadable(ledger: Path) -> str | None:
    """Load what storing takes; return why that is impossible, ``None`` where it is not."""
    try:
        from carbonlens.ledger import oddities, store  # noqa: F401  # for the effect

        if is_address(ledger):
            from carbonlens.ledger import outbox  # noqa: F401  # for the effect
    except Exception as error:  # noqa: BLE001  # law 8: a file of ours that is gone, half written, of another version
        return (
            f"what stores a run cannot be loaded: {error_text(error)}; carbonlens was moved or renewed while "
            "the work ran, and a later command recovers what the run's journal holds"
        )
    return None


def _opened(place: Path) -> Ledger:
    """Return the ledger of a folder.

    Whoever measures in the user's program has loaded it before, and ``run`` does so while its command
    works: a package that is renewed meanwhile is not met half old and half new. A command that is over
    within some milliseconds leaves it for afterwards: to load it before would delay every command's start.
    """
    from carbonlens.ledger.store import Ledger

    return Ledger(place)


def _waiting_place(ledger: Path) -> Path:
    from carbonlens.ledger import outbox

    return outbox.folder_of(address_of(ledger))


def _said(error: Exception) -> str:
    return _reason(error) if isinstance(error, CarbonlensError | OSError) else error_text(error)


def _reason(error: CarbonlensError | OSError) -> str:
    if isinstance(error, CarbonlensError):
        return f"{error.where}: {error.what}" if error.where else error.what
    return error.strerror or type(error).__name__
