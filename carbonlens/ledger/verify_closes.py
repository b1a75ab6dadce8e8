"""Verification of closed periods: an unbroken chain, and every record still there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.ledger import layout
from carbonlens.ledger.calendar import spoken
from carbonlens.ledger.closes import (
    Adjustment,
    Chain,
    Close,
    adjustments,
    everything,
    fault,
    file_of,
    load,
    originals,
)
from carbonlens.ledger.holdings import Holdings


def close_faults(ledger: Path, held: Holdings) -> list[Finding]:
    """Return where the manifests do not chain, and where closed periods lost records or gained some."""
    chain = load(ledger)
    findings = list(chain.findings)
    for name, manifest in chain.closes.items():
        findings += _link_faults(ledger, name, manifest, chain)
    if len(chain.heads) > 1:
        text = f"{' and '.join(chain.heads)} were closed at once: the chain has {len(chain.heads)} ends"
        said = fault(text, ledger / layout.CLOSES, "keep them; the next close names them all")
        findings.append(msgspec.structs.replace(said, severity="warning"))
    if held.unread_files:
        return findings
    there = _hashes_there(ledger, held)
    for name, manifest in chain.closes.items():
        gone = manifest.hashes - there
        if gone:
            whole = f"{len(gone)} of {counted(len(manifest.hashes), 'record')}"
            text = f"{whole} {name} was closed with are gone or altered"
            findings.append(fault(text, file_of(ledger, name), "restore them from a copy"))
    every = adjustments(ledger, held, chain)
    for period in dict.fromkeys(a.period for a in every):
        findings.append(_adjusted(ledger, period, [a for a in every if a.period == period]))
    return findings


def _adjusted(ledger: Path, period: str, since: Sequence[Adjustment]) -> Finding:
    later = sorted({a.taken_up for a in since if a.taken_up is not None})
    waiting = sum(a.taken_up is None for a in since)
    redacted = sum(a.kind == "redacted" for a in since)
    which = f" ({redacted} by redaction)" if redacted else ""
    return Finding(
        code="CL517",
        severity="info",
        message=f"{counted(len(since), 'record')} came or changed after {spoken(period)} was closed{which}:"
        " prior-period adjustments" + (f", named by {', '.join(map(spoken, later))}" if later else ""),
        file=str(file_of(ledger, period)),
        mend="the next close takes them up" if waiting else None,
    )


def _link_faults(ledger: Path, name: str, manifest: Close, chain: Chain) -> list[Finding]:
    file = file_of(ledger, name)
    if manifest.period != name:
        return [fault(f"it is the manifest of {manifest.period}", file, "give it its own name again")]
    if manifest.previous is None:
        # Two may be the first, closed at once on hosts that did not know of each other, as later ones may.
        return []
    found: list[Finding] = []
    for period, sha in {manifest.previous: manifest.previous_sha256, **manifest.others}.items():
        if period not in chain.closes:
            found.append(fault(f"the manifest before it, {period}, is gone", file, "restore it from a copy"))
        elif chain.hashes[period] != sha:
            text = f"{period} was altered after {name} was closed"
            found.append(fault(text, file_of(ledger, period), "restore it"))
    return found


def _hashes_there(ledger: Path, held: Holdings) -> set[str]:
    before = originals(ledger)
    there: set[str] = set()
    for _, sha, _ in everything(ledger, held):
        there |= before.get(sha, {sha})
    return there
