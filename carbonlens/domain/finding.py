"""Finding: something a reader must know about a figure, as data with a code.

Codes: CL1xx measure, CL2xx import, CL3xx account, CL4xx compare, CL5xx ledger,
CL6xx report, CL7xx audit, CL8xx business case. ``finding_codes`` tells what each means.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One observation about data or a result.

    Attributes:
        code: Stable code, one meaning each.
        severity: ``error`` makes a figure unusable, ``warning`` qualifies it.
        message: What was found, with the figures.
        file: Source file, where there is one.
        line: Line in that file, from 1.
        mend: What would settle it.
        subject: Run, step or field the finding is about.
    """

    code: str
    severity: Severity
    message: str
    file: str | None = None
    line: int | None = None
    mend: str | None = None
    subject: str | None = None
