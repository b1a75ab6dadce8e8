"""Restatements as they lie in the ledger: one immutable file each, named by its content's hash.

A restatement supersedes the last one of its period; ``ledger verify`` checks name and chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from carbonlens._version import __version__
from carbonlens.accounting.base_year import Reason, Recalculation
from carbonlens.accounting.restatement import Restated
from carbonlens.domain.decoding import decode_json
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.errors import RecordError
from carbonlens.ledger import layout
from carbonlens.ledger.atomic import write_once
from carbonlens.ledger.closes import fault
from carbonlens.ledger.regular_file import read_regular

_HASH: Final = 32
"""Characters of the hash in a file's name."""

_MOST_BYTES: Final = 1 << 28


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One restatement of one period.

    Attributes:
        start_us, end_us: The period's instants.
        made_us, by: When and by whom it was made, a name or a pseudonym.
        reason, why: As the entity stated them; ``None`` where the inputs told it.
        old, new: Where the figures came from, in words; a file by its name, by its path in records of
            older versions.
        old_factors_sha256, new_factors_sha256: The factor sets; ``None`` where not told.
        rows: Old and new of every figure that changed.
        same: How many did not.
        base_year: By method, where the period is the base year.
        supersedes: Hash of the restatement of this period before it.
        others: Hashes of those that were made at once with that one.
    """

    period: str
    start_us: int
    end_us: int
    made_us: int
    by: str
    reason: Reason | None = None
    why: str = ""
    old: str
    new: str
    old_factors_sha256: str | None = None
    new_factors_sha256: str | None = None
    rows: tuple[Restated, ...]
    same: int
    base_year: Mapping[str, Recalculation] = {}  # a frozen record's default is never mutated
    supersedes: str | None = None
    others: tuple[str, ...] = ()
    carbonlens: str = __version__
    schema_version: int = 1


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """All restatements of a ledger, by hash of their content, and what is wrong with them."""

    by_hash: Mapping[str, Stored]
    findings: tuple[Finding, ...] = ()

    def ends(self, period: str) -> list[str]:
        """Return the hashes of a period's restatements that no later one supersedes, the last first.

        There is one, unless two hosts made one at once.
        """
        own = {sha: one for sha, one in self.by_hash.items() if one.period == period}
        named = {sha for one in own.values() for sha in (one.supersedes, *one.others)}
        return sorted(own.keys() - named, key=lambda sha: (own[sha].made_us, sha), reverse=True)


def load(ledger: Path) -> Held:
    """Read the restatements; a damaged one is a Finding.

    Raises:
        OSError: If the folder cannot be read.
    """
    found: dict[str, Stored] = {}
    findings: list[Finding] = []
    for file in layout.files_in(ledger / layout.RESTATEMENTS, ".json"):
        try:
            content = read_regular(file, at_most=_MOST_BYTES)
            one = decode_json(content, Stored)
        except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
            text = f"a restatement cannot be read: {error}"
            findings.append(fault(text, file, "restore the file from a copy"))
            continue
        sha = sha256_hex(content)
        if file.name != name_of(one.period, sha):
            text = "a restatement does not match the hash in its name"
            findings.append(fault(text, file, "restore the file from a copy"))
        else:
            found[sha] = one
    return Held(by_hash=found, findings=tuple(findings))


def keep(ledger: Path, one: Stored) -> tuple[Stored, Path]:
    """Write a restatement that supersedes the last one of its period.

    Args:
        ledger: The ledger's folder.
        one: Without ``supersedes``, which is found here.

    Returns:
        It as written, and its file.

    Raises:
        RecordError: If an earlier one is damaged: the chain would begin anew.
        OSError: If the ledger cannot be written.
    """
    held = load(ledger)
    if held.findings:
        first = held.findings[0]
        raise RecordError(first.message, where=first.file, mend=first.mend or "restore the file from a copy")
    ends = held.ends(one.period)
    written = msgspec.structs.replace(one, supersedes=ends[0] if ends else None, others=tuple(ends[1:]))
    content = msgspec.json.format(msgspec.json.encode(written), indent=1) + b"\n"
    folder = ledger / layout.RESTATEMENTS
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name_of(one.period, sha256_hex(content))
    write_once(file, content)
    return written, file


def name_of(period: str, sha256: str) -> str:
    """Return the file name of a restatement."""
    return f"{period}-{sha256[:_HASH]}.json"


def restatement_faults(ledger: Path) -> list[Finding]:
    """Return where restatements are damaged, altered, or do not form a chain."""
    held = load(ledger)
    findings = list(held.findings)
    for sha, one in held.by_hash.items():
        file = ledger / layout.RESTATEMENTS / name_of(one.period, sha)
        for earlier in (one.supersedes, *one.others):
            before = None if earlier is None else held.by_hash.get(earlier)
            if earlier is not None and (before is None or before.period != one.period):
                text = "the restatement before it is gone, or is of another period"
                findings.append(fault(text, file, "restore it from a copy"))
    for period in sorted({one.period for one in held.by_hash.values()}):
        ends = held.ends(period)
        if len(ends) > 1:
            text = f"{period} was restated {len(ends)} times at once: the last one counts"
            said = fault(text, ledger / layout.RESTATEMENTS, "restate it once more: that supersedes all")
            findings.append(msgspec.structs.replace(said, severity="warning"))
    return findings
