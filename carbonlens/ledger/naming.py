"""Names of what lies behind an address: a reader must not be sent to a copy that is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.errors import CarbonlensError


def by_address(findings: Iterable[Finding], copy: Path, address: str) -> tuple[Finding, ...]:
    """Return Findings that name objects in place of the files of a local copy.

    Args:
        findings: What reading the copy gave.
        copy: Its folder.
        address: Of the ledger that it is a copy of.
    """
    return tuple(_named(f, str(copy), address) for f in findings)


def names_by_address(files: Iterable[str], copy: Path, address: str) -> tuple[str, ...]:
    """Return the objects that these files of a copy are; arguments as of ``by_address``."""
    return tuple(f.replace(str(copy), address) for f in files)


@contextmanager
def errors_by_address(copy: Path, address: str) -> Iterator[None]:
    """Have errors name objects in place of files; arguments as of ``by_address``.

    Raises:
        CarbonlensError: What the work raised.
    """
    try:
        yield
    except CarbonlensError as error:
        place = str(copy)
        error.what = error.what.replace(place, address)
        error.where = None if error.where is None else error.where.replace(place, address)
        error.args = (str(error),)
        raise


def _named(finding: Finding, place: str, address: str) -> Finding:
    if place not in finding.message and place not in (finding.file or ""):
        return finding
    return msgspec.structs.replace(
        finding,
        message=finding.message.replace(place, address),
        file=None if finding.file is None else finding.file.replace(place, address),
    )
