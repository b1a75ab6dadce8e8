"""Use case: read the inventory, keep what it said in the ledger, or write an example of one."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.inventory import Inventory, ReportingTerms
from carbonlens.domain.run import Origin
from carbonlens.domain.snapshot import Snapshot
from carbonlens.errors import InputFileError, SelectionError, UnwritableError, UsageError
from carbonlens.inventory import folder as folders
from carbonlens.inventory.folder import Loaded
from carbonlens.inventory.location import locate
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger

_KEPT_BY = "inventory-1"
"""Part of a batch's identity; raised when the same file gives another snapshot."""

_EXAMPLE = Path(folders.__file__).with_name("example")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An inventory, and the snapshots in the ledger that figures made from it may name.

    Attributes:
        inventory: As read; an empty one where there is no folder.
        folder: Where it was read; ``None`` where there is none.
        snapshots: File name to the id of its snapshot.
    """

    inventory: Inventory
    folder: str | None = None
    snapshots: dict[str, str] = msgspec.field(default_factory=dict)


def check_inventory(explicit: str | Path | None = None) -> Loaded:
    """Read an inventory folder, malformed files too, and write nothing.

    Args:
        explicit: The folder; found as ``locate`` finds it when ``None``.

    Raises:
        SelectionError: If nobody names a folder and none stands here.
        InputFileError: If the folder cannot be read.
        ConfigError: If ``pyproject.toml`` names no path.
    """
    folder = locate(explicit)
    if folder is None:
        raise SelectionError(
            "no inventory folder",
            where="inventory",
            mend="write one with: carbonlens inventory init inventory",
        )
    return folders.read(folder)


def load_inventory(explicit: str | Path | None = None, *, store: Ledger | None = None) -> Kept:
    """Read an inventory that must be well-formed; no folder is an empty inventory.

    Args:
        explicit: The folder; found as ``locate`` finds it when ``None``.
        store: Ledger that keeps a snapshot of each file; none is kept when ``None``.

    Raises:
        InputFileError: If the folder that is named cannot be read.
        ConfigError: If any file is malformed; all faults of all files are in it.
        MissingExtraError: If snapshots are to be kept and DuckDB is not installed.
        UnwritableError: If the ledger cannot be written.
    """
    folder = locate(explicit)
    if folder is None:
        return Kept(inventory=Inventory())
    loaded = folders.load(folder)
    snapshots = {} if store is None else keep(loaded, store)
    return Kept(inventory=loaded.inventory or Inventory(), folder=str(folder), snapshots=snapshots)


def keep(loaded: Loaded, store: Ledger) -> dict[str, str]:
    """Store a snapshot of each file in the ledger; one that is there already is not stored again.

    Args:
        loaded: What was read.
        store: The ledger.

    Returns:
        File name to the id of its snapshot.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If the ledger cannot be written.
    """
    from carbonlens.ledger.activity import SNAPSHOTS

    now_us = time.time_ns() // 1000
    ids: dict[str, str] = {}
    for file in loaded.files:
        if file.kind is None:
            continue
        name = sha256_hex(msgspec.json.encode((file.name, file.text)))
        snapshot = Snapshot(
            snapshot_id=name,
            name=file.name,
            taken_us=now_us,
            text=file.text,
            origin=Origin(
                instrument=_KEPT_BY,
                source_file=file.name,
                source_sha256=sha256_hex(file.text.encode()),
            ),
        )
        store.add_rows(SNAPSHOTS, [snapshot], source_sha256=name, importer=_KEPT_BY)
        ids[file.name] = name
    return ids


def calendar_of(terms: ReportingTerms) -> Calendar:
    """Return the calendar in which an entity's periods are cut."""
    return Calendar(reporting_timezone=terms.timezone, fiscal_year_start=terms.fiscal_year_start)


def write_example(folder: Path) -> tuple[str, ...]:
    """Write the example inventory, and return the names of its files.

    Args:
        folder: Where; made if it is not there, refused if anything lies in it.

    Raises:
        UsageError: If the folder holds something, or is none.
        UnwritableError: If it cannot be written.
        InputFileError: If the package's own example cannot be read.
    """
    try:
        texts = {f.name: f.read_bytes() for f in sorted(_EXAMPLE.iterdir()) if f.is_file()}
    except OSError as error:
        raise InputFileError(
            f"the example cannot be read ({error.strerror or error})",
            where=str(_EXAMPLE),
            mend="install carbonlens again",
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError("holds files already", where=str(folder), mend="name a new folder")
        for name, content in texts.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise UnwritableError(
            f"cannot be written ({error.strerror or error})", where=str(folder), mend="name another folder"
        ) from error
    return tuple(texts)
