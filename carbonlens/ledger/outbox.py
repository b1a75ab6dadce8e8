"""Runs on their way to a ledger behind an address: kept on this host until they are there.

A run is written here first and removed once it is sent, so that neither a network
that is down nor the end of the process loses it. What was sent is remembered by
name for a while: a journal that outlived its process must not be stored again.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.decoding import decode_json
from carbonlens.domain.identity import sha256_hex, uuid7
from carbonlens.domain.run import Run
from carbonlens.errors import RecordError
from carbonlens.ledger import layout
from carbonlens.ledger.location import state_dir
from carbonlens.ledger.store import Ledger

_SENT: Final = ".sent"
_REMEMBERED_S: Final = 90 * 86_400


def folder_of(address: str) -> Path:
    """Return the folder in which what is meant for an address waits; a ledger of its own.

    Args:
        address: As of ``remote.address_of``.

    Raises:
        OSError: If no folder of the user can be written.
    """
    return state_dir() / "outbox" / sha256_hex(address.encode())[:16]


def waiting(address: str) -> list[Path]:
    """Return the files that wait for an address, outcomes before the runs that name them."""
    folder = folder_of(address)
    found = [f for kind in (layout.OUTCOMES, layout.RUNS) for f in sorted((folder / kind).rglob("*.json"))]
    return [f for f in found if not f.name.startswith(".")]


def send(address: str) -> int:
    """Send what waits for an address and return how many files were sent.

    May be called by several processes at once, and again after being cut off: an
    object of the same name and content is the same object. Where another record
    has a run's id there, ours is sent under an id of its own that supersedes it.

    Raises:
        MissingExtraError: If fsspec or the address's own package is not installed.
        UnwritableError: If it cannot be written; the rest waits on.
        RecordError: If an object of the same name and other content is there.
        OSError: If this host's folder cannot be written.
    """
    folder = folder_of(address)
    files = waiting(address)
    for file in files:
        try:
            _put(address, folder, file)
        except FileNotFoundError:
            continue  # Another process sent it meanwhile.
        except RecordError:
            if file.parent.parent.name != layout.RUNS:
                raise
            _put(address, folder, _renamed(folder, file))
            _done(folder, file)
    _forget(folder)
    return len(files)


def holds(address: str, run_id: str) -> bool:
    """Tell whether a run waits here or was sent from here.

    Raises:
        OSError: If no folder of the user can be written.
    """
    folder = folder_of(address)
    return (folder / _SENT / run_id).exists() or Ledger(folder).holds(run_id)


def _put(address: str, folder: Path, file: Path) -> None:
    from carbonlens.ledger.remote import working_copy

    with working_copy(address, fetch=False) as copy:
        target = copy / file.relative_to(folder)
        target.parent.mkdir(parents=True)
        shutil.copyfile(file, target)
    _done(folder, file)


def _done(folder: Path, file: Path) -> None:
    sent = folder / _SENT
    sent.mkdir(exist_ok=True)
    (sent / file.stem).touch()
    file.unlink(missing_ok=True)


def _renamed(folder: Path, file: Path) -> Path:
    run = decode_json(file.read_bytes(), Run)
    name = uuid7(time.time_ns() // 1_000_000, os.urandom(10))
    return Ledger(folder).append(msgspec.structs.replace(run, run_id=name, supersedes=run.run_id))


def _forget(folder: Path) -> None:
    oldest = time.time() - _REMEMBERED_S
    with suppress(OSError):
        for mark in (folder / _SENT).iterdir():
            if mark.stat().st_mtime < oldest:
                mark.unlink(missing_ok=True)
