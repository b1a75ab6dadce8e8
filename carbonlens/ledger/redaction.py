"""Redaction: content taken out of a record for good, with a tombstone in its place.

The tombstone says who, when, why and which fields, and keeps the hash of what
was there, so that a manifest made before still holds. It is written first: a
reader that meets the original afterwards applies it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.domain.decoding import decode_json
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import UsageError
from carbonlens.ledger import hardware_names, phase_words
from carbonlens.ledger.layout import REDACTIONS, files_in
from carbonlens.ledger.records import Stored, decode, minified
from carbonlens.ledger.regular_file import read_regular

CODE: Final = "CL514"
"""Finding a redacted record carries."""

PLACEHOLDER: Final = "[redacted]"
"""Stands where a record must hold a text."""

_KEPT: Final = (
    *("run_id", "schema_version", "supersedes", "study", "start_us", "end_us", "duration_s", "status"),
    *("role", "parent_run_id", "job_id", "attempt", "rank", "host_id", "machine_id", "process", "ancestors"),
    *("device_uuids", "energy_by_hour", "origin.imported_us"),
)
"""What tells records apart, orders them or lets them share a device: taking it out would change figures."""

_LINKS: Final = ("supersedes_study", "supersedes_also")
"""Say what a correction corrects; older versions took them out."""

_FINDINGS: Final = "findings"
"""Field whose texts alone are taken out: codes say what is known of the record's figures."""

_VERSION: Final = 5
"""Of tombstones."""

_NAMES_SINCE: Final = 2
"""Older ones that take ``hardware`` out leave it in the names of error sources."""

_PHASES_SINCE: Final = 3
"""Older ones that take ``energy`` out leave that of phases."""

_POWER_SINCE: Final = 4
"""Older ones that take ``energy`` out leave the power over time, whose integral it is."""

_SPANS_SINCE: Final = 5
"""Older ones that take ``phases`` out leave their names in the power over time and in findings."""

_MOST_BYTES: Final = 1 << 20
"""Of a tombstone."""

