"""How a check says what it found about a claim."""

from __future__ import annotations

from carbonlens.domain.claim import Claim
from carbonlens.domain.finding import Finding, Severity


def about(claim: Claim, code: str, message: str, mend: str, severity: Severity = "warning") -> Finding:
    """Return a Finding at the claim's place.

    Args:
        claim: What it is about.
        code: Its code.
        message: What was found, after the name of the row.
        mend: What would settle it.
        severity: How bad it is.
    """
    return Finding(
        code=code,
        severity=severity,
        message=f"{claim.what}: {message}",
        file=claim.file,
        line=claim.line,
        mend=mend,
        subject=claim.what,
    )
