"""What goes to the terminal: JSON, plain tables, findings."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence

import msgspec

from carbonlens.domain.finding import Finding

WIDTH = 80


def print_json(payload: object) -> None:
    """Print a payload as JSON on stdout."""
    encoded = msgspec.json.format(msgspec.json.encode(payload), indent=2)
    sys.stdout.write(encoded.decode() + "\n")


def say(text: str) -> None:
    """Print one line on stdout."""
    sys.stdout.write(clean(text) + "\n")


def note(text: str) -> None:
    """Print one line on stderr."""
    sys.stderr.write(clean(text) + "\n")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Return aligned lines.

    Args:
        header: Column titles.
        rows: Cells as text, one sequence a row.
        left: Number of leading columns to align left; the others align right.
    """
    cells = [[clean(c) for c in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        parts = [
            c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(parts).rstrip())
    return lines


def clip(text: str, width: int) -> str:
    """Return the text in at most ``width`` characters, cut with an ellipsis."""
    plain = clean(text)
    return plain if len(plain) <= width else plain[: width - 1] + "…"


def clean(text: str) -> str:
    """Return the text for a terminal: plain spaces, no control characters that could rewrite it."""
    plain = text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in plain)


def print_findings(findings: Sequence[Finding], *, most: int = 3) -> None:
    """Print errors and warnings on stderr, the worst first, at most ``most`` of them."""
    shown = [f for f in findings if f.severity != "info"]
    shown.sort(key=lambda f: f.severity != "error")
    for finding in shown[:most]:
        place = f"{finding.file}:{finding.line or ''} ".replace(": ", " ") if finding.file else ""
        mend = f" ({finding.mend})" if finding.mend else ""
        text = f"{finding.code} {finding.severity}: {clean(place)}{clean(finding.message)}{mend}"
        for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False):
            note(line)
    if len(shown) > most:
        rest = len(shown) - most
        note(f"... and {rest} more {'warning' if rest == 1 else 'warnings'} (--json lists all)")