_TAGS: Final = "tags"
_ENERGY: Final = "energy"
_PHASES: Final = "phases"
_POWER: Final = "power"
_HOURS: Final = "energy_by_hour"
_ENERGY_FIELDS: Final = frozenset([_ENERGY, "beside"])
_OF_READINGS: Final = "method"
"""The one part of a reading that is no figure, nor tells whose figure it is."""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken out of one record.

    Attributes:
        run_id: The record's run.
        fields: Paths taken out, such as ``tags.owner``.
        by: Who did it: a name that was given, else a pseudonym.
        when_us: When, UTC microseconds.
        why: The reason given.
        original_sha256: Hash of the content as it was.
        redacted_sha256: Hash of what is left.
        hardware: Where that was taken out, hashes of its names in all records of the run.
    """

    run_id: str
    fields: tuple[str, ...]
    by: str
    when_us: int
    why: str
    original_sha256: str
    redacted_sha256: str = ""
    hardware: tuple[str, ...] = ()
    schema_version: int = 1

    @property
    def file_name(self) -> str:
        """Name of its file; one original has one tombstone."""
        return f"{self.original_sha256[:32]}.json"


def entomb(
    stored: Stored, fields: Sequence[str], *, by: str, when_us: int, why: str, hardware: Iterable[str] = ()
) -> Tombstone | None:
    """Return the tombstone of taking fields out of a record; ``None`` where it holds none of them.

    Args:
        stored: The record.
        fields: Paths such as ``tags.owner``.
        by: Name or pseudonym of who does it.
        when_us: UTC microseconds.
        why: Reason.
        hardware: Names of hardware that records of the run state.

    Raises:
        UsageError: If a field tells records apart, or is none of a record's.
    """
    stone = Tombstone(
        run_id=stored.run.run_id,
        fields=tuple(fields),
        by=by,
        when_us=when_us,
        why=why,
        original_sha256=stored.sha256,
        hardware=tuple(
            sorted(map(hardware_names.hashed, hardware)) if hardware_names.FIELD in fields else ()
        ),
        schema_version=_VERSION,
    )
    for field in fields:
        _check(field)
    plain = msgspec.json.decode(stored.text)
    named = hardware_names.FIELD in fields and hardware_names.holds_names(plain, stone.hardware)
    if not named and not any(_speaks_of(plain, field) for field in fields):
        return None
    after = Stored(run=stored.run, text=redacted(stored.text, stone), file=stored.file)
    return msgspec.structs.replace(stone, redacted_sha256=after.sha256)


def redacted(text: bytes, stone: Tombstone) -> bytes:
    """Return a record's JSON without the tombstone's fields; the same each time.

    Raises:
        UsageError: If a field cannot be taken out.
    """
    plain = msgspec.json.decode(text)
    for field in stone.fields:
        if field == hardware_names.FIELD and stone.schema_version >= _NAMES_SINCE:
            plain = hardware_names.without_names(plain, PLACEHOLDER, stone.hardware)
        if field == _ENERGY and stone.schema_version >= _PHASES_SINCE:
            plain = {**plain, _PHASES: [_unmeasured(phase) for phase in plain.get(_PHASES, [])]}
        if field == _ENERGY and stone.schema_version >= _POWER_SINCE and plain.get(_POWER) is not None:
            plain = {**plain, _POWER: None}
        if phase_words.is_of(field) and stone.schema_version >= _SPANS_SINCE:
            plain = phase_words.without(plain, field, PLACEHOLDER)
        plain = _without(plain, field)
    plain.setdefault("findings", []).append(msgspec.to_builtins(_note(stone)))
    return minified(msgspec.json.encode(plain))


def tombstones(ledger: Path) -> tuple[dict[str, Tombstone], list[Finding]]:
    """Return a ledger's tombstones by the hash of the original.

    Raises:
        OSError: If the folder cannot be read.
    """
    found: dict[str, Tombstone] = {}
    findings: list[Finding] = []
    for file in files_in(ledger / REDACTIONS, ".json"):
        try:
            stone = decode_json(read_regular(file, at_most=_MOST_BYTES), Tombstone)
        except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
            findings.append(
                Finding(
                    code="CL501",
                    severity="error",
                    message=f"tombstone cannot be read: {error}",
                    file=str(file),
                    mend="restore the file from a copy",
                )
            )
        else:
            # One that is not carried out here proves a record all the same.
            found[stone.original_sha256] = stone
            said = _not_carried_out(stone, file)
            findings += [] if said is None else [said]
    return found, findings


def _not_carried_out(stone: Tombstone, file: Path) -> Finding | None:
    """Return the Finding of a tombstone that this version neither made nor understands."""
    kept = _kept_in(stone)
    if stone.schema_version > _VERSION:
        what = f"has version {stone.schema_version}, newer than {_VERSION}"
        code, mend = "CL502", "upgrade carbonlens"
    elif kept is not None:
        what = f"takes out {kept}, which tells records apart"
        code, mend = "CL501", "restore the file from a copy, or remove it"
    else:
        return None
    return Finding(
        code=code,
        severity="error",
        message=f"a tombstone of run {stone.run_id} {what}: this version does not carry it out",
        file=str(file),
        mend=mend,
        subject=stone.run_id,
    )


def _kept_in(stone: Tombstone) -> str | None:
    """Return the first field of a tombstone that no version takes out."""
    return next((f for f in stone.fields if _kept(f, _KEPT) is not None), None)


def applied(records: Iterable[Stored], stones: Mapping[str, Tombstone]) -> list[Stored]:
    """Return the records with every tombstone applied that was not carried out yet."""
    return [_applied(r, stones) for r in records] if stones else list(records)


def _applied(stored: Stored, stones: Mapping[str, Tombstone]) -> Stored:
    seen: set[str] = set()
    while (stone := stones.get(stored.sha256)) is not None and stored.sha256 not in seen:
        seen.add(stored.sha256)
        if stone.schema_version > _VERSION or _kept_in(stone) is not None:
            break  # Said by who reads the tombstones.
        try:
            text = redacted(stored.text, stone)
            run = decode(text)
        except (UsageError, msgspec.MsgspecError):
            break  # Of somebody else's making: verify says that the content lies there still.
        stored = Stored(run=run, text=text, file=stored.file)
    return stored


def _kept(field: str, names: Iterable[str]) -> str | None:
    """Return which of these a field is, is a part of, or holds."""
    asked = f"{field}."
    return next((k for k in names if f"{k}.".startswith(asked) or asked.startswith(f"{k}.")), None)


def _check(field: str) -> None:
    if field.startswith("findings."):
        raise UsageError(
            "a finding keeps its code and severity; only its text can be taken out",
            where=field,
            mend=f"name the field {_FINDINGS}",
        )
    kept = _kept(field, (*_KEPT, *_LINKS))
    if kept is not None:
        raise UsageError(
            f"{kept} tells records apart and cannot be taken out",
            where=field,
            mend="redact what is personal: tags.NAME, origin.args, error, workload, hardware",
        )
    head, dot, part = field.partition(".")
    if head in _ENERGY_FIELDS and dot and part != _OF_READINGS:
        raise UsageError(
            f"{head} is taken out whole: without {part} of it, runs would be billed otherwise",
            where=field,
            mend=f"name the field {head}, or {head}.{_OF_READINGS}",
        )


def _path(field: str) -> list[str]:
    """Return the names that lead to a field; the name of a tag may hold dots."""
    head, dot, rest = field.partition(".")
    return [head, rest] if head == _TAGS and dot else field.split(".")


def _speaks_of(plain: dict[str, Any], field: str) -> bool:
    """Tell whether a record holds a field, or says what stands in it elsewhere."""
    if phase_words.is_of(field) and phase_words.holds(plain, field, PLACEHOLDER):
        return True
    if field == _ENERGY and (plain.get(_POWER) is not None or plain.get(_HOURS)):
        return True
    return _holds(plain, _path(field))


def _holds(plain: Any, path: Sequence[str]) -> bool:  # noqa: ANN401 - JSON of any shape
    if list(path) == [_FINDINGS]:
        return any(_speaks(finding) for finding in plain.get(_FINDINGS, []))
    if len(path) == 1 and path[0] in _ENERGY_FIELDS:
        parts = [*plain.get(path[0], []), *(plain.get(_PHASES, []) if path[0] == _ENERGY else [])]
        return any(part.get("energy_j") is not None for part in parts)
    if not path:
        return plain not in (None, {}, [], PLACEHOLDER)
    if isinstance(plain, list):
        return any(_holds(item, path) for item in plain)
    return isinstance(plain, dict) and path[0] in plain and _holds(plain[path[0]], path[1:])


def _without(plain: dict[str, Any], field: str) -> dict[str, Any]:
    """Return the record without one field, or with a placeholder where it must hold a text."""
    if field in _ENERGY_FIELDS:
        hours: dict[str, Any] = {_HOURS: []} if field == _ENERGY else {}
        return {**plain, field: [_unread(reading) for reading in plain.get(field, [])], **hours}
    if field == _FINDINGS:
        return {**plain, field: [_silent(finding) for finding in plain.get(field, [])]}
    faults: list[str] = []
    for placeholder in (None, PLACEHOLDER):
        after = msgspec.json.decode(msgspec.json.encode(plain))
        _remove(after, _path(field), placeholder)
        try:
            decode(msgspec.json.encode(after))
        except msgspec.ValidationError as error:
            faults.append(str(error))
        else:
            return dict(after)
    raise UsageError(
        f"a record cannot be without it ({faults[0]})",
        where=field,
        mend="name the field above it, such as energy or cost",
    )


def _speaks(finding: Mapping[str, Any]) -> bool:
    """Tell whether a finding says anything but that a redaction was made."""
    return finding.get("code") != CODE and finding.get("message") != PLACEHOLDER


def _silent(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding with its code and without its words."""
    told = ("message", "file", "mend", "subject", "line")
    return {**{k: v for k, v in finding.items() if k not in told}, "message": PLACEHOLDER}


