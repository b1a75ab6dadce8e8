"""The inventory folder as a whole: every file read, every fault told at once.

All files are optional. What is malformed is a fault, and no inventory comes of it; what
is only suspicious is a Finding of the inventory.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from carbonlens.domain.inventory import Inventory
from carbonlens.errors import InputFileError
from carbonlens.inventory import (
    assembly,
    assets_file,
    certificate_hours_file,
    certificates_file,
    deliveries_file,
    exchange_rates_file,
    expenses_file,
    initiatives_file,
    invoices_file,
    meters_file,
    price_index_file,
    prices_file,
    readings_file,
    records,
    reporting_file,
    services_file,
    sites_file,
    tariffs_file,
    values,
)
from carbonlens.inventory.assembly import Parts
from carbonlens.inventory.csv_entries import decoded
from carbonlens.inventory.faults import Fault, nearest, refusal
from carbonlens.ledger.regular_file import read_regular

KINDS: Final[tuple[records.Kind[Any], ...]] = (
    sites_file.KIND,
    meters_file.KIND,
    certificates_file.KIND,
    assets_file.KIND,
    initiatives_file.KIND,
    deliveries_file.KIND,
    tariffs_file.KIND,
    prices_file.KIND,
    exchange_rates_file.KIND,
    price_index_file.KIND,
    expenses_file.KIND,
    invoices_file.KIND,
    services_file.KIND,
)
"""Kinds of records that stand in files of their own; readings and reporting terms are read apart."""

_BY_NAME: Final = {f"{kind.name}{suffix}": kind for kind in KINDS for suffix in kind.formats}
_SERIES: Final = (readings_file.PREFIX, certificate_hours_file.PREFIX, services_file.PREFIX)
_MOST_BYTES: Final = 256 * 1024 * 1024
"""A year of 15-minute readings of a hundred meters holds less."""


class FileRead(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the folder.

    Attributes:
        name: Its name in the folder.
        kind: What it holds; ``None`` for a file that nobody reads.
        rows: Blocks or rows in it that became records.
        text: Its content.
    """

    name: str
    kind: str | None
    rows: int = 0
    text: str = ""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What reading a folder gave.

    Attributes:
        folder: The folder.
        files: Each file in it, in order of name.
        inventory: All of it; ``None`` if there is a fault.
        faults: What must be mended first.
        places: File and line of each record, by the stem of its file and its name.
    """

    folder: Path
    files: tuple[FileRead, ...]
    inventory: Inventory | None
    faults: tuple[Fault, ...] = ()
    places: Mapping[tuple[str, str], tuple[str, int]] = {}  # a frozen record's default is never mutated


def load(folder: Path) -> Loaded:
    """Read a folder that must be well-formed.

    Raises:
        InputFileError: If the folder cannot be read.
        ConfigError: If any file is malformed; all faults of all files are in it.
    """
    loaded = read(folder)
    if loaded.faults:
        raise refusal(folder, loaded.faults)
    return loaded


def read(folder: Path) -> Loaded:
    """Read every file of a folder, also when some are malformed.

    Raises:
        InputFileError: If the folder cannot be read.
    """
    faults: list[Fault] = []
    parts = Parts()
    names = _names(folder)
    texts = {name: _text(folder / name, faults) for name in names if _kind_of(name) != "unknown"}
    parts.terms, has_zone = reporting_file.read(texts.get(reporting_file.NAME, ""), faults)
    # A file that cannot be read is told once, not once more for every reading.
    zone = values.zone(parts.terms.timezone) if has_zone or faults else None
    files = tuple(_taken(parts, name, texts.get(name, ""), zone, faults) for name in names)
    inventory = assembly.assembled(parts, faults)
    return Loaded(
        folder=folder,
        files=files,
        inventory=None if faults else inventory,
        faults=tuple(sorted(faults)),
        places=parts.places,
    )


def _taken(parts: Parts, name: str, text: str, zone: tzinfo | None, faults: list[Fault]) -> FileRead:
    """Add what one file holds to the parts, and return how much it is."""
    kind = _kind_of(name)
    if isinstance(kind, records.Kind):
        rows = parts.add(kind, records.read(kind, text, name, faults), faults)
        return FileRead(name=name, kind=kind.name, rows=rows, text=text)
    if kind == "unknown":
        parts.strangers[name] = nearest(name, _known_names())
        return FileRead(name=name, kind=None)
    rows = 1
    if kind == "readings":
        found = readings_file.read(text, name, zone, faults)
        parts.readings.append(found)
        rows = found.rows
    elif kind == "certificate_hours":
        hours = certificate_hours_file.read(text, name, faults)
        parts.hours += hours
        rows = len(hours)
    elif kind == "service_uses":
        uses = services_file.read_uses(text, name, faults)
        parts.uses += uses
        rows = len(uses)
    return FileRead(name=name, kind=kind, rows=rows, text=text)


def _known_names() -> list[str]:
    """Return the names that files of the folder may have."""
    return [reporting_file.NAME, *_BY_NAME, *(f"{prefix}*.csv" for prefix in _SERIES)]


def _kind_of(
    name: str,
) -> records.Kind[Any] | Literal["reporting", "readings", "certificate_hours", "service_uses", "unknown"]:
    if name == reporting_file.NAME:
        return "reporting"
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.endswith(".csv") and name.startswith(readings_file.PREFIX):
        return "readings"
    if name.endswith(".csv") and name.startswith(certificate_hours_file.PREFIX):
        return "certificate_hours"
    if name.endswith(".csv") and name.startswith(services_file.PREFIX):
        return "service_uses"
    return "unknown"


def _names(folder: Path) -> list[str]:
    """Return what lies in a folder and is not hidden; a note to readers is no file of it."""
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=str(folder), mend="check the path"
        ) from error
    return sorted(e.name for e in entries if not e.name.startswith(".") and not _is_note(e.name))


def _is_note(name: str) -> bool:
    return name.lower().partition(".")[0] == "readme"


def _text(file: Path, faults: list[Fault]) -> str:
    try:
        return decoded(read_regular(file, at_most=_MOST_BYTES))
    except OSError as error:
        what = f"cannot be read ({error.strerror or error})"
        faults.append(Fault(file=file.name, what=what, mend="check the file and its permissions"))
    except UnicodeDecodeError:
        faults.append(Fault(file=file.name, what="is neither UTF-8 nor UTF-16 text", mend="save it as UTF-8"))
    return ""
