"""Use case: read the inventory, keep what it said in the ledger, or write an example of one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.inventory import Inventory, ReportingTerms
from carbonlens.domain.run import Origin
from carbonlens.domain.snapshot import Snapshot
from carbonlens.errors import InputFileError, SelectionError, UnwritableError, UsageError
from carbonlens.inventory import folder as folders
from carbonlens.inventory.folder import FileRead, Loaded
from carbonlens.inventory.location import locate
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger

_KEPT_BY = "inventory-1"
"""Part of a batch's identity; raised when the same file gives another snapshot."""

_EXAMPLE = Path(folders.__file__).with_name("example")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An inventory, and the snapshots that figures made from it name.

    Attributes:
        inventory: As read; an empty one where there is no folder.
        folder: Where it was read; ``None`` where there is none.
        snapshots: File name to the id of its snapshot, which a ledger that was given keeps.
        places: File and line of each record, by the stem of its file and its name.
    """

    inventory: Inventory
    folder: str | None = None
    snapshots: dict[str, str] = msgspec.field(default_factory=dict)
    places: Mapping[tuple[str, str], tuple[str, int]] = {}  # a frozen record's default is never mutated

    @property
    def sha256(self) -> str | None:
        """Hash of all snapshots together; ``None`` where there is no inventory."""
        return sha256_hex(msgspec.json.encode(sorted(self.snapshots.items()))) if self.snapshots else None


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
    return _with_places(folders.read(folder))


def _with_places(loaded: Loaded) -> Loaded:
    """Return what was read, with what is wrong with the places of its sites."""
    from carbonlens.app.statement_places import misplaced

    inventory = loaded.inventory
    if inventory is None:
        return loaded
    files = [f.name for f in loaded.files if f.name in ("sites.toml", "sites.csv")]
    found = [replace(f, file=files[0] if files else None) for f in misplaced(inventory.sites)]
    return replace(loaded, inventory=replace(inventory, findings=(*inventory.findings, *found)))


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
    held = _ONCE.get()
    if held is not None and store is None:
        if folder not in held:
            held[folder] = _loaded(folder, None)
        return held[folder]
    return _loaded(folder, store)


_ONCE: Final[ContextVar[dict[Path, Kept] | None]] = ContextVar("inventories", default=None)


@contextmanager
def inventory_once() -> Iterator[None]:
    """Have every inventory within be read once, for use cases that ask for it again and again."""
    token = _ONCE.set({})
    try:
        yield
    finally:
        _ONCE.reset(token)


def _loaded(folder: Path, store: Ledger | None) -> Kept:
    loaded = folders.load(folder)
    snapshots = snapshot_ids(loaded)
    if store is not None:
        keep(loaded, store)
    return Kept(
        inventory=loaded.inventory or Inventory(),
        folder=str(folder),
        snapshots=snapshots,
        places=loaded.places,
    )


def snapshot_ids(loaded: Loaded) -> dict[str, str]:
    """Return the id of each file's snapshot by its name: a hash of name and content.

    Args:
        loaded: What was read.
    """
    return {f.name: _snapshot_id(f) for f in loaded.files if f.kind is not None}


def keep(loaded: Loaded, store: Ledger) -> None:
    """Store a snapshot of each file in the ledger; one that is there already is not stored again.

    Args:
        loaded: What was read.
        store: The ledger.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If the ledger cannot be written.
    """
    from carbonlens.ledger.activity import SNAPSHOTS

    now_us = time.time_ns() // 1000
    for file in loaded.files:
        if file.kind is None:
            continue
        name = _snapshot_id(file)
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


def _snapshot_id(file: FileRead) -> str:
    return sha256_hex(msgspec.json.encode((file.name, file.text)))


def changed_since(closes: Mapping[str, Mapping[str, str]], kept: Kept) -> tuple[Finding, ...]:
    """Return the Findings of closes that kept an inventory of other files than this one.

    Args:
        closes: Snapshots of the inventory by close, file name to id.
        kept: The inventory in use.
    """
    found = []
    for period, then in closes.items():
        names = {*then, *kept.snapshots}
        other = sorted(n for n in names if then.get(n) != kept.snapshots.get(n))
        if other:
            found.append(
                Finding(
                    code="CL469",
                    severity="warning",
                    message=f"{period} was closed with another {', '.join(other)}: its statement may "
                    "differ now",
                    mend="use the files that the close kept, or see carbonlens ledger restate",
                    subject=period,
                )
            )
    return tuple(found)


def calendar_of(terms: ReportingTerms) -> Calendar:
    """Return the calendar in which an entity's periods are cut."""
    return Calendar(reporting_timezone=terms.timezone, fiscal_year_start=terms.fiscal_year_start)


def period_calendar(
    explicit: str | Path | None = None, *, timezone: str | None = None, fiscal_year_start: int | None = None
) -> Calendar:
    """Return the calendar that a period is meant in: the inventory's, where there is one.

    Args:
        explicit: The inventory folder; found as ``locate`` finds it when ``None``.
        timezone: As an option states it; must be the inventory's, and is UTC without one.
        fiscal_year_start: Likewise; January without an inventory.

    Raises:
        UsageError: If an option states another calendar than the inventory.
        InputFileError, ConfigError: If the inventory cannot be read, or the zone is none.
    """
    own = calendar_of(load_inventory(explicit).inventory.terms)
    meant = Calendar(
        reporting_timezone=own.reporting_timezone if timezone is None else timezone,
        fiscal_year_start=own.fiscal_year_start if fiscal_year_start is None else fiscal_year_start,
    )
    return meant_calendar(explicit, meant)


def meant_calendar(explicit: str | Path | None, calendar: Calendar | None) -> Calendar:
    """Return the calendar that is given, else the inventory's, by which statements are cut.

    Args:
        explicit: The inventory folder; found as ``locate`` finds it when ``None``.
        calendar: Must be the inventory's where there is one.

    Raises:
        UsageError: If the two differ.
        InputFileError, ConfigError: If the inventory cannot be read.
    """
    kept = load_inventory(explicit)
    own = calendar_of(kept.inventory.terms)
    if calendar is None or own == calendar:
        return own
    if kept.folder is None:
        return calendar
    raise UsageError(
        f"the period is meant in {calendar.words}, and the statements of the inventory in {own.words}",
        where=str(Path(kept.folder) / "reporting.toml"),
        mend="leave out --timezone and --fiscal-year-start, or change reporting.toml",
    )


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