def _remove(plain: Any, path: Sequence[str], placeholder: str | None) -> None:  # noqa: ANN401 - JSON of any shape
    if isinstance(plain, list):
        for item in plain:
            _remove(item, path, placeholder)
    elif isinstance(plain, dict) and path[0] in plain:
        if len(path) > 1:
            _remove(plain[path[0]], path[1:], placeholder)
        elif placeholder is not None:
            plain[path[0]] = placeholder
        else:
            del plain[path[0]]


def _unread(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reading whose energy nobody knows any more; never zero."""
    figures = ("u_random_j", "u_by_source_j", "low_j", "high_j", "dynamic_j", "own_share")
    left = {k: v for k, v in reading.items() if k not in figures}
    return {**left, "energy_j": None, "state": "unknown", "method": PLACEHOLDER}


def _unmeasured(phase: Mapping[str, Any]) -> dict[str, Any]:
    """Return a phase whose energy nobody knows any more."""
    left = {k: v for k, v in phase.items() if k not in {"u_random_j", "u_by_source_j", "grade"}}
    return {**left, "energy_j": None, "state": "unknown"}


def _note(stone: Tombstone) -> Finding:
    day = datetime.fromtimestamp(stone.when_us / US_PER_S, tz=UTC).date().isoformat()
    return Finding(
        code=CODE,
        severity="info",
        message=f"taken out on {day}: {', '.join(stone.fields)} ({stone.why})",
        subject=stone.run_id,
    )
