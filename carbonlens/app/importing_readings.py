"""Meter readings that an import keeps: each once in the ledger, as activity of its meter.

They are files like ``readings*.csv`` of an inventory, which an import makes a part of the
record: a close then names them. Site, boundary and accuracy are those of the meter in the
inventory. Every time has its offset, because no file here says in which zone others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from carbonlens.domain.counting import counted
from carbonlens.domain.file_names import printable
from carbonlens.domain.finding import Finding
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.errors import InputFileError
from carbonlens.inventory import counts, readings_file
from carbonlens.inventory.csv_entries import decoded
from carbonlens.inventory.faults import Fault
from carbonlens.ledger.activity import READINGS, read_stored
from carbonlens.ledger.layout import batch_name
from carbonlens.ledger.store import Ledger

NAME: Final = "meter readings"

_BATCH: Final = "readings-1"
"""Part of a batch's identity; raised when the same file gives other readings."""

_LAYOUTS: Final = ({"meter", "unit", "start", "end"}, {"meter", "unit", "time", "counter"})
_NO_REPORTING: Final = "state timezone in reporting.toml, or "


def claims_readings(head: bytes) -> bool:
    """Say whether content, given its begin, is a table of meter readings.

    Args:
        head: The first bytes of the file.
    """
    lines = head.decode("utf-8-sig", "replace").replace("\r", "\n").split("\n")
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    names = {name.strip().strip('"').lower() for name in first.split(max(",;\t", key=first.count))}
    names = {"meter" if name == "meter_id" else name for name in names}
    return any(layout <= names for layout in _LAYOUTS) and names <= set(readings_file.COLUMNS)


class ReadingKeeper:
    """Knows which readings the ledger holds, and adds those it does not."""

    def __init__(self, store: Ledger, site: str | None) -> None:
        """Look at nothing yet: most imports hold no readings.

        Args:
            store: The ledger.
            site: Of the readings, where it is told.
        """
        self.new: list[MeterReading] = []
        self._store = store
        self._site = site
        self._known: dict[str, MeterReading] | None = None

    def holds_file(self, sha256: str) -> bool:
        """Tell whether readings of this content are in the ledger."""
        return (self._store.path / READINGS.folder / batch_name(sha256, _BATCH)).exists()

    def keep(
        self, file: Path, *, sha256: str, now_us: int
    ) -> tuple[list[MeterReading], int, tuple[Finding, ...]]:
        """Store the readings that are new; return them, the rows of the file, and what is to be said.

        Args:
            file: The file.
            sha256: Hash of its content.
            now_us: Time of the import.

        Raises:
            InputFileError: If the file cannot be read, or any of its rows is malformed.
            MissingExtraError: If DuckDB is not installed.
            UnwritableError: If the ledger cannot be written.
            RecordError: If the ledger cannot be read.
        """
        rows = _read(file)
        between, said = counts.spans(rows.counts)
        every = [self._marked(r, now_us) for r in (*rows.spans, *between)]
        fresh, findings = self._fresh(every, file)
        if fresh:
            self._store.add_rows(READINGS, fresh, source_sha256=sha256, importer=_BATCH)
            self.new += fresh
        found = (*(replace(f, file=printable(file)) for f in (*rows.findings, *said)), *findings)
        return fresh, rows.rows, found

    def _fresh(self, every: Sequence[MeterReading], file: Path) -> tuple[list[MeterReading], list[Finding]]:
        """Return the readings that the ledger does not hold, each once, and what is said of the others."""
        if self._known is None:
            self._known = self._stored()
        fresh: list[MeterReading] = []
        repeated: list[MeterReading] = []
        findings: list[Finding] = []
        for reading in every:
            earlier = self._known.setdefault(reading.reading_id, reading)
            if earlier is reading:
                fresh.append(reading)
            elif replace(earlier, origin=None, site=None) == replace(reading, origin=None, site=None):
                repeated.append(earlier)
            else:
                findings.append(_clash(reading, file))
        if repeated:
            held = counted(len(repeated), "reading is", "readings are")
            text = f"{held} in the ledger already; each counts once"
            findings.append(Finding(code="CL236", severity="info", message=text, file=printable(file)))
            findings += self._elsewhere(repeated, printable(file))
        return fresh, findings

    def _elsewhere(self, held: Iterable[MeterReading], file: str) -> list[Finding]:
        count = sum(self._site not in {None, r.site} for r in held)
        if not count:
            return []
        readings = counted(count, "reading is", "readings are")
        text = f"{readings} in the ledger, and not of the site that --site says now: each stays as it is"
        mend = "give the site at the first import; or add readings that supersede these"
        return [Finding(code="CL293", severity="warning", message=text, file=file, mend=mend)]

    def _stored(self) -> dict[str, MeterReading]:
        try:
            held, _ = read_stored(self._store.path / READINGS.folder, READINGS)
        except OSError as error:
            raise self._store.unreadable(error) from error
        return {r.reading_id: r for r, _ in held}

    def _marked(self, reading: MeterReading, now_us: int) -> MeterReading:
        origin = None if reading.origin is None else replace(reading.origin, imported_us=now_us)
        return replace(reading, site=self._site, origin=origin)


def _read(file: Path) -> readings_file.Rows:
    faults: list[Fault] = []
    try:
        text = decoded(file.read_bytes())
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=printable(file), mend="check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise InputFileError("is no UTF-8 text", where=printable(file), mend="save it as UTF-8") from error
    rows = readings_file.read(text, printable(file.name), None, faults)
    if faults:
        first = min(faults)
        more = f", and {counted(len(faults) - 1, 'more fault')}" if len(faults) > 1 else ""
        line = f"line {first.line}: " if first.line else ""
        raise InputFileError(
            f"{line}{first.what}{more}", where=printable(file), mend=first.mend.removeprefix(_NO_REPORTING)
        )
    return rows


def _clash(reading: MeterReading, file: Path) -> Finding:
    return Finding(
        code="CL213",
        severity="error",
        message=f"reading {reading.reading_id!r} is in the ledger with other content; not imported",
        file=printable(file),
        line=None if reading.origin is None else reading.origin.source_line,
        mend="give the correction a reading_id of its own, and this one's in the column supersedes",
        subject=reading.reading_id,
    )
