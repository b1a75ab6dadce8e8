"""Units that a measured command counts: what its own ``track()`` blocks have noted in their journals."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

from carbonlens.metering.journal import SUFFIX, Look, decode_line, read_header
from carbonlens.metering.session import journal_folder

_TAIL_BYTES: Final = 65_536
_SEARCH_EVERY_S: Final = 1.0
_SEARCH_SELDOM_S: Final = 10.0
_OFTEN: Final = 30
"""The folder may lie on a file system that many hosts share: after so many looks it is listed seldom."""


class Counted(NamedTuple):
    """Units counted so far, and what they are called."""

    units: Decimal | None = None
    unit: str | None = None


class NestedUnits:
    """Adds up what the blocks inside one run count, on this host.

    Args:
        run_id: The run.
        folder: Where journals lie; this user's by default.
    """

    def __init__(self, run_id: str, folder: Path | None = None) -> None:
        """Look nowhere yet."""
        self._run_id = run_id
        self._folder = folder
        self._passed_over: set[str] = set()
        self._inside: dict[Path, Counted] = {}
        self._searches = 0
        self._search_at = 0.0

    def count(self) -> Counted:
        """Return the sum over the blocks of the unit that was counted first; raises nothing."""
        now = time.monotonic()
        try:
            if now >= self._search_at:
                self._searches += 1
                often = self._searches < _OFTEN
                self._search_at = now + (_SEARCH_EVERY_S if often else _SEARCH_SELDOM_S)
                self._search(self._folder or journal_folder())
        except OSError:
            return Counted()
        for path, before in self._inside.items():
            # What a block that has ended counted last stays; its journal is gone.
            self._inside[path] = Counted(_last_units(path) or before.units, before.unit)
        counted = [c for c in self._inside.values() if c.units is not None]
        same = [c.units for c in counted if c.unit == counted[0].unit and c.units is not None]
        return Counted(sum(same, Decimal(0)), counted[0].unit) if same else Counted()

    def _search(self, folder: Path) -> None:
        for entry in os.scandir(folder):
            name = entry.name
            # Ids begin with their time: what is older cannot lie inside.
            if not name.endswith(SUFFIX) or name < self._run_id or name in self._passed_over:
                continue
            self._passed_over.add(name)
            with suppress(OSError):
                header = read_header(Path(entry.path))
                if header is not None and header.run.parent_run_id == self._run_id:
                    self._inside[Path(entry.path)] = Counted(None, header.run.unit)


def _last_units(path: Path) -> Decimal | None:
    try:
        with path.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            lines = stream.read().split(b"\n")
    except OSError:
        return None
    for line in reversed(lines):
        if b'"units"' in line:
            record = decode_line(line)
            if isinstance(record, Look) and record.facts is not None and record.facts.units is not None:
                return record.facts.units
    return None
