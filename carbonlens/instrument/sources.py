"""Declared sources for a run: a broken file is a Finding there, and measuring goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from carbonlens.domain.finding import Finding
from carbonlens.domain.sources import Sources
from carbonlens.inventory.sources_file import find
from carbonlens.metering.wording import error_text


def declared_sources(
    notes: list[Finding], *, start: Path | None = None, environ: Mapping[str, str] | None = None
) -> Sources:
    """Return what the user declared for work in a folder; nothing if the file is broken.

    Args:
        notes: Gets what must be said on the record.
        start: Folder to search from; the working folder when ``None``.
        environ: Environment; the process's own when ``None``.
    """
    try:
        return find((start or Path.cwd()).absolute(), environ).sources
    except Exception as error:  # noqa: BLE001  # law 8: whatever the file holds, the work is measured
        notes.append(ignored(error_text(error)))
        return Sources()


def ignored(reason: str) -> Finding:
    """The sources file could not be used: what it declares was not read."""
    return Finding(
        code="CL156",
        severity="warning",
        message=f"the declared sources were not read: {reason}",
        mend="`carbonlens doctor` checks the file",
        subject="sources",
    )
