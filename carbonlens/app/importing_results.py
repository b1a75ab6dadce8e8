"""What became of one file of an import, in a word, and what is said of it as a whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from carbonlens.app.importing_totals import FileStatus
from carbonlens.domain.finding import Finding, Severity
from carbonlens.importers.sources import Source


def file_among(shown: str, files: Collection[str]) -> str:
    """Return the file that a source is, or is a member of; either's name may hold ``::``.

    Args:
        shown: How the source is shown.
        files: How files are.
    """
    while shown not in files:
        shown = shown.rpartition("::")[0]
    return shown


def status_of(is_fresh: bool, findings: Sequence[Finding]) -> FileStatus:
    """Return what became of a file that could be read.

    Args:
        is_fresh: Whether it gave anything that is new.
        findings: What is said of it.
    """
    if is_fresh:
        return "imported"
    if any(f.code in {"CL212", "CL236", "CL251", "CL252"} for f in findings):
        return "duplicate"
    return "refused" if any(f.severity == "error" for f in findings) else "imported"


def finding_on(code: str, severity: Severity, text: str, source: Source, mend: str | None = None) -> Finding:
    """Return what is said of a source as a whole."""
    return Finding(code=code, severity=severity, message=text, file=source.shown, mend=mend)
