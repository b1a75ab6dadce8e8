"""Use case: read a report that is to be verified: its data, and what it says it was computed from.

The file may be anyone's. What cannot be read is refused in one line, and nothing is taken in that
is larger than what carbonlens writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.domain import evidence as evidence_of
from carbonlens.domain.decoding import decode_json
from carbonlens.domain.evidence import Evidence
from carbonlens.errors import InputFileError, UsageError

_MOST_SAID: Final = 1 << 26
"""Bytes of a report's data without its evidence: tables are cut at some hundred rows."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A report as it was read.

    Attributes:
        file: Where it lies.
        kind: ``json``, ``html`` or ``pdf``.
        content: Its bytes.
        shape: Its data without the evidence.
        sections: Names of the sections it has.
        evidence: What it says it was computed from.
        evidence_sha256: Hash of that as it stands there.
    """

    file: str
    kind: str
    content: bytes
    shape: dict[str, Any]
    sections: tuple[str, ...]
    evidence: Evidence
    evidence_sha256: str


def read(report: Path) -> Held:
    """Return a report's data.

    Args:
        report: A ``.json``, ``.html`` or ``.pdf`` that carbonlens wrote.

    Raises:
        InputFileError: If it cannot be read, or carries nothing to verify it by.
        UsageError: If it is of a format that carries nothing.
        MissingExtraError: If the ``report`` extra is not installed.
    """
    where = str(report)
    suffix = report.suffix.lower().removeprefix(".")
    if suffix in ("xlsx", "md"):
        raise UsageError(
            f"a .{suffix} carries nothing to verify it by",
            where=where,
            mend="verify the PDF, HTML or JSON of the same report",
        )
    content = _bytes(report)
    kind, data = _data(content, where)
    parts = _parts(data, where)
    evidence = parts.pop("evidence", msgspec.Raw(b"null"))
    shape = _shape(parts, where)
    if bytes(evidence) == b"null":
        raise InputFileError(
            "does not carry what it was computed from",
            where=where,
            mend="write it with `carbonlens report`, which encloses its runs and factors",
        )
    return Held(
        file=where,
        kind=kind,
        content=content,
        shape=shape,
        sections=_sections(shape, where),
        evidence=evidence_of.decode(bytes(evidence), where),
        evidence_sha256=evidence_of.sha256_of(bytes(evidence)),
    )


def data_of(report: Path) -> tuple[str, bytes, bytes]:
    """Return a report's format, its bytes and the JSON inside, of whatever kind of report.

    Args:
        report: A ``.json``, ``.html`` or ``.pdf`` that carbonlens wrote.

    Raises:
        InputFileError: If it cannot be read, or carries nothing to verify it by.
        MissingExtraError: If the ``report`` extra is not installed.
    """
    content = _bytes(report)
    kind, data = _data(content, str(report))
    return kind, content, data


def _bytes(report: Path) -> bytes:
    from carbonlens.render.attachments import LARGEST_BYTES

    try:
        if report.exists() and not report.is_file():
            raise InputFileError("is no file", where=str(report), mend="give a report file")
        with report.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        said = getattr(error, "strerror", None) or error
        raise InputFileError(
            f"cannot be read ({said})", where=str(report), mend="give a report file"
        ) from error
    if len(content) > LARGEST_BYTES:
        raise InputFileError(
            "is larger than any report", where=str(report), mend="give a report that carbonlens wrote"
        )
    return content


def _data(content: bytes, where: str) -> tuple[str, bytes]:
    """Return a report's format, and the JSON inside."""
    from carbonlens.render.attachments import REPORT_JSON, of_page, of_pdf

    if content.startswith(b"%PDF-"):
        return "pdf", of_pdf(content, where)[REPORT_JSON]
    if content.lstrip()[:1] == b"{":
        return "json", content
    try:
        page = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputFileError(
            "is neither PDF, HTML nor JSON", where=where, mend="give a report that carbonlens wrote"
        ) from error
    return "html", of_page(page, where)


def _parts(data: bytes, where: str) -> dict[str, msgspec.Raw]:
    try:
        parts = decode_json(msgspec.json.format(data, indent=-1), dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _not_a_report(where, "is no JSON") from error
    said = sum(len(bytes(part)) for name, part in parts.items() if name != "evidence")
    if said > _MOST_SAID:
        raise _not_a_report(where, "is larger than any report")
    return parts


def _shape(parts: dict[str, msgspec.Raw], where: str) -> dict[str, Any]:
    from carbonlens.reporting.report_json import SCHEMA

    try:
        shape = {name: msgspec.json.decode(part) for name, part in parts.items()}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _not_a_report(where, "is no JSON") from error
    if shape.get("schema") != SCHEMA:
        raise _not_a_report(where, "is no report")
    named = shape.get("sections")
    sections = named if isinstance(named, list) else []
    is_whole = bool(sections) and all(
        isinstance(s, dict) and isinstance(s.get("name"), str) for s in sections
    )
    if not is_whole or not isinstance(shape.get("figures"), dict):
        raise _not_a_report(where, "lacks its sections or figures")
    return shape


def _sections(shape: dict[str, Any], where: str) -> tuple[str, ...]:
    """Return the names of the sections, each of which is known and stands there once."""
    from carbonlens.app.report import SECTIONS

    names = tuple(s["name"] for s in shape["sections"])
    for name in names:
        if name not in SECTIONS:
            raise _not_a_report(where, f"has a section {name[:40]!r}, known are {', '.join(SECTIONS)}")
        if names.count(name) > 1:
            raise _not_a_report(where, f"has the section {name!r} more than once")
    return names


def _not_a_report(where: str, what: str) -> InputFileError:
    return InputFileError(what, where=where, mend="give a report that carbonlens wrote")
