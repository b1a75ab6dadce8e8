"""Verification: does the ledger still hold what was written, and does each run count once?

Errors are mismatches: content that cannot be read, does not match its hash, or
would count twice. Warnings are oddities of clocks and machines, which only a
person can judge.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.ledger import activity, layout, oddities
from carbonlens.ledger.holdings import Holdings, read_all
from carbonlens.ledger.records import current, superseded_ids
from carbonlens.ledger.restatements import restatement_faults
from carbonlens.ledger.verify_closes import close_faults
from carbonlens.ledger.verify_files import batch_faults, month_faults, strange_files
from carbonlens.ledger.verify_samples import sample_faults

CHECKS: Final = (
    ("read", "every file can be read"),
    ("hashes", "content matches its hashes"),
    ("once", "each run counts once"),
    ("corrections", "corrections form chains"),
    ("clocks", "times make sense"),
    ("machines", "machines have ids of their own"),
    ("closes", "closed periods hold what they held"),
    ("tidy", "nothing strange or half done lies about"),
)
"""Name and what it holds when it finds nothing, in the order printed."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check and what it found."""

    name: str
    holds: str
    findings: tuple[Finding, ...] = ()


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What verifying a ledger gave.

    Attributes:
        records: Runs read, corrected ones included.
        counting: Runs that count.
        unread_files: Parquet files not checked because DuckDB is missing.
    """

    records: int
    counting: int
    unread_files: int
    checks: tuple[Check, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the checks."""
        return tuple(f for check in self.checks for f in check.findings)

    @property
    def sound(self) -> bool:
        """Whether there is no mismatch."""
        return all(f.severity != "error" for f in self.findings)


def verify(ledger: Path, *, now_us: int) -> Verification:
    """Check a whole ledger; nothing is changed.

    Args:
        ledger: The ledger's folder.
        now_us: The present, UTC microseconds.

    Raises:
        OSError: If the folder itself cannot be read.
    """
    held = read_all(ledger)
    runs = [r.run for r in held.records]
    counting, broken_chains = current(runs)
    doubles = [f for f in held.findings if f.code == "CL505"]
    found: dict[str, Iterable[Finding]] = {
        "read": [f for f in held.findings if f.code != "CL505"],
        "hashes": [*_hash_faults(ledger, held), *oddities.unbalanced_hours(runs)],
        "once": [*doubles, *_activity_faults(ledger, held.unread_files)],
        "corrections": [*broken_chains, *_dangling(held)],
        "clocks": [*oddities.clock_oddities(runs, now_us=now_us), *oddities.stray_hours(counting)],
        "machines": oddities.machine_oddities(runs),
        "closes": [*close_faults(ledger, held), *restatement_faults(ledger)],
        "tidy": strange_files(ledger, now_us=now_us),
    }
    return Verification(
        records=len(runs),
        counting=len(counting),
        unread_files=held.unread_files,
        checks=tuple(Check(name=n, holds=text, findings=tuple(found[n])) for n, text in CHECKS),
    )


def _hash_faults(ledger: Path, held: Holdings) -> list[Finding]:
    faults: list[Finding] = []
    if not held.unread_files:
        faults += batch_faults(ledger)
    faults += month_faults(ledger)
    faults += _outcome_faults(ledger)
    faults += _unfinished_redactions(held)
    faults += sample_faults(ledger)
    return faults


def _outcome_faults(ledger: Path) -> list[Finding]:
    return [
        _error("the outcomes do not match the hash they are named by", file, "restore the file from a copy")
        for file in layout.files_in(ledger / layout.OUTCOMES, ".json")
        if sha256_hex(file.read_bytes()) != file.stem
    ]


def _unfinished_redactions(held: Holdings) -> list[Finding]:
    """Return originals that still lie where a tombstone says they are gone."""
    return [
        Finding(
            code="CL514",
            severity="error",
            message=f"run {record.run.run_id} still holds what was to be taken out",
            file=record.file,
            subject=record.run.run_id,
            mend="run the same carbonlens ledger redact again",
        )
        for record in held.unredacted
    ]


def _dangling(held: Holdings) -> list[Finding]:
    known = {r.run.run_id for r in held.records}
    return [
        Finding(
            code="CL509",
            severity="info",
            message=f"run {r.run.run_id} corrects {name}, which is not in this ledger",
            file=r.file,
            subject=r.run.run_id,
        )
        for r in held.records
        for name in superseded_ids(r.run)
        if name not in known
    ]


def _activity_faults(ledger: Path, unread: int) -> list[Finding]:
    if unread:
        return []
    faults: list[Finding] = []
    for kind in activity.KINDS.values():
        faults += activity.read(ledger / kind.folder, kind)[1]
    return faults


def _error(text: str, file: Path, mend: str) -> Finding:
    return Finding(code="CL510", severity="error", message=text, file=str(file), mend=mend)
