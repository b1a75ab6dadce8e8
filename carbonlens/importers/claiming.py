"""Which importer reads a file: asked of each, by content and never by name."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, Protocol

import msgspec

from carbonlens.domain.charge import Charge
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run

GROUP: Final = "carbonlens.importers"
HEAD_BYTES: Final = 65536


class Extract(msgspec.Struct, frozen=True, kw_only=True):
    """What one source gave.

    Attributes:
        runs: Canonical records, in the order of the source.
        rows: Rows the source holds.
        rows_rejected: Rows that gave no record, each with a Finding.
        rows_repeated: Rows that repeat another exactly, counted once.
        energy_j: Sum of the energies the source states; ``None`` when a run
            has none, since a partial sum is not a total.
        charges: Lines of a bill, each once.
    """

    runs: tuple[Run, ...] = ()
    rows: int
    rows_rejected: int
    rows_repeated: int = 0
    energy_j: Decimal | None = None
    charges: tuple[Charge, ...] = ()
    findings: tuple[Finding, ...] = ()


class Importer(Protocol):
    """Reads one format.

    Attributes:
        name: Format name as printed.
        version: Raised when the same content gives other records.
    """

    name: str
    version: int

    def claim(self, head: bytes) -> bool:
        """Say whether the content, given its first 64 KiB, is of this format."""
        ...

    def read(self, path: Path) -> Extract:
        """Read the whole source.

        Raises:
            InputFileError: If it cannot be read at all.
        """
        ...


def importers() -> Sequence[Importer]:
    """Return all installed importers, in the order of their names."""
    return [entry.load()() for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name)]


def claim(head: bytes, candidates: Sequence[Importer]) -> Importer | None:
    """Return the first importer that claims the content."""
    return next((i for i in candidates if i.claim(head)), None)
