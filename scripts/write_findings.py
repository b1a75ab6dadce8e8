#!/usr/bin/env python3
"""Write docs/findings.md from the table of codes in carbonlens/domain/finding_codes.

python -m scripts.write_findings [FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from carbonlens.domain.finding_codes import FAMILIES
from carbonlens.domain.finding_codes.entry import FindingCode

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "findings.md"
_HEAD: Final = """# Codes of Findings and errors

A Finding is something a reader must know about a figure: `error` makes it unusable, `warning`
qualifies it, `info` explains it. Each has a code, a message with the figures, and what would
settle it. An error that stops a command has a code too. A code never changes its meaning.
Names and figures in the examples are invented, and messages are shortened.

This page is generated: `python -m scripts.write_findings`. The table is
`carbonlens/domain/finding_codes`.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *(line for title, codes in FAMILIES for line in _family(title, codes))])


def _family(title: str, codes: tuple[FindingCode, ...]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    for code in codes:
        yield f"### {code.code} {code.title}"
        yield ""
        yield f"{code.severity.capitalize()}. {code.meaning}"
        yield ""
        yield f"- Mend: {code.mend}"
        yield f"- Example: `{code.example.replace('`', '')}`"
        yield ""


def main() -> None:
    """Write the page to the file named, or to its place."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    place.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
