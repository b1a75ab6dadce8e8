"""Reads one file with one importer, as an import does."""

from decimal import Decimal
from pathlib import Path

from carbonlens.importers.claiming import claims
from carbonlens.importers.contract import Group, Importer, Options
from carbonlens.importers.harvest import harvest
from carbonlens.importers.sources import Source


class Got:
    """What a file gave, with its sums."""

    def __init__(self, harvested):
        self.records = harvested.records
        self.runs = tuple(r.run for r in harvested.records)
        self.charges = tuple(harvested.charges)
        self.profiles = tuple(harvested.profiles)
        self.findings = tuple(harvested.findings)
        self.rows = harvested.rows
        self.rows_rejected = harvested.rejected
        self.rows_repeated = harvested.repeated

    @property
    def energy_j(self):
        """Return the sum of the runs' readings; ``None`` where one is unknown."""
        parts = [e.energy_j for r in self.runs for e in r.energy]
        return sum(parts, Decimal(0)) if parts and None not in parts else None


def claimed(importer: Importer, file: Path) -> bool:
    """Tell whether the importer claims the file."""
    return bool(claims([Source(file)], [importer])[0])


def read_file(importer: Importer, file: Path, options: Options | None = None) -> Got:
    """Read a file that the importer claims."""
    assert claimed(importer, file)
    return read_any(importer, file, options)


def read_any(importer: Importer, file: Path, options: Options | None = None) -> Got:
    """Read a file, whoever claims it."""
    return Got(harvest(importer, Group((Source(file),)), options or Options()))


def read_text(importer: Importer, folder: Path, text: str | bytes, options: Options | None = None) -> Got:
    """Write a text into a folder and read it."""
    file = folder / "source.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(importer, file, options)


def codes(got: Got) -> list[str]:
    """Return the codes of all Findings."""
    return [f.code for f in got.findings]
