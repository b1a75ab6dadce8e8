"""Traces that are equal to the last byte: a copy, or another host's.

Content counts once. What may make the same bytes another trace does not stand in them: the host,
which logs of a device seldom name.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import Run
from carbonlens.importers.contract import RunRecord
from carbonlens.importers.host_names import host_in, is_copy_by_name
from carbonlens.importers.sources import Source

_MEND_ONCE = "if it is of another host, name the hosts: --host, or host in a [[place]] of --map"
_MEND_TWICE = "if it is a copy, import one of them, or give both one --host"


class Twin(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace is beside those that the ledger holds of the same content.

    Attributes:
        counts: Whether it is another one: of another host.
        sha256: What its batch is named by.
        host: Machine that its runs are of, where the content names none.
        finding: What is to be said of it.
        same: Runs of one that does not count, in the ledger.
    """

    counts: bool
    sha256: str
    host: str | None = None
    finding: Finding | None = None
    same: tuple[Run, ...] = ()


def named(sha256: str, host: str | None) -> Twin:
    """Return a trace that nothing like it was imported of.

    Args:
        sha256: Of its content.
        host: As the user says.
    """
    return Twin(counts=True, sha256=_with(sha256, host), host=host)


def twin_of(source: Source, host: str | None, held: Sequence[Run]) -> Twin:
    """Return what a trace is whose content is in the ledger.

    Args:
        source: The trace.
        host: Its machine, as the user says.
        held: Runs of this content in the ledger.
    """
    sha256, mine = source.sha256, host or host_in(source.name)
    same = [run for run in held if _is_of(run, source, host, mine)]
    if same:
        told = _once(source, host, same[0])
        return Twin(counts=False, sha256=sha256, host=same[0].host_id, finding=told, same=tuple(same))
    other = held[0]
    text = (
        f"holds the same samples as {_file(other)}, and is named for another host "
        f"({mine} beside {_host_of(other) or 'one not named'}): counted as that host's own"
    )
    said = Finding(code="CL291", severity="warning", message=text, file=source.shown, mend=_MEND_TWICE)
    return Twin(counts=True, sha256=_with(sha256, mine), host=mine, finding=None if host else said)


def of_host(record: RunRecord, host: str) -> RunRecord:
    """Return a record with its host, where its source names none."""
    run = record.run
    if run.host_id is None:
        run = msgspec.structs.replace(run, host_id=host, run_id=f"{run.run_id}-{host}")
    return msgspec.structs.replace(record, run=run)


def _is_of(run: Run, source: Source, host: str | None, mine: str | None) -> bool:
    """Whether a run in the ledger is of the same host as a trace, as far as anybody says."""
    theirs = _host_of(run)
    if host is not None and theirs is None:
        return _file(run) == source.name
    return mine is None or theirs is None or mine == theirs


def _once(source: Source, host: str | None, run: Run) -> Finding:
    other = _file(run)
    if host is None and other and not is_copy_by_name(source.name, other):
        text = f"holds the same samples as {other}, under another name; counted once"
        return Finding(code="CL291", severity="warning", message=text, file=source.shown, mend=_MEND_ONCE)
    text = "the same content was imported before; counted once"
    return Finding(code="CL210", severity="info", message=text, file=source.shown)


def _host_of(run: Run) -> str | None:
    return run.host_id or host_in(_file(run))


def _file(run: Run) -> str:
    return (run.origin.source_file if run.origin else None) or ""


def _with(sha256: str, more: str | None) -> str:
    return sha256 if more is None else sha256_hex(f"{sha256}\n{more}".encode())
