"""What one code of a Finding or an error means."""

from __future__ import annotations

import msgspec


class FindingCode(msgspec.Struct, frozen=True, kw_only=True):
    """One code of the package.

    Attributes:
        code: ``CL`` and three digits; never given another meaning.
        severity: Of its Findings: ``error``, ``warning``, ``info``, or several joined by ``or``.
        title: What was found, in a few words.
        meaning: What it does to a figure.
        mend: What would settle it.
        example: A message, shortened, with invented names and figures.
    """

    code: str
    severity: str
    title: str
    meaning: str
    mend: str
    example: str
