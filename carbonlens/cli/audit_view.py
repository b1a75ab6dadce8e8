"""How an audit is printed: each Finding with its place and mend, then how many there are."""

from __future__ import annotations

import textwrap
from collections import Counter

from carbonlens.app.audit import Audited
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding

SCHEMA = "carbonlens/audit/1"


def print_as_json(audited: Audited) -> None:
    """Print all that was found."""
    output.print_json(
        {
            "schema": SCHEMA,
            "of": audited.of,
            "checked": {audited.kind: audited.checked},
            "findings": audited.findings,
        }
    )


def print_as_text(audited: Audited) -> None:
    """Print each Finding in a few lines, the order of files and lines kept."""
    for finding in audited.findings:
        for line in _lines(finding):
            output.say(line)
    for line in textwrap.wrap(_summary(audited), output.width(), subsequent_indent="  "):
        output.say(line)


def _lines(finding: Finding) -> list[str]:
    place = ""
    if finding.file:
        place = f" {finding.file}:{finding.line}" if finding.line else f" {finding.file}"
    head = f"{finding.code} {finding.severity}{place}"
    text = [output.clean(finding.message)]
    if finding.mend:
        text.append(f"Mend: {output.clean(finding.mend)}")
    body = [
        line
        for part in text
        for line in textwrap.wrap(part, output.width() - 2, break_long_words=False, break_on_hyphens=False)
    ]
    return [output.clean(head), *(f"  {line}" for line in body)]


def _summary(audited: Audited) -> str:
    counts: Counter[str] = Counter(f.severity for f in audited.findings)
    said = ", ".join(
        counted(counts[severity], word)
        for severity, word in (("error", "error"), ("warning", "warning"), ("info", "note"))
        if counts[severity]
    )
    checked = f"{counted(audited.checked, audited.kind)} checked in {', '.join(audited.of)}"
    return f"{checked}: {said or 'no finding'}."
